/*
 * MODE SENSE and MODE SELECT. A page is a row: its bytes as they are now, and the bits that can be
 * changed. Nothing is saved: a reset or a new start brings back what the unit was made with.
 */
#include "scsi/inquiry.h"

enum { PC_CURRENT, PC_CHANGEABLE, PC_DEFAULT, PC_SAVED };
enum { ALL_PAGES = 0x3f, ALL_SUBPAGES = 0xff, PAGE_BYTES = 20 };
enum { BIT_DBD = 0x08, BIT_LLBAA = 0x10, BIT_PF = 0x10, BIT_SP = 0x01 };
enum { WCE = 0x04, D_SENSE = 0x04, SWP = 0x08 };

struct page {
    uint8_t code, length; /* of what follows the two bytes of the header */
    void (*write)(const struct scsi_unit *u, const struct scsi_mode *mode, uint8_t *p);
    void (*change)(const struct scsi_unit *u, uint8_t *mask); /* NULL: nothing can be */
    void (*take)(struct scsi_mode *mode, const uint8_t *p);
};

static struct scsi_mode defaults(const struct scsi_unit *u)
{
    return (struct scsi_mode){.write_cache = u->store->volatile_cache};
}

void scsi_mode_reset(struct scsi_unit *u)
{
    u->mode = defaults(u);
}

static void write_recovery(const struct scsi_unit *u, const struct scsi_mode *mode, uint8_t *p)
{
    (void)u, (void)mode;
    p[2] = 0xc0; /* reallocates by itself */
}

static void write_caching(const struct scsi_unit *u, const struct scsi_mode *mode, uint8_t *p)
{
    (void)u;
    p[2] = mode->write_cache ? WCE : 0;
}

/* A store that has no volatile cache cannot be given one; one that has can be made to write through. */
static void change_caching(const struct scsi_unit *u, uint8_t *mask)
{
    mask[2] = u->store->volatile_cache ? WCE : 0;
}

static void take_caching(struct scsi_mode *mode, const uint8_t *p)
{
    mode->write_cache = p[2] & WCE;
}

static void write_control(const struct scsi_unit *u, const struct scsi_mode *mode, uint8_t *p)
{
    (void)u;
    p[2] = mode->descriptor_sense ? D_SENSE : 0;
    p[3] = 0x10; /* tasks are reordered as the unit likes */
    p[4] = mode->write_protect ? SWP : 0;
    be_put16(p + 8, 0xffff); /* BUSY has no limit */
}

static void change_control(const struct scsi_unit *u, uint8_t *mask)
{
    (void)u;
    mask[2] = D_SENSE;
    mask[4] = SWP;
}

static void take_control(struct scsi_mode *mode, const uint8_t *p)
{
    mode->descriptor_sense = p[2] & D_SENSE;
    mode->write_protect = p[4] & SWP;
}

static void write_exceptions(const struct scsi_unit *u, const struct scsi_mode *mode, uint8_t *p)
{
    (void)u, (void)mode;
    p[2] = 0x08; /* DEXCPT: none are reported */
}

static const struct page pages[] = {
    {0x01, 10, write_recovery},
    {0x08, 18, write_caching, change_caching, take_caching},
    {0x0a, 10, write_control, change_control, take_control},
    {0x1c, 10, write_exceptions},
};

static size_t put_page(const struct scsi_unit *u, const struct page *page, unsigned pc, uint8_t *p)
{
    memset(p, 0, PAGE_BYTES);
    struct scsi_mode mode = pc == PC_DEFAULT ? defaults(u) : u->mode;
    if (pc != PC_CHANGEABLE)
        page->write(u, &mode, p);
    else if (page->change)
        page->change(u, p);
    p[0] = page->code;
    p[1] = page->length;
    return 2 + page->length;
}

/* ---- MODE SENSE ---- */

static bool is_10(const struct scsi_task *t)
{
    return t->cdb[0] >= 0x55;
}

static size_t put_descriptor(const struct scsi_unit *u, uint8_t *p, bool large)
{
    if (large) {
        be_put64(p, u->blocks);
        be_put32(p + 12, u->block_size);
        return 16;
    }
    be_put32(p, u->blocks < UINT32_MAX ? u->blocks : UINT32_MAX);
    be_put24(p + 5, u->block_size);
    return 8;
}

