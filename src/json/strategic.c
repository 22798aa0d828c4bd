/*
 * Strategic merge of objects.
 *
 * The patch looks like the document, and the schema says of each list whether it is replaced or
 * merged. Directives in the patch override that:
 *
 *   $patch: replace|delete          the object becomes the rest of the patch, or empty
 *   $retainKeys: [k, ...]           other members of the document go
 *   $setElementOrder/x: [...]       x is merged, then put in this order
 *   $deleteFromPrimitiveList/x: []  these scalars leave x
 *
 * The result is what kubectl prints, to the letter. That includes that values which replace
 * something whole (an atomic list, an object under $patch: replace, a new list element) are taken
 * as they are, nulls and directives inside them included: the schema's decoder drops those.
 *
 * Every recursion here follows the patch, whose depth is checked before anything else.
 */
#include "json/strategic.h"

#include "base/map.h"
#include "json/internal.h"
#include "json/pointer.h"
#include "json/share.h"

static const char PATCH[] = "$patch";
static const char RETAIN_KEYS[] = "$retainKeys";
static const char ELEMENT_ORDER[] = "$setElementOrder";
static const char DELETE_SCALARS[] = "$deleteFromPrimitiveList";

int smp_error(struct smp *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(s->e, ERR_INVALID_ARGUMENT, "InvalidPatch", fmt, ap);
    va_end(ap);
    return err_prefix(s->e, "%.400s", s->path.len ? str_get(&s->path) : "the patch");
}

static struct json_smp_field lookup(const struct smp *s, const void *node, const char *name)
{
    struct json_smp_field field = {0};
    if (node && s->schema->field(node, name, &field))
        return field;
    return (struct json_smp_field){.list = JSON_LIST_ATOMIC};
}

static bool has_directive(const json_t *value)
{
    return json_object_get(value, PATCH) != NULL;
}

static bool is_plain(const json_t *value, bool drop_nulls)
{
    size_t i;
    const char *key;
    json_t *child;
    json_array_foreach(value, i, child) {
        if (!is_plain(child, drop_nulls))
            return false;
    }
    json_object_foreach(json_unconst(value), key, child) {
        if ((drop_nulls && json_is_null(child)) || !is_plain(child, drop_nulls))
            return false;
    }
    return !has_directive(value);
}

static json_t *rebuild_plain(const json_t *value, bool drop_nulls)
{
    if (has_directive(value))
        return NULL;
    if (!json_is_array(value) && !json_is_object(value))
        return json_share(value);
    json_t *plain = json_is_array(value) ? json_array() : json_object();
    size_t i;
    const char *key;
    json_t *child, *kept;
    json_array_foreach(value, i, child) {
        if ((kept = rebuild_plain(child, drop_nulls)))
            json_array_append_new(plain, kept);
    }
    json_object_foreach(json_unconst(value), key, child) {
        if (drop_nulls && json_is_null(child))
            continue;
        if ((kept = rebuild_plain(child, drop_nulls)))
            json_object_set_new_nocheck(plain, key, kept);
    }
    return plain;
}

json_t *smp_plain(const json_t *value, bool drop_nulls)
{
    return is_plain(value, drop_nulls) ? json_share(value) : rebuild_plain(value, drop_nulls);
}

static int apply_directive(struct smp *s, json_t **target, const json_t *patch)
{
    const char *directive = json_str(patch, PATCH);
    json_t *result;
    if (directive && str_eq(directive, "replace")) {
        result = json_copy(json_unconst(patch));
        json_object_del(result, PATCH);
    } else if (directive && str_eq(directive, "delete")) {
        result = json_object();
    } else {
        return smp_error(s, "$patch in an object is \"replace\" or \"delete\"; "
                            "to merge, leave it out");
    }
    json_decref(*target);
    *target = result;
    return 0;
}

static int retain_keys(struct smp *s, json_t *target, const json_t *patch)
{
    const json_t *keys = json_object_get(patch, RETAIN_KEYS);
    if (!keys)
        return 0;
    if (!json_is_array(keys))
        return smp_error(s, "$retainKeys is a list of member names, not of type %s",
                         json_type_name(keys));
    _cleanup_(map_done) struct map retained = {0};
    size_t i;
    json_t *value;
    json_array_foreach(keys, i, value) {
        if (!json_is_string(value))
            return smp_error(s,
                             "$retainKeys is a list of member names, but element %zu is of type "
                             "%s",
                             i, json_type_name(value));
        map_set(&retained, json_string_value(value), value);
    }

    const char *key;
    void *next;
    json_object_foreach(json_unconst(patch), key, value) {
        bool directive = str_eq(key, RETAIN_KEYS) || str_starts_with(key, ELEMENT_ORDER) ||
                         str_starts_with(key, DELETE_SCALARS);
        if (!directive && !json_is_null(value) && !map_has(&retained, key))
            return smp_error(s, "the patch sets \"%.200s\", which its $retainKeys does not name",
                             key);
    }
    json_object_foreach_safe(target, next, key, value) {
        if (!map_has(&retained, key))
            json_object_del(target, key);
    }
    return 0;
}

