#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>

#include "base/mem.h"

/* The first block is small: most requests need no more, and malloc hands such out at once. */
enum { FIRST = 960, BLOCK = 32 * 1024, ALIGN = 16 };

struct arena_block {
    struct arena_block *older;
    size_t size; /* of data */
    _Alignas(ALIGN) char data[];
};

void arena_done(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *older = a->blocks->older;
        free(a->blocks);
        a->blocks = older;
    }
    *a = (struct arena){0};
}

void arena_clear(struct arena *a)
{
    if (!a->blocks)
        return;
    /* Keep the oldest block unless it is larger than usual: one huge document is not hoarded. */
    while (a->blocks->older) {
        struct arena_block *older = a->blocks->older;
        free(a->blocks);
        a->blocks = older;
    }
    if (a->blocks->size > BLOCK) {
        arena_done(a);
        return;
    }
    a->next = a->blocks->data;
    a->end = a->next + a->blocks->size;
    a->total = 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        abort();
    size = (size + !size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if ((size_t)(a->end - a->next) < size) {
        size_t least = a->blocks ? BLOCK : FIRST;
        size_t want = size > least ? size : least;
        struct arena_block *block = mem_alloc(sizeof(*block) + want);
        block->older = a->blocks;
        block->size = want;
        a->blocks = block;
        a->next = block->data;
        a->end = block->data + want;
    }
    void *p = a->next;
    a->next += size;
    a->total += size;
    return memset(p, 0, size);
}

char *arena_copy(struct arena *a, const void *bytes, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    if (n)
        memcpy(p, bytes, n);
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    return arena_copy(a, s, strnlen(s, n));
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_copy(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    char small[256]; /* most texts fit and are formatted once */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < (int)sizeof(small))
        return arena_strndup(a, small, n < 0 ? 0 : (size_t)n);

    char *p = arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}
