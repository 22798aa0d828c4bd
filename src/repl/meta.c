#include "repl/meta.h"

#include <endian.h>

#include "base/crc.h"
#include "base/le.h"
#include "repl/view.h"

enum {
    SUPER_MAGIC = 0x5370724f,
    PAGE_MAGIC = 0x5061724f,
    SECTOR_MAGIC = 0x5370734f,
    SUPER_VERSION = 2,
};

/* A cursor over a block; fields are little-endian, in the order of the functions below. */
struct cursor {
    uint8_t *p;
    bool reading;
};

static void field(struct cursor *c, uint64_t *v, int bytes)
{
    uint64_t got = 0;
    for (int i = 0; i < bytes; i++)
        if (c->reading)
            got |= (uint64_t)c->p[i] << (8 * i);
        else
            c->p[i] = (uint8_t)(*v >> (8 * i));
    if (c->reading)
        *v = got;
    c->p += bytes;
}

/* Reads or writes an integer of any type. */
#define FIELD(c, x, bytes)                                                                         \
    do {                                                                                           \
        uint64_t v_ = (uint64_t)(x);                                                               \
        field(c, &v_, bytes);                                                                      \
        (x) = (typeof(x))v_;                                                                       \
    } while (0)

static void id_field(struct cursor *c, struct uuid *id)
{
    if (c->reading)
        memcpy(id->bytes, c->p, 16);
    else
        memcpy(c->p, id->bytes, 16);
    c->p += 16;
}

static void view_fields(struct cursor *c, struct repl_view *v)
{
    FIELD(c, v->version, 8);
    FIELD(c, v->size, 8);
    FIELD(c, v->rf, 1);
    FIELD(c, v->cf, 1);
    FIELD(c, v->flags, 1);
    FIELD(c, v->region_shift, 1);
    FIELD(c, v->block_shift, 1);
    FIELD(c, v->n, 1);
    for (int i = 0; i < REPL_MEMBERS; i++) {
        id_field(c, &v->member[i].id);
        FIELD(c, v->member[i].flags, 1);
        FIELD(c, v->member[i].floor, 8);
    }
}

static void name_field(struct cursor *c, char name[REPL_SNAP_NAME])
{
    if (c->reading)
        memcpy(name, c->p, REPL_SNAP_NAME);
    else
        memcpy(c->p, name, REPL_SNAP_NAME);
    c->p += REPL_SNAP_NAME;
}

static void snap_fields(struct cursor *c, struct repl_snaps *s, struct repl_held *h)
{
    FIELD(c, s->n, 1);
    for (int i = 0; i < REPL_SNAPS; i++) {
        FIELD(c, s->at[i].id, 8);
        FIELD(c, s->at[i].pos, 8);
        FIELD(c, s->at[i].size, 8);
        FIELD(c, s->at[i].created, 8);
        name_field(c, s->at[i].name);
    }
    FIELD(c, h->n, 1);
    for (int i = 0; i < REPL_HELD; i++)
        FIELD(c, h->id[i], 8);
}

static void client_fields(struct cursor *c, struct repl_clients *k)
{
    FIELD(c, k->n, 1);
    for (int i = 0; i < REPL_CLIENTS; i++) {
        FIELD(c, k->at[i].id, 8);
        FIELD(c, k->at[i].owed, 1);
    }
}

static void store_fields(struct cursor *c, struct repl_super *s)
{
    FIELD(c, s->lost, 1);
    id_field(c, &s->store);
    FIELD(c, s->store_generation, 8);
    FIELD(c, s->stamping, 1);
    FIELD(c, s->log_generation, 8);
}

static void snap_mark_fields(struct cursor *c, struct repl_super *s)
{
    FIELD(c, s->snap_mark, 8);
    FIELD(c, s->snap_region, 4);
}

