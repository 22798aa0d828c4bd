/*
 * What reads may return. Every write has a value of its own, so operations on a sector fall into groups, one
 * for each value: the write and the reads that returned it. The history of a sector can be put in an order, as
 * if each operation happened at one moment, exactly when for every value the span from its first end to
 * its last beginning (if that is forward) meets no other's, and contains no other value's whole life.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim.h"

struct value {
    uint64_t value, id;            /* content; number of the write */
    int64_t invoked, completed;    /* of the write; completed INT64_MAX: never */
    int64_t first_end, last_begin; /* of all operations */
    bool durable, seen;
    int by;        /* initiator */
    uint32_t life; /* of the target that acknowledged it */
};

struct sector {
    struct value *v;
    size_t n, size;
};

struct model {
    struct sector sector[SECTORS_MAX];
    struct {
        int64_t at;
        uint32_t life; /* of the target */
    } told
        [INITIATORS]; /* when a flush of its last failed: what it wrote before may be gone, and it knows */
};

static struct value *add(struct sector *c, uint64_t value, uint64_t id, int64_t now, int by)
{
    if (c->n == c->size) {
        c->size = c->size ? 2 * c->size : 16;
        c->v = mem_realloc_array(c->v, c->size, sizeof(*c->v));
    }
    c->v[c->n] = (struct value){.value = value,
                                .id = id,
                                .invoked = now,
                                .completed = INT64_MAX,
                                .first_end = INT64_MAX,
                                .last_begin = now,
                                .by = by};
    return &c->v[c->n++];
}

static struct value *find(struct sector *c, uint64_t value)
{
    for (size_t i = c->n; i-- > 0;)
        if (c->v[i].value == value)
            return &c->v[i];
    return NULL;
}

static void begin(struct sector *c, uint64_t value)
{
    c->n = 0;
    struct value *v = add(c, value, value, -1, -1);
    v->completed = v->first_end = -1;
    v->durable = v->seen = true;
}

struct model *model_new(void)
{
    struct model *m = NEW(struct model);
    for (int i = 0; i < SECTORS_MAX; i++)
        begin(&m->sector[i], 0);
    return m;
}

void model_free(struct model *m)
{
    for (int i = 0; m && i < SECTORS_MAX; i++)
        free(m->sector[i].v);
    free(m);
}

void model_write(struct model *m, uint64_t first, uint64_t n, uint64_t value, uint64_t id,
                 int64_t now, int by)
{
    for (uint64_t i = first; i < first + n; i++)
        add(&m->sector[i], value, id, now, by);
}

static struct value *find_id(struct sector *c, uint64_t id)
{
    for (size_t i = c->n; i-- > 0;)
        if (c->v[i].id == id)
            return &c->v[i];
    return NULL;
}

void model_written(struct model *m, uint64_t id, int64_t now, bool durable, uint32_t life)
{
    for (int i = 0; i < SECTORS_MAX; i++) {
        struct value *v = find_id(&m->sector[i], id);
        if (!v)
            continue;
        v->completed = now;
        v->life = life;
        v->durable |= durable;
        v->first_end = now < v->first_end ? now : v->first_end;
    }
}

/*
 * An initiator knows that a write may be gone: a flush has failed since. What another target than that flush's had not answered by
 * then may be gone, too, whatever it answers later.
 */
static bool is_told(const struct model *m, const struct value *v, int by)
{
    return (v->life == m->told[by].life ? v->completed : v->invoked) <= m->told[by].at;
}

/* A flush is good: what was written before is durable, but for what its initiator was told may be gone. */
void model_flushed(struct model *m, int64_t started, int by, bool others)
{
    for (int i = 0; i < SECTORS_MAX; i++)
        for (size_t k = 0; k < m->sector[i].n; k++) {
            struct value *v = &m->sector[i].v[k];
            bool told = is_told(m, v, by);
            for (int initiator = 0; initiator < INITIATORS && others; initiator++)
                told = told || is_told(m, v, initiator);
            if (v->completed <= started && (others || v->by == by) && !told)
                v->durable = true;
        }
}

void model_flush_failed(struct model *m, int by, int64_t now, uint32_t life)
{
    m->told[by].at = now;
    m->told[by].life = life;
}

