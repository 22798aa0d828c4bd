/*
 * What replicas ask of their disks: done at once, or some time later; it may fail. Every write is checked against the
 * region map on disk: a crash at this moment must not let it be taken for unwritten.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "repl/meta.h"
#include "sim.h"

static void payload_of(const struct repl_req *q, uint8_t *out)
{
    struct iovec to = {out, q->length};
    repl_iov_copy(&to, 1, q->iov, q->iov_n, q->skip, q->length);
}

/* Checksums at rest. */

static uint64_t sum_of(const struct disk *d, uint64_t sector)
{
    return repl_sum(d->data + sector * SECTOR, SECTOR);
}

static void make_sums(struct disk *d, uint64_t offset, uint64_t length)
{
    for (uint64_t i = offset / SECTOR; i < (offset + length) / SECTOR; i++)
        d->sums[i] = sum_of(d, i);
}

/* Whether a read does not match its checksums. Where nothing is damaged, they were trusted without a reason. */
static bool mismatch(struct sim *s, struct sim_replica *r, const struct repl_req *q)
{
    if (r->pool)
        return !pool_can_read(r, q);
    for (uint64_t i = q->offset / SECTOR; i < (q->offset + q->length) / SECTOR; i++) {
        if (q->unverified || q->snap || r->disk.sums[i] == sum_of(&r->disk, i))
            continue;
        if (s->corrupt != r->i && !damage_rotten(r, i))
            sim_fail(s, "replica %d trusts the checksum of sector %lu, which is stale", r->i, i);
        return true;
    }
    return false;
}

/* Whether data is read, or gets a checksum, without a comparison with the one that it has. Only where that may be stale. */
static bool without_sums(struct sim *s, struct sim_replica *r, const struct repl_req *q)
{
    if (q->kind != REPL_STORE_RESUM && !(q->kind == REPL_STORE_READ && q->unverified))
        return false;
    if (r->pool || !repl_replica_stale(r->core, q->offset, q->length))
        sim_fail(s, "replica %d does not look at a checksum of sector %lu", r->i,
                 q->offset / SECTOR);
    return true;
}

static void flush_begins(struct disk *d, const struct repl_req *q)
{
    disk_mark_flushing(d->data_log);
    for (int i = 0; q->sums && i < 2; i++) {
        if (d->sums_flush[i].of)
            continue;
        d->sums_flush[i].of = q;
        d->sums_flush[i].order = ++d->sums_orders;
        memcpy(d->sums_flush[i].sums, d->sums, sizeof(d->sums));
        return;
    }
}

/* What is durable is not taken back by a flush that began earlier and ends later. */
static void flush_ends(struct disk *d, const struct repl_req *q, bool happens)
{
    for (int i = 0; i < 2; i++) {
        if (d->sums_flush[i].of != q)
            continue;
        d->sums_flush[i].of = NULL;
        if (!happens || d->sums_flush[i].order < d->sums_order)
            continue;
        memcpy(d->sums_sure, d->sums_flush[i].sums, sizeof(d->sums_sure));
        d->sums_order = d->sums_flush[i].order;
    }
}

/* A change of layers: all checksums are durable with it. */
static void sums_settle(struct disk *d)
{
    memcpy(d->sums_sure, d->sums, sizeof(d->sums));
    d->sums_order = ++d->sums_orders;
}

