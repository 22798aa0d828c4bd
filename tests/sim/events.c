/*
 * Chance, the heap of events, and what is said of a life. Events at one time keep the order in which they were made,
 * also those that were put off: one that waits twice is not overtaken by one that waits once.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sim.h"

uint64_t sim_random(struct sim *s)
{
    s->rng += 0x9e3779b97f4a7c15u;
    uint64_t z = s->rng;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t sim_below(struct sim *s, uint64_t n)
{
    return sim_random(s) % n;
}

bool sim_chance(struct sim *s, int percent)
{
    return (int)sim_below(s, 100) < percent;
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
    if (s->failure.failed)
        return;
    s->failure.failed = true;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->failure.why, sizeof(s->failure.why), fmt, ap);
    va_end(ap);
    sim_trace(s, "FAILED: %s", s->failure.why);
}

void sim_trace(struct sim *s, const char *fmt, ...)
{
    if (!s->trace)
        return;
    va_list ap;
    va_start(ap, fmt);
    printf("%11.3f ms  ", (double)s->now / 1e6);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

/* The heap of events. */

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void push(struct sim *s, struct event e)
{
    if (s->heap_n == s->heap_size) {
        s->heap_size = s->heap_size ? 2 * s->heap_size : 256;
        s->heap = mem_realloc_array(s->heap, s->heap_size, sizeof(*s->heap));
    }
    size_t i = s->heap_n++;
    for (; i && earlier(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
}

void world_event(struct sim *s, int64_t at, int kind, int a, int b, uint32_t life, void *p)
{
    push(s, (struct event){.at = at < s->now ? s->now : at,
                           .order = ++s->orders,
                           .kind = kind,
                           .a = a,
                           .b = b,
                           .life = life,
                           .p = p});
}

void world_put_off(struct sim *s, const struct event *e, int64_t at)
{
    struct event later = *e;
    later.at = at;
    push(s, later);
}

bool world_step(struct sim *s, struct event *ret_e)
{
    if (!s->heap_n)
        return false;
    *ret_e = s->heap[0];
    struct event e = s->heap[--s->heap_n];
    size_t i = 0;
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= s->heap_n)
            break;
        if (k + 1 < s->heap_n && earlier(&s->heap[k + 1], &s->heap[k]))
            k++;
        if (!earlier(&s->heap[k], &e))
            break;
        s->heap[i] = s->heap[k];
        i = k;
    }
    s->heap[i] = e;
    s->now = ret_e->at;
    s->steps++;
    return true;
}
