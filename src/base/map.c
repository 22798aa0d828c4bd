#include "base/map.h"

#include <pthread.h>
#include <unistd.h>

#include "base/mem.h"

static uint64_t seed[2];

static void draw_seed(void)
{
    if (getentropy(seed, sizeof(seed)) < 0)
        abort();
}

static inline uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

/* SipHash-1-3: one round per word, three at the end; what hash tables elsewhere settled on. */
static uint64_t hash_of(const char *key)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw_seed);

    size_t len = strlen(key), i = 0;
    uint64_t v[4] = {
        seed[0] ^ 0x736f6d6570736575, /* the constants of the SipHash paper */
        seed[1] ^ 0x646f72616e646f6d,
        seed[0] ^ 0x6c7967656e657261,
        seed[1] ^ 0x7465646279746573,
    };
    for (; i + 8 <= len; i += 8) {
        uint64_t word;
        memcpy(&word, key + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)len << 56;
    memcpy(&last, key + i, len - i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int round = 0; round < 3; round++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_done(struct map *m)
{
    map_for_each(m, it)
        free(it->key);
    free(m->entries);
    free(m->slots);
    *m = (struct map){0};
}

/* The slot that holds key, or the free slot where it belongs. The table always has a free slot. */
static size_t slot_of(const struct map *m, const char *key, uint64_t hash)
{
    size_t i = hash & (m->nslots - 1);
    for (; m->slots[i]; i = (i + 1) & (m->nslots - 1)) {
        const struct map_entry *entry = &m->entries[m->slots[i] - 1];
        if (entry->key && entry->hash == hash && strcmp(entry->key, key) == 0)
            break;
    }
    return i;
}

/*
 * Makes room: squeezes the holes out, and doubles unless that frees a quarter of the entries. Else a
 * map at its limit, whose keys come and go, would be squeezed again for every key.
 */
static void grow(struct map *m)
{
    size_t nslots = m->nslots ? m->nslots : 8;
    while (m->count * 8 >= nslots * 3)
        nslots *= 2;

    struct map_entry *entries = mem_realloc_array(NULL, nslots / 2 + 1, sizeof(*entries));
    uint32_t *slots = mem_zalloc(nslots * sizeof(*slots));
    size_t used = 0;
    map_for_each(m, it) {
        entries[used++] = *it;
        size_t i = it->hash & (nslots - 1);
        while (slots[i])
            i = (i + 1) & (nslots - 1);
        slots[i] = (uint32_t)used;
    }
    free(m->entries);
    free(m->slots);
    m->entries = entries;
    m->slots = slots;
    m->nslots = nslots;
    m->used = used;
}

static struct map_entry *find(const struct map *m, const char *key, uint64_t hash)
{
    if (!m->nslots)
        return NULL;
    uint32_t at = m->slots[slot_of(m, key, hash)];
    return at ? &m->entries[at - 1] : NULL;
}

void *map_get(const struct map *m, const char *key)
{
    const struct map_entry *entry = find(m, key, hash_of(key));
    return entry ? entry->value : NULL;
}

bool map_has(const struct map *m, const char *key)
{
    return find(m, key, hash_of(key)) != NULL;
}

void *map_set(struct map *m, const char *key, void *value)
{
    uint64_t hash = hash_of(key);
    struct map_entry *entry = find(m, key, hash);
    if (entry) {
        void *old = entry->value;
        entry->value = value;
        return old;
    }
    if (!m->entries || m->used * 2 >= m->nslots)
        grow(m);
    size_t slot = slot_of(m, key, hash);
    m->entries[m->used] = (struct map_entry){mem_strdup(key), value, hash};
    m->slots[slot] = (uint32_t)++m->used;
    m->count++;
    return NULL;
}

void *map_remove(struct map *m, const char *key)
{
    struct map_entry *entry = find(m, key, hash_of(key));
    if (!entry)
        return NULL;
    /* The slot keeps pointing at the hole, so that probes walk on past it, until grow(). */
    free(entry->key);
    entry->key = NULL;
    m->count--;
    return entry->value;
}
