/*
 * What parsing and evaluating share: the tree.
 */
#pragma once

#include "apiserver/cel.h"
#include "base/arena.h"
#include "base/vec.h"

enum cel_op {
    CEL_LITERAL,  /* value */
    CEL_VARIABLE, /* index */
    CEL_BOUND,    /* the variable of an exists or all around it: index counts from the outermost */
    CEL_FIELD,    /* a.text */
    CEL_INDEX,    /* a[b] */
    CEL_LIST,     /* a, then its siblings */
    CEL_NOT,
    CEL_AND,
    CEL_OR,
    CEL_EQUAL,
    CEL_DIFFERS,
    CEL_LESS,
    CEL_LESS_EQUAL,
    CEL_GREATER,
    CEL_GREATER_EQUAL,
    CEL_IN,
    CEL_CONDITION, /* a ? b : c */
    CEL_HAS,       /* a is a CEL_FIELD */
    CEL_SIZE,
    CEL_STARTS_WITH,
    CEL_ENDS_WITH,
    CEL_CONTAINS,
    CEL_EXISTS, /* a.exists(x, b); x is bound variable `index` */
    CEL_ALL,
};

enum { CEL_BOUND_MAX = 8 }; /* of exists and all in each other */

struct cel_node {
    enum cel_op op;
    unsigned depth; /* of the tree below, itself included */
    size_t index;
    const char *text;
    json_t *value; /* owned by the expression's list */
    struct cel_node *a, *b, *c;
    struct cel_node *next; /* in a list */
};

struct apiserver_cel {
    struct arena arena;
    struct cel_node *root;
    VEC(json_t *) literals;
};
