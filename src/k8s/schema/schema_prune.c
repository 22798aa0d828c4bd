/*
 * Pruning and defaults: both walk object and schema together.
 */
#include "k8s/schema/schema_impl.h"

/* Bytes that defaults may add to an object: a small list of empty objects could become as large as memory is. */
enum { DEFAULTS_MAX = 3 << 20, DEFAULT_OVERHEAD = 16 };

/* What every object has, whether its schema says so or not. */
static bool is_own(const struct api_schema *s, const char *key)
{
    static const char *const own[] = {"apiVersion", "kind", "metadata", NULL};
    return s->flags & SCHEMA_EMBEDDED && str_in(key, own);
}

static void unknown_member(const char *key, enum api_unknown unknown, const struct api_path *at,
                           struct api_report *report)
{
    if (unknown == API_UNKNOWN_WARN) {
        api_warn_unknown(report, at, key);
    } else if (unknown == API_UNKNOWN_ERROR) {
        json_auto_t *shown = json_string(key);
        api_problem(report, at, API_UNKNOWN, shown, "there is no field of this name here");
    }
}

static void prune_object(const struct api_schema *s, json_t *object, enum api_unknown unknown,
                         const struct api_path *at, struct api_report *report)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value) {
        const struct api_path *here = API_KEY(at, key);
        const struct api_schema *member = schema_member(s, key);
        if (is_own(s, key))
            continue; /* metadata has rules of its own */
        if (!member)
            member = s->values;
        if (member) {
            schema_prune(member, value, unknown, here, report);
        } else if (!(s->flags & (SCHEMA_PRESERVE | SCHEMA_ANY_MEMBER))) {
            unknown_member(key, unknown, here, report);
            json_object_del(object, key);
        }
    }
}

void schema_prune(const struct api_schema *s, json_t *value, enum api_unknown unknown,
                  const struct api_path *at, struct api_report *report)
{
    size_t i;
    json_t *element;
    if (json_is_object(value)) {
        if (s->type == SCHEMA_OBJECT || s->n_members || s->values)
            prune_object(s, value, unknown, at, report);
    } else if (s->items) {
        json_array_foreach(value, i, element)
            schema_prune(s->items, element, unknown, API_AT(at, i), report);
    }
}

void api_schema_prune(const struct api_schema *s, json_t *object, enum api_unknown unknown,
                      struct api_report *report)
{
    schema_prune(s, object, unknown, NULL, report);
}

/* A null where none may be counts as nothing, if there is something to put in its place. */
static bool is_absent(const struct api_schema *s, const json_t *value)
{
    return !value || (json_is_null(value) && !(s->flags & SCHEMA_NULLABLE));
}

/* A copy of a default, if its bytes are within what is left; NULL. */
static json_t *copy_default(const json_t *def, size_t *budget)
{
    size_t size = json_dumpb(def, NULL, 0, JSON_ENCODE_ANY | JSON_COMPACT) + DEFAULT_OVERHEAD;
    if (size > *budget) {
        *budget = 0;
        return NULL;
    }
    *budget -= size;
    return json_deep_copy(def);
}

static void add_defaults(const struct api_schema *s, json_t *value, size_t *budget)
{
    size_t i;
    const char *key;
    json_t *part;
    if (!(s->flags & SCHEMA_HAS_DEFAULT) || !*budget)
        return;
    if (json_is_array(value) && s->items) {
        json_array_foreach(value, i, part)
            add_defaults(s->items, part, budget);
    }
    if (!json_is_object(value))
        return;
    for (i = 0; i < s->n_members && *budget; i++) {
        const struct api_schema *member = s->members[i].schema;
        if (!(member->flags & SCHEMA_HAS_DEFAULT))
            continue;
        part = json_object_get(value, s->members[i].name);
        if (member->def && is_absent(member, part)) {
            part = copy_default(member->def, budget);
            if (part)
                json_object_set_new(value, s->members[i].name, part);
        }
        if (part)
            add_defaults(member, part, budget);
    }
    if (!s->values)
        return;
    json_object_foreach(value, key, part) {
        if (schema_member(s, key))
            continue;
        if (s->values->def && json_is_null(part) && is_absent(s->values, part)) {
            json_t *def = copy_default(s->values->def, budget);
            if (!def)
                return;
            part = def;
            json_object_set_new(value, key, part);
        }
        add_defaults(s->values, part, budget);
    }
}

bool schema_default(const struct api_schema *s, json_t *value)
{
    size_t budget = DEFAULTS_MAX;
    add_defaults(s, value, &budget);
    return budget;
}

bool api_schema_default(const struct api_schema *s, json_t *object)
{
    return schema_default(s, object);
}
