/*
 * The paths of a JSON patch: to the value that a path names, and to the container around it with
 * everything on the way made ours to change.
 */
#include "json/patch_path.h"

#include "base/mem.h"
#include "json/pointer.h"
#include "json/share.h"

int patch_path_parse(struct patch_run *r, struct patch_path *p, const char *text)
{
    _cleanup_(str_done) struct str token = {0};
    p->text = text;
    p->n = 0;
    const char *rest = text;
    int more;
    while ((more = json_pointer_next(&rest, &token, r->e)) > 0) {
        if (p->n == JSON_MAX_DEPTH)
            return err_set(r->e, ERR_INVALID_ARGUMENT, "TooLarge",
                           "the path has more than %d steps", JSON_MAX_DEPTH);
        p->tokens[p->n++] = arena_copy(&r->arena, str_get(&token), token.len);
    }
    return more;
}

/* The path of the first n steps, for a message; lives as long as the operation. */
static const char *path_prefix(struct patch_run *r, const struct patch_path *p, size_t n)
{
    _cleanup_(str_done) struct str s = {0};
    for (size_t i = 0; i < n; i++)
        json_pointer_append(&s, p->tokens[i]);
    return n ? arena_strdup(&r->arena, str_get(&s)) : "the top of the document";
}

bool patch_index(const char *token, size_t size, bool insert, size_t *ret)
{
    size_t places = insert ? size + 1 : size;
    if (str_eq(token, "-")) {
        *ret = size;
        return insert;
    }
    if (token[0] != '-')
        return json_pointer_index(token, places, ret);
    size_t back;
    if (!json_pointer_index(token + 1, places + 1, &back) || back == 0)
        return false;
    *ret = places - back;
    return true;
}

static int no_container(struct patch_run *r, const struct patch_path *p, size_t n,
                        const json_t *value)
{
    return err_set(r->e, ERR_NOT_FOUND, "PathNotFound",
                   "%s is of type %s, so there is no \"%s\" in it", path_prefix(r, p, n),
                   json_type_name(value), p->tokens[n]);
}

int patch_no_element(struct patch_run *r, const struct patch_path *p, size_t n, const json_t *list)
{
    return err_set(r->e, ERR_NOT_FOUND, "PathNotFound",
                   "\"%s\" is no index into %s, a list of %zu: 0 is the first element, and - the "
                   "place behind the last, to add there",
                   p->tokens[n], path_prefix(r, p, n), json_array_size(list));
}

static int no_member(struct patch_run *r, const struct patch_path *p, size_t n)
{
    return err_set(r->e, ERR_NOT_FOUND, "PathNotFound", "there is no \"%s\" in %s", p->tokens[n],
                   path_prefix(r, p, n));
}

json_t *patch_child(struct patch_run *r, const struct patch_path *p, size_t n, const json_t *in)
{
    json_t *child = NULL;
    size_t index;
    if (json_is_object(in)) {
        child = json_object_get(in, p->tokens[n]);
        if (!child)
            no_member(r, p, n);
    } else if (!json_is_array(in)) {
        no_container(r, p, n, in);
    } else if (patch_index(p->tokens[n], json_array_size(in), false, &index)) {
        child = json_array_get(in, index);
    } else {
        patch_no_element(r, p, n, in);
    }
    return child;
}

json_t *patch_find(struct patch_run *r, const struct patch_path *p, size_t n)
{
    json_t *at = r->root;
    for (size_t i = 0; at && i < n; i++)
        at = patch_child(r, p, i, at);
    return at;
}

/* Puts a copy of the child in its place if anyone else holds it, so that it may be changed. */
static json_t *own_child(json_t *in, const char *token, json_t *child)
{
    if (json_is_sole(child))
        return child;
    json_t *copy = json_copy(child);
    size_t index;
    if (json_is_object(in))
        json_object_set_new_nocheck(in, token, copy);
    else if (patch_index(token, json_array_size(in), false, &index))
        json_array_set_new(in, index, copy);
    return copy;
}

json_t *patch_parent(struct patch_run *r, const struct patch_path *p)
{
    /* A look first: an operation that does not apply should not copy anything. */
    json_t *parent = patch_find(r, p, p->n - 1);
    if (!parent)
        return NULL;
    if (!json_is_object(parent) && !json_is_array(parent)) {
        no_container(r, p, p->n - 1, parent);
        return NULL;
    }
    json_own(&r->root);
    json_t *at = r->root;
    for (size_t i = 0; i + 1 < p->n; i++)
        at = own_child(at, p->tokens[i], patch_child(r, p, i, at));
    return at;
}
