/*
 * What parsing and macros share.
 */
#pragma once

#include "k8s/cel/impl.h"

struct cel_items {
    struct cel_node **p;
    size_t len, cap;
};

/* node.c */
/* What stands here, and what should; NULL. */
struct cel_node *cel_unexpected(struct cel_parser *p, const char *expected);
void cel_skip_space(struct cel_parser *p);
bool cel_is_letter(char c);
bool cel_take(struct cel_parser *p, const char *token);
const char *cel_take_name(struct cel_parser *p); /* NULL: there is none */
struct cel_node *cel_call(struct cel_parser *p, const char *name, bool member, const char *at,
                          struct cel_node *const *args, size_t n);

/* parse.c */
struct cel_node *cel_expression(struct cel_parser *p);
/* Behind the opening parenthesis; takes the closing one. */
bool cel_arguments(struct cel_parser *p, struct cel_items *ret);

/* macro.c */

/* A name by itself: a variable or a type. */
struct cel_node *cel_name(struct cel_parser *p, const char *at, const char *name);
/* A name behind a dot that belongs to the name before it: google.protobuf.Timestamp; NULL: not. */
struct cel_node *cel_qualified(struct cel_parser *p, struct cel_node *on, const char *name);
/*
 * A function, a method or a macro, behind its parenthesis at `open`; `on` is NULL where nothing
 * stands before it.
 */
struct cel_node *cel_function_call(struct cel_parser *p, struct cel_node *on, const char *name,
                                   const char *open);