enum {
    VIEW_BYTES = 22 + REPL_MEMBERS * 25,
    SUPER_BYTES = 16 + 77 + VIEW_BYTES + 4 + REPL_EPOCHS * 20 + 1 +
                  REPL_SNAPS * (32 + REPL_SNAP_NAME) + 1 + REPL_HELD * 8 + 12 + 1 +
                  REPL_CLIENTS * 9 + 34,
};
_Static_assert(SUPER_BYTES <= (int)REPL_SUPER_SIZE, "a superblock is too small");

static void super_fields(struct cursor *c, struct repl_super *s)
{
    FIELD(c, s->generation, 8);
    id_field(c, &s->volume);
    id_field(c, &s->replica);
    FIELD(c, s->boot, 4);
    FIELD(c, s->promised, 4);
    FIELD(c, s->owner, 8);
    FIELD(c, s->pos, 8);
    FIELD(c, s->mark_pos, 8);
    FIELD(c, s->mark_region, 4);
    FIELD(c, s->clean, 1);
    view_fields(c, &s->view);
    FIELD(c, s->lineage.n, 4);
    for (int i = 0; i < REPL_EPOCHS; i++) {
        FIELD(c, s->lineage.at[i].epoch, 4);
        FIELD(c, s->lineage.at[i].owner, 8);
        FIELD(c, s->lineage.at[i].end, 8);
    }
    snap_fields(c, &s->view.snaps, &s->held);
    snap_mark_fields(c, s);
    client_fields(c, &s->view.clients);
    store_fields(c, s);
}

static bool all_zero(const uint8_t *p, size_t size)
{
    return p[0] == 0 && memcmp(p, p + 1, size - 1) == 0;
}

/* Head of every block: magic, checksum of the block with this field zero, number (version or page). */
static void seal(uint8_t *block, uint32_t magic, uint64_t number)
{
    struct cursor c = {block, false};
    uint64_t m = magic, zero = 0;
    field(&c, &m, 4);
    field(&c, &zero, 4);
    field(&c, &number, 8);
    uint64_t crc = crc_32c(block, REPL_SUPER_SIZE);
    c.p = block + 4;
    field(&c, &crc, 4);
}

static bool sealed(const uint8_t *block, uint32_t magic, uint64_t number)
{
    static const uint8_t none[4];
    struct cursor c = {(uint8_t *)block, true};
    uint64_t m, crc, n;
    field(&c, &m, 4);
    field(&c, &crc, 4);
    field(&c, &n, 8);
    uint32_t is = crc_32c_more(crc_32c(block, 4), none, 4);
    return m == magic && n == number && crc == crc_32c_more(is, block + 8, REPL_SUPER_SIZE - 8);
}

void repl_super_encode(const struct repl_super *s, uint8_t out[REPL_SUPER_SIZE])
{
    struct repl_super copy = *s;
    memset(out, 0, REPL_SUPER_SIZE);
    struct cursor c = {out + 16, false};
    super_fields(&c, &copy);
    seal(out, SUPER_MAGIC, SUPER_VERSION);
}

int repl_super_decode(const uint8_t in[REPL_SUPER_SIZE], struct repl_super *ret_s, struct err *e)
{
    struct repl_super s = {0};
    if (!all_zero(in, REPL_SUPER_SIZE)) {
        if (!sealed(in, SUPER_MAGIC, SUPER_VERSION))
            return err_set(e, ERR_DATA_LOSS, "BadSuperblock",
                           "a superblock is damaged or of another version");
        struct cursor c = {(uint8_t *)in + 16, true};
        super_fields(&c, &s);
        if (s.promised > REPL_EPOCH_LAST)
            return err_set(e, ERR_DATA_LOSS, "BadSuperblock", "a superblock of epoch %u",
                           s.promised);
        if (s.lineage.n > REPL_EPOCHS)
            return err_set(e, ERR_DATA_LOSS, "BadSuperblock", "a superblock with %u epochs",
                           s.lineage.n);
        if (s.held.n > REPL_HELD)
            return err_set(e, ERR_DATA_LOSS, "BadSuperblock", "a superblock with %u snapshots",
                           s.held.n);
        if (s.view.clients.n > REPL_CLIENTS)
            return err_set(e, ERR_DATA_LOSS, "BadSuperblock", "a superblock with %u initiators",
                           s.view.clients.n);
        if (s.view.version && repl_view_check(&s.view, e) < 0)
            return -1;
    }
    *ret_s = s;
    return 0;
}