/* Disks: the effect on what the process sees. */
static void perform(struct sim *s, struct sim_replica *r, struct repl_req *q)
{
    struct disk *d = &r->disk;
    switch (q->kind) {
    case REPL_STORE_READ:
        memcpy(q->iov->iov_base,
               (q->snap ? d->snap[disk_find(d, q->snap)].data : d->data) + q->offset, q->length);
        break;
    case REPL_STORE_WRITE:
        payload_of(q, d->data + q->offset);
        make_sums(d, q->offset, q->length);
        break;
    case REPL_STORE_ZERO:
        memset(d->data + q->offset, 0, q->length);
        make_sums(d, q->offset, q->length);
        break;
    case REPL_STORE_RESUM:
        damage_mended(r, q->offset, q->length); /* what rotted since it began */
        make_sums(d, q->offset, q->length);
        break;
    case REPL_STORE_STAMP:
        d->generation = q->length;
        break;
    case REPL_STORE_FLUSH:
        disk_log_sync(&d->data_log, &d->data_end, d->data_sure);
        break;
    case REPL_STORE_RESIZE:
        d->size = q->length > d->size ? q->length : d->size;
        break;
    case REPL_STORE_SNAPSHOT:
        if (!disk_snapshot(d, q->offset))
            sim_fail(s, "replica %d cannot take snapshot %lx", r->i, q->offset);
        for (uint64_t i = 0; i < d->size / SECTOR; i++)
            if (d->sums[i] != sum_of(d, i) && !damage_rotten(r, i))
                sim_fail(s, "replica %d keeps a stale checksum of sector %lu in a snapshot", r->i,
                         i);
        sums_settle(d);
        for (uint64_t i = 0; i < SECTORS_MAX && !r->pool; i++)
            damage_mend_snapshot(r, i);
        if (r->pool)
            pool_snapshot_taken(r);
        history_snapshot(s, r->i, q->offset);
        break;
    case REPL_STORE_SNAP_DROP:
        disk_drop(d, q->offset);
        break;
    case REPL_STORE_REVERT:
        memset(r->rotten, 0, sizeof(r->rotten));
        disk_revert(d, q->offset);
        if (r->pool)
            pool_reverted(r, q->offset);
        make_sums(d, 0, sizeof(d->data));
        sums_settle(d);
        break;
    }
}

/* A change of the pool, which waits for the end of its group. */
static bool ends_group(const struct sim_replica *r, const struct repl_req *q)
{
    return r->pool && (q->kind == REPL_STORE_SNAPSHOT || q->kind == REPL_STORE_REVERT ||
                       q->kind == REPL_STORE_RESIZE);
}

/* The end of a request. A write that fails has happened, or not; one to a part of what cannot be read has not. */
static void written(struct sim *s, struct sim_replica *r, struct repl_req *q, int status)
{
    bool writes = q->kind == REPL_STORE_WRITE || q->kind == REPL_STORE_ZERO, fail = status != 0;
    if (fail && (writes || q->kind == REPL_STORE_FLUSH))
        r->weak = true; /* from the moment on when it learns of it */
    bool happens = !fail || (writes && status != -EBADMSG && sim_chance(s, 50));
    uint64_t sums[SECTORS_MAX];
    memcpy(sums, r->disk.sums, sizeof(sums));
    if (happens && ends_group(r, q))
        pool_sync(r);
    if (happens)
        perform(s, r, q);
    if (fail && !r->pool)
        memcpy(r->disk.sums, sums, sizeof(sums)); /* those come after the data */
    flush_ends(&r->disk, q, happens);
    for (struct unsynced *u = r->disk.data_log; writes && u; u = u->next) {
        if (u->done || u->offset != q->offset || u->length != q->length)
            continue;
        u->done = true;
        if (!happens)
            u->length = 0;
    }
}

/* What metadata says. */

static void read_page(const struct sim_replica *r, struct claim *c, const uint8_t *page)
{
    uint64_t entries[REPL_PAGE_ENTRIES];
    repl_page_decode(0, &r->disk.store, page, entries);
    memcpy(c->entries, entries, sizeof(c->entries));
}

/* Of two slots; both the same: what was just written. */
static bool read_log(const struct sim_replica *r, struct claim *c, const uint8_t *a,
                     const uint8_t *b)
{
    struct repl_super super = {.store = r->disk.store, .log_generation = c->super.log_generation};
    struct repl_log log;
    enum repl_found found = repl_log_choose(a, b, &super, &log);
    uint8_t more = r->s->extent_shift > r->s->region_shift
                       ? (uint8_t)(r->s->extent_shift - r->s->region_shift)
                       : 0;
    bool any = found != REPL_FOUND_GOOD;
    memset(c->active, any, sizeof(c->active));
    for (uint32_t i = 0; i < log.n; i++)
        for (uint64_t k = (uint64_t)log.extent[i] << more;
             k < ((uint64_t)log.extent[i] + 1) << more && k < SECTORS_MAX; k++)
            c->active[k] = true;
    return !any;
}

