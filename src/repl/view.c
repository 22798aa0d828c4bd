#include "repl/view.h"

#include <stdio.h>
#include <stdlib.h>

void repl_check(const char *broken)
{
    if (!broken)
        return;
    fprintf(stderr, "replication: what is always true is not: %s\n", broken);
    abort();
}

int repl_view_find(const struct repl_view *v, const struct uuid *id)
{
    for (int i = 0; i < v->n; i++)
        if (uuid_eq(&v->member[i].id, id))
            return i;
    return -1;
}

unsigned repl_view_count(const struct repl_view *v, uint8_t flag)
{
    unsigned n = 0;
    for (int i = 0; i < v->n; i++)
        n += (v->member[i].flags & flag) != 0;
    return n;
}

int repl_snap_find(const struct repl_snaps *s, uint64_t id)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i].id == id)
            return i;
    return -1;
}

int repl_snap_named(const struct repl_snaps *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->at[i].name, name) == 0)
            return i;
    return -1;
}

bool repl_held_has(const struct repl_held *h, uint64_t id)
{
    for (int i = 0; i < h->n; i++)
        if (h->id[i] == id)
            return true;
    return false;
}

void repl_held_add(struct repl_held *h, uint64_t id)
{
    if (h->n < REPL_HELD && !repl_held_has(h, id))
        h->id[h->n++] = id;
}

void repl_held_drop(struct repl_held *h, uint64_t id)
{
    int n = 0;
    for (int i = 0; i < h->n; i++)
        if (h->id[i] != id)
            h->id[n++] = h->id[i];
    h->n = (uint8_t)n;
}

unsigned repl_held_lacks(const struct repl_held *h, const struct repl_snaps *s)
{
    unsigned n = 0;
    for (int i = 0; i < s->n; i++)
        n += !repl_held_has(h, s->at[i].id);
    return n;
}

static bool snaps_sound(const struct repl_snaps *s)
{
    if (s->n > REPL_SNAPS)
        return false;
    for (int i = 0; i < s->n; i++) {
        const struct repl_snap *it = &s->at[i];
        if (!it->id || !it->name[0] || !memchr(it->name, '\0', REPL_SNAP_NAME) ||
            repl_snap_find(s, it->id) != i || repl_snap_named(s, it->name) != i)
            return false;
    }
    return true;
}

uint64_t repl_view_most(const struct repl_view *v)
{
    bool any = v->region_shift >= 63 - __builtin_ctz(REPL_REGIONS);
    return any ? INT64_MAX : (uint64_t)REPL_REGIONS << v->region_shift;
}

int repl_view_check(const struct repl_view *v, struct err *e)
{
    bool sound = v->n <= REPL_MEMBERS && v->rf && v->rf <= REPL_MEMBERS && v->cf <= REPL_MEMBERS &&
                 v->block_shift >= 9 && v->block_shift <= 17 && v->region_shift <= 40 &&
                 v->region_shift >= v->block_shift && v->size % REPL_SECTOR == 0 &&
                 v->size <= repl_view_most(v) && repl_view_count(v, REPL_VOTER) > 0;
    for (int i = 0; sound && i < v->n; i++)
        sound = repl_view_find(v, &v->member[i].id) == i;
    sound = sound && snaps_sound(&v->snaps);
    return sound ? 0
                 : err_set(e, ERR_DATA_LOSS, "BadView",
                           "a view with impossible members, snapshots, sizes or counts");
}

uint64_t repl_fork(const struct repl_lineage *x, uint64_t pos, const struct repl_lineage *t)
{
    uint32_t i = 0, j = 0;
    /* The older list may have forgotten less: begin where both do. */
    while (i < x->n && t->n && x->at[i].epoch < t->at[0].epoch)
        i++;
    while (j < t->n && x->n && t->at[j].epoch < x->at[0].epoch)
        j++;
    uint64_t common = 0;
    for (; i < x->n && j < t->n; i++, j++) {
        if (x->at[i].epoch != t->at[j].epoch || x->at[i].owner != t->at[j].owner)
            break;
        uint64_t x_end = i + 1 == x->n ? pos : x->at[i].end;
        uint64_t t_end = j + 1 == t->n ? REPL_UNKNOWN : t->at[j].end;
        /* Beyond the end that was adopted, x's writes are not part of the history. */
        common = GUARD(1, x_end <= t_end) ? x_end : t_end;
        if (x_end != t_end)
            break;
    }
    return common;
}

uint64_t repl_fork_mark(uint64_t mark, const struct repl_lineage *t)
{
    for (uint32_t j = 0; j < t->n; j++) {
        if (t->at[j].epoch != repl_pos_epoch(mark))
            continue;
        uint64_t end = j + 1 == t->n ? REPL_UNKNOWN : t->at[j].end;
        return GUARD(36, mark < end) ? mark : end;
    }
    return 0;
}

void repl_lineage_add(struct repl_lineage *l, uint64_t pos, uint32_t epoch, uint64_t owner)
{
    if (l->n)
        l->at[l->n - 1].end = pos;
    if (l->n == REPL_EPOCHS) {
        memmove(&l->at[0], &l->at[1], sizeof(l->at[0]) * (REPL_EPOCHS - 1));
        l->n--;
    }
    l->at[l->n].epoch = epoch;
    l->at[l->n].owner = owner;
    l->at[l->n].end = 0;
    l->n++;
}
