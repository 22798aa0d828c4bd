/*
 * A replica's store in a pool of ZFS, the other kind of disk: its data is a volume of the pool, its metadata another.
 *
 *     writes, in their order ──> the open group ──now and then──> synced: data and metadata, all of it, at once
 *                        └──flush of one of the two──> that one's intent log, up to here
 *
 * What a crash leaves:
 *   - everything of the last synced group, and of each of the two what its intent log has: up to the last flush, and
 *     perhaps something beyond. Of both this is a beginning of what was written since, in its order; no write is torn.
 *   - A snapshot, the way back to one and growth are groups of their own: everything before them is synced with them.
 *
 * Damage: a block whose checksum is wrong cannot be read, and is never returned as something else. A write to a part of it
 * fails; a write to all of it makes it good. A snapshot shares the block, stays as it is, and brings it back with a
 * revert. There are no checksums beside the data that could be stale, so nothing is read without them (`sums_with_data`).
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* Bits of sectors. */

static bool has(const uint64_t *bits, uint64_t at)
{
    return bits[at / 64] >> at % 64 & 1;
}

/* The block that a sector is in: from *ret_first on, below the end. */
uint64_t pool_block(const struct sim *s, uint64_t sector, uint64_t *ret_first)
{
    *ret_first = sector / s->pool_sectors * s->pool_sectors;
    uint64_t end = *ret_first + s->pool_sectors;
    return end < SECTORS_MAX ? end : SECTORS_MAX;
}

bool pool_can_read(const struct sim_replica *r, const struct repl_req *q)
{
    const struct disk *d = &r->disk;
    const uint64_t *bad = q->snap ? d->snap[disk_find(d, q->snap)].rotten : r->rotten;
    for (uint64_t at = q->offset / SECTOR; at < (q->offset + q->length) / SECTOR; at++)
        if (has(bad, at))
            return false;
    return true;
}

/* What lies in a block beyond the end of the volume is nobody's, and is written along. */
static bool covers(const struct sim *s, uint64_t offset, uint64_t length, uint64_t first,
                   uint64_t end)
{
    return offset <= first * SECTOR &&
           (offset + length >= end * SECTOR || offset + length >= s->size);
}

bool pool_can_write(const struct sim_replica *r, uint64_t offset, uint64_t length)
{
    for (uint64_t at = offset / SECTOR; at < (offset + length) / SECTOR; at++) {
        uint64_t first, end = pool_block(r->s, at, &first);
        if (has(r->rotten, at) && !covers(r->s, offset, length, first, end))
            return false;
    }
    return true;
}

/* Snapshots. */

void pool_snapshot_taken(struct sim_replica *r)
{
    struct disk *d = &r->disk;
    memcpy(d->snap[d->snaps - 1].rotten, r->rotten, sizeof(r->rotten));
}

void pool_reverted(struct sim_replica *r, uint64_t id)
{
    const struct disk *d = &r->disk;
    memcpy(r->rotten, d->snap[disk_find(d, id)].rotten, sizeof(r->rotten));
    for (uint64_t at = 0; at < SECTORS_MAX; at++)
        memcpy(&r->was[at], d->data + at * SECTOR, sizeof(r->was[at]));
}

bool pool_snapshots_rot(const struct sim_replica *r)
{
    for (int i = 0; i < r->disk.snaps; i++)
        for (size_t k = 0; k < sizeof(r->rotten) / sizeof(r->rotten[0]); k++)
            if (r->disk.snap[i].rotten[k])
                return true;
    return false;
}

/* Groups. */

/* What is executed is synced. The write of the log that is under way is, too, but who asked for it is not told yet. */
static void end_group(struct disk *d)
{
    disk_mark_flushing(d->data_log);
    disk_mark_flushing(d->meta_log);
    disk_log_sync(&d->data_log, &d->data_end, d->data_sure);
    disk_log_sync(&d->meta_log, &d->meta_end, d->meta_sure);
    for (const struct unsynced *u = d->meta_log; u; u = u->next)
        memcpy(d->meta_sure + u->offset, u->data, u->length);
}

void pool_sync(struct sim_replica *r)
{
    end_group(&r->disk);
    store_meta_sure(r, &r->said);
}

/* A beginning of what was written is left; what was not done yet is there or not. */
static void cut(struct sim *s, struct unsynced **log, struct unsynced ***end, uint8_t *sure,
                uint8_t *now, size_t size)
{
    uint64_t n = 0;
    for (const struct unsynced *u = *log; u; u = u->next)
        n++;
    uint64_t keep = sim_chance(s, 30) ? 0 : sim_chance(s, 40) ? n : sim_below(s, n + 1);
    while (*log) {
        struct unsynced *u = *log;
        if (keep && (u->done || sim_chance(s, 50)))
            memcpy(sure + u->offset, u->data, u->length);
        keep -= keep > 0;
        *log = u->next;
        free(u);
    }
    *end = log;
    memcpy(now, sure, size);
}

void pool_crash(struct sim_replica *r)
{
    struct disk *d = &r->disk;
    if (sim_chance(r->s, 20))
        end_group(d);
    cut(r->s, &d->data_log, &d->data_end, d->data_sure, d->data, sizeof(d->data));
    cut(r->s, &d->meta_log, &d->meta_end, d->meta_sure, d->meta, sizeof(d->meta));
}