uint64_t store_entry(const struct sim_replica *r, uint64_t region)
{
    return r->sure.active[region] ? REPL_UNKNOWN : r->sure.entries[region];
}

/* A write to a part of a block that cannot be read would fail, and the block would never be whole again. */
void store_check_meta(struct sim_replica *r, uint64_t offset, size_t size)
{
    if (offset + size > META_SIZE || offset % REPL_META_BLOCK || size % REPL_META_BLOCK)
        sim_fail(r->s, "replica %d writes %zu bytes of metadata at %lu", r->i, size, offset);
}

void store_meta_written(struct sim_replica *r, uint64_t offset, const void *data)
{
    struct repl_super super;
    r->said.known = true;
    r->said.order++;
    if (offset >= repl_page_offset(0)) {
        read_page(r, &r->said, data);
    } else if (offset < repl_log_offset(0)) {
        const uint8_t *slot = r->disk.meta + offset;
        if (repl_super_choose(slot, slot, &super) == REPL_FOUND_GOOD)
            r->said.super = super;
    }
}

/* The activity log. */

int store_log_write(void *ctx, uint64_t offset, const void *data, size_t size)
{
    struct sim_replica *r = ctx;
    struct sim *s = r->s;
    store_check_meta(r, offset, size);
    r->logging = r->said;
    memcpy(r->disk.meta + offset, data, size);
    disk_log_write(&r->disk.meta_end, offset, data, size, true);
    for (struct unsynced *u = r->disk.meta_log; u; u = u->next)
        u->alone |= !u->next;
    life_syncing(s, r->i);
    if (s->sync_io && !r->slow) {
        store_log_written(r);
        return 1;
    }
    int64_t delay = r->slow ? 20 * s->disk_delay : s->disk_delay;
    world_event(s, s->now + 1000 + (int64_t)sim_below(s, (uint64_t)delay), EV_LOGGED, r->i, 0,
                r->p.life, NULL);
    return 0;
}

/* In a pool what was written before it is in the same intent log. */
static void before_log(struct sim_replica *r)
{
    struct disk *d = &r->disk;
    for (struct unsynced *u = d->meta_log; u && !u->alone; u = u->next)
        u->flushing = true;
    disk_log_sync(&d->meta_log, &d->meta_end, d->meta_sure);
    if (r->logging.order > r->sure.order)
        store_meta_sure(r, &r->logging);
}

void store_log_written(struct sim_replica *r)
{
    if (r->pool)
        before_log(r);
    struct unsynced **p = &r->disk.meta_log;
    while (*p) {
        struct unsynced *u = *p;
        if (!u->alone) {
            p = &u->next;
            continue;
        }
        memcpy(r->disk.meta_sure + u->offset, u->data, u->length);
        const uint8_t *slot = r->disk.meta_sure + u->offset;
        if (!read_log(r, &r->sure, slot, slot))
            sim_fail(r->s, "replica %d writes a log that cannot be read", r->i);
        *p = u->next;
        free(u);
    }
    r->disk.meta_end = p;
    history_check_disk(r->s, r->i);
}

static bool says_more(const struct sim_replica *r, const struct claim *c)
{
    const struct repl_super *a = &r->sure.super, *b = &c->super;
    return a->pos != b->pos || a->mark_pos != b->mark_pos || a->mark_region != b->mark_region ||
           a->snap_region != b->snap_region;
}

/* A sync begins: of what it is for, a crash may leave the superblock and not the pages. */
void store_meta_syncing(struct sim_replica *r)
{
    if (!says_more(r, &r->said))
        return;
    for (uint64_t i = 0; i < SECTORS_MAX; i++)
        if (store_entry(r, i) < r->said.entries[i] && r->said.entries[i] <= r->said.super.pos)
            sim_fail(r->s,
                     "replica %d writes a position with the entry of region %lu, not after it",
                     r->i, i);
    struct repl_super before = r->sure.super;
    r->sure.super = r->said.super;
    history_check_disk(r->s, r->i);
    r->sure.super = before;
}

