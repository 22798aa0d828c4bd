/*
 * A unit with two initiators, on memory, for tests of commands: what a transport would do, in one
 * call. A store can be held: then I/Os wait until they are let go, in any order.
 */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "scsi/scsi.h"
#include "unit.h"

enum { LAB_BLOCKS = 4096, LAB_DATA = 4 << 20 };

/* ---- a store in memory ---- */

struct lab_store {
    struct store store;
    uint8_t *bytes, *unmapped; /* one flag for each block */
    bool held;
    struct list_link waiting;
    int error;          /* of the next I/O */
    unsigned ios, fuas; /* how many there were */
};

static void lab_io(struct store_io *io)
{
    struct lab_store *s = container_of(io->store, struct lab_store, store);
    uint64_t at = io->offset;
    int error = s->error;
    s->error = 0;
    s->fuas += io->fua;
    for (unsigned i = 0; !error && i < io->iovs; i++) {
        if (io->op == STORE_READ)
            memcpy(io->iov[i].iov_base, s->bytes + at, io->iov[i].iov_len);
        else
            memcpy(s->bytes + at, io->iov[i].iov_base, io->iov[i].iov_len);
        at += io->iov[i].iov_len;
    }
    if (!error && io->iovs && at != io->offset + io->length)
        error = EINVAL;
    if (!error && (io->op == STORE_UNMAP || io->op == STORE_ZERO))
        memset(s->bytes + io->offset, 0, io->length);
    for (uint64_t b = io->offset; !error && io->op != STORE_READ && b < io->offset + io->length;
         b += s->store.block_size)
        s->unmapped[b / s->store.block_size] = io->op == STORE_UNMAP;
    io->done(io, error);
}

static void lab_submit(struct store *store, struct store_io *io)
{
    struct lab_store *s = container_of(store, struct lab_store, store);
    s->ios++;
    if (s->held)
        list_push(&s->waiting, &io->link);
    else
        lab_io(io);
}

static enum store_extent lab_extent(struct store *store, uint64_t offset, uint64_t *ret_length)
{
    struct lab_store *s = container_of(store, struct lab_store, store);
    uint64_t first = offset / store->block_size, n = first;
    while (n < store->size / store->block_size && s->unmapped[n] == s->unmapped[first])
        n++;
    *ret_length = (n - first) * store->block_size;
    return s->unmapped[first] ? STORE_UNMAPPED : STORE_MAPPED;
}

/* One I/O of those that wait, the oldest; false: there is none. */
static inline bool lab_let_go(struct lab_store *s)
{
    struct list_link *l = list_take(&s->waiting);
    if (l)
        lab_io(container_of(l, struct store_io, link));
    return l;
}

/* ---- a unit and its initiators ---- */

struct lab {
    struct lab_store store;
    struct scsi_unit *unit;
    struct scsi_nexus *a, *b;
    uint32_t block;
    uint8_t *data; /* in and out, LAB_DATA */
};

struct lab_task {
    struct scsi_task task;
    struct iovec out[2], in[2];
    unsigned done;
};

static void lab_done(struct scsi_task *t)
{
    container_of(t, struct lab_task, task)->done++;
}

static inline void lab_start_with(struct lab *l, struct scsi_unit_config config)
{
    static const struct store_ops ops = {.name = "lab", .submit = lab_submit, .extent = lab_extent};
    struct err e;
    l->block = config.block_size ? config.block_size : 512;
    uint64_t size = (uint64_t)LAB_BLOCKS * l->block;
    l->store = (struct lab_store){
        .store = {.ops = &ops,
                  .size = size,
                  .block_size = l->block,
                  .volatile_cache = true,
                  .atomic = config.removable ? 4096 : 0},
        .bytes = mem_zalloc(2 * size), /* room to grow */
        .unmapped = mem_zalloc(2 * LAB_BLOCKS),
    };
    list_init(&l->store.waiting);
    config.store = &l->store.store;
    config.block_size = l->block;
    config.vendor = "ORLOP";
    config.product = "VOLUME";
    config.revision = "0001";
    config.serial = config.serial ? config.serial : "lab-1";
    l->unit = scsi_unit_new(&config, &e);
    assert_non_null(l->unit);
    l->a = scsi_nexus_new(l->unit, "iqn.a,i,0x00023d000001", "iqn.t,t,0x0001", 1);
    l->b = scsi_nexus_new(l->unit, "iqn.b,i,0x00023d000002", "iqn.t,t,0x0001", 1);
    l->data = mem_zalloc(LAB_DATA);
}

