#include "k8s/apiserver/fieldset.h"

static int compare(const struct fieldset *x, const struct fieldset *y)
{
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->name[0] != y->name[0]) /* so much for most */
        return (unsigned char)x->name[0] < (unsigned char)y->name[0] ? -1 : 1;
    return strcmp(x->name, y->name);
}

void fieldset_add(struct arena *a, struct fieldset_level *level, enum fieldset_step step,
                  const char *name, bool member, struct fieldset *children)
{
    if (!member && !children)
        return;
    struct fieldset *s = arena_new(a, struct fieldset);
    *s = (struct fieldset){.children = children, .name = name, .step = step, .member = member};
    if (!level->first) {
        level->first = level->last = s;
        return;
    }
    level->unsorted |= compare(level->last, s) >= 0;
    level->last->next = s;
    level->last = s;
}

/* Two ordered lists as one. */
static struct fieldset *weave(struct fieldset *x, struct fieldset *y)
{
    struct fieldset *first = NULL, **end = &first;
    while (x && y) {
        struct fieldset **lesser = compare(x, y) <= 0 ? &x : &y;
        *end = *lesser;
        *lesser = (*lesser)->next;
        end = &(*end)->next;
    }
    *end = x ? x : y;
    return first;
}

/* Sorts by runs[i] having 2^i siblings: the order of n log n whatever a client sends. */
static struct fieldset *sort(struct fieldset *list)
{
    struct fieldset *runs[48];
    size_t used = 0;
    while (list) {
        struct fieldset *run = list;
        list = list->next;
        run->next = NULL;
        size_t i = 0;
        for (; i < used && runs[i]; i++) {
            run = weave(runs[i], run);
            runs[i] = NULL;
        }
        used += i == used;
        runs[i] = run;
    }
    struct fieldset *sorted = NULL;
    for (size_t i = 0; i < used; i++)
        sorted = weave(runs[i], sorted);
    return sorted;
}

struct fieldset *fieldset_finish(struct arena *a, struct fieldset_level *level)
{
    if (!level->unsorted)
        return level->first;
    struct fieldset *first = sort(level->first), *s = first;
    for (struct fieldset *next = s->next; next; next = s->next) {
        if (compare(s, next) != 0) {
            s = next;
            continue;
        }
        s->member |= next->member;
        s->children = (struct fieldset *)fieldset_union(a, s->children, next->children);
        s->next = next->next;
    }
    *level = (struct fieldset_level){0};
    return first;
}

/* Which of two levels go into a result, by where a sibling is: only in x, only in y, in both. */
struct operation {
    bool of_x, of_y;
    bool (*both)(bool in_x, bool in_y);
};

/* Depth is bounded: sets come from fieldset_decode() or from walks with the same limit. */
static struct fieldset *combine(struct arena *a, const struct operation *op,
                                const struct fieldset *x, const struct fieldset *y)
{
    struct fieldset_level level = {0};
    while (x || y) {
        int order = !x ? 1 : !y ? -1 : compare(x, y);
        if (order == 0) {
            fieldset_add(a, &level, x->step, x->name, op->both(x->member, y->member),
                         combine(a, op, x->children, y->children));
        } else if (order < 0 && op->of_x) {
            fieldset_add(a, &level, x->step, x->name, x->member, x->children);
        } else if (order > 0 && op->of_y) {
            fieldset_add(a, &level, y->step, y->name, y->member, y->children);
        }
        x = order <= 0 ? x->next : x;
        y = order >= 0 ? y->next : y;
    }
    return level.first;
}

static bool in_either(bool in_x, bool in_y)
{
    return in_x || in_y;
}

static bool in_first(bool in_x, bool in_y)
{
    return in_x && !in_y;
}

static bool in_both(bool in_x, bool in_y)
{
    return in_x && in_y;
}

const struct fieldset *fieldset_union(struct arena *a, const struct fieldset *x,
                                      const struct fieldset *y)
{
    static const struct operation op = {true, true, in_either};
    return !x ? y : !y ? x : combine(a, &op, x, y);
}

const struct fieldset *fieldset_difference(struct arena *a, const struct fieldset *x,
                                           const struct fieldset *y)
{
    static const struct operation op = {true, false, in_first};
    return !x || !y ? x : combine(a, &op, x, y);
}

const struct fieldset *fieldset_intersection(struct arena *a, const struct fieldset *x,
                                             const struct fieldset *y)
{
    static const struct operation op = {false, false, in_both};
    return !x || !y ? NULL : combine(a, &op, x, y);
}

bool fieldset_contains(const struct fieldset *x, const struct fieldset *y)
{
    for (; y; y = y->next) {
        while (x && compare(x, y) < 0)
            x = x->next;
        if (!x || compare(x, y) != 0 || (y->member && !x->member) ||
            !fieldset_contains(x->children, y->children))
            return false;
    }
    return true;
}

bool fieldset_equal(const struct fieldset *x, const struct fieldset *y)
{
    for (; x && y; x = x->next, y = y->next) {
        if (compare(x, y) != 0 || x->member != y->member ||
            !fieldset_equal(x->children, y->children))
            return false;
    }
    return !x && !y;
}