void store_meta_sure(struct sim_replica *r, const struct claim *c)
{
    struct sim *s = r->s;
    bool more = says_more(r, c);
    uint64_t pos = r->sure.super.pos;
    bool active[SECTORS_MAX];
    memcpy(active, r->sure.active, sizeof(active));
    r->sure = *c;
    memcpy(r->sure.active, active, sizeof(active));
    damage_keep(s, r->i);
    if (more || sim_chance(s, 10))
        history_check_disk(s, r->i);
    if (r->sure.super.pos > pos)
        history_check_durable(s, r->i);
}

void store_meta_synced(struct sim_replica *r)
{
    disk_log_sync(&r->disk.meta_log, &r->disk.meta_end, r->disk.meta_sure);
    store_meta_sure(r, &r->said);
}

/* What it has loaded is what its metadata says: where a log is damaged, any extent may have been active. */
static void check_loaded(struct sim_replica *r)
{
    struct repl_replica_status st;
    repl_replica_status(r->core, &st);
    uint64_t size = st.super->view.size < r->disk.size ? st.super->view.size : r->disk.size;
    uint64_t regions = st.super->view.version ? size >> r->s->region_shift : 0;
    for (uint64_t k = 0; k < regions && !st.super->lost; k++)
        if (repl_replica_region(r->core, k) < store_entry(r, k))
            sim_fail(r->s, "replica %d takes region %lu for unwritten, and its metadata does not",
                     r->i, k);
}

void store_meta_read(struct sim_replica *r)
{
    const uint8_t *meta = r->disk.meta_sure;
    uint64_t before = r->sure.super.generation;
    r->sure = (struct claim){.known = true};
    enum repl_found found =
        repl_super_choose(meta + repl_super_offset(0), meta + repl_super_offset(1), &r->sure.super);
    if ((found == REPL_FOUND_BAD || found == REPL_FOUND_DOUBT) && !r->damaged)
        sim_fail(r->s, "replica %d has no superblock any more", r->i);
    read_page(r, &r->sure, meta + repl_page_offset(0));
    if (!read_log(r, &r->sure, meta + repl_log_offset(0), meta + repl_log_offset(1)) &&
        r->sure.super.view.version && !r->damaged)
        sim_fail(r->s, "replica %d has no activity log any more", r->i);
    r->said = r->sure;
    if (r->sure.super.generation < before && !r->damaged)
        sim_fail(r->s, "replica %d: superblock %lu after %lu was synced", r->i,
                 r->sure.super.generation, before);
    check_loaded(r);
    history_check_disk(r->s, r->i);
}

/* What is written must be in regions that a crash would leave unknown, or above the durable position. */
static void check_hot(struct sim *s, struct sim_replica *r, uint64_t offset, uint64_t length)
{
    /* Mending writes what should be there, over more regions than can be hot, so some are cold again. */
    if (r->erred || s->stage >= SCRUB || r->damaged)
        return;
    if (!r->sure.super.view.version)
        return;
    for (uint64_t i = offset >> s->region_shift; i <= (offset + length - 1) >> s->region_shift; i++)
        if (store_entry(r, i) <= r->sure.super.pos ||
            (i < r->sure.super.mark_region && store_entry(r, i) <= r->sure.super.mark_pos))
            sim_fail(s, "replica %d writes to region %lu, which a crash would take for unwritten",
                     r->i, i);
}

/* The way back to a snapshot is a write to every sector that it changes. */
static void check_revert(struct sim *s, struct sim_replica *r, uint64_t id)
{
    const struct disk *d = &r->disk;
    int i = disk_find(d, id);
    if (i < 0)
        sim_fail(s, "replica %d has no snapshot %lx to go back to", r->i, id);
    for (uint64_t at = 0; i >= 0 && at < d->size; at += SECTOR)
        if (memcmp(d->data + at, d->snap[i].data + at, SECTOR) != 0)
            check_hot(s, r, at, SECTOR);
}

