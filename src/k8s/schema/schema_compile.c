/*
 * From the JSON of a definition to the compiled schema, and on the way everything that makes a
 * schema structural: each node has a type, lists say what they hold, and below allOf, anyOf, oneOf
 * and not there is nothing that decides about structure.
 */
#include "k8s/schema/schema_impl.h"

enum level {
    LEVEL_ROOT,
    LEVEL_FIELD,
    LEVEL_ITEM,
    LEVEL_VALUE, /* below allOf, anyOf, oneOf or not */
};

struct compiler {
    struct api_schema_set *set;
    struct api_report *report;
};

static struct api_schema *compile(const struct compiler *c, const json_t *json,
                                  const struct api_path *at, enum level level, unsigned depth);

bool schema_want(struct api_report *report, const json_t *value, const struct api_path *at,
                 json_type type)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number", [JSON_TRUE] = "a boolean",
    };
    bool fits = type == JSON_TRUE   ? json_is_boolean(value)
                : type == JSON_REAL ? json_is_number(value)
                                    : json_typeof(value) == type;
    if (!fits)
        api_problem(report, at, API_WRONG_TYPE, value, "must be %s", names[type]);
    return fits;
}

static void compile_type(const struct compiler *c, struct api_schema *s, const json_t *value,
                         const struct api_path *at)
{
    if (!schema_want(c->report, value, at, JSON_STRING) || !json_string_length(value))
        return;
    for (enum schema_type t = SCHEMA_OBJECT; t <= SCHEMA_BOOLEAN; t++) {
        if (str_eq(json_string_value(value), schema_type_names[t]))
            s->type = t;
    }
    if (s->type == SCHEMA_ANY)
        api_problem(c->report, at, API_UNSUPPORTED, value,
                    "supported values: \"array\", \"boolean\", \"integer\", \"number\", "
                    "\"object\", \"string\"");
}

static int compare_members(const void *a, const void *b)
{
    const struct schema_member *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void compile_members(const struct compiler *c, struct api_schema *s, const json_t *value,
                            const struct api_path *at, enum level level, unsigned depth)
{
    if (!schema_want(c->report, value, at, JSON_OBJECT))
        return;
    s->members = arena_alloc(&c->set->arena, json_object_size(value) * sizeof(*s->members) + 1);
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)value, key, member) {
        struct api_schema *compiled = compile(c, member, API_KEY(at, key), level, depth + 1);
        if (compiled)
            s->members[s->n_members++] =
                (struct schema_member){arena_strdup(&c->set->arena, key), compiled};
    }
    if (s->n_members)
        qsort(s->members, s->n_members, sizeof(*s->members), compare_members);
}

static void compile_items(const struct compiler *c, struct api_schema *s, const json_t *value,
                          const struct api_path *at, enum level level, unsigned depth)
{
    if (json_is_array(value))
        api_problem(c->report, at, API_FORBIDDEN, NULL,
                    "items must be a schema object and not an array");
    else
        s->items = compile(c, value, at, level, depth + 1);
}

static void compile_values(const struct compiler *c, struct api_schema *s, const json_t *value,
                           const struct api_path *at, unsigned depth)
{
    if (json_is_true(value))
        s->flags |= SCHEMA_ANY_MEMBER;
    else if (json_is_false(value))
        api_problem(c->report, at, API_FORBIDDEN, NULL,
                    "additionalProperties cannot be set to false");
    else
        s->values = compile(c, value, at, LEVEL_FIELD, depth + 1);
}

static void compile_parts(const struct compiler *c, struct schema_parts *parts, const json_t *value,
                          const struct api_path *at, unsigned depth)
{
    if (!schema_want(c->report, value, at, JSON_ARRAY))
        return;
    size_t i;
    json_t *part;
    parts->p = arena_alloc(&c->set->arena, json_array_size(value) * sizeof(*parts->p) + 1);
    json_array_foreach(value, i, part) {
        struct api_schema *compiled = compile(c, part, API_AT(at, i), LEVEL_VALUE, depth + 1);
        if (compiled)
            parts->p[parts->n++] = compiled;
    }
}

