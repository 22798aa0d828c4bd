#include "api/selector.h"

#include <errno.h>

#include "api/format.h"

void api_selector_done(struct api_selector *s)
{
    vec_done(&s->requirements);
    arena_done(&s->arena);
    *s = (struct api_selector){0};
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A decimal 64-bit number, as Go reads it: a sign is allowed, blanks are not. */
static bool to_int(const char *text, long long *ret_number)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    *ret_number = strtoll(text, NULL, 10);
    return errno == 0;
}

static int bad_value(struct err *e, const char *key, const char *value, const char *why)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                   "\"%.*s\" is no value for the label %s: %s", (int)str_cut(value, 80), value, key,
                   why);
}

static int check_values(const char *key, enum api_selector_op op, const char **values,
                        size_t nvalues, struct err *e)
{
    bool set = op == API_SELECT_IN || op == API_SELECT_NOT_IN;
    bool unary = op == API_SELECT_EXISTS || op == API_SELECT_NOT_EXISTS;
    if (set ? nvalues == 0 : nvalues != (unary ? 0 : 1))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector", "the label %s must have %s", key,
                       set     ? "at least one value"
                       : unary ? "no values"
                               : "one value");
    for (size_t i = 0; i < nvalues; i++) {
        long long number;
        if ((op == API_SELECT_GREATER || op == API_SELECT_LESS) && !to_int(values[i], &number))
            return bad_value(e, key, values[i], "must be a whole number, as > and < compare those");
        const char *why = api_label_value.check(values[i]);
        if (why)
            return bad_value(e, key, values[i], why);
    }
    return 0;
}

/* Behind all requirements whose key is not greater: those of the same key keep their order. */
static void insert(struct api_selector *s, struct api_requirement r)
{
    vec_push(&s->requirements, r);
    struct api_requirement *p = s->requirements.p;
    size_t i = s->requirements.len - 1;
    for (; i > 0 && strcmp(p[i - 1].key, r.key) > 0; i--)
        p[i] = p[i - 1];
    p[i] = r;
}

int api_selector_add(struct api_selector *s, const char *key, enum api_selector_op op,
                     const char **values, size_t nvalues, struct err *e)
{
    const char *why = api_qualified_name.check(key);
    if (why)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector", "\"%.*s\" is no label key: %s",
                       (int)str_cut(key, 80), key, why);
    if (check_values(key, op, values, nvalues, e) < 0)
        return -1;
    if (s->requirements.len >= API_SELECTOR_MAX_TERMS)
        return err_set(e, ERR_INVALID_ARGUMENT, "SelectorTooLong",
                       "a selector may have %d requirements", API_SELECTOR_MAX_TERMS);
    if (nvalues > API_SELECTOR_MAX_VALUES - s->total_values)
        return err_set(e, ERR_INVALID_ARGUMENT, "SelectorTooLong",
                       "a selector may have %d values together", API_SELECTOR_MAX_VALUES);
    s->total_values += nvalues;

    struct api_requirement r = {.key = arena_strdup(&s->arena, key), .op = op, .nvalues = nvalues};
    r.values = arena_alloc(&s->arena, (nvalues + 1) * sizeof(*r.values));
    for (size_t i = 0; i < nvalues; i++)
        r.values[i] = arena_strdup(&s->arena, values[i]);
    qsort(r.values, nvalues, sizeof(*r.values), compare_texts);
    insert(s, r);
    return 0;
}

/* The string; NULL for other values and for text that C would cut short. */
static const char *text_of(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int from_match_labels(const json_t *labels, struct api_selector *s, struct err *e)
{
    const char *key;
    json_t *value;
    if (labels && !json_is_object(labels))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                       "matchLabels must be a map of label keys to values");
    json_object_foreach((json_t *)labels, key, value) {
        const char *text = text_of(value);
        if (!text)
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                           "matchLabels: the value of %.*s must be a string; put it in quotes",
                           (int)str_cut(key, 80), key);
        if (api_selector_add(s, key, API_SELECT_EQUAL, &text, 1, e) < 0)
            return err_prefix(e, "matchLabels");
    }
    return 0;
}

