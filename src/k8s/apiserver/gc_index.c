#include "k8s/apiserver/gc_index.h"

static void node_free(struct gc_node *node)
{
    vec_for_each(&node->owners, o)
        free(o->uid);
    vec_done(&node->owners);
    free(node->id);
    free(node);
}

void gc_index_done(struct gc_index *x)
{
    map_for_each(&x->dependents, it) {
        map_done(it->value);
        free(it->value);
    }
    map_done(&x->dependents);
    map_for_each(&x->nodes, it)
        node_free(it->value);
    map_done(&x->nodes);
    *x = (struct gc_index){0};
}

const struct gc_node *gc_index_node(const struct gc_index *x, const char *id)
{
    return map_get(&x->nodes, id);
}

const struct map *gc_index_dependents(const struct gc_index *x, const char *uid)
{
    return map_get(&x->dependents, uid);
}

bool gc_index_is_blocked(const struct gc_index *x, const char *uid)
{
    const struct map *dependents = gc_index_dependents(x, uid);
    if (!dependents)
        return false;
    map_for_each(dependents, it) {
        const struct gc_node *node = it->value;
        vec_for_each(&node->owners, o) {
            if (o->blocks && strcmp(o->uid, uid) == 0)
                return true;
        }
    }
    return false;
}

static struct gc_node *node_new(const char *id, const json_t *references)
{
    struct gc_node *node = NEW(struct gc_node);
    node->id = mem_strdup(id);
    size_t i;
    json_t *reference;
    json_array_foreach(references, i, reference) {
        const char *uid = json_str(reference, "uid");
        if (uid && *uid)
            vec_push(&node->owners, (struct gc_reference){.uid = mem_strdup(uid),
                                                          .blocks = json_is_true(json_object_get(
                                                              reference, "blockOwnerDeletion"))});
    }
    return node;
}

static bool is_same(const struct gc_node *a, const struct gc_node *b)
{
    if (a->owners.len != b->owners.len)
        return false;
    for (size_t i = 0; i < a->owners.len; i++) {
        if (!str_eq(a->owners.p[i].uid, b->owners.p[i].uid) ||
            a->owners.p[i].blocks != b->owners.p[i].blocks)
            return false;
    }
    return true;
}

static void unlink_node(struct gc_index *x, struct gc_node *node)
{
    vec_for_each(&node->owners, o) {
        struct map *ids = map_get(&x->dependents, o->uid);
        if (!ids)
            continue; /* the same owner twice */
        map_remove(ids, node->id);
        if (!ids->count) {
            map_done(ids);
            free(map_remove(&x->dependents, o->uid));
        }
    }
    map_remove(&x->nodes, node->id);
    node_free(node);
}

static void link_node(struct gc_index *x, struct gc_node *node)
{
    map_set(&x->nodes, node->id, node);
    vec_for_each(&node->owners, o) {
        struct map *ids = map_get(&x->dependents, o->uid);
        if (!ids) {
            ids = NEW(struct map);
            map_set(&x->dependents, o->uid, ids);
        }
        map_set(ids, node->id, node);
    }
}

bool gc_index_set(struct gc_index *x, const char *id, const json_t *references)
{
    struct gc_node *node = node_new(id, references), *before = map_get(&x->nodes, id);
    bool same = before ? is_same(before, node) : !node->owners.len;
    if (same || !node->owners.len) {
        node_free(node);
        node = NULL;
    }
    if (same)
        return false;
    if (before)
        unlink_node(x, before);
    if (node)
        link_node(x, node);
    return true;
}
