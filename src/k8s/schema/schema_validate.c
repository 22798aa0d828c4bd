/*
 * Validation by a schema: types, structure, lists that are sets or maps, and rules composed of other
 * schemas. Messages are those that Kubernetes' users know.
 */
#include "k8s/schema/schema_impl.h"

enum { STEPS_MAX = 5000000 }; /* nodes that one object may be worth */

bool schema_reports(struct schema_walk *w)
{
    w->errors++;
    return w->report;
}

void schema_problem(struct schema_walk *w, const struct api_path *at, enum api_cause cause,
                    const json_t *value, const char *fmt, ...)
{
    if (!schema_reports(w))
        return;
    _cleanup_(str_done) struct str text = {0};
    api_path_format(at, &text);
    str_append(&text, " in body ");
    va_list ap;
    va_start(ap, fmt);
    str_vappendf(&text, fmt, ap);
    va_end(ap);
    api_problem(w->report, at, cause, value, "%s", str_get(&text));
}

/* What a value is, in the words of types; a whole number is an integer however it is written. */
static const char *type_of(const json_t *value)
{
    json_int_t whole;
    if (json_is_real(value) && json_real_is_whole(json_real_value(value), &whole))
        return "integer";
    return json_type_name(value);
}

static bool has_type(const struct api_schema *s, const json_t *value)
{
    const char *is = type_of(value);
    if (s->flags & SCHEMA_INT_OR_STRING)
        return str_eq(is, "integer") || str_eq(is, "string");
    return s->type == SCHEMA_ANY || str_eq(is, schema_type_names[s->type]) ||
           (s->type == SCHEMA_NUMBER && str_eq(is, "integer"));
}

static void wrong_type(struct schema_walk *w, const struct api_schema *s, const json_t *value,
                       const struct api_path *at)
{
    const char *wanted =
        s->flags & SCHEMA_INT_OR_STRING ? "integer,string" : schema_type_names[s->type];
    json_auto_t *is = json_string(type_of(value));
    schema_problem(w, at, API_WRONG_TYPE, is, "must be of type %s: \"%s\"", wanted, type_of(value));
}

static void check_required(struct schema_walk *w, const struct api_schema *s, const json_t *object,
                           const struct api_path *at)
{
    for (const char *const *name = s->required; name && *name; name++) {
        if (!json_object_get(object, *name) && schema_reports(w))
            api_problem(w->report, API_KEY(at, *name), API_MISSING, NULL, "%s", "");
    }
    static const char *const own[] = {"apiVersion", "kind", NULL};
    for (const char *const *name = own; s->flags & SCHEMA_EMBEDDED && *name; name++) {
        const char *text = json_str(object, *name);
        if ((!text || !*text) && schema_reports(w))
            api_problem(w->report, API_KEY(at, *name), API_MISSING, NULL, "must not be empty");
    }
}

static void check_object(struct schema_walk *w, const struct api_schema *s, const json_t *object,
                         const json_t *old, const struct api_path *at)
{
    const char *key;
    json_t *value;
    check_required(w, s, object, at);
    if (!s->n_members && !s->values)
        return;
    json_object_foreach((json_t *)object, key, value) {
        const struct api_schema *member = schema_member(s, key);
        if (!member)
            member = s->values;
        if (member)
            schema_validate(w, member, value, json_object_get(old, key), API_KEY(at, key));
    }
}

/* The members by which an element of a map is known, as an object; of a set, the element itself. */
static json_t *identity(const struct api_schema *s, const json_t *element)
{
    if (s->list == SCHEMA_LIST_SET)
        return json_incref((json_t *)element);
    json_t *id = json_object();
    for (const char *const *key = s->keys; *key; key++) {
        json_t *value = json_object_get(element, *key);
        if (value)
            json_object_set(id, *key, value);
    }
    return id;
}

void schema_identify(const struct api_schema *s, const json_t *element, struct str *out)
{
    json_auto_t *id = identity(s, element);
    json_format(id, out);
}

/* Those of a list without any identity are not in it. */
void schema_index_list(const struct api_schema *s, const json_t *list, struct map *by_id)
{
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element) {
        _cleanup_(str_done) struct str text = {0};
        schema_identify(s, element, &text);
        map_set(by_id, str_get(&text), element);
    }
}

