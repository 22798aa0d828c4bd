/*
 * How a replica begins: what its metadata says, whether that can be believed, and the seal between metadata and store.
 *
 * The store and the metadata name each other. Each start, and each stop in order, gives both a new generation:
 *
 *     superblock: stamping, g ──synced──> store: g + 1 ──durable──> superblock: g + 1 ──synced──> sealed
 *
 * A start that was cut off after the first step is followed by one that goes one generation further, so that a copy of the
 * metadata that was made in between does not know the store any more.
 *
 * A crash in between leaves a pair that belongs together (repl_super_knows()). A store, or metadata, that was put back
 * from an earlier time, or comes from elsewhere, does not. Nothing is told to a target before the seal is there.
 *
 * What cannot be believed makes a *lost* replica: it keeps its name, and what it remembers of promises and views, which
 * can only make it more careful; it is at position 0, counts in no quorum, and is compared whole. docs/replication.md §3.
 */
#include "base/mem.h"
#include "repl/replica_impl.h"

/* Loading. */

static void become_lost(struct repl_replica *r, const char *why)
{
    if (!r->damaged)
        r->damaged = why;
    struct repl_super *s = &r->sb;
    s->lost = true;
    s->clean = false;
    s->stamping = 0;
    s->pos = s->mark_pos = s->snap_mark = 0;
    s->mark_region = s->snap_region = 0;
    s->lineage = (struct repl_lineage){0};
    s->store = r->cfg.store;
    s->store_generation = r->cfg.store_generation;
    for (uint32_t i = 0; i < r->regions; i++) {
        r->map[i] = r->cfg.store_new ? 0 : REPL_UNKNOWN;
        map_dirty(r, i);
    }
    r->log_missing = true;
}

static int load_super(struct repl_replica *r, repl_meta_read *read, struct err *e)
{
    uint8_t slots[2][REPL_SUPER_SLOT];
    for (uint64_t i = 0; i < 2; i++)
        read(r->ctx, repl_super_offset(i), slots[i], sizeof(slots[i]));
    enum repl_found found = repl_super_choose(slots[0], slots[1], &r->sb);
    if (!r->sb.generation) {
        r->sb.volume = r->cfg.volume;
        r->sb.replica = r->cfg.replica;
        r->sb.store = r->cfg.store;
        r->sb.store_generation = r->cfg.store_generation;
        r->log_missing = true;
    }
    if (!uuid_eq(&r->sb.volume, &r->cfg.volume) || !uuid_eq(&r->sb.replica, &r->cfg.replica))
        return err_set(
            e, ERR_FAILED_PRECONDITION, "OtherVolume",
            "this store belongs to another volume or replica; check which disk it is on");
    r->sure_generation = r->sync_generation = r->sb.generation;
    r->log_generation = r->sb.log_generation;
    if (r->sb.view.version)
        map_resize(r, r->store_size, r->sb.view.region_shift);
    bool other = r->cfg.store_new && r->sb.generation;
    if (!GUARD(63, found != REPL_FOUND_DOUBT))
        become_lost(r, "a superblock is damaged: what it promised last cannot be known");
    else if (found == REPL_FOUND_BAD)
        become_lost(r, "both superblocks are damaged");
    else if (!GUARD(64, !r->cfg.lost && !other))
        become_lost(r, "its data is missing, damaged, or not what its metadata speaks of");
    return 0;
}

static void load_pages(struct repl_replica *r, repl_meta_read *read)
{
    uint64_t entries[REPL_PAGE_ENTRIES];
    uint8_t block[REPL_SUPER_SIZE];
    map_clean(r);
    for (uint32_t i = 0; i < r->regions; i++) {
        uint64_t page = i / REPL_PAGE_ENTRIES;
        if (i % REPL_PAGE_ENTRIES == 0) {
            read(r->ctx, repl_page_offset(page), block, sizeof(block));
            repl_page_decode(page, &r->sb.store, block, entries);
        }
        r->map[i] = entries[i % REPL_PAGE_ENTRIES];
    }
}

