#include "k8s/apiserver/limit.h"

#include <pthread.h>

#include "base/map.h"
#include "base/mem.h"

enum { CLIENTS = 4096 };

struct bucket {
    int64_t full_at; /* monotonic time */
};

struct apiserver_limits {
    struct apiserver_limit_options o;
    const struct clock *clock;
    _Atomic unsigned in_flight;
    pthread_mutex_t lock;
    struct map recent, older; /* client -> struct bucket; a client is in one of them */
};

static void forget(struct map *buckets)
{
    map_for_each(buckets, it)
        free(it->value);
    map_done(buckets);
    *buckets = (struct map){0};
}

struct apiserver_limits *apiserver_limits_new(const struct apiserver_limit_options *options,
                                              const struct clock *clock)
{
    struct apiserver_limits *l = NEW(struct apiserver_limits);
    l->o = *options;
    l->clock = clock;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void apiserver_limits_free(struct apiserver_limits *l)
{
    if (!l)
        return;
    forget(&l->recent);
    forget(&l->older);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static struct bucket *find(struct apiserver_limits *l, const char *client)
{
    struct bucket *b = map_get(&l->recent, client);
    if (b)
        return b;
    b = map_remove(&l->older, client);
    if (!b)
        b = NEW(struct bucket);
    if (l->recent.count >= CLIENTS) {
        forget(&l->older);
        l->older = l->recent;
        l->recent = (struct map){0};
    }
    map_set(&l->recent, client, b);
    return b;
}

/* Takes one request out of the client's bucket; false when there is none in it. */
static bool take(struct apiserver_limits *l, const char *client)
{
    if (!client || !l->o.per_second)
        return true;
    int64_t each = CLOCK_SECOND / l->o.per_second, now = clock_mono_ns(l->clock);
    int64_t whole = each * (l->o.burst ? l->o.burst : 1);
    pthread_mutex_lock(&l->lock);
    struct bucket *b = find(l, client);
    int64_t full_at = (b->full_at > now ? b->full_at : now) + each;
    bool taken = full_at - now <= whole;
    if (taken)
        b->full_at = full_at;
    pthread_mutex_unlock(&l->lock);
    return taken;
}

int apiserver_limit_begin(struct apiserver_limits *l, const char *client, struct err *e)
{
    unsigned before = l->in_flight++;
    if ((!l->o.in_flight || before < l->o.in_flight) && take(l, client))
        return 0;
    l->in_flight--;
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "TooManyRequests",
                   "too many requests, please try again later.");
}

void apiserver_limit_end(struct apiserver_limits *l)
{
    l->in_flight--;
}