/* allOf and the like; false when the word is none of them. */
static bool compile_logic(const struct compiler *c, struct api_schema *s, const char *key,
                          const json_t *value, const struct api_path *at, unsigned depth)
{
    static const char *const words[] = {"allOf", "anyOf", "oneOf", "not", NULL};
    if (!str_in(key, words))
        return false;
    struct schema_rules *rules = schema_rules_of(c->set, s);
    if (str_eq(key, "not"))
        rules->not = compile(c, value, at, LEVEL_VALUE, depth + 1);
    else
        compile_parts(c,
                      str_eq(key, "allOf")   ? &rules->all_of
                      : str_eq(key, "anyOf") ? &rules->any_of
                                             : &rules->one_of,
                      value, at, depth);
    return true;
}

/* A list of words as C has them; what is no string is a problem and left out. */
static const char *const *compile_words(const struct compiler *c, const json_t *value,
                                        const struct api_path *at)
{
    if (!schema_want(c->report, value, at, JSON_ARRAY))
        return NULL;
    const char **words = arena_alloc(&c->set->arena, (json_array_size(value) + 1) * sizeof(*words));
    size_t i, n = 0;
    json_t *word;
    json_array_foreach(value, i, word) {
        if (schema_want(c->report, word, API_AT(at, i), JSON_STRING))
            words[n++] = arena_strdup(&c->set->arena, json_string_value(word));
    }
    return words;
}

static void compile_flag(const struct compiler *c, struct api_schema *s, const json_t *value,
                         const struct api_path *at, unsigned flag)
{
    if (!schema_want(c->report, value, at, JSON_TRUE))
        return;
    if (json_is_true(value))
        s->flags |= flag;
    else if (flag == SCHEMA_PRESERVE)
        api_problem(c->report, at, API_INVALID, value, "must be true or undefined");
}

static void compile_list_type(const struct compiler *c, struct api_schema *s, const json_t *value,
                              const struct api_path *at)
{
    const char *word = json_string_value(value);
    if (word && str_eq(word, "set"))
        s->list = SCHEMA_LIST_SET;
    else if (word && str_eq(word, "map"))
        s->list = SCHEMA_LIST_MAP;
    else if (!word || !str_eq(word, "atomic"))
        api_problem(c->report, at, API_UNSUPPORTED, value,
                    "supported values: \"atomic\", \"map\", \"set\"");
}

static void compile_map_type(const struct compiler *c, struct api_schema *s, const json_t *value,
                             const struct api_path *at)
{
    const char *word = json_string_value(value);
    if (word && str_eq(word, "atomic"))
        s->flags |= SCHEMA_ATOMIC;
    else if (!word || !str_eq(word, "granular"))
        api_problem(c->report, at, API_UNSUPPORTED, value,
                    "supported values: \"atomic\", \"granular\"");
}

static void compile_extension(const struct compiler *c, struct api_schema *s, const char *key,
                              const json_t *value, const struct api_path *at)
{
    key += strlen("x-kubernetes-");
    if (str_eq(key, "preserve-unknown-fields"))
        compile_flag(c, s, value, at, SCHEMA_PRESERVE);
    else if (str_eq(key, "embedded-resource"))
        compile_flag(c, s, value, at, SCHEMA_EMBEDDED);
    else if (str_eq(key, "int-or-string"))
        compile_flag(c, s, value, at, SCHEMA_INT_OR_STRING);
    else if (str_eq(key, "list-type"))
        compile_list_type(c, s, value, at);
    else if (str_eq(key, "list-map-keys"))
        s->keys = compile_words(c, value, at);
    else if (str_eq(key, "map-type"))
        compile_map_type(c, s, value, at);
    else if (str_eq(key, "validations") && schema_want(c->report, value, at, JSON_ARRAY) &&
             json_array_size(value)) {
        s->flags |= SCHEMA_HAS_CEL;
        s->validations = value;
    }
}

