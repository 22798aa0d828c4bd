#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "out of memory (%zu bytes wanted)\n", size);
    abort();
}

void *mem_alloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p)
        out_of_memory(size);
    return p;
}

void *mem_zalloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (!p)
        out_of_memory(size);
    return p;
}

void *mem_realloc(void *p, size_t size)
{
    void *q = realloc(p, size ? size : 1);
    if (!q)
        out_of_memory(size);
    return q;
}

void *mem_realloc_array(void *p, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        out_of_memory(SIZE_MAX);
    return mem_realloc(p, total);
}

char *mem_strndup(const char *s, size_t n)
{
    n = strnlen(s, n);
    char *p = mem_alloc(n + 1);
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

char *mem_vprintf(const char *fmt, va_list ap)
{
    char *p;
    if (vasprintf(&p, fmt, ap) < 0)
        out_of_memory(0);
    return p;
}

char *mem_printf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = mem_vprintf(fmt, ap);
    va_end(ap);
    return p;
}
