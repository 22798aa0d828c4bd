#include "repl/meta.h"

#include <endian.h>

#include "base/crc.h"
#include "repl/view.h"

enum { SUPER_MAGIC = 0x5370724f, PAGE_MAGIC = 0x5061724f, SUPER_VERSION = 1 };

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

/* These came later: where older programs wrote zeros, there are none. */
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

/* These, too. */
static void snap_mark_fields(struct cursor *c, struct repl_super *s)
{
    FIELD(c, s->snap_mark, 8);
    FIELD(c, s->snap_region, 4);
}

enum {
    VIEW_BYTES = 22 + REPL_MEMBERS * 25,
    SUPER_BYTES = 16 + 77 + VIEW_BYTES + 4 + REPL_EPOCHS * 20 + 1 +
                  REPL_SNAPS * (32 + REPL_SNAP_NAME) + 1 + REPL_HELD * 8 + 12,
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
        if (s.view.version && repl_view_check(&s.view, e) < 0)
            return -1;
    }
    *ret_s = s;
    return 0;
}

int repl_super_choose(const uint8_t a[REPL_SUPER_SIZE], const uint8_t b[REPL_SUPER_SIZE],
                      struct repl_super *ret_s, struct err *e)
{
    struct repl_super x = {0}, y = {0};
    bool x_ok = repl_super_decode(a, &x, NULL) == 0, y_ok = repl_super_decode(b, &y, NULL) == 0;
    if (!x_ok && !y_ok)
        return err_set(e, ERR_DATA_LOSS, "BadSuperblock",
                       "both superblocks are damaged; remove this replica from the volume, wipe it "
                       "and add it again");
    *ret_s = !y_ok || (x_ok && x.generation > y.generation) ? x : y;
    return 0;
}

void repl_page_encode(uint64_t page, const uint64_t entries[REPL_PAGE_ENTRIES],
                      uint8_t out[REPL_SUPER_SIZE])
{
    memset(out, 0, 16);
    for (int i = 0; i < REPL_PAGE_ENTRIES; i++) {
        uint64_t v = htole64(entries[i]);
        memcpy(out + 16 + 8 * (size_t)i, &v, 8);
    }
    seal(out, PAGE_MAGIC, page);
}

bool repl_page_decode(uint64_t page, const uint8_t in[REPL_SUPER_SIZE],
                      uint64_t ret_entries[REPL_PAGE_ENTRIES])
{
    bool empty = all_zero(in, REPL_SUPER_SIZE);
    bool good = empty || sealed(in, PAGE_MAGIC, page);
    for (int i = 0; i < REPL_PAGE_ENTRIES; i++) {
        uint64_t v;
        memcpy(&v, in + 16 + 8 * (size_t)i, 8);
        ret_entries[i] = good ? le64toh(v) : REPL_UNKNOWN;
    }
    return good;
}
