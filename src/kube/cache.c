#include "kube/cache.h"

struct kube_index_values {
    struct str pairs;
    char index;
};

void kube_index_add(struct kube_index_values *out, const char *value)
{
    str_append_c(&out->pairs, out->index);
    str_append_n(&out->pairs, value, strlen(value) + 1);
}

/* Walks the pairs of an entry: `pair` points to the byte, the string is behind it. */
#define for_each_pair(entry, pair)                                                                 \
    for (const char *pair = (entry)->values; pair < (entry)->values + (entry)->size;               \
         pair += strlen(pair + 1) + 2)

static void index_clear(struct cache_index *x)
{
    map_for_each(&x->keys, it) {
        map_done(it->value);
        free(it->value);
    }
    map_done(&x->keys);
}

void cache_done(struct cache *c)
{
    map_for_each(&c->entries, it)
        cache_entry_free(it->value);
    map_done(&c->entries);
    for (size_t i = 0; i < c->n_indexes; i++)
        index_clear(&c->indexes[i]);
}

int cache_add_index(struct cache *c, const struct kube_index *index)
{
    if (c->n_indexes == CACHE_INDEXES_MAX)
        return -1;
    for (size_t i = 0; i < c->n_indexes; i++) {
        if (str_eq(c->indexes[i].index->name, index->name))
            return -1;
    }
    c->indexes[c->n_indexes++].index = index;
    return 0;
}

struct cache_entry *cache_entry_new(const struct cache *c, struct kube_object *object,
                                    const json_t *tree)
{
    struct kube_index_values out = {0};
    for (size_t i = 0; i < c->n_indexes; i++) {
        out.index = (char)i;
        c->indexes[i].index->values(tree, &out);
    }
    struct cache_entry *e = mem_alloc(sizeof(*e) + out.pairs.len);
    *e = (struct cache_entry){.object = object, .size = out.pairs.len};
    if (out.pairs.len)
        memcpy(e->values, out.pairs.p, out.pairs.len);
    str_done(&out.pairs);
    return e;
}

void cache_entry_free(struct cache_entry *e)
{
    if (!e)
        return;
    kube_object_unref(e->object);
    free(e);
}

static void index_entry(struct cache *c, const char *key, struct cache_entry *e)
{
    for_each_pair(e, pair)
    {
        struct cache_index *x = &c->indexes[(unsigned char)*pair];
        struct map *keys = map_get(&x->keys, pair + 1);
        if (!keys) {
            keys = NEW(struct map);
            map_set(&x->keys, pair + 1, keys);
        }
        map_set(keys, key, e);
    }
}

static void unindex_entry(struct cache *c, const char *key, const struct cache_entry *e)
{
    for_each_pair(e, pair)
    {
        struct cache_index *x = &c->indexes[(unsigned char)*pair];
        struct map *keys = map_get(&x->keys, pair + 1);
        if (!keys) /* the object said the same value twice */
            continue;
        map_remove(keys, key);
        if (keys->count == 0) {
            map_remove(&x->keys, pair + 1);
            map_done(keys);
            free(keys);
        }
    }
}

struct kube_object *cache_get(const struct cache *c, const char *key)
{
    const struct cache_entry *e = map_get(&c->entries, key);
    return e ? e->object : NULL;
}

struct cache_entry *cache_set(struct cache *c, const char *key, struct cache_entry *entry)
{
    struct cache_entry *old =
        entry ? map_set(&c->entries, key, entry) : map_remove(&c->entries, key);
    if (old)
        unindex_entry(c, key, old);
    if (entry)
        index_entry(c, key, entry);
    return old;
}

void cache_swap(struct cache *c, struct map *entries)
{
    struct map old = c->entries;
    c->entries = *entries;
    *entries = old;
    for (size_t i = 0; i < c->n_indexes; i++)
        index_clear(&c->indexes[i]);
    map_for_each(&c->entries, it)
        index_entry(c, it->key, it->value);
}

void cache_find(const struct cache *c, const char *index, const char *value,
                struct kube_objects *ret_list)
{
    for (size_t i = 0; i < c->n_indexes; i++) {
        if (!str_eq(c->indexes[i].index->name, index))
            continue;
        const struct map *keys = map_get(&c->indexes[i].keys, value);
        if (!keys)
            return;
        map_for_each(keys, it)
            vec_push(ret_list, kube_object_ref(((struct cache_entry *)it->value)->object));
    }
}
