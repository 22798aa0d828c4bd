/*
 * What comes from the network and from disks: frames, superblocks, map pages. Whatever is accepted is sound, and is
 * encoded as it came. Then a replica and a target are given the frames, and must stay whole.
 */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "repl/frame.h"
#include "repl/meta.h"
#include "repl/replica.h"
#include "repl/target.h"
#include "repl/view.h"

static struct repl_buf buffer_of_all = {.refs = 1 << 30};
static uint8_t memory[REPL_MAX_DATA];

static int store(void *ctx, struct repl_req *req)
{
    (void)ctx;
    CHECK(req->kind >= REPL_STORE_FLUSH || req->offset + req->length <= 1 << 30);
    return 1;
}

static void meta_write(void *ctx, uint64_t offset, const void *data, size_t size)
{
    (void)ctx, (void)offset, (void)data, (void)size;
}

static void meta_read(void *ctx, uint64_t offset, void *data, size_t size)
{
    (void)ctx, (void)offset;
    memset(data, 0, size);
}

static int log_write(void *ctx, uint64_t offset, const void *data, size_t size)
{
    (void)ctx, (void)offset, (void)data, (void)size;
    return 1;
}

static int meta_sync(void *ctx)
{
    (void)ctx;
    return 1;
}

static struct repl_buf *buffer(void *ctx, size_t size, void **ret_data)
{
    (void)ctx;
    CHECK(size <= sizeof(memory));
    *ret_data = memory;
    return repl_buf_ref(&buffer_of_all);
}

static void replica_send(void *ctx, int link, const struct repl_msg *m, const void *payload,
                         struct repl_buf *owner)
{
    (void)ctx, (void)link, (void)payload, (void)owner;
    uint8_t header[REPL_HEADER];
    struct repl_msg again;
    repl_frame_encode(m, header);
    CHECK(repl_frame_decode(header, &m->volume, &again, NULL) == 0);
}

static void target_send(void *ctx, int link, const struct repl_msg *m, const struct iovec *iov,
                        int n, struct repl_buf *owner)
{
    (void)iov, (void)n;
    replica_send(ctx, link, m, NULL, owner);
}

static void closed(void *ctx, int link, const char *why)
{
    (void)ctx, (void)link, (void)why;
}

static void complete(void *ctx, struct repl_io *io, int status)
{
    (void)ctx, (void)io, (void)status;
}

static void admin_done(void *ctx, enum repl_admin op, int status)
{
    (void)ctx, (void)op, (void)status;
}

static void event(void *ctx, enum repl_event what, uint64_t a, uint64_t b)
{
    (void)ctx, (void)what, (void)a, (void)b;
}

static const struct repl_replica_ops replica_ops = {store,  meta_write,   meta_sync, log_write,
                                                    buffer, replica_send, closed};
static const struct repl_target_ops target_ops = {target_send, closed, complete, admin_done, event};

static void blocks(const uint8_t *data, size_t size)
{
    uint8_t block[REPL_SUPER_SIZE] = {0}, again[REPL_SUPER_SIZE];
    uint64_t entries[REPL_PAGE_ENTRIES];
    struct repl_super s = {0};
    memcpy(block, data, size < sizeof(block) ? size : sizeof(block));
    if (repl_super_decode(block, &s, NULL) == 0 && s.generation) {
        CHECK(s.lineage.n <= REPL_EPOCHS && s.view.n <= REPL_MEMBERS);
        repl_super_encode(&s, again);
        CHECK(repl_super_decode(again, &s, NULL) == 0);
    }
    repl_page_decode(0, &s.store, block, entries);
    uint8_t slots[2][REPL_LOG_SLOT] = {{0}};
    struct repl_log log;
    memcpy(slots[0], data, size < sizeof(slots[0]) ? size : sizeof(slots[0]));
    if (size > sizeof(slots[0]))
        memcpy(slots[1], data + sizeof(slots[0]),
               size - sizeof(slots[0]) < sizeof(slots[1]) ? size - sizeof(slots[0])
                                                          : sizeof(slots[1]));
    if (repl_log_choose(slots[0], slots[1], &s, &log) == REPL_FOUND_GOOD)
        CHECK(log.n <= REPL_ACTIVE);
    if (repl_super_choose(slots[0], slots[1], &s) == REPL_FOUND_GOOD)
        CHECK(s.generation);
}

