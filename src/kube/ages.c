#include "kube/ages.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

enum { ENTRIES = 1024 };

static const int64_t FORGET = 3600 * CLOCK_SECOND;

/* The times are of the clock that goes on while the machine sleeps. */
struct entry {
    int64_t stamp, seen, asked;
    int64_t made; /* when the stamp was, by what the wall clock said when it was seen */
};

struct kube_ages {
    const struct clock *clock;
    pthread_mutex_t lock;
    struct map entries;
    size_t most; /* how many there may be before some are forgotten */
};

struct kube_ages *kube_ages_new(const struct clock *clock)
{
    struct kube_ages *a = NEW(struct kube_ages);
    a->clock = clock;
    a->most = ENTRIES;
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

void kube_ages_free(struct kube_ages *a)
{
    if (!a)
        return;
    map_for_each(&a->entries, it)
        free(it->value);
    map_done(&a->entries);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* Those that are still asked for stay, however many they are. */
static void forget_old(struct kube_ages *a, int64_t now)
{
    map_for_each(&a->entries, it) {
        const struct entry *entry = it->value;
        if (now - entry->asked > FORGET)
            free(map_remove(&a->entries, it->key));
    }
    a->most = a->entries.count * 2 > ENTRIES ? a->entries.count * 2 : ENTRIES;
}

static struct entry look(struct kube_ages *a, const char *key, int64_t stamp_ns, int64_t now)
{
    pthread_mutex_lock(&a->lock);
    struct entry *entry = map_get(&a->entries, key);
    if (!entry && a->entries.count >= a->most)
        forget_old(a, now);
    if (!entry) {
        entry = NEW(struct entry);
        entry->stamp = stamp_ns + 1; /* any other */
        map_set(&a->entries, key, entry);
    }
    if (entry->stamp != stamp_ns) {
        int64_t age = clock_real_ns(a->clock) - stamp_ns;
        *entry = (struct entry){.stamp = stamp_ns, .seen = now, .made = now - (age > 0 ? age : 0)};
    }
    entry->asked = now;
    struct entry found = *entry;
    pthread_mutex_unlock(&a->lock);
    return found;
}

int64_t kube_ages_now(struct kube_ages *a, const char *key, int64_t stamp_ns)
{
    int64_t now = clock_boot_ns(a->clock);
    return stamp_ns + now - look(a, key, stamp_ns, now).made;
}

int64_t kube_ages_seen(struct kube_ages *a, const char *key, int64_t stamp_ns)
{
    int64_t now = clock_boot_ns(a->clock);
    return now - look(a, key, stamp_ns, now).seen;
}