/* The field that a directive `$name/field` is about; NULL and an error when it names none. */
static const char *directive_field(struct smp *s, const char *key, const char *directive)
{
    size_t n = strlen(directive);
    if (key[n] == '/')
        return key + n + 1;
    smp_error(s, "\"%.200s\": write %s/ and the name of the list", key, directive);
    return NULL;
}

static int set_order(struct smp *s, json_t *target, const json_t *patch, const char *name,
                     const json_t *order, const void *node)
{
    const json_t *old = json_object_get(target, name), *new = json_object_get(patch, name);
    if (!json_is_array(order) || (old && !json_is_array(old)) || (new && !json_is_array(new)))
        return smp_error(s,
                         "$setElementOrder/%.200s orders a list by a list, "
                         "and one of them is no list",
                         name);
    if (!old && !new)
        return 0;
    struct json_smp_field field = lookup(s, node, name);
    json_t *list = smp_merge_ordered(s, old, new, order, &field);
    if (!list)
        return -1;
    json_object_set_new_nocheck(target, name, list);
    return 0;
}

/* Applies every $setElementOrder, with the lists they are about; names those in `done`. */
static int set_orders(struct smp *s, json_t *target, const json_t *patch, const void *node,
                      struct map *done)
{
    const char *key;
    json_t *order;
    json_object_foreach(json_unconst(patch), key, order) {
        if (!str_starts_with(key, ELEMENT_ORDER))
            continue;
        const char *name = directive_field(s, key, ELEMENT_ORDER);
        if (!name)
            return -1;
        size_t parent = s->path.len;
        json_pointer_append(&s->path, name);
        if (set_order(s, target, patch, name, order, node) < 0)
            return -1;
        str_truncate(&s->path, parent);
        map_set(done, name, order);
    }
    return 0;
}

static int delete_scalars(struct smp *s, json_t *target, const char *name, const json_t *gone)
{
    const json_t *old = json_object_get(target, name);
    if (!json_is_array(old) || !json_is_array(gone))
        return 0;
    json_t *rest = smp_delete_scalars(s, old, gone);
    if (!rest)
        return -1;
    json_object_set_new_nocheck(target, name, rest);
    return 0;
}

/* Merges one member that the patch sets. */
static int set_member(struct smp *s, json_t *target, const char *name, const json_t *value,
                      const void *node)
{
    const json_t *old = json_object_get(target, name);
    bool objects = json_is_object(old) && json_is_object(value);
    bool lists = json_is_array(old) && json_is_array(value);
    if (!objects && !lists) {
        json_t *plain = smp_plain(value, true);
        if (plain)
            json_object_set_new_nocheck(target, name, plain);
        else
            json_object_del(target, name);
        return 0;
    }

    struct json_smp_field field = lookup(s, node, name);
    json_auto_t *merged = NULL;
    if (lists) {
        merged = smp_merge_list(s, old, value, &field);
        if (!merged)
            return -1;
    } else if (field.replace) {
        merged = json_share(value);
    } else {
        merged = json_share(old);
        if (smp_merge_object(s, &merged, value, field.node) < 0)
            return -1;
    }
    json_object_set_nocheck(target, name, merged);
    return 0;
}

static int merge_members(struct smp *s, json_t *target, const json_t *patch, const void *node,
                         const struct map *done)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_unconst(patch), key, value) {
        if (str_starts_with(key, ELEMENT_ORDER) || str_eq(key, RETAIN_KEYS) || map_has(done, key))
            continue;
        bool deletes = str_starts_with(key, DELETE_SCALARS);
        const char *name = deletes ? directive_field(s, key, DELETE_SCALARS) : key;
        if (!name)
            return -1;
        size_t parent = s->path.len;
        json_pointer_append(&s->path, name);
        int rc = 0;
        if (json_is_null(value))
            json_object_del(target, name);
        else if (deletes)
            rc = delete_scalars(s, target, name, value);
        else
            rc = set_member(s, target, name, value, node);
        if (rc < 0)
            return -1;
        str_truncate(&s->path, parent);
    }
    return 0;
}

int smp_merge_object(struct smp *s, json_t **target, const json_t *patch, const void *node)
{
    if (has_directive(patch))
        return apply_directive(s, target, patch);
    json_own(target);
    _cleanup_(map_done) struct map done = {0};
    if (retain_keys(s, *target, patch) < 0 || set_orders(s, *target, patch, node, &done) < 0 ||
        merge_members(s, *target, patch, node, &done) < 0)
        return -1;
    return 0;
}

json_t *json_smp_apply(const json_t *doc, const json_t *patch, const struct json_smp_schema *schema,
                       const void *root, struct err *e)
{
    struct smp s = {.schema = schema, .e = e};
    json_auto_t *result = json_share(doc);
    int rc;
    if (!json_is_object(doc) || !json_is_object(patch))
        rc = smp_error(&s, "a strategic merge patch is an object and applies to an object");
    else if (json_depth(patch) > JSON_MAX_DEPTH)
        rc = smp_error(&s, "it is more than %d levels deep", JSON_MAX_DEPTH);
    else
        rc = smp_merge_object(&s, &result, patch, root);
    str_done(&s.path);
    if (rc == 0)
        return TAKE_PTR(result);
    json_clean_message(e);
    return NULL;
}
