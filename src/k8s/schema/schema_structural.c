/*
 * What makes a schema structural, once its keywords are read: the rules that Kubernetes has for the
 * schemas of definitions, in its words.
 */
#include "k8s/schema/schema_impl.h"

static const json_t *value_at(const json_t *json, const char *key)
{
    return json_object_get(json, key);
}

static void check_type(const struct api_schema *s, const json_t *json, const struct api_path *at,
                       const char *where, struct api_report *report)
{
    const struct api_path *here = API_KEY(at, "type");
    if (s->flags & SCHEMA_INT_OR_STRING && s->type != SCHEMA_ANY)
        api_problem(report, here, API_INVALID, value_at(json, "type"),
                    "must be empty if x-kubernetes-int-or-string is true");
    if (s->type == SCHEMA_ANY && !(s->flags & (SCHEMA_INT_OR_STRING | SCHEMA_PRESERVE)))
        api_problem(report, here, API_MISSING, NULL, "must not be empty %s", where);
    else if (s->flags & SCHEMA_ROOT && s->type != SCHEMA_OBJECT)
        api_problem(report, here, API_INVALID, value_at(json, "type"),
                    "must be object at the root");
    else if (s->flags & SCHEMA_EMBEDDED && s->type != SCHEMA_OBJECT)
        api_problem(report, here, API_INVALID, value_at(json, "type"),
                    "must be object if x-kubernetes-embedded-resource is true");
    if (s->flags & SCHEMA_ROOT && s->flags & SCHEMA_NULLABLE)
        api_problem(report, API_KEY(at, "nullable"), API_FORBIDDEN, NULL,
                    "nullable cannot be true at the root");
    if (s->type == SCHEMA_ARRAY && !value_at(json, "items"))
        api_problem(report, API_KEY(at, "items"), API_MISSING, NULL, "must be specified");
}

/* Of metadata only the names may have rules; the rest is known without saying. */
static void check_metadata(const json_t *json, const struct api_path *at, struct api_report *report)
{
    const json_t *metadata = json_at(json, "properties", "metadata");
    if (!metadata)
        return;
    const struct api_path *here = API_KEY(API_KEY(at, "properties"), "metadata");
    const char *type = json_str(metadata, "type");
    if (!type || !str_eq(type, "object"))
        api_problem(report, API_KEY(here, "type"), API_INVALID, value_at(metadata, "type"),
                    "must be object");
    static const char *const allowed[] = {"type", "properties", "description", "title", NULL};
    static const char *const names[] = {"name", "generateName", NULL};
    static const char *const text =
        "must not specify anything other than name and generateName, but metadata is implicitly "
        "specified";
    const char *key;
    json_t *value;
    bool other = false;
    json_object_foreach((json_t *)metadata, key, value)
        other |= !str_in(key, allowed);
    json_object_foreach((json_t *)value_at(metadata, "properties"), key, value) {
        other |= !str_in(key, names);
        if (value_at(value, "default"))
            api_problem(report, API_KEY(API_KEY(API_KEY(here, "properties"), key), "default"),
                        API_FORBIDDEN, NULL, "must not be set in metadata");
    }
    if (other)
        api_problem(report, here, API_FORBIDDEN, NULL, "%s", text);
}

static void check_members(const struct api_schema *s, const json_t *json, const struct api_path *at,
                          struct api_report *report)
{
    const struct api_path *values = API_KEY(at, "additionalProperties");
    bool has_values = s->values || s->flags & SCHEMA_ANY_MEMBER;
    if (has_values && s->n_members)
        api_problem(report, values, API_FORBIDDEN, NULL,
                    "additionalProperties and properties are mutual exclusive");
    else if (has_values && s->flags & SCHEMA_ROOT)
        api_problem(report, values, API_FORBIDDEN, NULL, "must not be used at the root");
    else if (has_values && s->flags & SCHEMA_EMBEDDED)
        api_problem(report, values, API_FORBIDDEN, NULL,
                    "must not be used if x-kubernetes-embedded-resource is set");
    if ((s->flags & (SCHEMA_EMBEDDED | SCHEMA_ROOT | SCHEMA_PRESERVE)) == SCHEMA_EMBEDDED &&
        !s->n_members)
        api_problem(report, API_KEY(at, "properties"), API_MISSING, NULL,
                    "must not be empty if x-kubernetes-embedded-resource is true without "
                    "x-kubernetes-preserve-unknown-fields");
    if (s->flags & SCHEMA_EMBEDDED)
        check_metadata(json, at, report);
    if (s->flags & SCHEMA_ATOMIC && s->type != SCHEMA_OBJECT)
        api_problem(report, API_KEY(at, "type"), API_INVALID, value_at(json, "type"),
                    "must be object if x-kubernetes-map-type is specified");
}

