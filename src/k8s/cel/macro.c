/*
 * Names, and what looks like a function and is a macro: has(), the loops all(), exists(), map() and
 * their like, whose variables are known inside them alone.
 *
 * A name that is no variable stays a node with its text, because it may be the first part of a
 * longer one: sets.contains(), google.protobuf.Timestamp. The check refuses those that remain.
 */
#include "k8s/cel/macro.h"

struct cel_node *cel_name(struct cel_parser *p, const char *at, const char *name)
{
    struct cel_program *program = p->program;
    struct cel_node *n = cel_node_new(p, CEL_OP_BOUND, at, NULL, 0);
    n->text = name;
    for (n->index = p->n_bound; n->index-- > 0;) {
        if (str_eq(p->bound[n->index], name))
            return n;
    }
    n->op = CEL_OP_VARIABLE;
    for (n->index = 0; n->index < program->n_variables; n->index++) {
        if (str_eq(program->variables[n->index].name, name)) {
            program->used[n->index] = true;
            return n;
        }
    }
    for (enum cel_type t = CEL_NULL; t < CEL_TYPES; t++) {
        if (str_eq(cel_type_names[t], name))
            return cel_literal(p, at, cel_make_type(t));
    }
    return n; /* with an index past the last: nobody knows it, yet */
}

/* The dotted name that a chain of fields is, when it begins with no variable; NULL. */
static const char *dotted(struct cel_parser *p, const struct cel_node *n)
{
    if (n->op == CEL_OP_VARIABLE && n->index == p->program->n_variables)
        return n->text;
    if (n->op != CEL_OP_FIELD || n->optional)
        return NULL;
    const char *before = dotted(p, n->args[0]);
    return before ? arena_printf(&p->program->arena, "%s.%s", before, n->text) : NULL;
}

struct cel_node *cel_qualified(struct cel_parser *p, struct cel_node *on, const char *name)
{
    const char *before = dotted(p, on);
    if (!before)
        return NULL;
    const char *whole = arena_printf(&p->program->arena, "%s.%s", before, name);
    for (enum cel_type t = CEL_NULL; t < CEL_TYPES; t++) {
        if (str_eq(cel_type_names[t], whole))
            return cel_literal(p, p->text + on->at, cel_make_type(t));
    }
    return NULL;
}

static const struct macro {
    const char *name;
    enum cel_op op;
    enum cel_loop loop;
    unsigned least, most;    /* variables */
    unsigned expressions[2]; /* at least, at most */
} macros[] = {
    {"all", CEL_OP_LOOP, CEL_LOOP_ALL, 1, 2, {1, 1}},
    {"exists", CEL_OP_LOOP, CEL_LOOP_EXISTS, 1, 2, {1, 1}},
    {"exists_one", CEL_OP_LOOP, CEL_LOOP_EXISTS_ONE, 1, 1, {1, 1}},
    {"existsOne", CEL_OP_LOOP, CEL_LOOP_EXISTS_ONE, 1, 2, {1, 1}},
    {"filter", CEL_OP_LOOP, CEL_LOOP_FILTER, 1, 1, {1, 1}},
    {"map", CEL_OP_LOOP, CEL_LOOP_MAP, 1, 1, {1, 2}},
    {"sortBy", CEL_OP_LOOP, CEL_LOOP_SORT_BY, 1, 1, {1, 1}},
    {"transformList", CEL_OP_LOOP, CEL_LOOP_MAP, 2, 2, {1, 2}},
    {"transformMap", CEL_OP_LOOP, CEL_LOOP_TRANSFORM_MAP, 2, 2, {1, 2}},
    {"optMap", CEL_OP_OPT_MAP, CEL_LOOP_ALL, 1, 1, {1, 1}},
    {"optFlatMap", CEL_OP_OPT_FLAT_MAP, CEL_LOOP_ALL, 1, 1, {1, 1}},
};

static const struct macro *find_macro(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(macros); i++) {
        if (str_eq(macros[i].name, name))
            return &macros[i];
    }
    return NULL;
}

/* Takes a name and a comma; NULL, and nothing taken, when they are not there. */
static const char *take_variable(struct cel_parser *p)
{
    const char *start = p->at, *name = cel_take_name(p);
    if (name && cel_take(p, ","))
        return name;
    p->at = start;
    return NULL;
}

/* Binds the variables that a macro begins with. */
static bool bind(struct cel_parser *p, const struct macro *m, unsigned *ret_count)
{
    for (*ret_count = 0; *ret_count < m->most; (*ret_count)++) {
        const char *name = take_variable(p);
        if (!name && *ret_count >= m->least)
            return true;
        if (!name)
            cel_fail_at(p->text, p->at, p->e, "argument must be a simple name");
        else if (p->n_bound == CEL_MAX_BOUND)
            cel_fail_at(p->text, p->at, p->e, "more than %d variables of macros in each other",
                        CEL_MAX_BOUND);
        else {
            p->bound[p->n_bound++] = name;
            continue;
        }
        return false;
    }
    return true;
}

/* x.name(variables, expressions) */
static struct cel_node *macro(struct cel_parser *p, const struct macro *m, struct cel_node *on,
                              const char *open)
{
    size_t first = p->n_bound;
    unsigned variables;
    if (!bind(p, m, &variables))
        return NULL;
    struct cel_items args = {0};
    struct cel_node *n = NULL;
    vec_push(&args, on);
    bool read = cel_arguments(p, &args);
    p->n_bound = first;
    size_t given = args.len - 1;
    if (read && given >= m->expressions[0] && given <= m->expressions[1])
        n = cel_node_new(p, m->op, open, args.p, args.len);
    else if (read)
        cel_fail_at(p->text, open, p->e, "wrong number of arguments for the macro %s()", m->name);
    vec_done(&args);
    if (n) {
        n->index = first;
        n->two = variables == 2;
        n->loop = m->loop;
    }
    return n;
}

static struct cel_node *has(struct cel_parser *p, const char *open)
{
    struct cel_node *field = cel_expression(p);
    if (!field)
        return NULL;
    if (!cel_take(p, ")"))
        return cel_unexpected(p, "')'");
    if (field->op != CEL_OP_FIELD)
        return cel_fail_at(p->text, open, p->e, "invalid argument to has() macro");
    struct cel_node *n = cel_node_new(p, CEL_OP_HAS, open, field->args, 1);
    if (n) {
        n->text = field->text;
        n->index = field->at;
    }
    return n;
}

struct cel_node *cel_function_call(struct cel_parser *p, struct cel_node *on, const char *name,
                                   const char *open)
{
    if (!on && str_eq(name, "has"))
        return has(p, open);
    const char *before = on ? dotted(p, on) : NULL;
    if (before) { /* sets.contains() has no target */
        const char *whole = arena_printf(&p->program->arena, "%s.%s", before, name);
        if (cel_function_find(whole, false)) {
            name = whole;
            on = NULL;
        }
    }
    const struct macro *m = on ? find_macro(name) : NULL;
    if (m)
        return macro(p, m, on, open);
    struct cel_items args = {0};
    struct cel_node *n = NULL;
    if (on)
        vec_push(&args, on);
    if (cel_arguments(p, &args))
        n = cel_call(p, name, on, open, args.p, args.len);
    vec_done(&args);
    return n;
}
