/*
 * What the files about strings share: the functions of string_find.c, which the table in string.c
 * has.
 */
#pragma once

#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

typedef bool string_function(struct cel_run *r, const struct cel_value *args, size_t n,
                             struct cel_value *ret);

string_function string_index_of, string_last_index_of, string_replace, string_split, string_join,
    string_matches, string_find, string_find_all;
