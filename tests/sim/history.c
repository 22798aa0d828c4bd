/*
 * What every target wrote, and so what a replica must have: the rule of the map, docs/replication.md §3, on disks.
 *
 *     reign (epoch, owner):  what the replica had that was elected; then writes 1, 2, 3 ... as the target sent them
 *     content at a position: all of this up to its count
 *
 * Looked at when metadata becomes durable, and when a replica starts from what a crash has left:
 *   - a region whose entry is not above the position has the content at the position;
 *   - below a mark, one whose entry is not above the mark's position has the content at the mark's;
 *   - below the mark of a snapshot's rebuild everything is the snapshot's;
 *   - when the position has risen, no region is older than it, whatever its entry is, unless another target writes;
 *   - the entry of a region is that of the last write to it, or higher;
 * whatever becomes of writes that are not synced. In memory the same is true of the position when it is told to a new
 * target; one that says that it is complete has all of the content at its position. A snapshot has the same content
 * wherever it is taken.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "repl/meta.h"
#include "repl/view.h"
#include "sim.h"

struct written {
    uint64_t first, n, value; /* sectors */
    int snap;                 /* a revert: to this one; -1 */
    uint64_t back;            /* and its position */
};

/* The volume at a position. */
struct content {
    uint64_t value[SECTORS_MAX];
    uint64_t last[SECTORS_MAX]; /* of each region: the last write to it */
};

struct reign {
    uint32_t epoch;
    uint64_t owner;
    bool served, based;
    struct content base; /* what the elected one had */
    struct written *w;
    size_t n, size;
};

struct taken {
    uint64_t id, value[SECTORS_MAX];
};

struct history {
    struct reign *reign;
    size_t n, size;
    struct taken *snap;
    size_t snaps;
};

struct history *history_new(void)
{
    return NEW(struct history);
}

void history_free(struct history *h)
{
    for (size_t i = 0; h && i < h->n; i++)
        free(h->reign[i].w);
    if (h) {
        free(h->reign);
        free(h->snap);
    }
    free(h);
}

static struct reign *find(struct history *h, uint32_t epoch, uint64_t owner)
{
    for (size_t i = h->n; i-- > 0;)
        if (h->reign[i].epoch == epoch && h->reign[i].owner == owner)
            return &h->reign[i];
    return NULL;
}

/* Of an epoch only one target ever serves. */
static const struct reign *find_served(const struct history *h, uint32_t epoch)
{
    for (size_t i = h->n; i-- > 0;)
        if (h->reign[i].epoch == epoch && h->reign[i].served)
            return &h->reign[i];
    return NULL;
}

static int find_snap(const struct history *h, uint64_t id)
{
    for (size_t i = 0; i < h->snaps; i++)
        if (h->snap[i].id == id)
            return (int)i;
    return -1;
}

static struct reign *reign_of(struct sim *s, int t, uint32_t epoch)
{
    struct history *h = s->history;
    struct reign *r = find(h, epoch, s->target[t].owner);
    if (r)
        return r;
    if (h->n == h->size) {
        h->size = h->size ? 2 * h->size : 16;
        h->reign = mem_realloc_array(h->reign, h->size, sizeof(*h->reign));
    }
    h->reign[h->n] = (struct reign){.epoch = epoch, .owner = s->target[t].owner};
    return &h->reign[h->n++];
}

void history_serves(struct sim *s, int t, uint32_t epoch)
{
    struct reign *r = reign_of(s, t, epoch);
    for (size_t i = 0; i < s->history->n && !r->served; i++)
        if (s->history->reign[i].epoch == epoch && s->history->reign[i].served)
            sim_fail(s, "two targets serve in epoch %u", epoch);
    r->served = true;
}

void history_sent(struct sim *s, int t, const struct repl_msg *m, const struct iovec *iov)
{
    bool writes = m->type == REPL_WRITE || m->type == REPL_ZERO || m->type == REPL_REVERT;
    if (!writes && m->type != REPL_DONE)
        return;
    struct reign *r = reign_of(s, t, m->epoch);
    if (!writes || m->seq <= r->n) /* to another replica */
        return;
    if (m->seq != r->n + 1) {
        sim_fail(s, "target %d sends write %lu after %lu", t, m->seq, r->n);
        return;
    }
    if (r->n == r->size) {
        r->size = r->size ? 2 * r->size : 64;
        r->w = mem_realloc_array(r->w, r->size, sizeof(*r->w));
    }
    struct written *w = &r->w[r->n++];
    *w = (struct written){.first = m->offset / SECTOR, .n = m->count / SECTOR, .snap = -1};
    if (m->type == REPL_WRITE)
        memcpy(&w->value, iov->iov_base, sizeof(w->value));
    if (m->type == REPL_REVERT)
        *w = (struct written){.snap = find_snap(s->history, m->offset), .back = m->count};
}

static uint64_t value_of(const uint8_t *sector)
{
    uint64_t v;
    memcpy(&v, sector, sizeof(v));
    return v;
}

