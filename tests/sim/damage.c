/*
 * Stores that are not what they were: while a replica is stopped its data or its metadata is lost, cut short, flipped, put
 * back from an older copy, all of it or some pages, or swapped with those of another replica; and data that changes by
 * itself while nobody looks.
 *
 * What may happen: such a replica refuses to start, and its operator wipes it; or it is rebuilt as one that lost its disk.
 * What may not: that the volume returns something wrong, or that a good copy is lost. So it counts as one that has a new disk,
 * and there are never more of these at a time than a quorum can miss; all reads are checked as ever, and so is what it says
 * of itself once the target takes it for healthy. Bits that rot are wrong on one replica until somebody writes there; who
 * reads them is told by a checksum, and never the client.
 *
 * Today's core passes neither, so lives have this only with --future; see sim.h.
 */
#include <string.h>

#include "base/mem.h"
#include "repl/meta.h"
#include "sim.h"

enum part { DATA, META };

static uint8_t *now_of(struct disk *d, enum part p)
{
    return p == DATA ? d->data : d->meta;
}

static uint8_t *sure_of(struct disk *d, enum part p)
{
    return p == DATA ? d->data_sure : d->meta_sure;
}

/* Sectors of the data that are in use; pages of the metadata that are. */
static uint64_t grains(const struct sim *s, enum part p)
{
    return p == DATA ? s->size / SECTOR : META_SIZE / REPL_SUPER_SIZE;
}

static uint64_t grain(enum part p)
{
    return p == DATA ? SECTOR : REPL_SUPER_SIZE;
}

/* A copy as it was some time ago. */
void damage_keep(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    if (!(sim_future & FUTURE_STORES) || !sim_chance(s, r->image ? 2 : 20))
        return;
    if (!r->image)
        r->image = NEW(struct image);
    memcpy(r->image->data, r->disk.data_sure, sizeof(r->image->data));
    memcpy(r->image->meta, r->disk.meta_sure, sizeof(r->image->meta));
}

static void flip(struct sim *s, uint8_t *grain, uint64_t size)
{
    for (int k = 1 + (int)sim_below(s, 8); k > 0; k--)
        grain[sim_below(s, size)] ^= (uint8_t)(1 + sim_below(s, 255));
}

/* Another's, or an older one; NULL: there is none. */
static const uint8_t *other_copy(struct sim *s, int i, enum part p)
{
    struct sim_replica *r = &s->replica[i];
    int k = (int)sim_below(s, REPLICAS);
    if (r->image && sim_chance(s, 60))
        return p == DATA ? r->image->data : r->image->meta;
    return k != i && s->replica[k].used ? sure_of(&s->replica[k].disk, p) : NULL;
}

/* One thing that goes wrong with a store that nobody has open. */
static void harm(struct sim *s, int i)
{
    static const char *const what[] = {"lost", "cut short", "flipped", "not its own"};
    struct disk *d = &s->replica[i].disk;
    enum part p = sim_chance(s, 50) ? DATA : META;
    uint64_t n = grains(s, p), size = grain(p), first = 0;
    const uint8_t *other = NULL;
    int kind = (int)sim_below(s, 4);
    if (kind == 3 && !(other = other_copy(s, i, p)))
        kind = 0;
    if (kind == 1)
        first = n / 2;
    /* All of it, or some pages. */
    int share = kind < 2 || sim_chance(s, 50) ? 100 : 30;
    for (uint64_t k = first; k < n; k++) {
        uint8_t *at = now_of(d, p) + k * size;
        if (!sim_chance(s, share))
            continue;
        if (kind < 2)
            memset(at, 0, size);
        else if (kind == 2)
            flip(s, at, size);
        else
            memcpy(at, other + k * size, size);
    }
    memcpy(sure_of(d, p), now_of(d, p), n * size);
    if (p == DATA && kind < 2)
        d->size = first * size;
    sim_trace(s, "replica %d: its %s is %s", i, p == DATA ? "data" : "metadata", what[kind]);
}

void damage_store(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    if (!life_new_disk(s, i, false))
        return;
    r->damaged = true;
    harm(s, i);
    if (sim_chance(s, 20))
        harm(s, i);
}

/* Its operator does what the message says. */
void damage_refused(struct sim *s, int i)
{
    sim_trace(s, "replica %d refuses to start, and is wiped", i);
    replica_wipe(s, i);
    s->replica[i].damaged = false;
    world_event(s, s->now + sim_between(s, MS, 30 * MS), EV_START_REPLICA, i, 0, 0, NULL);
}

bool damage_rotten(const struct sim_replica *r, uint64_t sector)
{
    return r->rotten[sector / 64] >> sector % 64 & 1;
}

/* In a sector that is durable and was written: a hole does not rot. */
void damage_rot(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    uint64_t at = sim_below(s, s->size / SECTOR);
    uint8_t *sector = r->disk.data + at * SECTOR;
    if (!s->served || r->damaged || r->wiped || sim_rotting(s, i) >= sim_limit(s) ||
        memcmp(sector, r->disk.data_sure + at * SECTOR, SECTOR) != 0)
        return;
    for (const struct unsynced *u = r->disk.data_log; u; u = u->next)
        if (at * SECTOR < u->offset + u->length && u->offset < (at + 1) * SECTOR)
            return;
    flip(s, sector, SECTOR);
    memcpy(r->disk.data_sure + at * SECTOR, sector, SECTOR);
    r->rotten[at / 64] |= (uint64_t)1 << at % 64;
    sim_trace(s, "replica %d: sector %lu rots", i, at);
}

/* Written: it is as it should be. */
void damage_mended(struct sim_replica *r, uint64_t offset, uint64_t length)
{
    for (uint64_t at = offset / SECTOR; at < (offset + length) / SECTOR; at++)
        r->rotten[at / 64] &= ~((uint64_t)1 << at % 64);
}

/* How many others have something wrong. */
int sim_rotting(const struct sim *s, int but)
{
    int n = 0;
    for (int i = 0; i < REPLICAS; i++) {
        const struct sim_replica *r = &s->replica[i];
        bool rots = r->rotten[0] || r->rotten[1];
        n += i != but && r->used && (rots || r->weak || r->wiped);
    }
    return n;
}