/* Slots. */

static void sector_fields(struct cursor *c, uint64_t *generation, uint64_t *index, uint64_t *total,
                          uint64_t *bytes)
{
    uint64_t magic = SECTOR_MAGIC;
    field(c, &magic, 4);
    field(c, generation, 8);
    field(c, index, 2);
    field(c, total, 2);
    field(c, bytes, 4);
}

static void slot_encode(uint64_t generation, const uint8_t *payload, size_t bytes, uint64_t sectors,
                        uint8_t *out)
{
    for (uint64_t i = 0; i < sectors; i++) {
        uint8_t *sector = out + i * REPL_META_SECTOR;
        size_t at = i * REPL_META_PAYLOAD, n = at < bytes ? bytes - at : 0;
        uint64_t size = bytes, total = sectors, index = i;
        memset(sector, 0, REPL_META_SECTOR);
        struct cursor c = {sector + 4, false};
        sector_fields(&c, &generation, &index, &total, &size);
        if (n)
            memcpy(c.p, payload + at, n < REPL_META_PAYLOAD ? n : REPL_META_PAYLOAD);
        uint64_t crc = crc_32c(sector + 4, REPL_META_SECTOR - 4);
        c.p = sector;
        field(&c, &crc, 4);
    }
}

struct slot {
    /* BEGUN: the first write to it was torn. */
    enum { SLOT_EMPTY, SLOT_BEGUN, SLOT_GOOD, SLOT_TORN, SLOT_DAMAGED } state;
    uint64_t generation;
    size_t bytes;
};

struct sector {
    uint64_t generation, total, bytes;
    const uint8_t *payload;
};

static bool sector_decode(const uint8_t *in, uint64_t i, uint64_t room, struct sector *ret)
{
    struct cursor c = {(uint8_t *)in, true};
    uint64_t crc, index;
    field(&c, &crc, 4);
    bool magic = le_get32(c.p) == SECTOR_MAGIC;
    sector_fields(&c, &ret->generation, &index, &ret->total, &ret->bytes);
    ret->payload = c.p;
    return magic && crc == crc_32c(in + 4, REPL_META_SECTOR - 4) && index == i && ret->total &&
           ret->total <= room && ret->bytes <= ret->total * REPL_META_PAYLOAD;
}

/* `room` sectors are on disk, of which the write that counts may have taken fewer. */
static struct slot slot_decode(const uint8_t *in, uint64_t room, uint8_t *ret_payload)
{
    enum { FIRST = 2 }; /* the generations that find a slot empty */
    struct slot slot = {.state = SLOT_EMPTY};
    uint64_t sectors = room, holes = 0;
    for (uint64_t i = 0; i < sectors; i++) {
        const uint8_t *at = in + i * REPL_META_SECTOR;
        struct sector it;
        if (all_zero(at, REPL_META_SECTOR)) {
            holes++;
            continue;
        }
        if (!sector_decode(at, i, room, &it))
            return (struct slot){.state = SLOT_DAMAGED};
        if (slot.state == SLOT_EMPTY) {
            slot = (struct slot){SLOT_GOOD, it.generation, it.bytes};
            sectors = holes ? room : it.total;
        } else if (it.generation != slot.generation) {
            slot.state = SLOT_TORN; /* the sectors that follow may still be damaged */
        }
        memcpy(ret_payload + i * REPL_META_PAYLOAD, it.payload, REPL_META_PAYLOAD);
    }
    if (holes && slot.state != SLOT_EMPTY)
        slot.state =
            slot.state == SLOT_GOOD && slot.generation <= FIRST ? SLOT_BEGUN : SLOT_DAMAGED;
    return slot;
}

