/*
 * Stores that are not what they were. While a replica is stopped
 *   - its store is lost or cut short, is another replica's, or was put back from an older copy;
 *   - its metadata was put back from an older copy, is another replica's, or has sectors that are flipped or zeros;
 *   - its data alone, without the checksums, has sectors that are flipped, old or another's;
 * and single sectors of its data rot while it runs. In a pool of ZFS what is flipped or rots cannot be read instead (pool.c).
 *
 * What may happen: such a replica refuses to start, and its operator wipes it; or it sets its store aside and is rebuilt as
 * a lost one; or its reads fail and it is mended. What may not: that the volume returns something wrong, or that a good copy is
 * lost. All reads are checked as ever, and so is what it says of itself once the target takes it for healthy. There are never more
 * of these at a time than a quorum can miss.
 *
 * The product does not promise to recognise the following, so it is not done here:
 *   - a copy made since the last start but one: data and metadata get a new generation only at a start;
 *   - data and metadata put back together from one time, which is what a replica was then;
 *   - single sectors of metadata from another time: they look like a write that a crash has torn;
 *   - data that is wrong where its checksum is not known after a crash, or a lost connection (`unverified`): what is read
 *     there without a comparison, or gets a new checksum, is given back what it was (damage_mended());
 *   - what rots in a snapshot: a snapshot is taken of what the data was.
 */
#include <string.h>

#include "base/mem.h"
#include "repl/meta.h"
#include "sim.h"

static uint64_t word_of(const uint8_t *sector)
{
    uint64_t v;
    memcpy(&v, sector, sizeof(v));
    return v;
}

static void fill(uint8_t *sector, uint64_t value)
{
    for (int i = 0; i < SECTOR; i += 8)
        memcpy(sector + i, &value, 8);
}

static void flip(struct sim *s, uint8_t *sector)
{
    for (int k = 1 + (int)sim_below(s, 8); k > 0; k--)
        sector[sim_below(s, SECTOR)] ^= (uint8_t)(1 + sim_below(s, 255));
}

/* A copy as it was some time ago, of one that runs. */
void damage_keep(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    const struct disk *d = &r->disk;
    if (!s->damages || r->damaged || damage_rots(r) || !sim_chance(s, r->image ? 2 : 20))
        return;
    if (!r->image)
        r->image = NEW(struct image);
    memcpy(r->image->data, d->data_sure, sizeof(d->data));
    memcpy(r->image->meta, d->meta_sure, sizeof(d->meta));
    memcpy(r->image->sums, d->sums_sure, sizeof(d->sums));
    r->image->store = d->store;
    r->image->generation = d->generation;
    r->image->knows = r->sure.super.store_generation + r->sure.super.stamping;
}

/* Made before the last start but one, of this store. */
static bool is_old(const struct sim_replica *r)
{
    return r->image && uuid_eq(&r->image->store, &r->disk.store) &&
           r->image->knows + 1 < r->sure.super.store_generation;
}

/* Another replica that has something of its own; -1: none. */
static int another(struct sim *s, int i)
{
    int k = (int)sim_below(s, REPLICAS);
    const struct sim_replica *r = &s->replica[k];
    return k != i && r->used && !r->damaged && r->disk.generation > 1 ? k : -1;
}

static void put_store(struct disk *d, const uint8_t *data, const uint64_t *sums)
{
    memcpy(d->data, data, sizeof(d->data));
    memcpy(d->data_sure, data, sizeof(d->data));
    memcpy(d->sums, sums, sizeof(d->sums));
    memcpy(d->sums_sure, sums, sizeof(d->sums));
}

/* It has lost something that it had. */
void damage_forgot(struct sim_replica *r)
{
    r->forgot = true;
    if (r->ever)
        r->gone = GONE_DISK;
}

