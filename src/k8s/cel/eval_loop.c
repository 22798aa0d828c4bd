/*
 * Loops, and the ends of an evaluation.
 */
#include "k8s/cel/eval.h"

struct loop {
    struct cel_value range;
    size_t i, n;
    void *it;
};

/* Sets the variables to the next element; 1, 0 at the end, -1. */
static int next(struct cel_run *r, const struct cel_node *n, struct loop *l)
{
    struct cel_pair pair;
    if (l->i == l->n)
        return 0;
    if (!cel_spend(r, 1))
        return -1;
    if (l->range.type == CEL_LIST) {
        pair.key = cel_make_int((int64_t)l->i);
        if (!cel_list_at(r, l->range.list, l->i, &pair.value))
            return -1;
    } else if (!cel_map_next(r, l->range.map, l->i, &l->it, &pair)) {
        return -1;
    }
    l->i++;
    if (n->two) {
        r->bound[n->index] = pair.key;
        r->bound[n->index + 1] = pair.value;
    } else {
        r->bound[n->index] = l->range.type == CEL_LIST ? pair.value : pair.key;
    }
    return 1;
}

static bool begin(struct cel_run *r, const struct cel_node *n, struct loop *l)
{
    if (!cel_eval(r, n->args[0], &l->range))
        return false;
    if (l->range.type != CEL_LIST && l->range.type != CEL_MAP)
        return cel_no_overload(r);
    l->n = l->range.type == CEL_LIST ? l->range.list->n : l->range.map->n;
    return true;
}