int store_request(void *ctx, struct repl_req *q)
{
    struct sim_replica *r = ctx;
    struct sim *s = r->s;
    struct disk *d = &r->disk;
    bool writes = q->kind == REPL_STORE_WRITE || q->kind == REPL_STORE_ZERO;
    if ((writes || q->kind == REPL_STORE_READ) && q->offset + q->length > d->size) {
        sim_fail(s, "replica %d: request beyond the end of its store", r->i);
        return -EIO;
    }
    r->erred |= r->erring != 0;
    /* Like the rest of the metadata, the stamp does not fail: with it the process would end. */
    bool spared = q->kind == REPL_STORE_STAMP || q->kind == REPL_STORE_RESUM;
    bool fail =
        r->erring && !spared && sim_chance(s, 20) && (q->kind == REPL_STORE_READ || r->erring == 2);
    if (q->kind == REPL_STORE_READ && q->snap && disk_find(d, q->snap) < 0)
        return -ENOENT;
    if (r->pool && sim_chance(s, 2))
        pool_sync(r);
    int error = EIO;
    if ((q->kind == REPL_STORE_READ && mismatch(s, r, q)) ||
        (writes && r->pool && !pool_can_write(r, q->offset, q->length)))
        fail = true, error = EBADMSG;
    else if (writes || without_sums(s, r, q))
        damage_mended(r, q->offset, q->length);
    if (q->kind == REPL_STORE_SNAPSHOT && disk_find(d, q->offset) >= 0)
        return -EEXIST; /* it could not be dropped */
    for (int k = 0; q->kind == REPL_STORE_SNAPSHOT && k < d->snaps; k++)
        if (d->snap[k].id > q->offset)
            sim_fail(s, "replica %d takes snapshot %lx after %lx: a store is a chain", r->i,
                     q->offset, d->snap[k].id);
    if (q->kind == REPL_STORE_SNAPSHOT && s->snaps_fail && s->stage == RUN && sim_chance(s, 25))
        return -ENOSPC;
    if (q->kind == REPL_STORE_REVERT)
        check_revert(s, r, q->offset);
    if (writes)
        check_hot(s, r, q->offset, q->length);
    if (writes) {
        uint8_t data[SECTORS_MAX * SECTOR] = {0};
        if (q->kind == REPL_STORE_WRITE)
            payload_of(q, data);
        if (s->stage < SCRUB)
            history_check_write(s, r->i, q->offset, data, q->length);
        disk_log_write(&d->data_end, q->offset, data, q->length, false);
    }
    if (q->kind == REPL_STORE_FLUSH)
        flush_begins(d, q);
    if (s->sync_io && !r->slow) {
        written(s, r, q, fail ? -error : 0);
        return fail ? -error : 1;
    }
    /* Reads take effect when they begin or when they end, writes when they end. */
    int64_t delay = r->slow ? 20 * s->disk_delay : s->disk_delay;
    if (q->kind == REPL_STORE_READ && !fail && sim_chance(s, 50))
        perform(s, r, q);
    int64_t at = s->now + 1000 + (int64_t)sim_below(s, (uint64_t)delay);
    world_event(s, at, EV_STORED, r->i, fail ? -error : 0, r->p.life, q);
    return 0;
}

void store_done(struct sim *s, struct event *e)
{
    struct sim_replica *r = &s->replica[e->a];
    struct repl_req *q = e->p;
    int status = e->b;
    bool reads = q->kind == REPL_STORE_READ && !q->snap;
    if (reads && q->unverified)
        damage_mended(r, q->offset, q->length);
    /* What rots while it is read: what is returned is what is compared, however late it changed. */
    for (uint64_t i = q->offset / SECTOR; reads && i < (q->offset + q->length) / SECTOR; i++)
        if (!status && (damage_rotten(r, i) || (s->corrupt == r->i && !q->unverified &&
                                                r->disk.sums[i] != sum_of(&r->disk, i))))
            status = -EBADMSG;
    written(s, r, q, status);
    repl_replica_stored(r->core, q, status);
}
