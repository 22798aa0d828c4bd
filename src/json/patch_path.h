/*
 * Private to this module: a JSON patch at work, and the paths of its operations. Errors go to the
 * run's `e` and name the path.
 */
#pragma once

#include "base/arena.h"
#include "json/json.h"

struct patch_path {
    const char *text;
    const char *tokens[JSON_MAX_DEPTH];
    size_t n;
};

struct patch_run {
    json_t *root;       /* owned */
    size_t budget;      /* weight that copies and moves may still visit */
    struct arena arena; /* tokens of the current operation */
    struct err *e;
};

int patch_path_parse(struct patch_run *r, struct patch_path *p, const char *text);
/*
 * An index as the RFC writes it, or counted from the end: -1 is the last element. Where something
 * is inserted the places between the elements count, one more than there are elements, and "-" is
 * the one behind the last.
 */
bool patch_index(const char *token, size_t size, bool insert, size_t *ret);
/* Says that step n of the path is no index into the list; returns -1. */
int patch_no_element(struct patch_run *r, const struct patch_path *p, size_t n, const json_t *list);

/* The value at step n of the path, inside the container that the steps before it led to. */
json_t *patch_child(struct patch_run *r, const struct patch_path *p, size_t n, const json_t *in);
/* The value that the first n steps lead to; borrowed, NULL when there is none. */
json_t *patch_find(struct patch_run *r, const struct patch_path *p, size_t n);
/* The container that holds the path's last step, ready to be changed. The path is not empty. */
json_t *patch_parent(struct patch_run *r, const struct patch_path *p);
