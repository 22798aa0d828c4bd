/*
 * The check: what type each part of an expression has, as far as it can be known, and whether the
 * parts fit. What it finds out is kept in the tree: which functions a name may mean, and patterns
 * that are constant, compiled.
 *
 * An optional that is looked into stays one: x.?a.b is an optional as well.
 */
#include "k8s/cel/check.h"

#define DYN (&cel_decls[CEL_DYN])

const struct cel_decl *check_fail(struct checker *c, const struct cel_node *n, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return cel_fail_at(c->text, c->text + n->at, c->e, "%s", what);
}

void cel_decl_format(const struct cel_decl *d, struct str *out)
{
    static const char *const short_names[CEL_TYPES] = {
        [CEL_DYN] = "dyn",
        [CEL_NULL] = "null",
        [CEL_TIMESTAMP] = "timestamp",
        [CEL_DURATION] = "duration",
    };
    if (d->object) {
        str_append(out, "object");
        return;
    }
    str_append(out, short_names[d->type] ? short_names[d->type] : cel_type_names[d->type]);
    bool map = d->type == CEL_MAP;
    if (!map && d->type != CEL_LIST && d->type != CEL_OPTIONAL)
        return;
    str_append_c(out, '(');
    if (map) {
        cel_decl_format(d->key ? d->key : DYN, out);
        str_append(out, ", ");
    }
    cel_decl_format(d->element ? d->element : DYN, out);
    str_append_c(out, ')');
}

const struct cel_decl *check_no_overload(struct checker *c, const struct cel_node *n,
                                         const char *name, bool member,
                                         const struct cel_decl *const *decls, size_t count)
{
    _cleanup_(str_done) struct str text = {0};
    for (size_t i = 0; i < count; i++) {
        str_append(&text, i == 0 ? (member ? "" : "(") : member && i == 1 ? ".(" : ", ");
        cel_decl_format(decls[i], &text);
    }
    str_append(&text, count == 0 ? "()" : member && count == 1 ? ".()" : ")");
    return check_fail(c, n, "found no matching overload for '%s' applied to '%.150s'", name,
                      str_get(&text));
}

static bool null_fits(const struct cel_decl *d)
{
    return d->object || d->type == CEL_NULL || d->type == CEL_TIMESTAMP ||
           d->type == CEL_DURATION || d->type >= CEL_TYPE;
}

/* How deep types may be is bounded: by the schema that they come from, or by the expression. */
bool check_same(const struct cel_decl *a, const struct cel_decl *b)
{
    if (a == b || a->type == CEL_DYN || b->type == CEL_DYN)
        return true;
    if (a->type == CEL_NULL || b->type == CEL_NULL)
        return null_fits(a->type == CEL_NULL ? b : a);
    if (a->type != b->type || (a->object && b->object && a->fields != b->fields))
        return false;
    return (!a->element || !b->element || check_same(a->element, b->element)) &&
           (!a->key || !b->key || check_same(a->key, b->key));
}

static const struct cel_decl *wrap(struct checker *c, enum cel_type type,
                                   const struct cel_decl *key, const struct cel_decl *element)
{
    struct cel_decl *d = arena_new(&c->program->arena, struct cel_decl);
    *d = (struct cel_decl){type, .element = element, .key = key};
    return d;
}

const struct cel_decl *check_list_of(struct checker *c, const struct cel_decl *element)
{
    return wrap(c, CEL_LIST, NULL, element);
}

const struct cel_decl *check_map_of(struct checker *c, const struct cel_decl *key,
                                    const struct cel_decl *element)
{
    return wrap(c, CEL_MAP, key, element);
}

/* Of an optional, itself. */
static const struct cel_decl *optional_of(struct checker *c, const struct cel_decl *element)
{
    return element->type == CEL_OPTIONAL ? element : wrap(c, CEL_OPTIONAL, NULL, element);
}