static void check_elements(struct schema_walk *w, const struct api_schema *s, const json_t *list,
                           const json_t *old, const struct api_path *at)
{
    struct map before = {0}, seen = {0};
    bool known = s->list != SCHEMA_LIST_ATOMIC;
    if (known && old)
        schema_index_list(s, old, &before);
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element) {
        const json_t *was = NULL;
        if (known) {
            json_auto_t *id = identity(s, element);
            _cleanup_(str_done) struct str text = {0};
            json_format(id, &text);
            was = map_get(&before, str_get(&text));
            if (map_set(&seen, str_get(&text), element) && schema_reports(w))
                api_problem(w->report, API_AT(at, i), API_DUPLICATE, id, "%s", "");
        }
        if (s->items)
            schema_validate(w, s->items, element, was, API_AT(at, i));
    }
    map_done(&before);
    map_done(&seen);
}

/* How many of the schemas the value keeps to. */
static size_t count_valid(struct schema_walk *w, const struct schema_parts *parts,
                          const json_t *value, const struct api_path *at)
{
    size_t valid = 0;
    for (size_t i = 0; i < parts->n && !w->given_up; i++) {
        struct schema_walk quiet = *w;
        quiet.report = NULL;
        quiet.errors = 0;
        schema_validate(&quiet, parts->p[i], value, NULL, at);
        valid += !quiet.errors;
        w->steps = quiet.steps;
        w->since = quiet.since;
        w->given_up = quiet.given_up;
    }
    return valid;
}

static void logic_problem(struct schema_walk *w, const struct api_path *at, const char *text)
{
    if (!schema_reports(w))
        return;
    json_auto_t *nothing = json_string("");
    _cleanup_(str_done) struct str path = {0};
    api_path_format(at, &path);
    api_problem(w->report, at, API_INVALID, nothing, "\"%s\" must %s", str_get(&path), text);
}

static void check_logic(struct schema_walk *w, const struct schema_rules *r, const json_t *value,
                        const struct api_path *at)
{
    size_t valid;
    for (size_t i = 0; i < r->all_of.n; i++)
        schema_validate(w, r->all_of.p[i], value, NULL, at);
    if (r->any_of.n && !count_valid(w, &r->any_of, value, at)) {
        logic_problem(w, at, "validate at least one schema (anyOf)");
        if (r->any_of.n == 1)
            schema_validate(w, r->any_of.p[0], value, NULL, at);
    }
    if (r->one_of.n && (valid = count_valid(w, &r->one_of, value, at)) != 1) {
        char text[128];
        snprintf(text, sizeof(text), "validate one and only one schema (oneOf). Found %s",
                 valid ? "several valid alternatives" : "none valid");
        logic_problem(w, at, text);
    }
    struct schema_parts not = {.p = (struct api_schema *[]){r->not }, .n = r->not ? 1 : 0};
    if (r->not &&count_valid(w, &not, value, at))
        logic_problem(w, at, "not validate the schema (not)");
}

void schema_validate(struct schema_walk *w, const struct api_schema *s, const json_t *value,
                     const json_t *old, const struct api_path *at)
{
    if (w->given_up || (old && json_equal(value, old)))
        return;
    if (++w->steps > STEPS_MAX) {
        w->given_up = true;
        if (schema_reports(w))
            api_problem(w->report, at, API_INVALID, NULL,
                        "the object and its schema are too large to be checked");
        return;
    }
    if (json_is_null(value) && s->flags & SCHEMA_NULLABLE)
        return;
    if (!has_type(s, value)) {
        wrong_type(w, s, value, at);
        return;
    }
    if (s->rules)
        schema_check_rules(w, s, value, at);
    if (json_is_object(value))
        check_object(w, s, value, old, at);
    else if (json_is_array(value) && (s->items || s->list != SCHEMA_LIST_ATOMIC))
        check_elements(w, s, value, old, at);
    if (s->rules)
        check_logic(w, s->rules, value, at);
}

void api_schema_validate(const struct api_schema *s, const json_t *object, const json_t *old,
                         struct api_report *report)
{
    struct schema_walk w = {.report = report};
    size_t problems = report->problems.len;
    schema_validate(&w, s, object, old, NULL);
    schema_check_cel(s, object, old, problems, report);
}
