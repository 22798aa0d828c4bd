/*
 * Merging a configuration into an object, and taking fields out of one.
 */
#include "api/report.h"
#include "k8s/apiserver/typed_impl.h"

static json_t *merge(struct typed_walk *w, const struct typed_type *t, const json_t *live,
                     const json_t *config, unsigned depth);

static json_t *share(const json_t *value)
{
    return json_incref((json_t *)value);
}

static json_t *merge_members(struct typed_walk *w, const struct typed_type *t, const json_t *live,
                             const json_t *config, unsigned depth)
{
    json_t *merged = json_copy((json_t *)live);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)config, key, value) {
        struct typed_type type;
        typed_member(t, key, &type);
        const json_t *is = json_object_get(live, key);
        json_object_set_new(merged, key, is ? merge(w, &type, is, value, depth + 1) : share(value));
    }
    return merged;
}

/* Of two that have its name nobody can say which is meant: the configuration's replaces both. */
static const struct typed_item *the_one(const struct typed_items *items, const char *name)
{
    const struct typed_item *found = typed_find(items, name);
    const struct typed_item *next = found ? found + 1 : NULL;
    bool repeated = next && next < items->sorted + items->n && str_eq(next->name, name);
    return repeated ? NULL : found;
}

/* Appends the configuration's elements from *next up to the one at `last`. */
static void take_items(struct typed_walk *w, const struct typed_type *t,
                       const struct typed_items *live, const struct typed_items *config,
                       size_t *next, size_t last, unsigned depth, json_t *out)
{
    struct typed_type type = typed_element(t);
    for (; *next <= last && *next < config->n; (*next)++) {
        const struct typed_item *item = &config->in_order[*next];
        const struct typed_item *is = the_one(live, item->name);
        json_array_append_new(out, is ? merge(w, &type, is->value, item->value, depth + 1)
                                      : share(item->value));
    }
}

/* The first element of the configuration from `next` on that the live list has too. */
static size_t next_shared(const struct typed_items *live, const struct typed_items *config,
                          size_t next)
{
    while (next < config->n && !typed_find(live, config->in_order[next].name))
        next++;
    return next;
}

/*
 * Goes along the live list. An element of its own stays where it is. One that both have comes when
 * it is the next of these in the configuration, after what the configuration has before it; else
 * its turn comes later, and it is passed over here.
 */
static json_t *merge_items(struct typed_walk *w, const struct typed_type *t,
                           const struct typed_items *live, const struct typed_items *config,
                           unsigned depth)
{
    json_t *merged = json_array();
    size_t next = 0, shared = next_shared(live, config, 0);
    for (size_t i = 0; i < live->n; i++) {
        const struct typed_item *item = &live->in_order[i];
        const struct typed_item *wanted = typed_find(config, item->name);
        if (!wanted) {
            json_array_append(merged, item->value);
        } else if (shared == wanted->place) {
            take_items(w, t, live, config, &next, shared, depth, merged);
            shared = next_shared(live, config, next);
        }
    }
    take_items(w, t, live, config, &next, config->n, depth, merged);
    return merged;
}

static json_t *merge(struct typed_walk *w, const struct typed_type *t, const json_t *live,
                     const json_t *config, unsigned depth)
{
    struct typed_items is, wanted;
    enum typed_shape shape = typed_look(w, t, config, depth, &wanted);
    if (shape == TYPED_LEAF || typed_declared(w, t, live, depth, &is) != shape)
        return share(config);
    if (shape == TYPED_OBJECT)
        return merge_members(w, t, live, config, depth);
    if (is.missing)
        return share(config);
    return merge_items(w, t, &is, &wanted, depth);
}

json_t *typed_merge(struct arena *a, const struct api_kind *kind, const json_t *live,
                    const json_t *config)
{
    _cleanup_(typed_walk_done) struct typed_walk w = {.arena = a, .kind = kind};
    struct typed_type root = typed_root(kind);
    return merge(&w, &root, live, config, 0);
}

static json_t *remove_fields(struct typed_walk *w, const struct typed_type *t, const json_t *value,
                             const struct fieldset *set, unsigned depth);

static json_t *remove_members(struct typed_walk *w, const struct typed_type *t,
                              const json_t *object, const struct fieldset *set, unsigned depth)
{
    json_t *rest = json_copy((json_t *)object);
    for (; set && set->step == FIELDSET_FIELD; set = set->next) {
        const json_t *member = json_object_get(object, set->name);
        if (!member)
            continue;
        struct typed_type type;
        typed_member(t, set->name, &type);
        json_t *left =
            set->member ? NULL : remove_fields(w, &type, member, set->children, depth + 1);
        if (left)
            json_object_set_new(rest, set->name, left);
        else
            json_object_del(rest, set->name);
    }
    return rest;
}

