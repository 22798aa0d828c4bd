/*
 * A typed growing array: three public fields, no hidden header.
 *
 *     VEC(int) numbers = {0};
 *     vec_push(&numbers, 5);
 *     vec_for_each(&numbers, n) printf("%d\n", *n);
 *     vec_done(&numbers);
 *
 * Elements move when the array grows: keep indexes, not pointers, across a push.
 */
#pragma once

#include "base/mem.h"

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *p;                                                                                   \
        size_t len;                                                                                \
        size_t cap;                                                                                \
    }

#define vec_push(v, ...)                                                                           \
    do {                                                                                           \
        if ((v)->len == (v)->cap) {                                                                \
            (v)->cap = (v)->cap ? (v)->cap * 2 : 8;                                                \
            (v)->p = mem_realloc_array((v)->p, (v)->cap, sizeof(*(v)->p));                         \
        }                                                                                          \
        (v)->p[(v)->len++] = (__VA_ARGS__);                                                        \
    } while (0)

#define vec_pop(v)  ((v)->p[--(v)->len])
#define vec_last(v) ((v)->p[(v)->len - 1])

#define vec_for_each(v, it) for (typeof(*(v)->p) *it = (v)->p; it && it < (v)->p + (v)->len; it++)

#define vec_done(v)                                                                                \
    do {                                                                                           \
        free((v)->p);                                                                              \
        (v)->p = NULL;                                                                             \
        (v)->len = (v)->cap = 0;                                                                   \
    } while (0)