/* Nothing of the store can be used. */
static void harm_store(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    struct disk *d = &r->disk;
    int k = another(s, i);
    memset(r->rotten, 0, sizeof(r->rotten));
    damage_forgot(r);
    if (is_old(r) && sim_chance(s, 60)) {
        put_store(d, r->image->data, r->image->sums);
        d->generation = r->image->generation;
        sim_trace(s, "replica %d: its store is an older copy", i);
    } else if (k >= 0 && sim_chance(s, 50)) {
        const struct disk *other = &s->replica[k].disk;
        put_store(d, other->data_sure, other->sums_sure);
        d->store = other->store;
        d->generation = other->generation;
        sim_trace(s, "replica %d: its store is that of %d", i, k);
    } else {
        d->missing = true;
        sim_trace(s, "replica %d: its store is lost or cut short", i);
    }
}

static void put_meta(struct disk *d, const uint8_t *meta)
{
    memcpy(d->meta, meta, sizeof(d->meta));
    memcpy(d->meta_sure, meta, sizeof(d->meta));
}

/* Sectors of a superblock, of a log (more often), of the map, or of everything; few or many. */
static void harm_sectors(struct sim *s, int i)
{
    static const uint64_t start[] = {0,
                                     REPL_SUPER_SLOT,
                                     2 * REPL_SUPER_SLOT,
                                     2 * REPL_SUPER_SLOT + REPL_LOG_SLOT,
                                     REPL_META_HEAD,
                                     META_SIZE};
    struct disk *d = &s->replica[i].disk;
    static const int parts[] = {0, 1, 2, 2, 3, 3, 4, 5};
    int part = parts[sim_below(s, 8)], share = sim_chance(s, 30) ? 100 : 1 + (int)sim_below(s, 30);
    bool zeros = sim_chance(s, 50);
    uint64_t first = part == 5 ? 0 : start[part], end = part == 5 ? META_SIZE : start[part + 1];
    for (uint64_t at = first; at < end; at += META_GRAIN) {
        if (!sim_chance(s, share))
            continue;
        if (zeros)
            memset(d->meta + at, 0, META_GRAIN);
        else
            flip(s, d->meta + at);
    }
    if (s->replica[i].pool)
        zeros = true; /* what cannot be read counts as that */
    for (uint64_t at = first; at < end; at += REPL_META_BLOCK)
        if (s->replica[i].pool && memcmp(d->meta + at, d->meta_sure + at, REPL_META_BLOCK) != 0)
            memset(d->meta + at, 0, REPL_META_BLOCK);
    uint64_t page = repl_page_offset(0);
    s->replica[i].bad_page =
        memcmp(d->meta + page, d->meta_sure + page, sizeof(d->meta) - page) != 0;
    memcpy(d->meta_sure, d->meta, sizeof(d->meta));
    sim_trace(s, "replica %d: sectors of its metadata, part %d, are %s", i, part,
              zeros ? "zeros" : "flipped");
}

static void harm_meta(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    int k = another(s, i);
    uint64_t before = r->sure.super.generation;
    struct repl_super super;
    if (is_old(r) && sim_chance(s, 40)) {
        put_meta(&r->disk, r->image->meta);
        sim_trace(s, "replica %d: its metadata is an older copy", i);
    } else if (k >= 0 && sim_chance(s, 20)) {
        put_meta(&r->disk, s->replica[k].disk.meta_sure);
        before = UINT64_MAX;
        sim_trace(s, "replica %d: its metadata is that of %d", i, k);
    } else {
        harm_sectors(s, i);
    }
    /* Has it forgotten something? */
    const uint8_t *meta = r->disk.meta;
    repl_super_choose(meta + repl_super_offset(0), meta + repl_super_offset(1), &super);
    if (super.generation < before)
        damage_forgot(r);
}

bool damage_rotten(const struct sim_replica *r, uint64_t sector)
{
    return r->rotten[sector / 64] >> sector % 64 & 1;
}

bool damage_rots(const struct sim_replica *r)
{
    for (size_t i = 0; i < sizeof(r->rotten) / sizeof(r->rotten[0]); i++)
        if (r->rotten[i])
            return true;
    return false;
}

/* What a sector should be. */
uint64_t damage_value(const struct sim_replica *r, uint64_t sector)
{
    return damage_rotten(r, sector) ? r->was[sector] : word_of(r->disk.data + sector * SECTOR);
}

