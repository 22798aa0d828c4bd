/*
 * A replica by itself: its store is a counter here, its metadata an array that outlives it.
 */
#pragma once

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "repl/frame.h"
#include "repl/meta.h"
#include "repl/replica.h"
#include "unit.h"

enum { SIZE = 1 << 20, REGION = 16 };

static struct {
    bool later;      /* the store answers later */
    bool sync_later; /* so do syncs of the metadata */
    bool log_later;  /* and writes of the log */
    bool pool;       /* checksums are durable with the data */
    struct repl_req *waiting[32];
    int waiting_n, writes, flushes, sum_flushes, meta_writes, syncs, logs, resums, unverified,
        snapshots;
    uint64_t generation; /* that the store was stamped with */
    uint8_t meta[REPL_META_HEAD + 64 * REPL_SUPER_SIZE];
    struct repl_msg sent[32];
    int sent_n, closed;
    uint8_t data[SIZE];
} world;

static int store(void *ctx, struct repl_req *q)
{
    (void)ctx;
    world.writes += q->kind == REPL_STORE_WRITE || q->kind == REPL_STORE_ZERO;
    world.flushes += q->kind == REPL_STORE_FLUSH;
    world.sum_flushes += q->kind == REPL_STORE_FLUSH && q->sums;
    world.resums += q->kind == REPL_STORE_RESUM;
    world.snapshots += q->kind == REPL_STORE_SNAPSHOT;
    world.unverified += q->unverified;
    if (q->kind == REPL_STORE_STAMP) {
        world.generation = q->length;
        return 1;
    }
    if (q->kind == REPL_STORE_WRITE)
        memcpy(world.data + q->offset, (uint8_t *)q->iov->iov_base + q->skip, q->length);
    if (!world.later)
        return 1;
    world.waiting[world.waiting_n++] = q;
    return 0;
}

static void meta_write(void *ctx, uint64_t offset, const void *data, size_t size)
{
    (void)ctx;
    assert_true(offset + size <= sizeof(world.meta));
    assert_true(offset % REPL_META_BLOCK == 0 && size % REPL_META_BLOCK == 0);
    memcpy(world.meta + offset, data, size);
    world.meta_writes++;
}

static void meta_read(void *ctx, uint64_t offset, void *data, size_t size)
{
    (void)ctx;
    assert_true(offset + size <= sizeof(world.meta));
    memcpy(data, world.meta + offset, size);
}

static int log_write(void *ctx, uint64_t offset, const void *data, size_t size)
{
    meta_write(ctx, offset, data, size);
    world.logs++;
    return !world.log_later;
}

static int meta_sync(void *ctx)
{
    (void)ctx;
    world.syncs++;
    return !world.sync_later;
}

static void free_buf(struct repl_buf *b)
{
    free(b);
}

static struct repl_buf *buffer(void *ctx, size_t size, void **ret_data)
{
    (void)ctx;
    struct repl_buf *b = mem_alloc(sizeof(*b) + size);
    *b = (struct repl_buf){1, free_buf};
    *ret_data = b + 1;
    return b;
}

static void send_msg(void *ctx, int link, const struct repl_msg *m, const void *payload,
                     struct repl_buf *owner)
{
    (void)ctx, (void)link, (void)payload, (void)owner;
    world.sent[world.sent_n++ % 32] = *m;
}

static void closed(void *ctx, int link, const char *why)
{
    (void)ctx, (void)link, (void)why;
    world.closed++;
}

static const struct repl_replica_ops ops = {store,  meta_write, meta_sync, log_write,
                                            buffer, send_msg,   closed};
static const int64_t S = 1000000000;

static const struct uuid STORE = {{5}};

static struct repl_replica *start_with(bool store_new)
{
    struct repl_replica_config c = {.store_size = SIZE,
                                    .active_max = 4,
                                    .active_room = 6,
                                    .extent_shift = REGION + 1,
                                    .idle_ns = 3 * S,
                                    .ops = 8,
                                    .checkpoint_ns = S,
                                    .lease_ns = S,
                                    .store = STORE,
                                    .store_generation = world.generation,
                                    .checked = true,
                                    .sums_with_data = world.pool,
                                    .store_new = store_new};
    struct repl_replica *r = repl_replica_new(&c, &ops, NULL);
    struct err e;
    assert_int_equal(repl_replica_load(r, meta_read, &e), 0);
    repl_replica_start(r, 0);
    repl_replica_turn(r, 0);
    repl_replica_open(r, 0);
    repl_replica_turn(r, 2 * S);
    return r;
}

