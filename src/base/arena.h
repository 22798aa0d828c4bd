/*
 * An arena: many small allocations that live and die together (a document, a request, one
 * reconcile). Nothing is freed alone; arena_clear() makes everything invalid at once and keeps one
 * block for the next round. Zero-initialised is empty. Memory is zeroed.
 */
#pragma once

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    char *next, *end;           /* free room in the newest */
    size_t total;               /* bytes handed out since the last clear */
};

void arena_done(struct arena *a);
void arena_clear(struct arena *a);
void *arena_alloc(struct arena *a, size_t size); /* aligned for anything; never NULL */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n); /* at most n bytes of s */
/* Exactly n bytes, whatever they are, and a NUL behind them. */
char *arena_copy(struct arena *a, const void *bytes, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));

#define arena_new(a, type) ((type *)arena_alloc(a, sizeof(type)))