/* Which of two slots counts: 0 or 1; *ret_found says whether it can be believed. */
static int choose_slot(const struct slot *a, const struct slot *b, enum repl_found *ret_found)
{
    bool a_good = a->state == SLOT_GOOD, b_good = b->state == SLOT_GOOD;
    const struct slot *other = a_good ? b : a; /* the one that cannot be used, if one cannot */
    if (!a_good && !b_good) {
        bool none = a->state <= SLOT_BEGUN && b->state <= SLOT_BEGUN;
        *ret_found = none ? REPL_FOUND_NONE : REPL_FOUND_BAD;
        return 0;
    }
    bool newer_a = a_good && (!b_good || a->generation > b->generation);
    uint64_t generation = newer_a ? a->generation : b->generation;
    /* The first write of all leaves the other slot empty; after that, both have been written. */
    bool explained = other->state == SLOT_TORN || (other->state <= SLOT_BEGUN && generation == 1);
    bool doubt = !(a_good && b_good) && !GUARD(60, explained);
    *ret_found = doubt ? REPL_FOUND_DOUBT : REPL_FOUND_GOOD;
    return newer_a ? 0 : 1;
}

void repl_super_slot(const struct repl_super *s, uint8_t out[REPL_SUPER_SLOT])
{
    uint8_t block[REPL_SUPER_SIZE];
    repl_super_encode(s, block);
    memset(out, 0, REPL_SUPER_SLOT);
    slot_encode(s->generation, block, sizeof(block), REPL_SUPER_SECTORS, out);
}

enum repl_found repl_super_choose(const uint8_t a[REPL_SUPER_SLOT],
                                  const uint8_t b[REPL_SUPER_SLOT], struct repl_super *ret_s)
{
    uint8_t payload[2][REPL_SUPER_SECTORS * REPL_META_PAYLOAD];
    struct slot slots[2] = {slot_decode(a, REPL_SUPER_SECTORS, payload[0]),
                            slot_decode(b, REPL_SUPER_SECTORS, payload[1])};
    struct repl_super super[2] = {0};
    /* Whole sectors of one generation that are no superblock are of two writes: both were torn, one start after the other. */
    for (int i = 0; i < 2; i++)
        if (slots[i].state == SLOT_GOOD && (slots[i].bytes != REPL_SUPER_SIZE ||
                                            repl_super_decode(payload[i], &super[i], NULL) < 0 ||
                                            super[i].generation != slots[i].generation))
            slots[i].state = SLOT_TORN;
    enum repl_found found;
    int n = choose_slot(&slots[0], &slots[1], &found);
    *ret_s = (struct repl_super){0};
    if (found != REPL_FOUND_NONE && found != REPL_FOUND_BAD)
        *ret_s = super[n];
    return found;
}

bool repl_super_knows(const struct repl_super *s, const struct uuid *store, uint64_t generation)
{
    bool current =
        generation == s->store_generation || generation == s->store_generation + s->stamping;
    return uuid_eq(&s->store, store) && GUARD(61, current);
}

/* The activity log. */

enum { LOG_FIXED = 32 }; /* store, superblock, extents, checksum of everything behind it */

size_t repl_log_encode(const struct repl_log *log, bool whole, uint8_t out[REPL_LOG_SLOT])
{
    uint8_t payload[LOG_FIXED + 4 * REPL_ACTIVE];
    struct repl_log copy = *log;
    struct cursor c = {payload, false};
    id_field(&c, &copy.store);
    FIELD(&c, copy.super_generation, 8);
    FIELD(&c, copy.n, 4);
    struct cursor sum = c;
    c.p += 4;
    for (uint32_t i = 0; i < copy.n; i++)
        FIELD(&c, copy.extent[i], 4);
    size_t bytes = (size_t)(c.p - payload);
    uint64_t crc = crc_32c(payload + LOG_FIXED, bytes - LOG_FIXED);
    field(&sum, &crc, 4);
    uint64_t sectors = (bytes + REPL_META_PAYLOAD - 1) / REPL_META_PAYLOAD,
             each = MUTANT(71, REPL_META_BLOCK / REPL_META_SECTOR, 1);
    sectors = whole ? REPL_LOG_SECTORS : (sectors + each - 1) / each * each;
    slot_encode(log->generation, payload, bytes, sectors, out);
    return sectors * REPL_META_SECTOR;
}