static void load_log(struct repl_replica *r, repl_meta_read *read)
{
    uint8_t slots[2][REPL_LOG_SLOT];
    struct repl_log log;
    for (uint64_t i = 0; i < 2; i++)
        read(r->ctx, repl_log_offset(i), slots[i], sizeof(slots[i]));
    enum repl_found found = repl_log_choose(slots[0], slots[1], &r->sb, &log);
    if (found == REPL_FOUND_GOOD && log.super_generation > r->sb.generation) {
        become_lost(r, "its superblock is older than its activity log");
        return;
    }
    if (log.generation > r->log_generation)
        r->log_generation = log.generation;
    if (GUARD(65, found == REPL_FOUND_GOOD)) {
        map_load_log(r, &log);
        return;
    }
    /* Any extent may have been active. */
    for (uint32_t i = 0; i < r->regions; i++)
        r->map[i] = REPL_UNKNOWN;
    r->log_missing = true;
}

int repl_replica_load(struct repl_replica *r, repl_meta_read *read, struct err *e)
{
    if (load_super(r, read, e) < 0)
        return -1;
    r->sb.held = r->cfg.held;
    if (!r->damaged && r->sb.generation) {
        if (r->regions)
            load_pages(r, read);
        load_log(r, read);
    }
    if (r->regions)
        map_loaded(r);
    return 0;
}

bool repl_replica_stale(const struct repl_replica *r, uint64_t offset, uint64_t length)
{
    return map_stale(r, offset, length);
}

void repl_replica_start(struct repl_replica *r, int64_t now)
{
    r->now = r->touched_at = r->flushed_at = r->compared_at = now;
    r->pos = r->sb.pos;
    r->intact = r->sb.clean;
    r->sb.boot++;
    r->sb.clean = false;
    r->checkpoint_at = now + r->cfg.checkpoint_ns;
    /* Pings that were answered before a crash are not remembered; who never promised answered none. */
    r->lease_until = GUARD(38, !r->sb.promised) ? now : now + r->cfg.lease_ns;
    r->started = true;
    seal_begin(r);
}

/* The seal. */

void seal_begin(struct repl_replica *r)
{
    struct repl_super *s = &r->sb;
    if (s->stamping && r->cfg.store_generation == s->store_generation + s->stamping) {
        s->store_generation = r->cfg.store_generation;
        s->stamping = 0;
    }
    s->stamping = s->stamping < UINT8_MAX ? (uint8_t)(s->stamping + 1) : UINT8_MAX;
    r->sb_dirty = true;
    r->seal_state = SEAL_NOTE;
    r->seal_sync = meta_next(r);
}

void seal_stored(struct repl_replica *r, int status)
{
    if (status < 0) {
        r->failed = true;
        replica_fault(r, "the store's generation cannot be written");
        return;
    }
    r->sb.store_generation += r->sb.stamping;
    r->sb.stamping = 0;
    r->sb.clean = r->stopped && r->intact;
    r->sb_dirty = true;
    r->seal_state = SEAL_DONE;
    r->seal_sync = meta_next(r);
}

void seal_progress(struct repl_replica *r)
{
    if (r->failed || r->synced < r->seal_sync)
        return;
    if (r->seal_state == SEAL_NOTE) {
        r->seal_state = SEAL_STAMP;
        r->stamp_op.req = (struct repl_req){.kind = REPL_STORE_STAMP,
                                            .length = r->sb.store_generation + r->sb.stamping};
        int status = r->ops->store(r->ctx, &r->stamp_op.req);
        if (status)
            seal_stored(r, status < 0 ? status : 0);
    } else if (r->seal_state == SEAL_DONE) {
        r->seal_state = SEAL_NONE;
        r->seals++;
    }
}