static json_t *remove_items(struct typed_walk *w, const struct typed_type *t,
                            enum typed_shape shape, const struct typed_items *items,
                            const struct fieldset *set, unsigned depth)
{
    struct typed_type type = typed_element(t);
    json_t **left = arena_alloc(w->arena, items->n * sizeof(json_t *));
    for (size_t i = 0; i < items->n; i++) {
        const struct typed_item *item = &items->sorted[i];
        while (set && (set->step < typed_step(shape) ||
                       (set->step == typed_step(shape) && strcmp(set->name, item->name) < 0)))
            set = set->next;
        bool listed = set && set->step == typed_step(shape) && str_eq(set->name, item->name);
        if (!listed)
            left[item->place] = share(item->value);
        else if (!set->member)
            left[item->place] = remove_fields(w, &type, item->value, set->children, depth + 1);
    }
    json_t *rest = json_array();
    for (size_t i = 0; i < items->n; i++) {
        if (left[i])
            json_array_append_new(rest, left[i]);
    }
    return rest;
}

/* What is left; NULL when something went and nothing remains, since empty is not how it was made. */
static json_t *remove_fields(struct typed_walk *w, const struct typed_type *t, const json_t *value,
                             const struct fieldset *set, unsigned depth)
{
    struct typed_items items;
    enum typed_shape shape = set ? typed_look(w, t, value, depth, &items) : TYPED_LEAF;
    if (shape == TYPED_LEAF)
        return share(value);
    bool object = shape == TYPED_OBJECT;
    size_t before = object ? json_object_size(value) : items.n;
    if (before == 0)
        return share(value);
    json_t *rest = object ? remove_members(w, t, value, set, depth)
                          : remove_items(w, t, shape, &items, set, depth);
    if (object ? json_object_size(rest) : json_array_size(rest))
        return rest;
    json_decref(rest);
    return NULL;
}

json_t *typed_remove(struct arena *a, const struct api_kind *kind, const json_t *object,
                     const struct fieldset *set)
{
    _cleanup_(typed_walk_done) struct typed_walk w = {.arena = a, .kind = kind};
    struct typed_type root = typed_root(kind);
    json_t *rest = remove_fields(&w, &root, object, set, 0);
    return rest ? rest : json_object();
}

static struct fieldset *named(struct arena *a, const struct typed_type *t,
                              const struct fieldset *set)
{
    struct fieldset_level level = {0};
    for (; set; set = set->next) {
        struct typed_type type = typed_element(t);
        bool field = false;
        if (set->step == FIELDSET_FIELD)
            field = typed_member(t, set->name, &type) && type.place != TYPED_METADATA;
        fieldset_add(a, &level, set->step, set->name, set->member || field,
                     named(a, &type, set->children));
    }
    return level.first;
}

const struct fieldset *typed_named(struct arena *a, const struct api_kind *kind,
                                   const struct fieldset *set)
{
    struct typed_type root = typed_root(kind);
    return named(a, &root, set);
}

static void append_path(const struct api_path *at, struct str *out)
{
    if (!at)
        return;
    append_path(at->parent, out);
    if (at->key)
        str_appendf(out, ".%s", at->key);
    else
        str_appendf(out, "[%zu]", at->index);
}

static int unclear(const struct api_path *at, enum typed_shape shape,
                   const struct typed_items *items, struct err *e)
{
    _cleanup_(str_done) struct str path = {0};
    append_path(at, &path);
    if (items->missing && shape == TYPED_SET)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                       "%s: element %zu: a set can hold only scalars", str_get(&path), items->n);
    if (items->missing)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                       "%s: element %zu: associative list with keys has an element that omits key "
                       "field \"%s\" (and doesn't have default value)",
                       str_get(&path), items->n, items->missing);
    size_t i = 1;
    while (!str_eq(items->sorted[i - 1].name, items->sorted[i].name))
        i++;
    str_append(&path, ": duplicate entries for key ");
    fieldset_append_step(typed_step(shape), items->sorted[i].name, &path);
    return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "%s", str_get(&path));
}

static int check(struct typed_walk *w, const struct typed_type *t, const json_t *value,
                 unsigned depth, const struct api_path *at, struct err *e)
{
    struct typed_items items;
    struct typed_type type = typed_element(t);
    enum typed_shape shape = typed_declared(w, t, value, depth, &items);
    if (shape == TYPED_LEAF)
        return 0;
    if (shape != TYPED_OBJECT) {
        if (items.missing || items.repeated)
            return unclear(at, shape, &items, e);
        for (size_t i = 0; i < items.n; i++) {
            if (check(w, &type, items.in_order[i].value, depth + 1, API_AT(at, i), e) < 0)
                return -1;
        }
        return 0;
    }
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)value, key, member) {
        typed_member(t, key, &type);
        if (check(w, &type, member, depth + 1, API_KEY(at, key), e) < 0)
            return -1;
    }
    return 0;
}

int typed_check(struct arena *a, const struct api_kind *kind, const json_t *config, struct err *e)
{
    _cleanup_(typed_walk_done) struct typed_walk w = {.arena = a, .kind = kind};
    struct typed_type root = typed_root(kind);
    return check(&w, &root, config, 0, NULL, e);
}