static bool is_required(const struct api_schema *s, const char *name)
{
    return s->required && str_in(name, s->required);
}

static void check_key(const struct api_schema *items, const char *key, const struct api_path *at,
                      struct api_report *report)
{
    const struct api_path *here = API_KEY(API_KEY(API_KEY(at, "items"), "properties"), key);
    const struct api_schema *member = schema_member(items, key);
    if (!member)
        api_problem(report, here, API_MISSING, NULL,
                    "because it is in x-kubernetes-list-map-keys it must be a property of the "
                    "items");
    else if (member->type < SCHEMA_STRING)
        api_problem(report, API_KEY(here, "type"), API_INVALID, NULL,
                    "must be a scalar type if the property is in x-kubernetes-list-map-keys");
    else if (!is_required(items, key) && !member->def)
        api_problem(report, API_KEY(here, "default"), API_MISSING, NULL,
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or "
                    "be a required property");
}

static void check_list(const struct api_schema *s, const json_t *json, const struct api_path *at,
                       struct api_report *report)
{
    const struct api_path *keys = API_KEY(at, "x-kubernetes-list-map-keys");
    bool has_keys = s->keys && s->keys[0];
    if (value_at(json, "x-kubernetes-list-type") && s->type != SCHEMA_ARRAY)
        api_problem(report, API_KEY(at, "type"), API_INVALID, value_at(json, "type"),
                    "must be array if x-kubernetes-list-type is specified");
    if (has_keys && s->list != SCHEMA_LIST_MAP)
        api_problem(report, API_KEY(at, "x-kubernetes-list-type"), API_INVALID,
                    value_at(json, "x-kubernetes-list-type"),
                    "must be map if x-kubernetes-list-map-keys is non-empty");
    if (s->list == SCHEMA_LIST_MAP && !has_keys)
        api_problem(report, keys, API_MISSING, NULL,
                    "must not be empty if x-kubernetes-list-type is map");
    if (!s->items)
        return;
    if (s->list == SCHEMA_LIST_MAP && s->items->type != SCHEMA_OBJECT)
        api_problem(report, API_KEY(API_KEY(at, "items"), "type"), API_INVALID, NULL,
                    "must be object if parent array's x-kubernetes-list-type is map");
    for (const char *const *key = s->keys; s->list == SCHEMA_LIST_MAP && key && *key; key++)
        check_key(s->items, *key, at, report);
    if (s->list != SCHEMA_LIST_SET)
        return;
    if (s->items->flags & SCHEMA_NULLABLE)
        api_problem(report, API_KEY(API_KEY(at, "items"), "nullable"), API_FORBIDDEN, NULL,
                    "cannot be nullable when x-kubernetes-list-type is set");
    if ((s->items->type == SCHEMA_OBJECT && !(s->items->flags & SCHEMA_ATOMIC)) ||
        (s->items->type == SCHEMA_ARRAY && s->items->list != SCHEMA_LIST_ATOMIC))
        api_problem(report, API_KEY(at, "items"), API_INVALID, NULL,
                    "must be atomic as item of a list with x-kubernetes-list-type=set");
}

static void check_value_schema(const json_t *json, const struct api_path *at, bool types,
                               struct api_report *report);

/* The schemas below allOf, anyOf, oneOf and not of one that stands at that path. */
static void check_logic(const json_t *json, const struct api_path *at, bool types,
                        struct api_report *report)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf", NULL};
    for (const char *const *list = lists; *list; list++) {
        size_t i;
        json_t *part;
        json_array_foreach(value_at(json, *list), i, part)
            check_value_schema(part, API_AT(API_KEY(at, *list), i),
                               types && !str_eq(*list, "oneOf"), report);
    }
    if (value_at(json, "not"))
        check_value_schema(value_at(json, "not"), API_KEY(at, "not"), false, report);
}