/* A connection's bytes: frames whose checksums are mended, so that what is behind them is reached. */
static void stream(const uint8_t *data, size_t size)
{
    struct uuid volume = {{0}};
    struct repl_replica_config rc = {
        .store_size = 1 << 20, .active_max = 8, .ops = 8, .store_new = true};
    struct repl_target_config tc = {
        .create = true, .size = 1 << 20, .rf = 1, .window = 8, .reads = 8, .owner_seed = 1};
    struct repl_replica *r = repl_replica_new(&rc, &replica_ops, NULL);
    struct repl_target *t = repl_target_new(&tc, &target_ops, NULL);
    repl_replica_load(r, meta_read, NULL);
    repl_replica_start(r, 0);
    repl_replica_open(r, 0);
    repl_target_open(t, 0);
    int64_t now = 1000000000;
    while (size >= REPL_HEADER) {
        struct repl_msg m = {.type = data[5] % REPL_TYPES,
                             .flags = data[6],
                             .epoch = data[32],
                             .seq = data[40] | (uint64_t)data[41] << 40 | (uint64_t)data[42] << 63,
                             .offset = (uint64_t)(data[48] | data[49] << 8) * 512,
                             .count = (uint64_t)data[56] * 512,
                             .length = (uint32_t)(data[36] | data[37] << 8)};
        uint8_t header[REPL_HEADER];
        data += REPL_HEADER;
        size -= REPL_HEADER;
        m.length = m.length > size ? (uint32_t)size : m.length;
        repl_frame_encode(&m, header);
        uint8_t super[REPL_SUPER_SIZE];
        const void *payload = data;
        struct repl_super s;
        if ((m.type == REPL_VIEW || m.type == REPL_DONE || m.type == REPL_HELLO) &&
            m.flags & 0x80) {
            /* A superblock made of the next bytes. */
            s = (struct repl_super){.generation = 1};
            s.view = (struct repl_view){.version = m.seq | 1,
                                        .size = 1 << 20,
                                        .rf = 1,
                                        .region_shift = 16,
                                        .block_shift = 12,
                                        .n = 1,
                                        .flags = 1};
            s.view.member[0].flags = 3;
            repl_super_encode(&s, super);
            payload = super;
            m.length = sizeof(super);
            m.flags &= 0x7f;
            repl_frame_encode(&m, header);
        }
        if (repl_frame_decode(header, &volume, &m, NULL) == 0) {
            struct iovec iov = {(void *)(uintptr_t)payload, m.length};
            repl_replica_input(r, 0, &m, &iov, m.length ? 1 : 0, NULL);
            repl_target_input(t, 0, &m, &iov, m.length ? 1 : 0, NULL);
        }
        if (payload == data) {
            data += m.length;
            size -= m.length;
        }
        now += 100000000;
        repl_replica_turn(r, now);
        repl_target_turn(t, now);
    }
    repl_replica_free(r);
    repl_target_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct uuid volume = {{0}};
    struct repl_msg m, twice;
    if (size >= REPL_HEADER) {
        if (repl_frame_decode(data, &volume, &m, NULL) == 0) {
            uint8_t header[REPL_HEADER];
            repl_frame_encode(&m, header);
            CHECK(memcmp(header, data, REPL_HEADER) == 0);
            CHECK(repl_frame_decode(header, &volume, &twice, NULL) == 0);
        }
        stream(data, size);
    }
    if (size)
        blocks(data, size);
    return 0;
}