/* A block of a pool cannot be read any more, nor can the snapshots read it that it was not written since. */
static void spoil_block(struct sim *s, struct sim_replica *r, uint64_t sector)
{
    struct disk *d = &r->disk;
    uint64_t first, end = pool_block(s, sector, &first), size = (end - first) * SECTOR;
    int oldest = d->snaps;
    while (oldest > 0 &&
           memcmp(d->snap[oldest - 1].data + first * SECTOR, d->data + first * SECTOR, size) == 0)
        oldest--;
    for (uint64_t at = first; at < end; at++) {
        uint64_t bit = (uint64_t)1 << at % 64;
        r->was[at] = word_of(d->data + at * SECTOR);
        r->rotten[at / 64] |= bit;
        for (int k = oldest; k < d->snaps; k++)
            d->snap[k].rotten[at / 64] |= bit;
    }
    r->erred = true;
}

/* A sector is something else; NULL: with some bits flipped. */
static void spoil(struct sim *s, struct sim_replica *r, uint64_t at, const uint8_t *other)
{
    if (r->pool) {
        spoil_block(s, r, at);
        return;
    }
    uint8_t *sector = r->disk.data + at * SECTOR;
    uint64_t was = damage_value(r, at);
    if (other && memcmp(other, sector, SECTOR) == 0)
        return;
    if (other)
        memcpy(sector, other, SECTOR);
    else
        flip(s, sector);
    memcpy(r->disk.data_sure + at * SECTOR, sector, SECTOR);
    if (memcmp(sector, sector + 8, SECTOR - 8) == 0 && word_of(sector) == was) {
        r->rotten[at / 64] &= ~((uint64_t)1 << at % 64); /* as it was */
        return;
    }
    r->was[at] = was;
    r->rotten[at / 64] |= (uint64_t)1 << at % 64;
    r->erred = true;
}

/* The data changes, and its checksums do not. */
static void harm_data(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    int k = another(s, i), share = sim_chance(s, 50) ? 100 : 20;
    const uint8_t *other = r->image && sim_chance(s, 40) ? r->image->data
                           : k >= 0 && sim_chance(s, 50) ? s->replica[k].disk.data_sure
                                                         : NULL;
    for (uint64_t at = 0; at < s->size / SECTOR; at++)
        if (sim_chance(s, share))
            spoil(s, r, at, other ? other + at * SECTOR : NULL);
    sim_trace(s, "replica %d: its data %s", i,
              r->pool ? "cannot be read"
              : other ? "is not its own"
                      : "is flipped");
}

void damage_store(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    bool wiped = r->wiped;
    if (s->safe && sim_chance(s, 30)) {
        /* Where a quorum may lose its memory, perhaps nobody else has what is wrong here. */
        if (!life_new_disk(s, i, false))
            return;
        r->wiped = wiped;
        harm_data(s, i);
        return;
    }
    if (damage_rots(r) || !life_new_disk(s, i, false))
        return;
    r->damaged = true;
    if (sim_chance(s, 50))
        harm_meta(s, i);
    else
        harm_store(s, i);
}

/* Its operator does what the message says. */
void damage_refused(struct sim *s, int i)
{
    sim_trace(s, "replica %d refuses to start, and is wiped", i);
    replica_wipe(s, i);
    s->replica[i].damaged = false;
    damage_forgot(&s->replica[i]);
    world_event(s, s->now + sim_between(s, MS, 30 * MS), EV_START_REPLICA, i, 0, 0, NULL);
}

static bool is_durable(const struct sim_replica *r, uint64_t at)
{
    const struct disk *d = &r->disk;
    for (const struct unsynced *u = d->data_log; u; u = u->next)
        if (at * SECTOR < u->offset + u->length && u->offset < (at + 1) * SECTOR)
            return false;
    return memcmp(d->data + at * SECTOR, d->data_sure + at * SECTOR, SECTOR) == 0;
}