static bool log_decode(uint8_t *payload, const struct slot *slot, struct repl_log *ret_log)
{
    struct cursor c = {payload, true};
    ret_log->generation = slot->generation;
    if (slot->bytes < LOG_FIXED)
        return false;
    id_field(&c, &ret_log->store);
    FIELD(&c, ret_log->super_generation, 8);
    FIELD(&c, ret_log->n, 4);
    uint64_t crc;
    field(&c, &crc, 4);
    if (ret_log->n > REPL_ACTIVE || crc != crc_32c(payload + LOG_FIXED, slot->bytes - LOG_FIXED) ||
        slot->bytes != LOG_FIXED + 4 * (size_t)ret_log->n)
        return false;
    for (uint32_t i = 0; i < ret_log->n; i++)
        FIELD(&c, ret_log->extent[i], 4);
    return true;
}

enum repl_found repl_log_choose(const uint8_t a[REPL_LOG_SLOT], const uint8_t b[REPL_LOG_SLOT],
                                const struct repl_super *super, struct repl_log *ret_log)
{
    uint8_t payload[2][REPL_LOG_SECTORS * REPL_META_PAYLOAD];
    struct slot slots[2] = {slot_decode(a, REPL_LOG_SECTORS, payload[0]),
                            slot_decode(b, REPL_LOG_SECTORS, payload[1])};
    struct repl_log logs[2] = {0};
    /* As with superblocks: sectors of two writes that were both torn. */
    for (int i = 0; i < 2; i++)
        if (slots[i].state == SLOT_GOOD && !log_decode(payload[i], &slots[i], &logs[i]))
            slots[i].state = SLOT_TORN;
    enum repl_found found;
    int n = choose_slot(&slots[0], &slots[1], &found);
    *ret_log = (struct repl_log){0};
    if (found == REPL_FOUND_NONE || found == REPL_FOUND_BAD)
        return found;
    *ret_log = logs[n];
    if (!uuid_eq(&ret_log->store, &super->store) || ret_log->generation < super->log_generation)
        return REPL_FOUND_BAD;
    return found;
}

/* Pages. */

enum { PAGE_HEAD = 40 };
_Static_assert(PAGE_HEAD + 8 * (int)REPL_PAGE_ENTRIES <= (int)REPL_SUPER_SIZE,
               "a page is too small");

void repl_page_encode(uint64_t page, const struct uuid *store, uint64_t generation,
                      const uint64_t entries[REPL_PAGE_ENTRIES], uint8_t out[REPL_SUPER_SIZE])
{
    struct uuid id = *store;
    struct cursor c = {out + 16, false};
    memset(out, 0, REPL_SUPER_SIZE);
    id_field(&c, &id);
    field(&c, &generation, 8);
    for (int i = 0; i < REPL_PAGE_ENTRIES; i++) {
        uint64_t v = htole64(entries[i]);
        memcpy(out + PAGE_HEAD + 8 * (size_t)i, &v, 8);
    }
    seal(out, PAGE_MAGIC, page);
}

bool repl_page_decode(uint64_t page, const struct uuid *store, const uint8_t in[REPL_SUPER_SIZE],
                      uint64_t ret_entries[REPL_PAGE_ENTRIES])
{
    struct cursor c = {(uint8_t *)in + 16, true};
    struct uuid id;
    id_field(&c, &id);
    bool good = GUARD(62, sealed(in, PAGE_MAGIC, page) && uuid_eq(&id, store));
    for (int i = 0; i < REPL_PAGE_ENTRIES; i++) {
        uint64_t v;
        memcpy(&v, in + PAGE_HEAD + 8 * (size_t)i, 8);
        ret_entries[i] = good ? le64toh(v) : REPL_UNKNOWN;
    }
    return good;
}