static int from_expression(const json_t *expression, struct api_selector *s, struct err *e)
{
    static const struct {
        const char *name;
        enum api_selector_op op;
    } operators[] = {{"In", API_SELECT_IN},
                     {"NotIn", API_SELECT_NOT_IN},
                     {"Exists", API_SELECT_EXISTS},
                     {"DoesNotExist", API_SELECT_NOT_EXISTS}};
    const char *key = text_of(json_object_get(expression, "key"));
    const char *name = json_str(expression, "operator");
    if (!key || !name)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                       "an expression must have key and operator, both strings");
    size_t i;
    for (i = 0; i < ARRAY_SIZE(operators) && !str_eq(operators[i].name, name); i++)
        ;
    if (i == ARRAY_SIZE(operators))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                       "\"%.*s\" is no operator; write In, NotIn, Exists or DoesNotExist",
                       (int)str_cut(name, 80), name);

    const json_t *list = json_object_get(expression, "values");
    if (list && !json_is_null(list) && !json_is_array(list))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector", "values must be a list");
    size_t n = json_array_size(list);
    _cleanup_free_ const char **values = mem_realloc_array(NULL, n + 1, sizeof(*values));
    for (size_t j = 0; j < n; j++) {
        values[j] = text_of(json_array_get(list, j));
        if (!values[j])
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                           "values[%zu] must be a string; put it in quotes", j);
    }
    return api_selector_add(s, key, operators[i].op, values, n, e);
}

static int from_object(const json_t *selector, struct api_selector *s, struct err *e)
{
    if (!json_is_object(selector))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                       "a selector must be an object with matchLabels or matchExpressions");
    const json_t *labels = json_object_get(selector, "matchLabels");
    const json_t *expressions = json_object_get(selector, "matchExpressions");
    if (from_match_labels(json_is_null(labels) ? NULL : labels, s, e) < 0)
        return -1;
    if (expressions && !json_is_null(expressions) && !json_is_array(expressions))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                       "matchExpressions must be a list");
    size_t i;
    json_t *expression;
    json_array_foreach(expressions, i, expression) {
        if (from_expression(expression, s, e) < 0)
            return err_prefix(e, "matchExpressions[%zu]", i);
    }
    return 0;
}

int api_selector_from_json(const json_t *selector, struct api_selector *ret_s, struct err *e)
{
    *ret_s = (struct api_selector){.nothing = !selector || json_is_null(selector)};
    if (ret_s->nothing || from_object(selector, ret_s, e) == 0)
        return 0;
    json_clean_message(e);
    api_selector_done(ret_s);
    return -1;
}

static bool has_value(const struct api_requirement *r, const char *text)
{
    return r->nvalues &&
           bsearch(&text, r->values, r->nvalues, sizeof(*r->values), compare_texts) != NULL;
}

static bool requirement_holds(const struct api_requirement *r, const json_t *labels)
{
    const char *value = json_str(labels, r->key);
    long long have, limit;
    switch (r->op) {
    case API_SELECT_EQUAL:
    case API_SELECT_DOUBLE_EQUAL:
    case API_SELECT_IN:
        return value && has_value(r, value);
    case API_SELECT_NOT_EQUAL:
    case API_SELECT_NOT_IN:
        return !value || !has_value(r, value);
    case API_SELECT_EXISTS:
        return value;
    case API_SELECT_NOT_EXISTS:
        return !value;
    case API_SELECT_GREATER:
    case API_SELECT_LESS:
        if (!value || !to_int(value, &have) || !to_int(r->values[0], &limit))
            return false;
        return r->op == API_SELECT_GREATER ? have > limit : have < limit;
    }
    return false;
}

bool api_selector_matches(const struct api_selector *s, const json_t *labels)
{
    if (s->nothing)
        return false;
    for (size_t i = 0; i < s->requirements.len; i++) {
        if (!requirement_holds(&s->requirements.p[i], labels))
            return false;
    }
    return true;
}

static void format_requirement(const struct api_requirement *r, struct str *out)
{
    static const char *const infix[] = {
        [API_SELECT_EQUAL] = "=",         [API_SELECT_DOUBLE_EQUAL] = "==",
        [API_SELECT_NOT_EQUAL] = "!=",    [API_SELECT_IN] = " in (",
        [API_SELECT_NOT_IN] = " notin (", [API_SELECT_EXISTS] = "",
        [API_SELECT_NOT_EXISTS] = "",     [API_SELECT_GREATER] = ">",
        [API_SELECT_LESS] = "<",
    };
    str_appendf(out, "%s%s%s", r->op == API_SELECT_NOT_EXISTS ? "!" : "", r->key, infix[r->op]);
    for (size_t i = 0; i < r->nvalues; i++)
        str_appendf(out, "%s%s", i ? "," : "", r->values[i]);
    if (r->op == API_SELECT_IN || r->op == API_SELECT_NOT_IN)
        str_append_c(out, ')');
}

void api_selector_format(const struct api_selector *s, struct str *out)
{
    for (size_t i = 0; i < s->requirements.len; i++) {
        if (i)
            str_append_c(out, ',');
        format_requirement(&s->requirements.p[i], out);
    }
}
