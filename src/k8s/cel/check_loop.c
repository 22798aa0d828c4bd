/*
 * The check of functions and of macros.
 */
#include "k8s/cel/check.h"

#define DYN (&cel_decls[CEL_DYN])

enum { MAX_ARGUMENTS = 16 };

/* A pattern that is written in the expression is compiled once. */
static bool compile_pattern(struct checker *c, struct cel_node *n)
{
    static const char *const names[] = {"matches", "find", "findAll", NULL};
    if (!str_in(n->text, names) || n->n < 2 || n->args[1]->op != CEL_OP_LITERAL ||
        n->args[1]->value.type != CEL_STRING)
        return true;
    struct err why = {0};
    n->pattern = pattern_new(n->args[1]->value.text.p, &why);
    if (!n->pattern) {
        check_fail(c, n->args[1], "invalid matches argument: %s", why.msg);
        return false;
    }
    vec_push(&c->program->patterns, n->pattern);
    return true;
}

/* So are times and durations checked that are. */
static bool check_constant(struct checker *c, const struct cel_node *n)
{
    bool time = str_eq(n->text, "timestamp"), duration = str_eq(n->text, "duration");
    if ((!time && !duration) || n->n != 1 || n->args[0]->op != CEL_OP_LITERAL ||
        n->args[0]->value.type != CEL_STRING)
        return true;
    struct cel_time t;
    int64_t ns;
    const char *text = n->args[0]->value.text.p;
    if (time ? cel_time_parse(text, false, &t) : cel_duration_parse(text, false, &ns))
        return true;
    check_fail(c, n->args[0], "invalid %s argument", n->text);
    return false;
}

const struct cel_decl *check_call(struct checker *c, struct cel_node *n)
{
    const struct cel_decl *args[MAX_ARGUMENTS];
    const struct cel_function *first = cel_function_find(n->text, n->member);
    if (!first)
        return check_fail(c, n, "undeclared reference to '%s' (in container '')", n->text);
    if (n->n > MAX_ARGUMENTS)
        return check_fail(c, n, "more than %d arguments", MAX_ARGUMENTS);
    unsigned formats = n->member && str_eq(n->text, "format");
    for (size_t i = 0; i < n->n; i++) {
        c->mixed += formats;
        args[i] = check(c, n->args[i]);
        c->mixed -= formats;
        if (!args[i])
            return NULL;
    }
    if (!compile_pattern(c, n) || !check_constant(c, n))
        return NULL;
    const struct cel_decl *result = NULL;
    VEC(const struct cel_function *) fitting = {0};
    for (const struct cel_function *f = first; f; f = cel_function_next(f)) {
        if (!cel_function_takes(f, args, n->n))
            continue;
        const struct cel_decl *own = cel_function_result(f, args, &c->program->arena);
        result = !result || check_same(result, own) ? own : DYN; /* they may differ */
        vec_push(&fitting, f);
    }
    n->n_functions = fitting.len;
    n->functions = arena_alloc(&c->program->arena, (fitting.len + 1) * sizeof(*fitting.p));
    if (fitting.len)
        memcpy(n->functions, fitting.p, fitting.len * sizeof(*fitting.p));
    vec_done(&fitting);
    return result ? result : check_no_overload(c, n, n->text, n->member, args, n->n);
}

/* What a loop goes through, and the types of its variables. */
static bool bind_range(struct checker *c, const struct cel_node *n, const struct cel_decl *range)
{
    const struct cel_decl *element = range->element ? range->element : DYN;
    const struct cel_decl *key = range->key ? range->key : DYN;
    if (range->type == CEL_LIST) {
        key = &cel_decls[CEL_INT];
    } else if (range->type == CEL_DYN) {
        element = key = DYN;
    } else if (range->type != CEL_MAP || range->object) {
        _cleanup_(str_done) struct str text = {0};
        cel_decl_format(range, &text);
        check_fail(c, n->args[0],
                   "expression of type '%.100s' cannot be range of a comprehension (must be list, "
                   "map, or dynamic)",
                   str_get(&text));
        return false;
    }
    c->bound[n->index] = n->two || range->type == CEL_MAP ? key : element;
    if (n->two)
        c->bound[n->index + 1] = element;
    return true;
}

static bool check_truth(struct checker *c, struct cel_node *n, const char *operator)
{
    const struct cel_decl *args[] = {&cel_decls[CEL_BOOL], check(c, n)};
    if (!args[1])
        return false;
    if (check_same(args[0], args[1]))
        return true;
    check_no_overload(c, n, operator, false, args, 2);
    return false;
}

const struct cel_decl *check_loop(struct checker *c, struct cel_node *n)
{
    const struct cel_decl *range = check(c, n->args[0]);
    if (!range || !bind_range(c, n, range))
        return NULL;
    struct cel_node *last = n->args[n->n - 1];
    if (n->n == 3 && !check_truth(c, n->args[1], "_?_:_"))
        return NULL;
    switch (n->loop) {
    case CEL_LOOP_ALL:
    case CEL_LOOP_EXISTS:
    case CEL_LOOP_EXISTS_ONE:
        return check_truth(c, last, n->loop == CEL_LOOP_ALL ? "_&&_" : "_||_")
                   ? &cel_decls[CEL_BOOL]
                   : NULL;
    case CEL_LOOP_FILTER:
        return check_truth(c, last, "_?_:_") ? check_list_of(c, c->bound[n->index]) : NULL;
    case CEL_LOOP_MAP:
    case CEL_LOOP_TRANSFORM_MAP:
    case CEL_LOOP_SORT_BY:
        break;
    }
    const struct cel_decl *key = c->bound[n->index], *made = check(c, last);
    if (!made)
        return NULL;
    return n->loop == CEL_LOOP_MAP             ? check_list_of(c, made)
           : n->loop == CEL_LOOP_TRANSFORM_MAP ? check_map_of(c, key, made)
                                               : range;
}

const struct cel_decl *check_opt_map(struct checker *c, struct cel_node *n)
{
    const struct cel_decl *on = check(c, n->args[0]);
    if (!on)
        return NULL;
    if (on->type != CEL_OPTIONAL && on->type != CEL_DYN)
        return check_no_overload(c, n, "hasValue", true, &on, 1);
    c->bound[n->index] = on->element ? on->element : DYN;
    const struct cel_decl *made = check(c, n->args[1]);
    if (!made || n->op == CEL_OP_OPT_FLAT_MAP)
        return made;
    struct cel_decl *wrapped = arena_new(&c->program->arena, struct cel_decl);
    *wrapped = (struct cel_decl){CEL_OPTIONAL, .element = made};
    return wrapped;
}