/* all() and exists(): the first that decides ends it; errors count only when none does. */
static bool decide(struct cel_run *r, const struct cel_node *n, struct loop *l, int deciding,
                   struct cel_value *ret)
{
    const char *failure = NULL, *reason = NULL;
    int more;
    *ret = cel_make_bool(!deciding);
    while ((more = next(r, n, l)) > 0) {
        int is = eval_truth(r, n->args[1]);
        if (is == deciding) {
            *ret = cel_make_bool(deciding);
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
    if (more < 0)
        return false;
    r->failure = failure;
    r->reason = reason;
    return !failure;
}

static bool exactly_one(struct cel_run *r, const struct cel_node *n, struct loop *l,
                        struct cel_value *ret)
{
    size_t count = 0;
    int more;
    while ((more = next(r, n, l)) > 0) {
        int is = eval_truth(r, n->args[1]);
        if (is < 0)
            return false;
        count += (size_t)is;
    }
    *ret = cel_make_bool(count == 1);
    return more == 0;
}

/* filter(), map() and the like: pairs of what was gone through and what was made of it. */
static bool collect(struct cel_run *r, const struct cel_node *n, struct loop *l,
                    struct cel_pair **ret_pairs, size_t *ret_count)
{
    if (!cel_spend(r, l->n))
        return false;
    struct cel_pair *pairs = arena_alloc(&r->arena, (l->n + 1) * sizeof(*pairs));
    bool filter = n->loop == CEL_LOOP_FILTER;
    int more;
    *ret_count = 0;
    *ret_pairs = pairs;
    while ((more = next(r, n, l)) > 0) {
        struct cel_pair *pair = &pairs[*ret_count];
        pair->key = r->bound[n->index];
        int is = filter || n->n == 3 ? eval_truth(r, n->args[1]) : 1;
        if (is < 0 || (is && !filter && !cel_eval(r, n->args[n->n - 1], &pair->value)))
            return false;
        *ret_count += (size_t)is;
    }
    return more == 0;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct cel_pair *x = a, *y = b;
    return cel_compare(&x->value, &y->value);
}

static bool sort(struct cel_run *r, struct cel_pair *pairs, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (cel_compare(&pairs[0].value, &pairs[i].value) == -2)
            return cel_no_overload(r);
    }
    if (!cel_spend(r, n))
        return false;
    if (n)
        qsort(pairs, n, sizeof(*pairs), compare_pairs);
    return true;
}

static bool make(struct cel_run *r, const struct cel_node *n, struct loop *l, struct cel_value *ret)
{
    struct cel_pair *pairs;
    size_t count;
    if (!collect(r, n, l, &pairs, &count))
        return false;
    if (n->loop == CEL_LOOP_TRANSFORM_MAP) {
        struct cel_map *m = arena_new(&r->arena, struct cel_map);
        *m = (struct cel_map){.n = count, .pairs = pairs, .decl = &cel_decls[CEL_MAP]};
        *ret = (struct cel_value){.type = CEL_MAP, .map = m};
        return true;
    }
    if (n->loop == CEL_LOOP_SORT_BY && !sort(r, pairs, count))
        return false;
    struct cel_value *items = arena_alloc(&r->arena, (count + 1) * sizeof(*items));
    for (size_t i = 0; i < count; i++)
        items[i] = n->loop == CEL_LOOP_MAP ? pairs[i].value : pairs[i].key;
    *ret = cel_make_list(r, items, count);
    return true;
}

bool eval_loop(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct loop l = {0};
    if (!begin(r, n, &l))
        return false;
    switch (n->loop) {
    case CEL_LOOP_ALL:
        return decide(r, n, &l, 0, ret);
    case CEL_LOOP_EXISTS:
        return decide(r, n, &l, 1, ret);
    case CEL_LOOP_EXISTS_ONE:
        return exactly_one(r, n, &l, ret);
    default:
        return make(r, n, &l, ret);
    }
}

bool eval_opt_map(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value on = {.type = CEL_NULL};
    if (!cel_eval(r, n->args[0], &on))
        return false;
    if (on.type != CEL_OPTIONAL)
        return cel_no_overload(r);
    if (!on.inner) {
        *ret = on;
        return true;
    }
    r->bound[n->index] = *on.inner;
    if (!cel_eval(r, n->args[1], ret))
        return false;
    if (n->op == CEL_OP_OPT_MAP)
        *ret = cel_make_optional(r, ret);
    return ret->type == CEL_OPTIONAL || cel_no_overload(r);
}

/* Evaluates; what comes of it lives as long as the run's arena. */
static int evaluate(struct cel_run *r, long *budget, struct cel_value *ret, struct err *e)
{
    r->limit = CEL_CALL_COST;
    bool short_of = budget && *budget < r->limit;
    if (short_of)
        r->limit = *budget > 0 ? *budget : 0;
    bool done = cel_eval(r, r->program->root, ret);
    if (budget)
        *budget -= r->work;
    if (done)
        return 0;
    bool exhausted = r->work > r->limit;
    return err_set(e,
                   exhausted                             ? ERR_RESOURCE_EXHAUSTED
                   : str_eq(r->reason, "NoSuchOverload") ? ERR_INVALID_ARGUMENT
                                                         : ERR_OUT_OF_RANGE,
                   exhausted && short_of ? "OutOfBudget" : r->reason, "%s", r->failure);
}

int cel_test(const struct cel_program *p, const struct cel_input *inputs, long *budget,
             bool *ret_result, struct err *e)
{
    struct cel_run r = {.program = p, .inputs = inputs};
    struct cel_value v = {.type = CEL_NULL};
    int status = evaluate(&r, budget, &v, e);
    if (status == 0 && v.type != CEL_BOOL)
        status = err_set(e, ERR_INVALID_ARGUMENT, "NoSuchOverload", "no such overload");
    else if (status == 0)
        *ret_result = v.truth;
    arena_done(&r.arena);
    return status;
}

int cel_text(const struct cel_program *p, const struct cel_input *inputs, long *budget,
             struct str *out, struct err *e)
{
    struct cel_run r = {.program = p, .inputs = inputs};
    struct cel_value v = {.type = CEL_NULL};
    int status = evaluate(&r, budget, &v, e);
    if (status == 0 && v.type != CEL_STRING)
        status = err_set(e, ERR_INVALID_ARGUMENT, "NoSuchOverload", "no such overload");
    else if (status == 0)
        str_append_n(out, v.text.p, v.text.n);
    arena_done(&r.arena);
    return status;
}