/* A sector that is durable and was written: a hole does not rot. */
static void rot_sector(struct sim *s, int i, uint64_t at)
{
    struct sim_replica *r = &s->replica[i];
    uint64_t first = at, end = r->pool ? pool_block(s, at, &first) : at + 1;
    if (!damage_value(r, at))
        return;
    for (uint64_t k = first; k < end; k++)
        if (!is_durable(r, k))
            return;
    spoil(s, r, at, NULL);
    sim_trace(s, "replica %d: sector %lu rots", i, at);
}

void damage_rot(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    if (!s->served || r->damaged || r->wiped || !r->p.up ||
        sim_without_memory(s) + !sim_impaired(r) > sim_limit(s))
        return;
    for (int k = 1 + (int)sim_below(s, 12); k > 0; k--)
        rot_sector(s, i, sim_below(s, s->size / SECTOR));
}

/* At the end, before the last scrub. */
void damage_corrupt(struct sim *s, int i, uint64_t sector)
{
    struct sim_replica *r = &s->replica[i];
    if (r->pool)
        spoil_block(s, r, sector);
    else
        memset(r->disk.data + sector * SECTOR, 0xee, SECTOR);
}

/*
 * A volume may wait for data that nobody can read: its truth was just elected, nobody else is in sync yet, and all others
 * must be compared with what it cannot read. No rule promises that it goes on by itself; here the disk is repaired.
 */
void damage_relieve(struct sim *s)
{
    for (int i = 0; i < REPLICAS; i++) {
        struct sim_replica *r = &s->replica[i];
        if (damage_rots(r))
            sim_trace(s, "replica %d: the volume waits for it, and its disk is repaired", i);
        damage_mended(r, 0, sizeof(r->disk.data));
        for (int k = 0; k < r->disk.snaps; k++)
            memset(r->disk.snap[k].rotten, 0, sizeof(r->rotten));
    }
}

/* It is written, or nobody can tell: it is as it should be. */
void damage_mended(struct sim_replica *r, uint64_t offset, uint64_t length)
{
    /* What lies in the last block of a pool beyond the end of the volume is written along. */
    if (r->pool && offset + length >= r->s->size)
        length = sizeof(r->disk.data) - offset;
    for (uint64_t at = offset / SECTOR; at < (offset + length) / SECTOR; at++) {
        if (!damage_rotten(r, at))
            continue;
        fill(r->disk.data + at * SECTOR, r->was[at]);
        fill(r->disk.data_sure + at * SECTOR, r->was[at]);
        r->rotten[at / 64] &= ~((uint64_t)1 << at % 64);
    }
}

void damage_mend_snapshot(struct sim_replica *r, uint64_t sector)
{
    if (damage_rotten(r, sector))
        fill(r->disk.snap[r->disk.snaps - 1].data + sector * SECTOR, r->was[sector]);
}

/* Nothing is known of regions whose page is damaged. */
void damage_check_map(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    struct repl_replica_status st;
    repl_replica_status(r->core, &st);
    uint64_t size = st.super->view.size < r->disk.size ? st.super->view.size : r->disk.size;
    uint64_t regions = st.super->view.version ? size >> s->region_shift : 0;
    for (uint64_t k = 0; r->bad_page && k < regions; k++)
        if (repl_replica_region(r->core, k) != REPL_UNKNOWN)
            sim_fail(s, "replica %d believes a damaged page", i);
    r->bad_page = false;
}

/* As the program that ships compares some of the data with its checksums when it starts. */
bool damage_obvious(const struct sim_replica *r)
{
    uint64_t zeros = repl_sum((const uint8_t[SECTOR]){0}, SECTOR);
    int looked = 0, wrong = 0;
    if (r->pool)
        return false; /* it is there for what can be read */
    for (uint64_t at = 0; at < r->disk.size / SECTOR; at++) {
        if (r->disk.sums[at] == zeros || repl_replica_stale(r->core, at * SECTOR, SECTOR))
            continue;
        looked++;
        wrong += damage_rotten(r, at);
    }
    return looked >= 4 && wrong > looked / 4;
}