/* `types`: it is the one place that may name types, an integer or a string. */
static void check_value_schema(const json_t *json, const struct api_path *at, bool types,
                               struct api_report *report)
{
    static const char *const forbidden[] = {
        "additionalProperties", "default", "description", "nullable", "title", "type", NULL};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key, value) {
        bool extension =
            str_starts_with(key, "x-kubernetes-") && !str_eq(key, "x-kubernetes-validations");
        if ((str_in(key, forbidden) || extension) && !(types && str_eq(key, "type")))
            api_problem(report, API_KEY(at, key), API_FORBIDDEN, NULL,
                        "must be empty to be structural");
    }
    json_object_foreach((json_t *)value_at(json, "properties"), key, value)
        check_value_schema(value, API_KEY(API_KEY(at, "properties"), key), false, report);
    if (value_at(json, "items"))
        check_value_schema(value_at(json, "items"), API_KEY(at, "items"), false, report);
    check_logic(json, at, types, report);
}

static void check_covered(const struct api_schema *s, const struct api_schema *rule,
                          const struct api_path *at, struct api_report *report);

static void check_parts_covered(const struct api_schema *s, const struct schema_parts *parts,
                                const struct api_path *at, struct api_report *report)
{
    for (size_t i = 0; i < parts->n; i++)
        check_covered(s, parts->p[i], at, report);
}

/* Whatever a rule looks into must be part of the structure. */
static void check_covered(const struct api_schema *s, const struct api_schema *rule,
                          const struct api_path *at, struct api_report *report)
{
    for (size_t i = 0; i < rule->n_members; i++) {
        const char *name = rule->members[i].name;
        const struct api_path *here = API_KEY(API_KEY(at, "properties"), name);
        const struct api_schema *member = schema_member(s, name);
        if (member)
            check_covered(member, rule->members[i].schema, here, report);
        else
            api_problem(report, here, API_MISSING, NULL,
                        "because it is defined below allOf, anyOf, oneOf or not");
    }
    if (rule->items && s->items)
        check_covered(s->items, rule->items, API_KEY(at, "items"), report);
    else if (rule->items)
        api_problem(report, API_KEY(at, "items"), API_MISSING, NULL,
                    "because it is defined below allOf, anyOf, oneOf or not");
    if (!rule->rules)
        return;
    check_parts_covered(s, &rule->rules->all_of, at, report);
    check_parts_covered(s, &rule->rules->any_of, at, report);
    check_parts_covered(s, &rule->rules->one_of, at, report);
    if (rule->rules->not )
        check_covered(s, rule->rules->not, at, report);
}

void schema_check_structure(const struct api_schema *s, const json_t *json,
                            const struct api_path *at, const char *where, struct api_report *report)
{
    check_type(s, json, at, where, report);
    check_members(s, json, at, report);
    check_list(s, json, at, report);
    if (!s->rules)
        return;
    check_logic(json, at, s->flags & SCHEMA_INT_OR_STRING, report);
    struct schema_rules *rules = s->rules;
    check_parts_covered(s, &rules->all_of, at, report);
    check_parts_covered(s, &rules->any_of, at, report);
    check_parts_covered(s, &rules->one_of, at, report);
    if (rules->not )
        check_covered(s, rules->not, at, report);
}

static void check_default(const struct api_schema *s, const struct api_path *at,
                          struct api_report *report)
{
    json_auto_t *value = json_deep_copy(s->def);
    struct schema_walk w = {.report = report};
    if (!schema_default(s, value)) {
        api_problem(report, at, API_TOO_LONG, NULL,
                    "with the defaults inside of it, it would be too large");
        return;
    }
    json_auto_t *whole = json_deep_copy(value);
    schema_prune(s, value, API_UNKNOWN_IGNORE, at, report);
    if (!json_equal(value, whole))
        api_problem(report, at, API_INVALID, s->def, "must not have unknown fields");
    else
        schema_validate(&w, s, value, NULL, at);
}

void schema_check_defaults(const struct api_schema *s, const struct api_path *at,
                           struct api_report *report)
{
    if (!(s->flags & SCHEMA_HAS_DEFAULT))
        return;
    if (s->def)
        check_default(s, API_KEY(at, "default"), report);
    for (size_t i = 0; i < s->n_members; i++)
        schema_check_defaults(s->members[i].schema,
                              API_KEY(API_KEY(at, "properties"), s->members[i].name), report);
    if (s->items)
        schema_check_defaults(s->items, API_KEY(at, "items"), report);
    if (s->values)
        schema_check_defaults(s->values, API_KEY(at, "additionalProperties"), report);
}