static void apply(const struct sim *s, struct content *c, const struct written *w, uint64_t pos)
{
    if (w->snap >= 0)
        memcpy(c->value, s->history->snap[w->snap].value, sizeof(c->value));
    for (uint64_t i = 0; w->snap >= 0 && i < SECTORS_MAX; i++)
        if (c->last[i] > w->back) /* a revert is a write to what was written since */
            c->last[i] = pos;
    for (uint64_t at = w->first; at < w->first + w->n; at++) {
        c->value[at] = w->value;
        c->last[at * SECTOR >> s->region_shift] = pos;
    }
}

/* False: it is not known. */
static bool content_at(const struct sim *s, const struct reign *r, uint64_t pos,
                       struct content *ret)
{
    if (!pos)
        memset(ret, 0, sizeof(*ret));
    if (!pos || !r || !r->based || repl_pos_count(pos) > r->n)
        return !pos;
    *ret = r->base;
    for (uint64_t k = 0; k < repl_pos_count(pos); k++)
        apply(s, ret, &r->w[k], repl_pos(r->epoch, k + 1));
    return true;
}

static struct reign *reign_in(struct sim *s, const struct repl_lineage *l, uint64_t pos)
{
    for (uint32_t i = l->n; i-- > 0;)
        if (l->at[i].epoch == repl_pos_epoch(pos))
            return find(s->history, l->at[i].epoch, l->at[i].owner);
    return NULL;
}

/*
 * The target of a replica's position. The first that is at one of a new epoch was elected: what it has is the truth,
 * also what it had executed beyond the position at which it was elected.
 */
static struct reign *reign_at(struct sim *s, struct sim_replica *r, const struct repl_lineage *l,
                              uint64_t pos)
{
    struct reign *reign = reign_in(s, l, pos);
    if (!reign || reign->based)
        return reign;
    uint64_t end = l->n > 1 ? l->at[l->n - 2].end : 0;
    struct content *base = &reign->base;
    struct content before;
    if (!content_at(s, end ? reign_in(s, l, end) : NULL, end, &before))
        return NULL; /* nobody knows any more */
    memcpy(base->last, before.last, sizeof(base->last));
    for (uint64_t at = 0; at < SECTORS_MAX; at++) {
        base->value[at] = damage_value(r, at);
        if (base->value[at] != before.value[at])
            base->last[at * SECTOR >> s->region_shift] = end + 1;
    }
    reign->based = true;
    return reign;
}

/* A sector of the disk is this, and stays so whatever becomes of writes that are not synced. */
static bool surely(const struct disk *d, uint64_t at, uint64_t value)
{
    if (value_of(d->data_sure + at * SECTOR) != value)
        return false;
    for (const struct unsynced *u = d->data_log; u; u = u->next)
        if (at * SECTOR >= u->offset && at * SECTOR < u->offset + u->length &&
            value_of(u->data + at * SECTOR - u->offset) != value)
            return false;
    return true;
}

static void check_range(struct sim *s, struct sim_replica *r, const char *what,
                        const uint64_t *value, uint64_t regions, uint64_t most)
{
    uint64_t size = r->sure.super.view.size / SECTOR;
    for (uint64_t at = 0; at < size && at * SECTOR >> s->region_shift < regions; at++) {
        if (store_entry(r, at * SECTOR >> s->region_shift) > most ||
            surely(&r->disk, at, value[at]) || damage_rotten(r, at))
            continue;
        sim_fail(s, "replica %d, sector %lu: after a crash now it would not have value %lu, %s",
                 r->i, at, value[at], what);
        return;
    }
}

/* Every region map has the last write to a region, or more: others are compared by it. */
static void check_entry(struct sim *s, struct sim_replica *r, uint64_t region, uint64_t entry,
                        uint64_t last)
{
    if (entry < last)
        sim_fail(s, "replica %d: region %lu was written at %lx, and its entry is %lx", r->i, region,
                 last, entry);
}

void history_check_disk(struct sim *s, int replica)
{
    struct sim_replica *r = &s->replica[replica];
    const struct repl_super *super = &r->sure.super;
    const struct history *h = s->history;
    uint64_t mark = super->mark_pos;
    struct content c;
    if (!r->sure.known || !super->view.version || s->stage >= SCRUB || r->damaged)
        return;
    if (content_at(s, reign_at(s, r, &super->lineage, super->pos), super->pos, &c)) {
        check_range(s, r, "as its position says", c.value, UINT64_MAX, super->pos);
        for (uint64_t i = 0; i < super->view.size >> s->region_shift; i++)
            check_entry(s, r, i, store_entry(r, i), c.last[i]);
    }
    if (super->mark_region && content_at(s, find_served(h, repl_pos_epoch(mark)), mark, &c))
        check_range(s, r, "as its mark says", c.value, super->mark_region, mark);
    int snap = super->snap_mark ? find_snap(h, super->snap_mark) : -1;
    if (snap >= 0)
        check_range(s, r, "as its mark of a snapshot says", h->snap[snap].value, super->snap_region,
                    REPL_UNKNOWN);
}

