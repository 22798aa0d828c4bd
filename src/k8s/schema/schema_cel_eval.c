/*
 * Rules at work: every rule of a schema is evaluated with the value that stands there as self, and
 * with what an update replaces as oldSelf. A rule about oldSelf has nothing to say where nothing was
 * before, unless it asks to.
 *
 * A rule that does not look at oldSelf and fails for a part that an update leaves as it is, is only
 * worth a warning: the object is from before the rule.
 *
 * All rules of an object share a budget of work.
 */
#include "k8s/schema/schema_cel.h"

enum { MESSAGE_MAX = 5 * 1024 };

struct walk {
    struct api_report *report;
    long budget;
    bool stopped; /* too much work: no further rules */
};

static void walk(struct walk *w, const struct api_schema *s, const json_t *value, const json_t *old,
                 bool same, const struct api_path *at);

/* How a rule is called in a message. */
static const char *name_of(const struct schema_cel_rule *rule)
{
    return *rule->message ? rule->message : rule->rule;
}

/* What problems with a whole object are about, in the original's words. */
static const struct api_path whole = {.key = "<nil>"};

static void failed(struct walk *w, const struct api_schema *s, const struct schema_cel_rule *rule,
                   const struct api_path *at, const struct err *e)
{
    at = at ? at : &whole;
    json_auto_t *type = json_string(schema_type_names[s->type]);
    w->stopped = e->code == ERR_RESOURCE_EXHAUSTED;
    if (str_eq(e->reason, "OutOfBudget"))
        api_problem(w->report, at, API_INVALID, type,
                    "validation failed due to running out of cost budget, no further validation "
                    "rules will be run");
    else if (w->stopped)
        api_problem(w->report, at, API_INVALID, type,
                    "'%s': no further validation rules will be run due to call cost exceeds limit "
                    "for rule: %s",
                    e->msg, name_of(rule));
    else if (str_eq(e->reason, "NoSuchOverload"))
        api_problem(w->report, at, API_INVALID, type,
                    "'%s': call arguments did not match a supported operator, function or macro "
                    "signature for rule: %s",
                    e->msg, name_of(rule));
    else
        api_problem(w->report, at, API_INVALID, type, "%s evaluating rule: %s", e->msg,
                    name_of(rule));
}

/* What messageExpression says; false when it says nothing of use. */
static bool expressed(struct walk *w, const struct schema_cel_rule *rule,
                      const struct cel_input *inputs, struct str *out)
{
    static const char space[] = " \t\r\n\f\v";
    struct err e = {0};
    _cleanup_(str_done) struct str text = {0};
    if (!rule->expression || cel_text(rule->expression, inputs, &w->budget, &text, &e) < 0)
        return false;
    const char *start = str_get(&text);
    start += strspn(start, space);
    size_t n = strlen(start);
    while (n > 0 && strchr(space, start[n - 1]))
        n--;
    if (!n || n > MESSAGE_MAX || memchr(start, '\n', n))
        return false;
    str_append_n(out, start, n);
    return true;
}

static void broken(struct walk *w, const struct schema_cel_rule *rule,
                   const struct cel_input *inputs, bool same, const struct api_path *at)
{
    struct api_path path[SCHEMA_CEL_STEPS];
    for (size_t i = 0; rule->steps && rule->steps[i]; i++) {
        path[i] = (struct api_path){.parent = at, .key = rule->steps[i]};
        at = &path[i];
    }
    at = at ? at : &whole;
    _cleanup_(str_done) struct str text = {0};
    if (!expressed(w, rule, inputs, &text)) {
        str_append(&text, *rule->message ? "" : "failed rule: ");
        str_append(&text, name_of(rule));
    }
    const json_t *value = inputs[SCHEMA_CEL_SELF].json;
    bool shown = !json_is_object(value) && !json_is_array(value) && rule->cause != API_MISSING &&
                 rule->cause != API_FORBIDDEN;
    if (same && !cel_uses(rule->program, SCHEMA_CEL_OLD))
        api_warn(w->report, at, "%s", str_get(&text));
    else
        api_problem(w->report, at, rule->cause, shown ? value : NULL, "%s",
                    rule->cause == API_DUPLICATE ? "" : str_get(&text));
}

static void check_rules(struct walk *w, const struct api_schema *s, const json_t *value,
                        const json_t *old, bool same, const struct api_path *at)
{
    for (size_t i = 0; i < s->cel->n && !w->stopped; i++) {
        const struct schema_cel_rule *rule = &s->cel->rules[i];
        if (!old && cel_uses(rule->program, SCHEMA_CEL_OLD) && !rule->optional_old)
            continue;
        const struct cel_input inputs[] = {
            [SCHEMA_CEL_SELF] = {.json = value},
            [SCHEMA_CEL_OLD] = {.json = old, .optional = rule->optional_old},
        };
        struct err e = {0};
        bool holds = false;
        if (cel_test(rule->program, inputs, &w->budget, &holds, &e) < 0)
            failed(w, s, rule, at, &e);
        else if (!holds)
            broken(w, rule, inputs, same, at);
    }
}

static void walk_members(struct walk *w, const struct api_schema *s, const json_t *object,
                         const json_t *old, bool same, const struct api_path *at)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        const struct api_schema *member = schema_member(s, key);
        member = member ? member : s->values;
        if (member)
            walk(w, member, value, json_object_get(old, key), same, API_KEY(at, key));
    }
}

static void walk_elements(struct walk *w, const struct api_schema *s, const json_t *list,
                          const json_t *old, bool same, const struct api_path *at)
{
    struct map before = {0};
    size_t i;
    json_t *element;
    bool known = s->list == SCHEMA_LIST_MAP && old;
    if (known)
        schema_index_list(s, old, &before);
    json_array_foreach(list, i, element) {
        _cleanup_(str_done) struct str id = {0};
        if (known)
            schema_identify(s, element, &id);
        walk(w, s->items, element, known ? map_get(&before, str_get(&id)) : NULL, same,
             API_AT(at, i));
    }
    map_done(&before);
}

static void walk(struct walk *w, const struct api_schema *s, const json_t *value, const json_t *old,
                 bool same, const struct api_path *at)
{
    if (!(s->flags & SCHEMA_HAS_CEL) || json_is_null(value) || w->stopped)
        return;
    if (json_is_null(old))
        old = NULL;
    same = same || (old && json_equal(value, old));
    if (s->cel)
        check_rules(w, s, value, old, same, at);
    if (json_is_object(value))
        walk_members(w, s, value, old, same, at);
    else if (json_is_array(value) && s->items)
        walk_elements(w, s, value, old, same, at);
}

/* Mistakes after which values may not have the types that rules rely on. */
static bool is_blocking(const struct api_problem *p)
{
    return !p->warning &&
           (p->cause == API_MISSING || p->cause == API_UNSUPPORTED || p->cause == API_TOO_LONG ||
            p->cause == API_TOO_MANY || p->cause == API_WRONG_TYPE);
}

void schema_check_cel(const struct api_schema *s, const json_t *object, const json_t *old,
                      size_t first_problem, struct api_report *report)
{
    if (!(s->flags & SCHEMA_HAS_CEL))
        return;
    for (size_t i = first_problem; i < report->problems.len; i++) {
        if (!is_blocking(&report->problems.p[i]))
            continue;
        json_auto_t *null = json_string("null");
        api_problem(
            report, &whole, API_INVALID, null,
            "some validation rules were not checked because the object was invalid; correct "
            "the existing errors to complete validation");
        return;
    }
    struct walk w = {.report = report, .budget = CEL_OBJECT_COST};
    walk(&w, s, object, old, false, NULL);
}
