/*
 * Compiling rules: schemas as types of CEL, and what Kubernetes asks of a rule.
 *
 *     schema                      type
 *     object with properties      object: its fields and no others
 *     additionalProperties        map(string, ...)
 *     array                       list(...)
 *     string                      string; by its format timestamp, duration, bytes
 *     int-or-string               dyn
 *     without a type              none: expressions cannot reach it
 *
 * Whole objects, the root and embedded ones, have apiVersion, kind and metadata with name and
 * generateName as well.
 */
#include "k8s/schema/schema_cel.h"

static const struct cel_decl *decl_of(struct api_schema_set *set, struct api_schema *s);

static const struct cel_field meta_fields[] = {
    {"generateName", "generateName", &cel_decls[CEL_STRING]},
    {"name", "name", &cel_decls[CEL_STRING]},
};
static const struct cel_decl meta_decl = {CEL_MAP, .object = true, .fields = meta_fields,
                                          .n_fields = ARRAY_SIZE(meta_fields)};
static const struct cel_field own_fields[] = {
    {"apiVersion", "apiVersion", &cel_decls[CEL_STRING]},
    {"kind", "kind", &cel_decls[CEL_STRING]},
    {"metadata", "metadata", &meta_decl},
};

static int compare_fields(const void *a, const void *b)
{
    const struct cel_field *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void add_fields(struct api_schema_set *set, struct api_schema *s, struct cel_decl *d)
{
    size_t most = s->n_members + ARRAY_SIZE(own_fields), n = 0;
    struct cel_field *fields = arena_alloc(&set->arena, (most + 1) * sizeof(*fields));
    bool own = s->flags & SCHEMA_EMBEDDED;
    for (size_t i = 0; own && i < ARRAY_SIZE(own_fields); i++)
        fields[n++] = own_fields[i];
    for (size_t i = 0; i < s->n_members; i++) {
        const char *key = s->members[i].name;
        bool known =
            own && (str_eq(key, "apiVersion") || str_eq(key, "kind") || str_eq(key, "metadata"));
        _cleanup_(str_done) struct str name = {0};
        const struct cel_decl *decl = known ? NULL : decl_of(set, s->members[i].schema);
        if (decl && cel_escape(key, &name))
            fields[n++] = (struct cel_field){arena_strdup(&set->arena, str_get(&name)), key, decl};
    }
    qsort(fields, n, sizeof(*fields), compare_fields);
    d->object = true;
    d->fields = fields;
    d->n_fields = n;
}

static enum cel_type string_type(const struct api_schema *s, bool *ret_date)
{
    const char *format = s->rules && s->rules->format ? schema_format_name(s->rules->format) : "";
    *ret_date = str_eq(format, "date");
    return str_eq(format, "byte")                     ? CEL_BYTES
           : str_eq(format, "duration")               ? CEL_DURATION
           : *ret_date || str_eq(format, "date-time") ? CEL_TIMESTAMP
                                                      : CEL_STRING;
}

static const struct cel_decl *new_decl(struct api_schema_set *set, struct api_schema *s)
{
    static const enum cel_type types[] = {
        [SCHEMA_OBJECT] = CEL_MAP,    [SCHEMA_ARRAY] = CEL_LIST,  [SCHEMA_STRING] = CEL_STRING,
        [SCHEMA_NUMBER] = CEL_DOUBLE, [SCHEMA_INTEGER] = CEL_INT, [SCHEMA_BOOLEAN] = CEL_BOOL};
    if (s->flags & SCHEMA_INT_OR_STRING)
        return &cel_decls[CEL_DYN];
    if (s->type == SCHEMA_ANY)
        return NULL;
    struct cel_decl *d = arena_new(&set->arena, struct cel_decl);
    d->type = types[s->type];
    if (s->type == SCHEMA_STRING)
        d->type = string_type(s, &d->date);
    if (s->type == SCHEMA_ARRAY) {
        d->element = s->items ? decl_of(set, s->items) : NULL;
        d->list = s->list == SCHEMA_LIST_MAP   ? CEL_LIST_MAP
                  : s->list == SCHEMA_LIST_SET ? CEL_LIST_SET
                                               : CEL_LIST_ATOMIC;
        d->list_keys = s->keys;
        return d->element ? d : NULL;
    }
    if (s->type == SCHEMA_OBJECT && s->values) {
        d->key = &cel_decls[CEL_STRING];
        d->element = decl_of(set, s->values);
        return d->element ? d : NULL;
    }
    if (s->type == SCHEMA_OBJECT)
        add_fields(set, s, d);
    return d;
}

/* The type of a schema; NULL when expressions cannot reach it. */
static const struct cel_decl *decl_of(struct api_schema_set *set, struct api_schema *s)
{
    if (!s->decl)
        s->decl = new_decl(set, s);
    return s->decl;
}

struct walk {
    struct api_schema_set *set;
    struct api_report *report;
    const struct api_path *loose; /* nothing below it is the same in two versions of an object */
};

/* A text without the white space around it; "" when it is not there. */
static const char *trimmed(struct walk *w, const json_t *rule, const char *key)
{
    static const char space[] = " \t\r\n\f\v";
    const char *text = json_str(rule, key);
    if (!text)
        return "";
    text += strspn(text, space);
    size_t n = strlen(text);
    while (n > 0 && strchr(space, text[n - 1]))
        n--;
    return arena_strndup(&w->set->arena, text, n);
}

static bool has_line_break(const char *text)
{
    return strpbrk(text, "\r\n");
}

/* Whether members are there and strings as they should be. */
static bool check_texts(struct walk *w, const json_t *rule, const struct api_path *at,
                        const struct schema_cel_rule *r)
{
    static const char *const texts[] = {"rule",   "message",   "messageExpression",
                                        "reason", "fieldPath", NULL};
    unsigned before = w->report->errors;
    if (!schema_want(w->report, rule, at, JSON_OBJECT))
        return false;
    for (const char *const *key = texts; *key; key++) {
        const json_t *text = json_object_get(rule, *key);
        if (text)
            schema_want(w->report, text, API_KEY(at, *key), JSON_STRING);
    }
    const json_t *optional = json_object_get(rule, "optionalOldSelf");
    if (optional)
        schema_want(w->report, optional, API_KEY(at, "optionalOldSelf"), JSON_TRUE);
    if (w->report->errors > before)
        return false;
    const json_t *message = json_object_get(rule, "message");
    const json_t *expression = json_object_get(rule, "messageExpression");
    if (!*r->rule)
        api_problem(w->report, API_KEY(at, "rule"), API_MISSING, NULL, "rule is not specified");
    else if (json_string_length(message) && !*r->message)
        api_problem(w->report, API_KEY(at, "message"), API_INVALID, message,
                    "must be non-empty if specified");
    else if (has_line_break(r->message))
        api_problem(w->report, API_KEY(at, "message"), API_INVALID, message,
                    "must not contain line breaks");
    else if (has_line_break(r->rule) && !*r->message)
        api_problem(w->report, API_KEY(at, "message"), API_MISSING, NULL,
                    "message must be specified if rule contains line breaks");
    if (json_string_length(expression) && !*trimmed(w, rule, "messageExpression"))
        api_problem(w->report, API_KEY(at, "messageExpression"), API_MISSING, NULL,
                    "messageExpression must be non-empty if specified");
    return w->report->errors == before;
}

static void compile_reason(struct walk *w, const json_t *rule, const struct api_path *at,
                           struct schema_cel_rule *r)
{
    static const enum api_cause causes[] = {API_DUPLICATE, API_FORBIDDEN, API_INVALID, API_MISSING};
    const char *reason = json_str(rule, "reason");
    r->cause = API_INVALID;
    for (size_t i = 0; reason && i < ARRAY_SIZE(causes); i++) {
        if (str_eq(reason, api_cause_reason(causes[i]))) {
            r->cause = causes[i];
            return;
        }
    }
    if (reason)
        api_problem(w->report, API_KEY(at, "reason"), API_UNSUPPORTED,
                    json_object_get(rule, "reason"),
                    "supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", "
                    "\"FieldValueInvalid\", \"FieldValueRequired\"");
}

/* One step of a path: .name or ['name']; NULL when it is none. */
static const char *take_step(struct walk *w, const char **at)
{
    const char *start = *at + 1;
    if (**at == '.') {
        size_t n = strcspn(start, ".[");
        *at = start + n;
        return n ? arena_strndup(&w->set->arena, start, n) : NULL;
    }
    const char *end = **at == '[' && *start == '\'' ? strstr(start + 1, "']") : NULL;
    if (!end)
        return NULL;
    *at = end + 2;
    return arena_strndup(&w->set->arena, start + 1, (size_t)(end - start - 1));
}

/* A path of names that the schema has. */
static bool compile_path(struct walk *w, const struct api_schema *s, const char *path,
                         struct schema_cel_rule *r)
{
    const char **steps = arena_alloc(&w->set->arena, (SCHEMA_CEL_STEPS + 1) * sizeof(*steps));
    for (size_t n = 0; *path; n++) {
        const char *name = n < SCHEMA_CEL_STEPS && s ? take_step(w, &path) : NULL;
        if (!name)
            return false;
        steps[n] = name;
        s = s->values ? s->values : schema_member(s, name);
    }
    r->steps = steps;
    return s && steps[0];
}

static void rule_problem(struct walk *w, const json_t *rule, const struct api_path *at,
                         const char *key, const char *before, const struct err *e,
                         const char *wrong)
{
    bool result = str_eq(e->reason, "WrongResult");
    api_problem(w->report, API_KEY(at, key), API_INVALID, json_object_get(rule, key), "%s%s",
                result ? "" : before, result ? wrong : e->msg);
}

static void compile_programs(struct walk *w, struct api_schema *s, const json_t *rule,
                             const struct api_path *at, struct schema_cel_rule *r)
{
    const struct cel_decl *self = decl_of(w->set, s), *old;
    const json_t *optional = json_object_get(rule, "optionalOldSelf");
    struct cel_decl *wrapped = arena_new(&w->set->arena, struct cel_decl);
    struct err e = {0};
    self = self ? self : &cel_decls[CEL_DYN];
    *wrapped = (struct cel_decl){CEL_OPTIONAL, .element = self};
    r->optional_old = json_is_true(optional);
    old = r->optional_old ? wrapped : self;
    const struct cel_variable variables[] = {{"self", self}, {"oldSelf", old}, {0}};
    r->program = cel_compile(json_str(rule, "rule"), variables, CEL_BOOL, &e);
    if (!r->program) {
        rule_problem(w, rule, at, "rule", "compilation failed: ", &e,
                     "cel expression must evaluate to a bool");
        return;
    }
    vec_push(&w->set->programs, r->program);
    if (!cel_uses(r->program, SCHEMA_CEL_OLD) && optional)
        api_problem(w->report, API_KEY(at, "optionalOldSelf"), API_INVALID, optional,
                    "may not be set if oldSelf is not used in rule");
    if (cel_uses(r->program, SCHEMA_CEL_OLD) && w->loose) {
        _cleanup_(str_done) struct str path = {0};
        api_path_format(w->loose, &path);
        api_problem(w->report, API_KEY(at, "rule"), API_INVALID, json_object_get(rule, "rule"),
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within %s",
                    str_get(&path));
    }
    const char *expression = json_str(rule, "messageExpression");
    if (!expression)
        return;
    r->expression = cel_compile(expression, variables, CEL_STRING, &e);
    if (r->expression)
        vec_push(&w->set->programs, r->expression);
    else
        rule_problem(w, rule, at, "messageExpression", "messageExpression compilation failed: ", &e,
                     "messageExpression must evaluate to a string");
}

static void compile_rules(struct walk *w, struct api_schema *s, const struct api_path *at)
{
    struct arena *a = &w->set->arena;
    size_t i;
    json_t *rule;
    s->cel = arena_new(a, struct schema_cel);
    s->cel->rules = arena_alloc(a, (json_array_size(s->validations) + 1) * sizeof(*s->cel->rules));
    json_array_foreach(s->validations, i, rule) {
        const struct api_path *here = API_AT(at, i);
        struct schema_cel_rule *r = &s->cel->rules[s->cel->n];
        *r = (struct schema_cel_rule){.rule = trimmed(w, rule, "rule"),
                                      .message = trimmed(w, rule, "message")};
        if (!check_texts(w, rule, here, r))
            continue;
        compile_reason(w, rule, here, r);
        const char *path = json_str(rule, "fieldPath");
        if (path && !compile_path(w, s, path, r))
            api_problem(w->report, API_KEY(here, "fieldPath"), API_INVALID,
                        json_object_get(rule, "fieldPath"), "must be a valid path");
        compile_programs(w, s, rule, here, r);
        s->cel->n += r->program != NULL;
    }
    s->validations = NULL; /* the definition's, which goes away */
}

static void walk(struct walk *w, struct api_schema *s, const struct api_path *at)
{
    const struct api_path *outer = w->loose;
    if (!(s->flags & SCHEMA_HAS_CEL))
        return;
    if (s->validations)
        compile_rules(w, s, API_KEY(at, "x-kubernetes-validations"));
    for (size_t i = 0; i < s->n_members; i++)
        walk(w, s->members[i].schema, API_KEY(API_KEY(at, "properties"), s->members[i].name));
    if (s->values)
        walk(w, s->values, API_KEY(at, "additionalProperties"));
    if (s->items) {
        if (s->list != SCHEMA_LIST_MAP && !w->loose)
            w->loose = at;
        walk(w, s->items, API_KEY(at, "items"));
        w->loose = outer;
    }
}

void schema_compile_cel(struct api_schema_set *set, struct api_schema *s, const struct api_path *at,
                        struct api_report *report)
{
    struct walk w = {.set = set, .report = report};
    walk(&w, s, at);
}