const struct cel_field *cel_field_find(const struct cel_decl *d, const char *name)
{
    size_t low = 0, high = d->n_fields;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, d->fields[middle].name);
        if (order == 0)
            return &d->fields[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static const struct cel_decl *field(struct checker *c, const struct cel_node *n)
{
    const struct cel_decl *on = check(c, n->args[0]);
    if (!on)
        return NULL;
    struct cel_node place = *n;
    if (n->op == CEL_OP_HAS)
        place.at = (unsigned)n->index;
    bool optional = n->optional || on->type == CEL_OPTIONAL;
    if (on->type == CEL_OPTIONAL)
        on = on->element ? on->element : DYN;
    const struct cel_decl *found = DYN;
    if (on->object) {
        const struct cel_field *f = cel_field_find(on, n->text);
        if (!f)
            return check_fail(c, &place, "undefined field '%s'", n->text);
        found = f->decl;
    } else if (on->type == CEL_MAP) {
        found = on->element ? on->element : DYN;
    } else if (on->type == CEL_AUTHORIZER && str_eq(n->text, "requestResource")) {
        found = &cel_decls[CEL_RESOURCE_CHECK];
    } else if (on->type != CEL_DYN) {
        _cleanup_(str_done) struct str text = {0};
        cel_decl_format(on, &text);
        return check_fail(c, &place, "type '%.150s' does not support field selection",
                          str_get(&text));
    }
    if (n->op == CEL_OP_HAS)
        return &cel_decls[CEL_BOOL];
    return optional ? optional_of(c, found) : found;
}

static const struct cel_decl *index_of(struct checker *c, const struct cel_node *n)
{
    const struct cel_decl *args[2] = {check(c, n->args[0]), NULL};
    args[1] = args[0] ? check(c, n->args[1]) : NULL;
    if (!args[1])
        return NULL;
    const struct cel_decl *on = args[0], *at = args[1];
    bool optional = n->optional || on->type == CEL_OPTIONAL;
    if (on->type == CEL_OPTIONAL)
        on = on->element ? on->element : DYN;
    bool fits = on->type == CEL_DYN ||
                (on->type == CEL_LIST && check_same(at, &cel_decls[CEL_INT])) ||
                (on->type == CEL_MAP && !on->object && (!on->key || check_same(on->key, at)));
    if (!fits)
        return check_no_overload(c, n, n->optional ? "_[?_]" : "_[_]", false, args, 2);
    const struct cel_decl *found = on->element ? on->element : DYN;
    return optional ? optional_of(c, found) : found;
}

/* The type that all of a list have in common: there is one, except in what is formatted. */
static const struct cel_decl *join(struct checker *c, const struct cel_node *n,
                                   const struct cel_decl *so_far, const struct cel_decl *next)
{
    if (!so_far)
        return next;
    if (check_same(so_far, next))
        return so_far->type == CEL_DYN || next->type == CEL_DYN ? DYN : so_far;
    if (c->mixed)
        return DYN;
    _cleanup_(str_done) struct str a = {0}, b = {0};
    cel_decl_format(so_far, &a);
    cel_decl_format(next, &b);
    return check_fail(c, n, "expected type '%.100s' but found '%.100s'", str_get(&a), str_get(&b));
}

static const struct cel_decl *aggregate(struct checker *c, const struct cel_node *n)
{
    const struct cel_decl *types[2] = {NULL, NULL}; /* elements, or keys and values */
    bool map = n->op == CEL_OP_MAP;
    for (size_t i = 0; i < n->n; i++) {
        const struct cel_node *item = n->args[i];
        const struct cel_decl *d = check(c, n->args[i]);
        if (!d)
            return NULL;
        const struct cel_decl **so_far = &types[map ? i % 2 : 0];
        *so_far = join(c, item, *so_far, d);
        if (!*so_far)
            return NULL;
    }
    return map ? check_map_of(c, types[0], types[1]) : check_list_of(c, types[0]);
}

static const struct cel_decl *optional_item(struct checker *c, const struct cel_node *n)
{
    const struct cel_decl *d = check(c, n->args[0]);
    if (!d || d->type == CEL_DYN)
        return d;
    if (d->type == CEL_OPTIONAL)
        return d->element ? d->element : DYN;
    _cleanup_(str_done) struct str text = {0};
    cel_decl_format(d, &text);
    return check_fail(c, n->args[0], "expected type 'optional_type(dyn)' but found '%.150s'",
                      str_get(&text));
}

static const struct cel_decl *logic(struct checker *c, const struct cel_node *n)
{
    const struct cel_decl *args[2] = {&cel_decls[CEL_BOOL], NULL};
    for (size_t i = 0; i < n->n; i++) {
        args[n->n > 1 && i > 0] = check(c, n->args[i]);
        const struct cel_decl *last = args[n->n > 1 && i > 0];
        if (!last)
            return NULL;
        if (last->type == CEL_BOOL || last->type == CEL_DYN)
            continue;
        if (i == 0 && n->n > 1 && !(args[1] = check(c, n->args[1])))
            return NULL;
        return check_no_overload(c, n,
                                 n->op == CEL_OP_NOT   ? "!_"
                                 : n->op == CEL_OP_AND ? "_&&_"
                                                       : "_||_",
                                 false, args, n->n > 1 ? 2 : 1);
    }
    return &cel_decls[CEL_BOOL];
}

static const struct cel_decl *condition(struct checker *c, const struct cel_node *n)
{
    const struct cel_decl *args[3];
    for (size_t i = 0; i < 3; i++) {
        args[i] = check(c, n->args[i]);
        if (!args[i])
            return NULL;
    }
    if (!check_same(args[0], &cel_decls[CEL_BOOL]) || !check_same(args[1], args[2]))
        return check_no_overload(c, n, "_?_:_", false, args, 3);
    return args[1]->type == CEL_DYN || args[1]->type == CEL_NULL ? args[2] : args[1];
}

static const struct cel_decl *relation(struct checker *c, const struct cel_node *n)
{
    const struct cel_decl *args[2] = {check(c, n->args[0]), NULL};
    args[1] = args[0] ? check(c, n->args[1]) : NULL;
    if (!args[1])
        return NULL;
    const struct cel_decl *in = args[1];
    bool fits;
    if (n->op != CEL_OP_IN)
        fits = check_same(args[0], args[1]);
    else if (in->type == CEL_LIST)
        fits = !in->element || check_same(args[0], in->element);
    else if (in->type == CEL_MAP && !in->object)
        fits = !in->key || check_same(args[0], in->key);
    else
        fits = in->type == CEL_DYN;
    if (fits)
        return &cel_decls[CEL_BOOL];
    return check_no_overload(c, n,
                             n->op == CEL_OP_IN      ? "@in"
                             : n->op == CEL_OP_EQUAL ? "_==_"
                                                     : "_!=_",
                             false, args, 2);
}

static const struct cel_decl *name(struct checker *c, const struct cel_node *n)
{
    if (n->op == CEL_OP_BOUND)
        return c->bound[n->index];
    if (n->index < c->program->n_variables)
        return c->program->variables[n->index].decl;
    return check_fail(c, n, "undeclared reference to '%s' (in container '')", n->text);
}

const struct cel_decl *check(struct checker *c, struct cel_node *n)
{
    switch (n->op) {
    case CEL_OP_LITERAL:
        return &cel_decls[n->value.type];
    case CEL_OP_VARIABLE:
    case CEL_OP_BOUND:
        return name(c, n);
    case CEL_OP_FIELD:
    case CEL_OP_HAS:
        return field(c, n);
    case CEL_OP_INDEX:
        return index_of(c, n);
    case CEL_OP_LIST:
    case CEL_OP_MAP:
        return aggregate(c, n);
    case CEL_OP_OPTIONAL:
        return optional_item(c, n);
    case CEL_OP_NOT:
    case CEL_OP_AND:
    case CEL_OP_OR:
        return logic(c, n);
    case CEL_OP_EQUAL:
    case CEL_OP_DIFFERS:
    case CEL_OP_IN:
        return relation(c, n);
    case CEL_OP_CONDITION:
        return condition(c, n);
    case CEL_OP_CALL:
        return check_call(c, n);
    case CEL_OP_LOOP:
        return check_loop(c, n);
    case CEL_OP_OPT_MAP:
    case CEL_OP_OPT_FLAT_MAP:
        return check_opt_map(c, n);
    }
    return NULL;
}

const struct cel_decl *cel_check(struct cel_program *p, const char *text, struct err *e)
{
    struct checker c = {.program = p, .text = text, .e = e};
    return check(&c, p->root);
}
