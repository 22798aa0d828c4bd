/*
 * The keywords about values: bounds, patterns, formats, enumerations.
 */
#include "k8s/schema/schema_impl.h"

static const json_t *keep(struct api_schema_set *set, const json_t *value)
{
    json_array_append(set->values, (json_t *)value);
    return value;
}

static void compile_number(struct api_schema_set *set, const json_t **ret, const json_t *value,
                           const struct api_path *at, struct api_report *report)
{
    if (schema_want(report, value, at, JSON_REAL))
        *ret = keep(set, value);
}

static void compile_pattern(struct api_schema_set *set, struct schema_rules *rules,
                            const json_t *value, const struct api_path *at,
                            struct api_report *report)
{
    if (!schema_want(report, value, at, JSON_STRING))
        return;
    struct err e = {0};
    struct pattern *p = map_get(&set->patterns, json_string_value(value));
    if (!p) {
        p = pattern_new(json_string_value(value), &e);
        if (!p) {
            api_problem(report, at, API_INVALID, value,
                        "must be a valid regular expression, but isn't: %s", e.msg);
            return;
        }
        map_set(&set->patterns, json_string_value(value), p);
    }
    rules->pattern = p;
    rules->pattern_text = json_string_value(keep(set, value));
}

static void compile_format(struct schema_rules *rules, const json_t *value,
                           const struct api_path *at, struct api_report *report)
{
    /* Known to Kubernetes and either without a rule or too rare to check. */
    static const char *const unchecked[] = {
        "int64",  "float", "double",   "password",       "binary",        "isbn",       "isbn10",
        "isbn13", "ssn",   "rgbcolor", "k8s-short-name", "k8s-long-name", "creditcard", NULL};
    if (!schema_want(report, value, at, JSON_STRING))
        return;
    rules->format = schema_format_find(json_string_value(value));
    if (!rules->format && *json_string_value(value) && !str_in(json_string_value(value), unchecked))
        api_warn(report, at, "unrecognized format \"%s\"", json_string_value(value));
}

/* minLength and so on; false when the word is none of them. */
static bool compile_count(struct api_schema_set *set, struct api_schema *s, const char *key,
                          const json_t *value, const struct api_path *at, struct api_report *report)
{
    static const struct {
        const char *name;
        size_t offset;
    } counts[] = {
        {"minLength", offsetof(struct schema_counts, min_length)},
        {"maxLength", offsetof(struct schema_counts, max_length)},
        {"minItems", offsetof(struct schema_counts, min_items)},
        {"maxItems", offsetof(struct schema_counts, max_items)},
        {"minProperties", offsetof(struct schema_counts, min_properties)},
        {"maxProperties", offsetof(struct schema_counts, max_properties)},
    };
    size_t i = 0;
    while (i < ARRAY_SIZE(counts) && !str_eq(counts[i].name, key))
        i++;
    if (i == ARRAY_SIZE(counts))
        return false;
    if (!schema_want(report, value, at, JSON_INTEGER))
        return true;
    if (json_integer_value(value) < 0)
        api_problem(report, at, API_INVALID, value, "must be greater than or equal to 0");
    else
        *(json_int_t *)(void *)((char *)&schema_rules_of(set, s)->counts + counts[i].offset) =
            json_integer_value(value);
    return true;
}

bool schema_compile_rule(struct api_schema_set *set, struct api_schema *s, const char *key,
                         const json_t *value, const struct api_path *at, struct api_report *report)
{
    if (compile_count(set, s, key, value, at, report))
        return true;
    static const char *const words[] = {"minimum", "maximum", "multipleOf", "enum",
                                        "pattern", "format",  NULL};
    if (!str_in(key, words))
        return false;
    struct schema_rules *rules = schema_rules_of(set, s);
    if (str_eq(key, "minimum"))
        compile_number(set, &rules->minimum, value, at, report);
    else if (str_eq(key, "maximum"))
        compile_number(set, &rules->maximum, value, at, report);
    else if (str_eq(key, "multipleOf")) {
        compile_number(set, &rules->multiple_of, value, at, report);
        if (rules->multiple_of && json_number_value(value) <= 0)
            api_problem(report, at, API_INVALID, value, "must be greater than 0");
    } else if (str_eq(key, "enum")) {
        if (schema_want(report, value, at, JSON_ARRAY))
            rules->words = keep(set, value);
    } else if (str_eq(key, "pattern"))
        compile_pattern(set, rules, value, at, report);
    else
        compile_format(rules, value, at, report);
    return true;
}
