/*
 * RFC 6902, as the Kubernetes API has it.
 *
 * The operations run on one working root; when one fails the root is dropped, so the caller sees
 * all of them or none. Containers are copied at most once per patch (see share.h): ten thousand
 * insertions into one list copy it once.
 *
 * What bounds the work, given a document and a patch within the limits of json.h:
 *
 *   add, replace, test   visit the operation's own value, so the patch's size bounds their sum
 *   copy, move deeper    visit a value of the document and pay for it out of one budget; this also
 *                        stops a document that doubles with each copy of itself
 *   add, remove in a     move the elements behind, a pointer each: the number of operations bounds
 *   list                 their sum
 *   every path           has at most JSON_MAX_DEPTH steps, and no value is put where it would reach
 *                        deeper than that
 *
 * Where the RFC would refuse and Kubernetes does not, clients have come to rely on Kubernetes:
 * `replace` of a member that is not there adds it, `test` for null holds when the member is not
 * there, and /list/-1 is the last element.
 */
#include "json/patch.h"

#include <stdint.h>

#include "base/mem.h"
#include "json/internal.h"
#include "json/patch_path.h"
#include "json/share.h"

/* What a node weighs beside its text: a budget of JSON_MAX_BYTES is one of JSON_MAX_NODES too. */
enum { NODE_WEIGHT = 16 };

struct op {
    struct patch_path path, from;
    json_t *value; /* borrowed from the patch; NULL for remove, move and copy */
};

enum fit { FITS, TOO_DEEP, TOO_MUCH };

/* Whether the value is at most `room` levels deep and weighs no more than the budget. */
static enum fit weigh(const json_t *value, size_t room, size_t *budget)
{
    size_t weight = NODE_WEIGHT;
    if (json_is_string(value))
        weight += json_string_length(value);
    if (weight > *budget)
        return TOO_MUCH;
    *budget -= weight;
    if (!json_is_object(value) && !json_is_array(value))
        return FITS;
    if (room == 0)
        return TOO_DEEP;

    enum fit fit = FITS;
    size_t i;
    json_t *child;
    json_array_foreach(value, i, child) {
        if ((fit = weigh(child, room - 1, budget)) != FITS)
            return fit;
    }
    for (void *it = json_object_iter(json_unconst(value)); it && fit == FITS;
         it = json_object_iter_next(json_unconst(value), it)) {
        size_t key = json_object_iter_key_len(it);
        if (key > *budget)
            return TOO_MUCH;
        *budget -= key;
        fit = weigh(json_object_iter_value(it), room - 1, budget);
    }
    return fit;
}

static int check_fit(struct patch_run *r, const json_t *value, const struct patch_path *to,
                     size_t *budget)
{
    switch (weigh(value, JSON_MAX_DEPTH - to->n, budget)) {
    case FITS:
        break;
    case TOO_DEEP:
        return err_set(r->e, ERR_INVALID_ARGUMENT, "TooLarge",
                       "the document would become more than %d levels deep", JSON_MAX_DEPTH);
    case TOO_MUCH:
        return err_set(r->e, ERR_INVALID_ARGUMENT, "TooLarge",
                       "the patch copies more than %d MiB in all: send the values themselves",
                       JSON_MAX_BYTES / (1024 * 1024));
    }
    return 0;
}

static void set_root(struct patch_run *r, json_t *value)
{
    json_decref(r->root);
    r->root = value;
}

/* Takes over the reference to value. */
static int put(struct patch_run *r, const struct patch_path *p, json_t *value, bool replace)
{
    json_auto_t *owned = value;
    if (p->n == 0) {
        set_root(r, TAKE_PTR(owned));
        return 0;
    }
    json_t *parent = patch_parent(r, p);
    if (!parent)
        return -1;
    const char *last = p->tokens[p->n - 1];
    if (json_is_object(parent)) {
        json_object_set_new_nocheck(parent, last, TAKE_PTR(owned));
        return 0;
    }
    size_t index;
    if (!patch_index(last, json_array_size(parent), !replace, &index))
        return patch_no_element(r, p, p->n - 1, parent);
    if (replace)
        json_array_set_new(parent, index, TAKE_PTR(owned));
    else
        json_array_insert_new(parent, index, TAKE_PTR(owned));
    return 0;
}