__attribute__((unused)) static struct repl_replica *start(void)
{
    return start_with(!world.meta_writes);
}

static bool give(struct repl_replica *r, struct repl_msg m, const void *payload)
{
    m.epoch = m.epoch ? m.epoch : 1;
    struct iovec iov = {(void *)(uintptr_t)payload, m.length};
    return repl_replica_input(r, 0, &m, &iov, m.length ? 1 : 0, NULL);
}

static struct repl_msg last(void)
{
    return world.sent[(world.sent_n + 31) % 32];
}

static uint8_t block[REPL_SUPER_SIZE]; /* of the last view */

static void view_and_join(struct repl_replica *r, uint32_t epoch, int64_t now)
{
    struct repl_super s = {.generation = 1};
    s.view = (struct repl_view){.version = (uint64_t)epoch << 32 | 1,
                                .size = SIZE,
                                .rf = 1,
                                .flags = 1,
                                .region_shift = REGION,
                                .block_shift = 12,
                                .n = 1};
    s.view.member[0].flags = REPL_VOTER | REPL_OLD;
    s.lineage.n = 1;
    s.lineage.at[0].epoch = epoch;
    repl_super_encode(&s, block);
    give(r, (struct repl_msg){.type = REPL_PROMISE, .seq = 42, .epoch = epoch}, NULL);
    repl_replica_turn(r, now);
    assert_int_equal(last().type, REPL_PROMISED);
    give(r, (struct repl_msg){.type = REPL_VIEW, .epoch = epoch, .length = REPL_SUPER_SIZE}, block);
    repl_replica_turn(r, now);
    assert_int_equal(last().type, REPL_VIEW_OK);
    give(r, (struct repl_msg){.type = REPL_JOIN, .epoch = epoch, .offset = 1}, NULL);
    give(r, (struct repl_msg){.type = REPL_DONE, .epoch = epoch, .length = REPL_SUPER_SIZE}, block);
    repl_replica_turn(r, now);
    assert_int_equal(last().type, REPL_DONE_OK);
}

static uint8_t page[512] = {7};

static struct repl_msg write_at(uint64_t seq, uint64_t offset)
{
    return (struct repl_msg){
        .type = REPL_WRITE, .seq = seq, .offset = offset, .count = 512, .length = 512};
}

static void setup(void)
{
    memset(&world, 0, sizeof(world));
}

/* A replica that has the first write, and whose store answers later from now on. */
__attribute__((unused)) static struct repl_replica *written_once(void)
{
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    give(r, write_at(1, 0), page);
    repl_replica_turn(r, 3 * S);
    world.later = true;
    return r;
}

__attribute__((unused)) static struct repl_replica_status status_of(const struct repl_replica *r)
{
    struct repl_replica_status st;
    repl_replica_status(r, &st);
    return st;
}

__attribute__((unused)) static uint64_t entry_on_disk(uint32_t region)
{
    uint64_t entries[REPL_PAGE_ENTRIES];
    assert_true(repl_page_decode(0, &STORE, world.meta + repl_page_offset(0), entries));
    return entries[region];
}

__attribute__((unused)) static struct repl_super on_disk(void)
{
    struct repl_super s;
    assert_int_equal(
        repl_super_choose(world.meta + repl_super_offset(0), world.meta + repl_super_offset(1), &s),
        REPL_FOUND_GOOD);
    return s;
}

__attribute__((unused)) static struct repl_log log_on_disk(void)
{
    struct repl_super s = on_disk();
    struct repl_log log;
    assert_int_equal(
        repl_log_choose(world.meta + repl_log_offset(0), world.meta + repl_log_offset(1), &s, &log),
        REPL_FOUND_GOOD);
    return log;
}

__attribute__((unused)) static void mark(struct repl_replica *r, uint32_t region, uint64_t snap)
{
    give(r,
         (struct repl_msg){.type = REPL_FLUSH, .flags = REPL_MARK, .offset = region, .count = snap},
         NULL);
    repl_replica_turn(r, 3 * S);
}