/* A sector at a position, or as one of the writes since has made it. */
static bool since(const struct sim *s, const struct reign *r, uint64_t pos, uint64_t at,
                  uint64_t value)
{
    for (uint64_t k = repl_pos_count(pos); k < r->n; k++) {
        const struct written *w = &r->w[k];
        if (w->snap >= 0 ? s->history->snap[w->snap].value[at] == value
                         : at >= w->first && at < w->first + w->n && w->value == value)
            return true;
    }
    return false;
}

/* What a crash would leave of a sector is at least as new as a position. */
static bool as_new(const struct sim *s, const struct disk *d, const struct reign *r, uint64_t pos,
                   uint64_t at, uint64_t value)
{
    uint64_t is = value_of(d->data_sure + at * SECTOR);
    if (is != value && !since(s, r, pos, at, is))
        return false;
    for (const struct unsynced *u = d->data_log; u; u = u->next) {
        if (at * SECTOR < u->offset || at * SECTOR >= u->offset + u->length)
            continue;
        is = value_of(u->data + at * SECTOR - u->offset);
        if (is != value && !since(s, r, pos, at, is))
            return false;
    }
    return true;
}

void history_check_durable(struct sim *s, int replica)
{
    struct sim_replica *r = &s->replica[replica];
    const struct repl_super *super = &r->sure.super;
    struct content c;
    if (!super->view.version || s->stage >= SCRUB || r->damaged ||
        repl_pos_epoch(super->pos) != super->promised) /* else the next target writes already */
        return;
    const struct reign *reign = reign_at(s, r, &super->lineage, super->pos);
    if (!content_at(s, reign, super->pos, &c))
        return;
    for (uint64_t at = 0; at < super->view.size / SECTOR; at++) {
        if (damage_rotten(r, at) || as_new(s, &r->disk, reign, super->pos, at, c.value[at]))
            continue;
        sim_fail(
            s, "replica %d, sector %lu: after a crash now it would be older than %lx, its position",
            r->i, at, super->pos);
        return;
    }
}

void history_check_memory(struct sim *s, int replica, bool all)
{
    struct sim_replica *r = &s->replica[replica];
    struct repl_replica_status st;
    struct content c;
    repl_replica_status(r->core, &st);
    if (!st.super->view.version || st.ops || s->stage >= SCRUB || r->damaged ||
        !content_at(s, reign_at(s, r, &st.super->lineage, st.position), st.position, &c))
        return;
    for (uint64_t i = 0; i < st.super->view.size >> s->region_shift; i++)
        check_entry(s, r, i, repl_replica_region(r->core, i), c.last[i]);
    for (uint64_t at = 0; at < st.super->view.size / SECTOR; at++) {
        uint64_t is = value_of(r->disk.data + at * SECTOR);
        uint64_t entry = repl_replica_region(r->core, at * SECTOR >> s->region_shift);
        if (is == c.value[at] || (!all && entry > st.position) || damage_rotten(r, at))
            continue;
        sim_fail(s, "replica %d is at %lx%s; sector %lu is %lu and should be %lu", replica,
                 st.position, all ? " and complete" : "", at, is, c.value[at]);
        return;
    }
}

/* What is written below the mark of a snapshot's rebuild is the snapshot's. */
void history_check_write(struct sim *s, int replica, uint64_t offset, const uint8_t *data,
                         uint64_t length)
{
    struct sim_replica *r = &s->replica[replica];
    const struct repl_super *super = &r->sure.super;
    int snap = super->snap_mark ? find_snap(s->history, super->snap_mark) : -1;
    for (uint64_t at = 0; snap >= 0 && at < length && !r->damaged; at += SECTOR)
        if ((offset + at) >> s->region_shift < super->snap_region &&
            value_of(data + at) != s->history->snap[snap].value[(offset + at) / SECTOR])
            sim_fail(s, "replica %d writes to sector %lu, below its mark of a snapshot", r->i,
                     (offset + at) / SECTOR);
}

void history_snapshot(struct sim *s, int replica, uint64_t id)
{
    struct history *h = s->history;
    const struct disk *d = &s->replica[replica].disk;
    const uint8_t *data = d->snap[disk_find(d, id)].data;
    int i = find_snap(h, id);
    if (i < 0) {
        h->snap = mem_realloc_array(h->snap, h->snaps + 1, sizeof(*h->snap));
        i = (int)h->snaps++;
        h->snap[i].id = id;
        for (uint64_t at = 0; at < SECTORS_MAX; at++)
            h->snap[i].value[at] = value_of(data + at * SECTOR);
        return;
    }
    for (uint64_t at = 0; at < s->size / SECTOR; at++)
        if (h->snap[i].value[at] != value_of(data + at * SECTOR)) {
            sim_fail(s, "replica %d takes snapshot %lx with %lu in sector %lu, others with %lu",
                     replica, id, value_of(data + at * SECTOR), at, h->snap[i].value[at]);
            return;
        }
}
