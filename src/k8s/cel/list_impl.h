/*
 * What the files about lists share: the functions of list_more.c, which the table in list.c has.
 */
#pragma once

#include "k8s/cel/impl.h"

#define LIST_FUNCTION(name)                                                                        \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

typedef bool list_function(struct cel_run *r, const struct cel_value *args, size_t n,
                           struct cel_value *ret);

list_function list_slice, list_flatten, list_distinct, list_reverse, list_sort, list_first,
    list_last, list_range, list_set_contains, list_set_equivalent, list_set_intersects;
