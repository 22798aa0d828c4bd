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
};

struct reign {
    uint32_t epoch;
    uint64_t owner;
    bool served, based;
    uint64_t base[SECTORS_MAX]; /* what the elected one had */
    struct written *w;
    size_t n, size;
};

struct history {
    struct reign *reign;
    size_t n, size;
    struct {
        uint64_t id, content[SECTORS_MAX];
    } * snap;
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
    struct reign *r = reign_of(s, t, m->epoch);
    bool writes = m->type == REPL_WRITE || m->type == REPL_ZERO || m->type == REPL_REVERT;
    if (!writes || m->seq <= r->n)
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
        *w = (struct written){.snap = find_snap(s->history, m->offset)};
}

static uint64_t value_of(const uint8_t *sector)
{
    uint64_t v;
    memcpy(&v, sector, sizeof(v));
    return v;
}

/* False: it is not known. */
static bool content_at(const struct history *h, const struct reign *r, uint64_t pos, uint64_t *ret)
{
    memset(ret, 0, SECTORS_MAX * sizeof(*ret));
    if (!pos)
        return true;
    if (!r || !r->based || repl_pos_count(pos) > r->n)
        return false;
    memcpy(ret, r->base, sizeof(r->base));
    for (uint64_t k = 0; k < repl_pos_count(pos); k++) {
        const struct written *w = &r->w[k];
        if (w->snap >= 0)
            memcpy(ret, h->snap[w->snap].content, sizeof(r->base));
        for (uint64_t at = w->first; at < w->first + w->n; at++)
            ret[at] = w->value;
    }
    return true;
}

/* The target of a replica's position. The first that is at one of a new epoch was elected: what it has is the truth. */
static const struct reign *reign_at(struct sim *s, struct sim_replica *r,
                                    const struct repl_lineage *l, uint64_t pos)
{
    uint32_t i = l->n;
    while (i > 0 && l->at[i - 1].epoch > repl_pos_epoch(pos))
        i--;
    struct reign *reign = i ? find(s->history, l->at[i - 1].epoch, l->at[i - 1].owner) : NULL;
    if (!reign || reign->epoch != repl_pos_epoch(pos))
        return NULL;
    for (uint64_t at = 0; !reign->based && at < SECTORS_MAX; at++)
        reign->base[at] = value_of(r->disk.data + at * SECTOR);
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
                        const uint64_t *content, uint64_t regions, uint64_t most)
{
    uint64_t size = r->sure.super.view.size / SECTOR;
    for (uint64_t at = 0; at < size && at * SECTOR >> s->region_shift < regions; at++) {
        if (store_entry(r, at * SECTOR >> s->region_shift) > most ||
            surely(&r->disk, at, content[at]))
            continue;
        sim_fail(s, "replica %d, sector %lu: after a crash now it would not have value %lu, %s",
                 r->i, at, content[at], what);
        return;
    }
}

void history_check_disk(struct sim *s, int replica)
{
    struct sim_replica *r = &s->replica[replica];
    const struct repl_super *super = &r->sure.super;
    const struct history *h = s->history;
    uint64_t content[SECTORS_MAX], mark = super->mark_pos;
    if (!r->sure.known || !super->view.version || s->stage >= SCRUB)
        return;
    if (content_at(h, reign_at(s, r, &super->lineage, super->pos), super->pos, content))
        check_range(s, r, "as its position says", content, UINT64_MAX, super->pos);
    if (super->mark_region && content_at(h, find_served(h, repl_pos_epoch(mark)), mark, content))
        check_range(s, r, "as its mark says", content, super->mark_region, mark);
    int snap = super->snap_mark ? find_snap(h, super->snap_mark) : -1;
    if (snap >= 0)
        check_range(s, r, "as its mark of a snapshot says", h->snap[snap].content,
                    super->snap_region, REPL_UNKNOWN);
}

void history_check_memory(struct sim *s, int replica, bool all)
{
    struct sim_replica *r = &s->replica[replica];
    struct repl_replica_status st;
    uint64_t content[SECTORS_MAX];
    repl_replica_status(r->core, &st);
    if (!st.super->view.version || st.ops || s->stage >= SCRUB ||
        !content_at(s->history, reign_at(s, r, &st.super->lineage, st.position), st.position,
                    content))
        return;
    for (uint64_t at = 0; at < st.super->view.size / SECTOR; at++) {
        uint64_t is = value_of(r->disk.data + at * SECTOR);
        uint64_t entry = repl_replica_region(r->core, at * SECTOR >> s->region_shift);
        if (is == content[at] || (!all && entry > st.position))
            continue;
        sim_fail(s, "replica %d is at %lx%s; sector %lu is %lu and should be %lu", replica,
                 st.position, all ? " and complete" : "", at, is, content[at]);
        return;
    }
}

void history_snapshot(struct sim *s, int replica, uint64_t id)
{
    struct history *h = s->history;
    const uint8_t *data = s->replica[replica].disk.data;
    int i = find_snap(h, id);
    if (i < 0) {
        h->snap = mem_realloc_array(h->snap, h->snaps + 1, sizeof(*h->snap));
        i = (int)h->snaps++;
        h->snap[i].id = id;
        for (uint64_t at = 0; at < SECTORS_MAX; at++)
            h->snap[i].content[at] = value_of(data + at * SECTOR);
        return;
    }
    for (uint64_t at = 0; at < s->size / SECTOR; at++)
        if (h->snap[i].content[at] != value_of(data + at * SECTOR)) {
            sim_fail(s, "replica %d takes snapshot %lx with %lu in sector %lu, others with %lu",
                     replica, id, value_of(data + at * SECTOR), at, h->snap[i].content[at]);
            return;
        }
}