/* One keyword of a schema. */
static void compile_keyword(const struct compiler *c, struct api_schema *s, const char *key,
                            const json_t *value, const struct api_path *at, enum level level,
                            unsigned depth)
{
    static const char *const forbidden[] = {
        "$ref",         "$schema",           "id", "definitions", "additionalItems",
        "dependencies", "patternProperties", NULL};
    static const char *const ignored[] = {"description", "title", "example", "externalDocs", NULL};
    enum level below = level == LEVEL_VALUE ? LEVEL_VALUE : LEVEL_FIELD;
    if (json_is_null(value) || str_in(key, ignored))
        return;
    if (str_eq(key, "type"))
        compile_type(c, s, value, at);
    else if (str_eq(key, "properties"))
        compile_members(c, s, value, at, below, depth);
    else if (str_eq(key, "items"))
        compile_items(c, s, value, at, level == LEVEL_VALUE ? LEVEL_VALUE : LEVEL_ITEM, depth);
    else if (str_eq(key, "additionalProperties"))
        compile_values(c, s, value, at, depth);
    else if (str_eq(key, "required"))
        s->required = compile_words(c, value, at);
    else if (str_eq(key, "nullable"))
        compile_flag(c, s, value, at, SCHEMA_NULLABLE);
    else if (str_eq(key, "exclusiveMinimum"))
        compile_flag(c, s, value, at, SCHEMA_EXCLUSIVE_MIN);
    else if (str_eq(key, "exclusiveMaximum"))
        compile_flag(c, s, value, at, SCHEMA_EXCLUSIVE_MAX);
    else if (str_eq(key, "uniqueItems")) {
        if (schema_want(c->report, value, at, JSON_TRUE) && json_is_true(value))
            api_problem(c->report, at, API_FORBIDDEN, NULL,
                        "uniqueItems cannot be set to true since the runtime complexity becomes "
                        "quadratic");
    } else if (str_eq(key, "default")) {
        s->def = value;
        json_array_append(c->set->values, (json_t *)value);
    } else if (str_starts_with(key, "x-kubernetes-"))
        compile_extension(c, s, key, value, at);
    else if (str_in(key, forbidden))
        api_problem(c->report, at, API_FORBIDDEN, NULL, "%s is not supported", key);
    else if (!compile_logic(c, s, key, value, at, depth) &&
             !schema_compile_rule(c->set, s, key, value, at, c->report))
        api_warn_unknown(c->report, at, key);
}

/* What a node has to say of those below it. */
static void collect_flags(struct api_schema *s)
{
    enum { UPWARD = SCHEMA_HAS_DEFAULT | SCHEMA_HAS_MERGE | SCHEMA_HAS_CEL };
    for (size_t i = 0; i < s->n_members; i++)
        s->flags |= s->members[i].schema->flags & UPWARD;
    if (s->items)
        s->flags |= s->items->flags & UPWARD;
    if (s->values)
        s->flags |= s->values->flags & UPWARD;
    if (s->def)
        s->flags |= SCHEMA_HAS_DEFAULT;
    if (s->list != SCHEMA_LIST_ATOMIC || s->flags & SCHEMA_ATOMIC)
        s->flags |= SCHEMA_HAS_MERGE;
}

static struct api_schema *compile(const struct compiler *c, const json_t *json,
                                  const struct api_path *at, enum level level, unsigned depth)
{
    if (!schema_want(c->report, json, at, JSON_OBJECT))
        return NULL;
    if (depth > API_SCHEMA_MAX_DEPTH || ++c->set->nodes > API_SCHEMA_MAX_NODES) {
        api_problem(c->report, at, API_INVALID, NULL,
                    "the schema is too large: it may have %d schemas, %d deep",
                    API_SCHEMA_MAX_NODES, API_SCHEMA_MAX_DEPTH);
        return NULL;
    }
    struct api_schema *s = arena_new(&c->set->arena, struct api_schema);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key, value)
        compile_keyword(c, s, key, value, API_KEY(at, key), level, depth);
    if (level == LEVEL_ROOT)
        s->flags |= SCHEMA_EMBEDDED | SCHEMA_ROOT;
    collect_flags(s);
    if (level != LEVEL_VALUE)
        schema_check_structure(s, json, at,
                               level == LEVEL_ROOT   ? "at the root"
                               : level == LEVEL_ITEM ? "for specified array items"
                                                     : "for specified object fields",
                               c->report);
    return s;
}

const struct api_schema *api_schema_compile(struct api_schema_set *set, const json_t *schema,
                                            const struct api_path *at, struct api_report *report)
{
    struct compiler c = {set, report};
    unsigned before = report->errors;
    struct api_schema *s = compile(&c, schema, at, LEVEL_ROOT, 0);
    if (report->errors == before)
        schema_compile_cel(set, s, at, report);
    if (report->errors == before)
        schema_check_defaults(s, at, report);
    return report->errors == before ? s : NULL;
}