static int take_out(struct patch_run *r, const struct patch_path *p)
{
    if (!patch_find(r, p, p->n))
        return -1;
    json_t *parent = patch_parent(r, p);
    if (!parent)
        return -1;
    const char *last = p->tokens[p->n - 1];
    size_t index;
    if (json_is_object(parent))
        json_object_del(parent, last);
    else if (patch_index(last, json_array_size(parent), false, &index))
        json_array_remove(parent, index);
    return 0;
}

static int op_add(struct patch_run *r, const struct op *op)
{
    size_t any = SIZE_MAX;
    if (check_fit(r, op->value, &op->path, &any) < 0)
        return -1;
    return put(r, &op->path, json_incref(op->value), false);
}

static int op_replace(struct patch_run *r, const struct op *op)
{
    size_t any = SIZE_MAX;
    if (check_fit(r, op->value, &op->path, &any) < 0)
        return -1;
    return put(r, &op->path, json_incref(op->value), true);
}

static int op_remove(struct patch_run *r, const struct op *op)
{
    if (op->path.n == 0)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "InvalidPatch",
                       "the whole document cannot be removed: name a member of it");
    return take_out(r, &op->path);
}

static int op_copy(struct patch_run *r, const struct op *op)
{
    json_t *value = patch_find(r, &op->from, op->from.n);
    if (!value || check_fit(r, value, &op->path, &r->budget) < 0)
        return -1;
    return put(r, &op->path, json_incref(value), false);
}

static int op_move(struct patch_run *r, const struct op *op)
{
    const struct patch_path *from = &op->from, *to = &op->path;
    json_t *found = patch_find(r, from, from->n);
    if (!found)
        return -1;
    bool inside = from->n <= to->n;
    for (size_t i = 0; inside && i < from->n; i++)
        inside = str_eq(from->tokens[i], to->tokens[i]);
    if (inside && from->n == to->n)
        return 0;
    if (inside)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "InvalidPatch",
                       "%s cannot move into itself: write a path outside it",
                       from->n ? from->text : "the whole document");
    if (to->n > from->n && check_fit(r, found, to, &r->budget) < 0)
        return -1;

    json_auto_t *value = json_incref(found);
    if (take_out(r, from) < 0)
        return -1;
    return put(r, to, TAKE_PTR(value), false);
}

/* Equal as the RFC says: numbers by value, objects whatever their order. Bounded by `b`. */
static bool equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        if (json_typeof(a) == json_typeof(b))
            return json_equal(a, b);
        double real = json_real_value(json_is_real(a) ? a : b);
        json_int_t whole;
        return json_real_is_whole(real, &whole) &&
               whole == json_integer_value(json_is_real(a) ? b : a);
    }
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_array(a)) {
        bool same = json_array_size(a) == json_array_size(b);
        for (size_t i = 0; same && i < json_array_size(a); i++)
            same = equal(json_array_get(a, i), json_array_get(b, i));
        return same;
    }
    if (!json_is_object(a))
        return json_equal(a, b);
    if (json_object_size(a) != json_object_size(b))
        return false;
    const char *key;
    json_t *value;
    json_object_foreach(json_unconst(b), key, value) {
        const json_t *other = json_object_get(a, key);
        if (!other || !equal(other, value))
            return false;
    }
    return true;
}

