/*
 * Memory and scope-bound clean-up.
 *
 * Running out of memory ends the process: every program here can be killed at any instruction and
 * started again, so an allocation failure takes the same path as kill -9. Hence no caller checks.
 * Sizes that come from outside are bounded before they get here.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *p, size_t size);
/* An array; overflow of n * size ends the process like running out of memory. */
void *mem_realloc_array(void *p, size_t n, size_t size);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n); /* at most n bytes of s */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *mem_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/*
 * Gives back what only the start of the program needed: free memory, and pages of the program and its
 * libraries, which come again from the file when they are touched again. For programs that then mostly
 * wait; it takes some milliseconds.
 */
void mem_trim(void);

#define NEW(type) ((type *)mem_zalloc(sizeof(type)))

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(mem_freep)
static inline void mem_freep(void *p)
{
    free(*(void **)p);
}

/* The pointer, leaving NULL behind: hands an object out of a scope that would free it. */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        typeof(p) *pp_ = &(p);                                                                     \
        typeof(p) taken_ = *pp_;                                                                   \
        *pp_ = NULL;                                                                               \
        taken_;                                                                                    \
    })

/* Defines f##p, the clean-up function for a variable that f frees. */
#define DEFINE_CLEANUP(type, f)                                                                    \
    static inline void f##p(type *p)                                                               \
    {                                                                                              \
        if (*p)                                                                                    \
            f(*p);                                                                                 \
    }

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)(void *)(((char *)(ptr)) - offsetof(type, member)))