void scsi_run_mode_sense(struct scsi_task *t)
{
    const struct scsi_unit *u = t->unit;
    uint8_t p[256] = {0}, code = t->cdb[2] & 0x3f, sub = t->cdb[3];
    unsigned pc = t->cdb[2] >> 6;
    bool large = is_10(t) && t->cdb[1] & BIT_LLBAA;
    size_t header = is_10(t) ? 8 : 4, at = header, first;
    if (pc == PC_SAVED) {
        scsi_fail(t, SENSE_SAVING);
        return;
    }
    at += t->cdb[1] & BIT_DBD ? 0 : put_descriptor(u, p + at, large);
    first = at;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        if ((code == ALL_PAGES || code == pages[i].code) && (!sub || sub == ALL_SUBPAGES))
            at += put_page(u, &pages[i], pc, p + at);
    }
    if (at == first) {
        scsi_refuse_field(t, 2);
        scsi_finish(t);
        return;
    }
    uint8_t device =
        (uint8_t)((scsi_is_protected(u) ? 0x80 : 0) | 0x10); /* DPO and FUA are taken */
    if (is_10(t)) {
        be_put16(p, at - 2);
        p[3] = device;
        p[4] = large;
        be_put16(p + 6, first - header);
    } else {
        p[0] = (uint8_t)(at - 1);
        p[2] = device;
        p[3] = (uint8_t)(first - header);
    }
    scsi_give(t, p, at);
}

/* ---- MODE SELECT ---- */

/* The block descriptor may say only what is. */
static bool is_our_descriptor(const struct scsi_unit *u, const uint8_t *p, size_t size)
{
    if (!size)
        return true;
    uint64_t blocks = size == 16 ? be_get64(p) : be_get32(p);
    uint32_t length = size == 16 ? be_get32(p + 12) : be_get24(p + 5);
    uint64_t all = size == 16 ? UINT64_MAX : UINT32_MAX;
    return (!blocks || blocks == all || blocks == u->blocks) && length == u->block_size;
}

/* -1: the page is taken into *mode; else the byte of it that is wrong. */
static int take_page(const struct scsi_unit *u, const uint8_t *p, struct scsi_mode *mode)
{
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        uint8_t now[PAGE_BYTES], mask[PAGE_BYTES];
        if (pages[i].code != (p[0] & 0x7f))
            continue;
        if (pages[i].length != p[1])
            return 1;
        put_page(u, &pages[i], PC_CURRENT, now);
        put_page(u, &pages[i], PC_CHANGEABLE, mask);
        for (int at = 2; at < 2 + p[1]; at++) {
            if ((p[at] ^ now[at]) & ~mask[at])
                return at;
        }
        if (pages[i].take)
            pages[i].take(mode, p);
        return -1;
    }
    return 0;
}

static void apply(struct scsi_task *t, struct scsi_mode mode)
{
    struct scsi_unit *u = t->unit;
    bool same = mode.write_cache == u->mode.write_cache &&
                mode.descriptor_sense == u->mode.descriptor_sense &&
                mode.write_protect == u->mode.write_protect;
    u->mode = mode;
    if (!same)
        scsi_attention_all(u, t->nexus, ATTENTION_MODE);
    scsi_unit_review(u);
    scsi_good(t);
}

void scsi_run_mode_select(struct scsi_task *t)
{
    struct scsi_mode mode = t->unit->mode;
    size_t header = is_10(t) ? 8 : 4;
    if (!(t->cdb[1] & BIT_PF) || t->cdb[1] & BIT_SP) {
        scsi_refuse_field(t, 1);
        scsi_finish(t);
        return;
    }
    if (!t->out_wanted) {
        scsi_good(t);
        return;
    }
    const uint8_t *p = scsi_list(t, (uint32_t)header);
    if (!p)
        return;
    size_t descriptor = is_10(t) ? be_get16(p + 6) : p[3], at = header + descriptor;
    bool large = is_10(t) && p[4] & 1;
    if (at > t->size || (descriptor && descriptor != (large ? 16 : 8))) {
        scsi_fail(t, at > t->size ? SENSE_LIST_LENGTH : SENSE_BAD_LIST);
        return;
    }
    if (!is_our_descriptor(t->unit, p + header, descriptor)) {
        scsi_fail_field(t, (unsigned)header);
        return;
    }
    while (at < t->size) {
        if (at + 2 > t->size || at + 2 + p[at + 1] > t->size) {
            scsi_fail(t, SENSE_LIST_LENGTH);
            return;
        }
        int wrong = take_page(t->unit, p + at, &mode);
        if (wrong >= 0) {
            scsi_fail_field(t, (unsigned)at + (unsigned)wrong);
            return;
        }
        at += 2 + (size_t)p[at + 1];
    }
    apply(t, mode);
}