static int op_test(struct patch_run *r, const struct op *op)
{
    const struct patch_path *p = &op->path;
    size_t any = SIZE_MAX;
    if (check_fit(r, op->value, p, &any) < 0)
        return -1;
    const json_t *found = p->n ? patch_find(r, p, p->n - 1) : r->root;
    if (!found)
        return -1;
    if (p->n) {
        bool absent = json_is_object(found) && !json_object_get(found, p->tokens[p->n - 1]);
        if (absent && json_is_null(op->value))
            return 0;
        found = patch_child(r, p, p->n - 1, found);
        if (!found)
            return -1;
    }
    if (equal(found, op->value))
        return 0;

    _cleanup_(str_done) struct str is = {0}, wanted = {0};
    json_format(found, &is);
    json_format(op->value, &wanted);
    return err_set(r->e, ERR_FAILED_PRECONDITION, "TestFailed", "the value is %.300s, not %.300s",
                   str_get(&is), str_get(&wanted));
}

static const struct kind {
    const char *name;
    bool has_value, has_from;
    int (*apply)(struct patch_run *r, const struct op *op);
} kinds[] = {
    {"add", true, false, op_add},         {"remove", false, false, op_remove},
    {"replace", true, false, op_replace}, {"move", false, true, op_move},
    {"copy", false, true, op_copy},       {"test", true, false, op_test},
};

static const struct kind *kind_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (str_eq(kinds[i].name, name))
            return &kinds[i];
    }
    return NULL;
}

static int apply_one(struct patch_run *r, const struct kind *kind, const json_t *o)
{
    struct op op = {.value = json_object_get(o, "value")};
    const char *from = json_str(o, "from");
    if (kind->has_value && !op.value)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "InvalidPatch", "\"value\" is missing");
    if (kind->has_from && !from)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "InvalidPatch",
                       "\"from\" is missing or not a string");
    arena_clear(&r->arena);
    if (patch_path_parse(r, &op.path, json_str(o, "path")) < 0)
        return -1;
    if (kind->has_from && patch_path_parse(r, &op.from, from) < 0)
        return err_prefix(r->e, "from");
    return kind->apply(r, &op);
}

static int apply_nth(struct patch_run *r, const json_t *ops, size_t i)
{
    size_t n = json_array_size(ops);
    const json_t *o = json_array_get(ops, i);
    const char *name = json_str(o, "op"), *path = json_str(o, "path");
    if (!json_is_object(o) || !name || !path)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "InvalidPatch",
                       "operation %zu of %zu: write an object with the strings \"op\" and \"path\"",
                       i + 1, n);
    const struct kind *kind = kind_find(name);
    if (!kind)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "InvalidPatch",
                       "operation %zu of %zu (%.40s %.300s): the operations are add, remove, "
                       "replace, move, copy and test",
                       i + 1, n, name, path);
    if (apply_one(r, kind, o) == 0)
        return 0;
    const char *from = kind->has_from ? json_str(o, "from") : NULL;
    return err_prefix(r->e, "operation %zu of %zu (%s %.300s%s%.300s)", i + 1, n, name,
                      from ? from : "", from ? " to " : "", path);
}

json_t *json_patch_apply(const json_t *doc, const json_t *ops, struct err *e)
{
    if (!json_is_array(ops)) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidPatch",
                "a JSON patch is a list of operations, not of type %s", json_type_name(ops));
        return NULL;
    }
    if (json_array_size(ops) > JSON_PATCH_MAX_OPS) {
        err_set(e, ERR_INVALID_ARGUMENT, "TooLarge",
                "the patch has %zu operations, %d are allowed: send it in parts",
                json_array_size(ops), JSON_PATCH_MAX_OPS);
        return NULL;
    }
    struct patch_run r = {.root = json_share(doc), .budget = JSON_MAX_BYTES, .e = e};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(ops); i++)
        rc = apply_nth(&r, ops, i);
    arena_done(&r.arena);
    if (rc == 0)
        return r.root;
    json_clean_message(e);
    json_decref(r.root);
    return NULL;
}
