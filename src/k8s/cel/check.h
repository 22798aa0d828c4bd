/*
 * What the files of the check share.
 */
#pragma once

#include <stdio.h>

#include "k8s/cel/impl.h"

struct checker {
    struct cel_program *program;
    const char *text;
    const struct cel_decl *bound[CEL_MAX_BOUND];
    unsigned mixed; /* in how many calls of format(), whose list may have all kinds of values */
    struct err *e;
};

/* check.c */
const struct cel_decl *check(struct checker *c, struct cel_node *n);
bool check_same(const struct cel_decl *a, const struct cel_decl *b);
const struct cel_decl *check_list_of(struct checker *c, const struct cel_decl *element);
const struct cel_decl *check_map_of(struct checker *c, const struct cel_decl *key,
                                    const struct cel_decl *element);
const struct cel_decl *check_fail(struct checker *c, const struct cel_node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const struct cel_decl *check_no_overload(struct checker *c, const struct cel_node *n,
                                         const char *name, bool member,
                                         const struct cel_decl *const *decls, size_t count);

/* check_loop.c: functions and macros */
const struct cel_decl *check_call(struct checker *c, struct cel_node *n);
const struct cel_decl *check_loop(struct checker *c, struct cel_node *n);
const struct cel_decl *check_opt_map(struct checker *c, struct cel_node *n);
