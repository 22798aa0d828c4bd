/*
 * The fields of an object, and the fields that two objects differ in. Both are the same walk; of
 * what only one object has, every step is a change, also those that only lead to others.
 */
#include "k8s/apiserver/typed_impl.h"

/*
 * Where the values of built-in kinds always have an object or a list, if an empty one, it cannot be
 * added: clients of the original expect sets without it.
 */
static bool is_always_there(const struct typed_walk *w, const struct typed_type *parent,
                            const struct api_field *field)
{
    return w->kind->flags & API_BUILTIN && field && !parent->fresh &&
           (parent->place == TYPED_ROOT || field->flags & (API_REQUIRED | API_EMBEDDED) ||
            (field->def && field->def[0] == '{'));
}

static struct fieldset *fields_of(struct typed_walk *w, const struct typed_type *t,
                                  const json_t *value, unsigned depth, bool *ret_leaf);

/* Adds a member and what is below it. */
static void add_member(struct typed_walk *w, const struct typed_type *parent, const char *key,
                       const json_t *value, unsigned depth, struct fieldset_level *level)
{
    struct typed_type t;
    const struct api_field *named = typed_member(parent, key, &t);
    bool leaf;
    t.fresh = !is_always_there(w, parent, named);
    struct fieldset *children = fields_of(w, &t, value, depth + 1, &leaf);
    bool empty = json_is_object(value) && json_object_size(value) == 0;
    bool member = leaf || empty || !named || (w->every && t.fresh);
    fieldset_add(w->arena, level, FIELDSET_FIELD, key, member && t.place != TYPED_METADATA,
                 children);
}

static void add_item(struct typed_walk *w, const struct typed_type *list, enum typed_shape shape,
                     const struct typed_item *item, unsigned depth, struct fieldset_level *level)
{
    struct typed_type t = typed_element(list);
    bool leaf;
    t.fresh = true;
    struct fieldset *children = fields_of(w, &t, item->value, depth + 1, &leaf);
    fieldset_add(w->arena, level, typed_step(shape), item->name, true, children);
}

/* The fields below a value; *ret_leaf: it is one itself, whatever it holds. */
static struct fieldset *fields_of(struct typed_walk *w, const struct typed_type *t,
                                  const json_t *value, unsigned depth, bool *ret_leaf)
{
    struct fieldset_level level = {0};
    struct typed_items items;
    enum typed_shape shape = typed_look(w, t, value, depth, &items);
    *ret_leaf = shape == TYPED_LEAF;
    if (shape == TYPED_LEAF)
        return NULL;
    if (shape == TYPED_OBJECT) {
        const char *key;
        json_t *member;
        json_object_foreach((json_t *)value, key, member) {
            if (!typed_is_untracked(t, key))
                add_member(w, t, key, member, depth, &level);
        }
    } else {
        for (size_t i = 0; i < items.n; i++)
            add_item(w, t, shape, &items.sorted[i], depth, &level);
    }
    return fieldset_finish(w->arena, &level);
}

const struct fieldset *typed_set(struct arena *a, const struct api_kind *kind, const json_t *object)
{
    _cleanup_(typed_walk_done) struct typed_walk w = {.arena = a, .kind = kind};
    struct typed_type root = typed_root(kind);
    bool leaf;
    return fields_of(&w, &root, object, 0, &leaf);
}

/* The changes of one level. */
struct levels {
    struct fieldset_level added, modified, removed;
};

/* The changes at a value and below it. */
struct delta {
    bool modified;
    struct fieldset *in_added, *in_modified, *in_removed;
};

static struct delta compare(struct typed_walk *w, const struct typed_type *t, const json_t *old,
                            const json_t *value, unsigned depth);

static void add_delta(struct typed_walk *w, enum fieldset_step step, const char *name,
                      const struct delta *d, struct levels *l)
{
    fieldset_add(w->arena, &l->added, step, name, false, d->in_added);
    fieldset_add(w->arena, &l->modified, step, name, d->modified, d->in_modified);
    fieldset_add(w->arena, &l->removed, step, name, false, d->in_removed);
}

static void compare_members(struct typed_walk *w, const struct typed_type *t, const json_t *old,
                            const json_t *object, unsigned depth, struct levels *l)
{
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)object, key, member) {
        if (typed_is_untracked(t, key))
            continue;
        const json_t *was = json_object_get(old, key);
        if (!was) {
            add_member(w, t, key, member, depth, &l->added);
            continue;
        }
        struct typed_type type;
        typed_member(t, key, &type);
        struct delta d = compare(w, &type, was, member, depth + 1);
        add_delta(w, FIELDSET_FIELD, key, &d, l);
    }
    json_object_foreach((json_t *)old, key, member) {
        if (!json_object_get(object, key) && !typed_is_untracked(t, key))
            add_member(w, t, key, member, depth, &l->removed);
    }
}

static void compare_items(struct typed_walk *w, const struct typed_type *t, enum typed_shape shape,
                          const struct typed_items *old, const struct typed_items *items,
                          unsigned depth, struct levels *l)
{
    struct typed_type type = typed_element(t);
    for (size_t i = 0, j = 0; i < old->n || j < items->n;) {
        const struct typed_item *was = &old->sorted[i], *is = &items->sorted[j];
        int order = i == old->n ? 1 : j == items->n ? -1 : strcmp(was->name, is->name);
        if (order < 0) {
            add_item(w, t, shape, was, depth, &l->removed);
        } else if (order > 0) {
            add_item(w, t, shape, is, depth, &l->added);
        } else {
            struct delta d = compare(w, &type, was->value, is->value, depth + 1);
            add_delta(w, typed_step(shape), is->name, &d, l);
        }
        i += order <= 0;
        j += order >= 0;
    }
}

static struct delta compare(struct typed_walk *w, const struct typed_type *t, const json_t *old,
                            const json_t *value, unsigned depth)
{
    struct levels l = {0};
    struct delta d = {0};
    bool leaf;
    struct typed_items before, after;
    enum typed_shape was = typed_look(w, t, old, depth, &before);
    enum typed_shape is = typed_look(w, t, value, depth, &after);
    if (was != is) { /* another kind of value: what was below it has gone with it */
        d.modified = true;
        d.in_removed = fields_of(w, t, old, depth, &leaf);
        d.in_added = fields_of(w, t, value, depth, &leaf);
        return d;
    }
    if (was == TYPED_LEAF) {
        d.modified = !json_equal(old, value);
        return d;
    }
    if (was == TYPED_OBJECT)
        compare_members(w, t, old, value, depth, &l);
    else
        compare_items(w, t, was, &before, &after, depth, &l);
    d.in_added = fieldset_finish(w->arena, &l.added);
    d.in_modified = fieldset_finish(w->arena, &l.modified);
    d.in_removed = fieldset_finish(w->arena, &l.removed);
    return d;
}

struct typed_changes typed_compare(struct arena *a, const struct api_kind *kind, const json_t *old,
                                   const json_t *object)
{
    _cleanup_(typed_walk_done) struct typed_walk w = {.arena = a, .kind = kind, .every = true};
    struct typed_type root = typed_root(kind);
    bool leaf;
    if (!old)
        return (struct typed_changes){.added = fields_of(&w, &root, object, 0, &leaf)};
    struct delta d = compare(&w, &root, old, object, 0);
    return (struct typed_changes){d.in_added, d.in_modified, d.in_removed};
}
