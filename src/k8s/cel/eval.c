/*
 * Tree to value. Every step is counted, so that an evaluation ends however large the objects are.
 * As in CEL, access to what is not there is an error, and && and || give a result when one side
 * alone decides it, also when the other is an error.
 */
#include "k8s/cel/eval.h"

#include <stdarg.h>

enum { MEMORY = 64 << 20 }; /* of one evaluation */

bool cel_fail(struct cel_run *r, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    r->failure = arena_strdup(&r->arena, text);
    r->reason = "EvaluationFailed";
    return false;
}

bool cel_no_overload(struct cel_run *r)
{
    cel_fail(r, "no such overload");
    r->reason = "NoSuchOverload";
    return false;
}

/*
 * Too much work is an error that nothing absorbs: the limit stays passed. Whatever makes lists pays
 * for them before it makes them.
 */
bool cel_spend(struct cel_run *r, size_t n)
{
    r->work += n < LONG_MAX / 4 ? (long)n : LONG_MAX / 4;
    if (r->arena.total > MEMORY)
        r->work = LONG_MAX / 2;
    if (r->work <= r->limit)
        return true;
    cel_fail(r, "operation cancelled: actual cost limit exceeded");
    r->reason = "TooExpensive";
    return false;
}

static bool field(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value on = {.type = CEL_NULL};
    if (!cel_eval(r, n->args[0], &on))
        return false;
    bool optional = n->optional, has = n->op == CEL_OP_HAS;
    if (on.type == CEL_OPTIONAL) {
        optional = true;
        if (!on.inner) {
            *ret = has ? cel_make_bool(false) : on;
            return true;
        }
        on = *on.inner;
    }
    if (on.type == CEL_AUTHORIZER)
        return eval_request_resource(r, &on, ret);
    if (on.type != CEL_MAP)
        return on.type == CEL_NULL && !has ? cel_fail(r, "no such key: %.200s", n->text)
                                           : cel_no_overload(r);
    int found = cel_map_field(r, on.map, n->text, ret);
    if (found < 0)
        return false;
    if (has)
        *ret = cel_make_bool(found);
    else if (optional)
        *ret = cel_make_optional(r, found ? ret : NULL);
    return has || optional || found || cel_fail(r, "no such key: %.200s", n->text);
}

static bool element(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value on = {.type = CEL_NULL}, at = on;
    if (!cel_eval(r, n->args[0], &on) || !cel_eval(r, n->args[1], &at))
        return false;
    bool optional = n->optional;
    if (on.type == CEL_OPTIONAL) {
        optional = true;
        if (!on.inner) {
            *ret = on;
            return true;
        }
        on = *on.inner;
    }
    int found;
    if (on.type == CEL_MAP) {
        found = cel_map_find(r, on.map, &at, ret);
        if (!found && !optional)
            return at.type == CEL_STRING ? cel_fail(r, "no such key: %.200s", at.text.p)
                                         : cel_fail(r, "no such key");
    } else if (on.type == CEL_LIST && cel_is_number(&at)) {
        struct cel_value count = {.type = CEL_UINT, .natural = on.list->n}, zero = cel_make_int(0);
        found = cel_compare(&at, &zero) >= 0 && cel_compare(&at, &count) == -1;
        size_t i = !found ? 0 : at.type == CEL_DOUBLE ? (size_t)at.real : (size_t)at.natural;
        if (found && at.type == CEL_DOUBLE && (double)i < at.real)
            return cel_fail(r, "unsupported index value: %g", at.real);
        if (!found && !optional)
            return at.type == CEL_INT
                       ? cel_fail(r, "index out of bounds: %lld", (long long)at.integer)
                       : cel_fail(r, "index out of bounds");
        if (found && !cel_list_at(r, on.list, i, ret))
            return false;
    } else {
        return cel_no_overload(r);
    }
    if (found >= 0 && optional)
        *ret = cel_make_optional(r, found ? ret : NULL);
    return found >= 0;
}

/* What stands at a place of a list or map: 1, 0 for an optional without value, -1. */
static int item(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    if (n->op != CEL_OP_OPTIONAL)
        return cel_eval(r, n, ret) ? 1 : -1;
    if (!cel_eval(r, n->args[0], ret))
        return -1;
    if (ret->type != CEL_OPTIONAL) {
        cel_no_overload(r);
        return -1;
    }
    if (!ret->inner)
        return 0;
    *ret = *ret->inner;
    return 1;
}

static bool make_list(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    if (!cel_spend(r, n->n))
        return false;
    struct cel_value *items = arena_alloc(&r->arena, (n->n + 1) * sizeof(*items));
    size_t count = 0;
    for (size_t i = 0; i < n->n; i++) {
        int is = item(r, n->args[i], &items[count]);
        if (is < 0)
            return false;
        count += (size_t)is;
    }
    *ret = cel_make_list(r, items, count);
    return true;
}

static bool make_map(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    if (!cel_spend(r, n->n))
        return false;
    struct cel_pair *pairs = arena_alloc(&r->arena, (n->n / 2 + 1) * sizeof(*pairs));
    struct cel_map *m = arena_new(&r->arena, struct cel_map);
    *m = (struct cel_map){.pairs = pairs, .decl = &cel_decls[CEL_MAP]};
    for (size_t i = 0; i + 1 < n->n; i += 2) {
        struct cel_value seen, *key = &pairs[m->n].key;
        if (!cel_eval(r, n->args[i], key))
            return false;
        if (key->type != CEL_STRING && key->type != CEL_BOOL && key->type != CEL_INT &&
            key->type != CEL_UINT)
            return cel_fail(r, "unsupported key type");
        int is = item(r, n->args[i + 1], &pairs[m->n].value);
        int there = is > 0 ? cel_map_find(r, m, key, &seen) : 0;
        if (is < 0 || there < 0)
            return false;
        if (there)
            return cel_fail(r, "Failed with repeated key");
        m->n += (size_t)is;
    }
    *ret = (struct cel_value){.type = CEL_MAP, .map = m};
    return true;
}