static inline void lab_end(struct lab *l)
{
    scsi_nexus_free(l->a);
    scsi_nexus_free(l->b);
    scsi_unit_free(l->unit);
    free(l->store.bytes);
    free(l->store.unmapped);
    free(l->data);
}

/* "28 00 00000010 00 0001 00" */
static inline void lab_cdb(struct scsi_task *t, const char *hex)
{
    unsigned n = 0;
    memset(t->cdb, 0, sizeof(t->cdb));
    for (const char *p = hex; *p; p++) {
        unsigned digit;
        if (*p == ' ')
            continue;
        assert_int_equal(sscanf((const char[]){*p, 0}, "%x", &digit), 1);
        assert_true(n < 2 * SCSI_CDB_MAX);
        t->cdb[n / 2] = (uint8_t)((unsigned)t->cdb[n / 2] << 4 | digit);
        n++;
    }
    t->cdb_length = 16;
}

/* Begins and runs; data-out is size bytes of l->data (-1: as much as is wanted), data-in goes there too.
 * Data is in two pieces that break nowhere in particular. */
static inline void lab_run(struct lab *l, struct lab_task *k, struct scsi_nexus *n, const char *cdb,
                           int64_t size)
{
    struct scsi_task *t = &k->task;
    memset(k, 0, sizeof(*k));
    lab_cdb(t, cdb);
    t->nexus = n;
    t->out_offered = size < 0 ? 0 : (uint32_t)size;
    if (!scsi_task_begin(t)) {
        k->done = 1;
        return;
    }
    assert_true(t->in_wanted <= SCSI_TRANSFER_MAX && t->out_wanted <= SCSI_TRANSFER_MAX);
    t->out_length = size >= 0 && size < t->out_wanted ? (uint32_t)size : t->out_wanted;
    t->in_room = t->in_wanted;
    assert_true(t->out_length <= LAB_DATA && t->in_room <= LAB_DATA);
    uint32_t out = t->out_length / 3, in = t->in_room / 3;
    k->out[0] = (struct iovec){l->data, out};
    k->out[1] = (struct iovec){l->data + out, t->out_length - out};
    k->in[0] = (struct iovec){l->data, in};
    k->in[1] = (struct iovec){l->data + in, t->in_room - in};
    t->out = k->out;
    t->in = k->in;
    t->outs = t->ins = 2;
    t->done = lab_done;
    scsi_task_run(t);
}

/* Key, code and qualifier of the sense data as one number; 0 of none. */
static inline unsigned lab_sense(const struct scsi_task *t)
{
    const uint8_t *s = t->sense;
    if (!t->sense_length)
        return 0;
    if ((s[0] & 0x7e) == 0x72)
        return (unsigned)(s[1] << 16 | s[2] << 8 | s[3]);
    return (unsigned)((s[2] & 0xf) << 16 | s[12] << 8 | s[13]);
}

/* The whole of a command that ends at once: its status, or for CHECK CONDITION its sense. */
static inline unsigned lab(struct lab *l, struct scsi_nexus *n, const char *cdb, int64_t size)
{
    struct lab_task k;
    lab_run(l, &k, n, cdb, size);
    assert_int_equal(k.done, 1);
    return k.task.status == SCSI_CHECK_CONDITION ? lab_sense(&k.task) : k.task.status;
}

/* The same for its data-in, of which there has to be this much. */
static inline const uint8_t *lab_in(struct lab *l, struct scsi_nexus *n, const char *cdb,
                                    uint32_t length)
{
    struct lab_task k;
    memset(l->data, 0xee, 4096);
    lab_run(l, &k, n, cdb, 0);
    assert_int_equal(k.done, 1);
    assert_int_equal(k.task.status, SCSI_GOOD);
    assert_int_equal(k.task.in_length, length);
    return l->data;
}

static inline void lab_put(uint8_t *p, unsigned bytes, uint64_t n)
{
    while (bytes-- > 0) {
        p[bytes] = (uint8_t)n;
        n >>= 8;
    }
}

static inline uint64_t lab_get(const uint8_t *p, unsigned bytes)
{
    uint64_t n = 0;
    while (bytes-- > 0)
        n = n << 8 | *p++;
    return n;
}

/* Unit attentions of both are taken. */
static inline void lab_start(struct lab *l, struct scsi_unit_config config)
{
    lab_start_with(l, config);
    assert_int_equal(lab(l, l->a, "00", 0), 0x062900);
    assert_int_equal(lab(l, l->b, "00", 0), 0x062900);
}