/* Initiators that have lost something that was acknowledged, and were not told; bits. The volume has these values now. */
unsigned model_untold(const struct model *m, const uint64_t *values, uint64_t sectors)
{
    unsigned who = 0;
    for (uint64_t i = 0; i < sectors; i++) {
        const struct sector *c = &m->sector[i];
        int64_t is = -1; /* when what is there was complete, at the latest */
        for (size_t k = 0; k < c->n; k++)
            if (c->v[k].value == values[i] && c->v[k].completed > is)
                is = c->v[k].completed;
        for (size_t k = 0; k < c->n; k++) {
            const struct value *v = &c->v[k];
            if (v->by >= 0 && v->invoked > is && v->completed != INT64_MAX && !is_told(m, v, v->by))
                who |= 1u << v->by;
        }
    }
    return who;
}

/* Some write of this value can be the last one, if those that `counts` says have happened. */
static bool can_be_last(struct sector *c, uint64_t value, bool durable, int64_t before)
{
    for (size_t k = 0; k < c->n; k++) {
        bool can = c->v[k].value == value;
        for (size_t i = 0; can && i < c->n; i++) {
            bool happened = durable ? c->v[i].durable : c->v[i].completed < before;
            can = !happened || c->v[k].completed >= c->v[i].invoked;
        }
        if (can)
            return true;
    }
    return false;
}

void model_read(struct sim *s, uint64_t sector, uint64_t value, int64_t started, int64_t now)
{
    struct sector *c = &s->model->sector[sector];
    struct value *v = find(c, value);
    if (!v || !can_be_last(c, value, false, started)) {
        sim_fail(s, "sector %lu: read value %lu, which was %s", sector, value,
                 v ? "overwritten before" : "never written there");
        return;
    }
    v->seen = true;
    v->first_end = now < v->first_end ? now : v->first_end;
    v->last_begin = started > v->last_begin ? started : v->last_begin;
}

bool model_may_remain(struct model *m, uint64_t sector, uint64_t value)
{
    return can_be_last(&m->sector[sector], value, true, 0);
}

bool model_in_snapshot(struct model *m, uint64_t sector, uint64_t value, int64_t started)
{
    return can_be_last(&m->sector[sector], value, false, started);
}

void model_reset(struct sim *s, const uint64_t *values)
{
    struct model *m = s->model;
    uint64_t sectors = s->size / SECTOR;
    int64_t now = s->reset_at = s->now;
    for (uint64_t i = 0; i < SECTORS_MAX; i++) {
        begin(&m->sector[i], i < sectors ? values[i] : 0);
        m->sector[i].v[0].invoked = m->sector[i].v[0].first_end = now;
        m->sector[i].v[0].completed = m->sector[i].v[0].last_begin = now;
    }
}

static void check_pair(struct sim *s, int sector, const struct value *a, const struct value *b)
{
    bool a_forward = a->first_end < a->last_begin, b_forward = b->first_end < b->last_begin;
    const char *why = NULL;
    if (a_forward && b_forward && a->first_end < b->last_begin && b->first_end < a->last_begin)
        why = "each was read after the other had taken its place";
    if (a_forward && !b_forward && a->first_end < b->last_begin && b->first_end < a->last_begin)
        why = "the first was read again after the second had come and gone";
    if (why)
        sim_fail(
            s,
            "sector %d: values %lu [end %.3f, begin %.3f] and %lu [end %.3f, begin %.3f] (ms): %s",
            sector, a->value, (double)a->first_end / 1e6, (double)a->last_begin / 1e6, b->value,
            (double)b->first_end / 1e6, (double)b->last_begin / 1e6, why);
}

void model_check(struct sim *s)
{
    for (int i = 0; i < SECTORS_MAX; i++) {
        struct sector *c = &s->model->sector[i];
        if (i >= ZEROED && i < ZEROED + 4)
            continue; /* zeros have no names; each read was checked alone */
        for (size_t a = 0; a < c->n; a++)
            for (size_t b = 0; b < c->n; b++) {
                const struct value *x = &c->v[a], *y = &c->v[b];
                /* A write that nobody saw and that never ended may never have happened. */
                if (a == b || (!x->seen && x->completed == INT64_MAX) ||
                    (!y->seen && y->completed == INT64_MAX))
                    continue;
                check_pair(s, i, x, y);
                if (s->failure.failed)
                    return;
            }
    }
}