int eval_truth(struct cel_run *r, const struct cel_node *n)
{
    struct cel_value v = {.type = CEL_NULL};
    if (!cel_eval(r, n, &v))
        return -1;
    if (v.type == CEL_BOOL)
        return v.truth;
    cel_no_overload(r);
    return -1;
}

/* One that decides is enough, even if others are errors. */
static bool either(struct cel_run *r, const struct cel_node *n, int deciding, struct cel_value *ret)
{
    const char *failure = NULL, *reason = NULL;
    for (size_t i = 0; i < n->n; i++) {
        int is = eval_truth(r, n->args[i]);
        if (is == deciding) {
            *ret = cel_make_bool(deciding);
            r->failure = NULL;
            return true;
        }
        if (is < 0 && r->work > r->limit)
            return false;
        if (is < 0 && !failure) {
            failure = r->failure;
            reason = r->reason;
        }
        r->failure = NULL;
    }
    *ret = cel_make_bool(!deciding);
    r->failure = failure;
    r->reason = reason;
    return !failure;
}

static bool contained(struct cel_run *r, const struct cel_value *v, const struct cel_value *in,
                      struct cel_value *ret)
{
    struct cel_value other;
    bool found = false;
    if (in->type == CEL_MAP) {
        int is = cel_map_find(r, in->map, v, &other);
        *ret = cel_make_bool(is == 1);
        return is >= 0;
    }
    if (in->type != CEL_LIST)
        return cel_no_overload(r);
    for (size_t i = 0; i < in->list->n && !found; i++) {
        if (!cel_list_at(r, in->list, i, &other))
            return false;
        found = cel_equal(r, v, &other);
        if (r->failure)
            return false;
    }
    *ret = cel_make_bool(found);
    return true;
}

static bool relation(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value a = {.type = CEL_NULL}, b = a;
    if (!cel_eval(r, n->args[0], &a) || !cel_eval(r, n->args[1], &b))
        return false;
    if (n->op == CEL_OP_IN)
        return contained(r, &a, &b, ret);
    *ret = cel_make_bool(cel_equal(r, &a, &b) == (n->op == CEL_OP_EQUAL));
    return !r->failure;
}

static bool call(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value *args = arena_alloc(&r->arena, (n->n + 1) * sizeof(*args));
    for (size_t i = 0; i < n->n; i++) {
        if (!cel_eval(r, n->args[i], &args[i]))
            return false;
    }
    r->pattern = n->pattern;
    for (size_t i = 0; i < n->n_functions; i++) {
        if (cel_function_fits(n->functions[i], args, n->n))
            return n->functions[i]->call(r, args, n->n, ret);
    }
    return cel_no_overload(r);
}

static bool variable(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    const struct cel_input *in = &r->inputs[n->index];
    if (in->authorizer) {
        *ret = cel_make_authorizer(r, in->authorizer);
        return true;
    }
    const struct cel_decl *decl = r->program->variables[n->index].decl;
    if (in->optional && decl->type == CEL_OPTIONAL)
        decl = decl->element;
    if (in->optional && !in->json) {
        *ret = cel_make_optional(r, NULL);
        return true;
    }
    if (!cel_from_json(r, in->json, decl, ret))
        return false;
    if (in->optional)
        *ret = cel_make_optional(r, ret);
    return true;
}

bool cel_eval(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    int is;
    if (!cel_spend(r, 1))
        return false;
    switch (n->op) {
    case CEL_OP_LITERAL:
        *ret = n->value;
        return true;
    case CEL_OP_VARIABLE:
        return variable(r, n, ret);
    case CEL_OP_BOUND:
        *ret = r->bound[n->index];
        return true;
    case CEL_OP_FIELD:
    case CEL_OP_HAS:
        return field(r, n, ret);
    case CEL_OP_INDEX:
        return element(r, n, ret);
    case CEL_OP_LIST:
        return make_list(r, n, ret);
    case CEL_OP_MAP:
        return make_map(r, n, ret);
    case CEL_OP_NOT:
        is = eval_truth(r, n->args[0]);
        *ret = cel_make_bool(is == 0);
        return is >= 0;
    case CEL_OP_AND:
        return either(r, n, 0, ret);
    case CEL_OP_OR:
        return either(r, n, 1, ret);
    case CEL_OP_EQUAL:
    case CEL_OP_DIFFERS:
    case CEL_OP_IN:
        return relation(r, n, ret);
    case CEL_OP_CONDITION:
        is = eval_truth(r, n->args[0]);
        return is >= 0 && cel_eval(r, n->args[is ? 1 : 2], ret);
    case CEL_OP_CALL:
        return call(r, n, ret);
    case CEL_OP_LOOP:
        return eval_loop(r, n, ret);
    case CEL_OP_OPT_MAP:
    case CEL_OP_OPT_FLAT_MAP:
        return eval_opt_map(r, n, ret);
    case CEL_OP_OPTIONAL:
        break; /* only inside lists and maps */
    }
    return cel_no_overload(r);
}
