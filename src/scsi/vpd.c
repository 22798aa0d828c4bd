/*
 * Pages of vital product data, as a table: what writes each, in ascending order.
 */
#include "scsi/inquiry.h"

struct page {
    size_t (*write)(const struct scsi_task *t,
                    uint8_t *p); /* what follows the header; its length */
    uint8_t code;
    bool thin; /* only where provisioning is thin */
};

enum { PAGE_MAX = 1024, HEADER = 4 };

static size_t write_supported(const struct scsi_task *t, uint8_t *p);

static size_t write_serial(const struct scsi_task *t, uint8_t *p)
{
    size_t n = strnlen(t->unit->serial, 128);
    memcpy(p, t->unit->serial, n);
    return n;
}

/* code set, association and type, length, identifier; padded to a multiple of pad with zeroes. */
static size_t put_designator(uint8_t *p, uint8_t set, uint8_t kind, const void *data, size_t size,
                             size_t padded)
{
    p[0] = set;
    p[1] = kind;
    p[3] = (uint8_t)padded;
    memcpy(p + HEADER, data, size);
    return HEADER + padded;
}

static size_t write_designators(const struct scsi_task *t, uint8_t *p)
{
    enum { BINARY = 0x51, TEXT = 0x52, UTF8 = 0x53 }; /* the protocol is iSCSI */
    enum { PORT = 0x90, UNIT = 0x00, T10 = 1, NAA = 3, RELATIVE = 4, NAME = 8 };
    const struct scsi_unit *u = t->unit;
    size_t at =
        put_designator(p, BINARY & 0x0f, UNIT | NAA, u->naa, sizeof(u->naa), sizeof(u->naa));

    char text[8 + 64];
    size_t n = strnlen(u->serial, 64);
    memset(text, ' ', 8);
    memcpy(text, u->vendor, strnlen(u->vendor, 8));
    memcpy(text + 8, u->serial, n);
    at += put_designator(p + at, TEXT & 0x0f, UNIT | T10, text, 8 + n, 8 + n);

    uint8_t port[4] = {0};
    be_put16(port + 2, t->nexus->port.target);
    at += put_designator(p + at, BINARY, PORT | RELATIVE, port, sizeof(port), sizeof(port));
    n = strlen(t->nexus->target_port) + 1;
    at += put_designator(p + at, UTF8, PORT | NAME, t->nexus->target_port, n, (n + 3) & ~(size_t)3);
    return at;
}

static size_t write_extended(const struct scsi_task *t, uint8_t *p)
{
    (void)t;
    p[1] = 0x07; /* simple, ordered and head-of-queue tasks are taken */
    p[2] = 0x01; /* there is a volatile cache */
    return 60;
}

static size_t write_limits(const struct scsi_task *t, uint8_t *p)
{
    const struct scsi_unit *u = t->unit;
    uint32_t transfer = SCSI_TRANSFER_MAX >> u->shift, physical = PHYSICAL_BLOCK >> u->shift;
    p[1] = 255;                    /* blocks of COMPARE AND WRITE */
    be_put16(p + 2, physical);     /* best multiple */
    be_put32(p + 4, transfer);     /* most */
    be_put32(p + 8, transfer / 8); /* best */
    be_put32(p + 12, transfer);    /* PRE-FETCH */
    if (u->thin) {
        be_put32(p + 16, scsi_unmap_blocks(u));
        be_put32(p + 20, scsi_unmap_descriptors);
        be_put32(p + 24, physical); /* granularity */
        be_put32(p + 28, 1U << 31); /* aligned at block 0 */
    }
    be_put64(p + 32, scsi_write_same_most(u));
    be_put32(p + 40, u->atomic_blocks);
    return 60;
}

static size_t write_characteristics(const struct scsi_task *t, uint8_t *p)
{
    (void)t;
    be_put16(p, 1); /* does not rotate */
    p[3] = 0x40;    /* after a block erase every block can be read */
    return 60;
}

static size_t write_provisioning(const struct scsi_task *t, uint8_t *p)
{
    (void)t;
    p[1] = 0xe6; /* UNMAP, WRITE SAME(16) and (10) unmap; unmapped blocks read as zeroes; anchors */
    p[2] = 0x02; /* thin */
    return 4;
}

static const struct page pages[] = {
    {write_supported, 0x00},
    {write_serial, 0x80},
    {write_designators, 0x83},
    {write_extended, 0x86},
    {write_limits, 0xb0},
    {write_characteristics, 0xb1},
    {write_provisioning, 0xb2, .thin = true},
};

static size_t write_supported(const struct scsi_task *t, uint8_t *p)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        if (!pages[i].thin || t->unit->thin)
            p[n++] = pages[i].code;
    }
    return n;
}

void scsi_give_vpd(struct scsi_task *t, uint8_t code)
{
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        if (pages[i].code != code || (pages[i].thin && !t->unit->thin))
            continue;
        uint8_t p[PAGE_MAX] = {0};
        p[1] = code;
        size_t n = pages[i].write(t, p + HEADER);
        be_put16(p + 2, n);
        scsi_give(t, p, HEADER + n);
        return;
    }
    scsi_refuse_field(t, 2);
    scsi_finish(t);
}
