/*
 * A target with three replicas, connected by queues, all in memory and in one thread.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "repl/frame.h"
#include "repl/meta.h"
#include "repl/replica.h"
#include "repl/target.h"
#include "unit.h"

enum { N = 5, SIZE = 1 << 20 };
#define MS ((int64_t)1000000)

struct frame {
    int replica, to_replica;
    struct repl_msg m;
    uint8_t *payload;
};

static struct {
    struct repl_target *t;
    struct repl_replica *r[N];
    uint8_t data[N][2 * SIZE];
    bool linked[N], frozen[N], full[N]; /* full: it cannot grow */
    bool cannot_write[N], bad_meta[N];
    bool rotten[N];      /* what it reads at the beginning does not match its checksums */
    bool pool;           /* then it cannot be read, and only a write to all of it makes it good */
    bool holds_flush[N]; /* its store answers them later */
    struct repl_req *held[N];
    bool one_round; /* settle() delivers what is there, and no more */
    struct frame queue[4096];
    int n;
    int64_t now, round_ns; /* that a message takes */
    int done, status, admin, admin_status, forced, may_be_lost;
    int64_t dropped_at;
    int undecided, unreadable;
    uint8_t meta[N][REPL_META_HEAD + 4 * REPL_SUPER_SIZE]; /* kept when a replica is revived */
    uint64_t generation[N];
    int pieces, most_pieces; /* of a rebuild read and not yet written, now and at most */
    int reads[N];            /* sent */
    int begun, begun_first;  /* pieces, in all, and when the first rebuild came to its end */
    int begun_ahead;         /* when the first was read */
} w;

static void post(int replica, int to_replica, const struct repl_msg *m, const struct iovec *iov,
                 int n)
{
    struct frame *f = &w.queue[w.n++];
    assert_true(w.n < 4096);
    *f = (struct frame){replica, to_replica, *m, NULL};
    f->payload = m->length ? mem_alloc(m->length) : NULL;
    size_t at = 0;
    for (int i = 0; i < n && m->length; at += iov[i].iov_len, i++)
        memcpy(f->payload + at, iov[i].iov_base, iov[i].iov_len);
}

static void t_send(void *ctx, int link, const struct repl_msg *m, const struct iovec *iov, int n,
                   struct repl_buf *owner)
{
    (void)ctx, (void)owner;
    w.pieces += m->type == REPL_READ && m->count > REPL_SECTOR;
    w.begun += m->type == REPL_BEGIN;
    if (w.pieces && !w.begun_ahead)
        w.begun_ahead = w.begun;
    w.reads[link] += m->type == REPL_READ;
    if (m->type == REPL_DONE && !w.begun_first)
        w.begun_first = w.begun;
    w.most_pieces = w.pieces > w.most_pieces ? w.pieces : w.most_pieces;
    post(link, 1, m, iov, n);
}

static void t_close(void *ctx, int link, const char *why)
{
    (void)ctx, (void)why;
    w.linked[link] = false;
    w.dropped_at = w.now;
    if (w.r[link] && !w.frozen[link])
        repl_replica_close(w.r[link], 0);
}

static void t_complete(void *ctx, struct repl_io *io, int status)
{
    (void)ctx, (void)io;
    w.done++;
    w.status = status;
}

static void t_admin(void *ctx, enum repl_admin op, int status)
{
    (void)ctx, (void)op;
    w.admin++;
    w.admin_status = status;
}

static void t_event(void *ctx, enum repl_event what, uint64_t a, uint64_t b)
{
    (void)ctx, (void)b;
    w.forced += what == REPL_EV_FORCED;
    w.undecided += what == REPL_EV_UNDECIDED;
    w.unreadable += what == REPL_EV_UNREADABLE;
    w.may_be_lost += what == REPL_EV_FORCED && a;
}

static int r_store(void *ctx, struct repl_req *q)
{
    int i = (int)(intptr_t)ctx;
    if (q->kind == REPL_STORE_WRITE && w.cannot_write[i])
        return -ENOSPC;
    bool rotten = w.rotten[i] && q->offset < 4096, part = q->offset || q->length < 4096;
    if (q->kind == REPL_STORE_READ && rotten)
        return w.pool ? -EIO : -EBADMSG;
    if (q->kind == REPL_STORE_WRITE && rotten && w.pool && part)
        return -EIO;
    if (q->kind == REPL_STORE_READ)
        memcpy(q->iov->iov_base, w.data[i] + q->offset, q->length);
    if (q->kind == REPL_STORE_WRITE && (rotten || !w.pool))
        w.rotten[i] = false;
    if (q->kind == REPL_STORE_WRITE)
        repl_iov_copy(&(struct iovec){w.data[i] + q->offset, q->length}, 1, q->iov, q->iov_n,
                      q->skip, q->length);
    if (q->kind == REPL_STORE_ZERO)
        memset(w.data[i] + q->offset, 0, q->length);
    if (q->kind == REPL_STORE_STAMP)
        w.generation[i] = q->length;
    if (q->kind == REPL_STORE_FLUSH && w.holds_flush[i]) {
        w.held[i] = q;
        return 0;
    }
    bool grows = q->kind == REPL_STORE_RESIZE || q->kind == REPL_STORE_SNAPSHOT;
    return grows && w.full[i] ? -ENOSPC : 1;
}

static void r_meta(void *ctx, uint64_t offset, const void *data, size_t size)
{
    assert_true(offset + size <= sizeof(w.meta[0]));
    memcpy(w.meta[(intptr_t)ctx] + offset, data, size);
}

static int r_sync(void *ctx)
{
    return w.bad_meta[(intptr_t)ctx] ? -EIO : 1;
}

static int r_log(void *ctx, uint64_t offset, const void *data, size_t size)
{
    r_meta(ctx, offset, data, size);
    return r_sync(ctx);
}

static void r_meta_read(void *ctx, uint64_t offset, void *data, size_t size)
{
    memset(data, 0, size);
    if (offset + size <= sizeof(w.meta[0]))
        memcpy(data, w.meta[(intptr_t)ctx] + offset, size);
}

static void free_buf(struct repl_buf *b)
{
    free(b);
}

static struct repl_buf *r_buffer(void *ctx, size_t size, void **ret_data)
{
    (void)ctx;
    struct repl_buf *b = mem_alloc(sizeof(*b) + size);
    *b = (struct repl_buf){1, free_buf};
    *ret_data = b + 1;
    return b;
}

static void r_send(void *ctx, int link, const struct repl_msg *m, const void *payload,
                   struct repl_buf *owner)
{
    (void)link, (void)owner;
    w.pieces -= m->type == REPL_READ_OK && m->length == REPL_SECTOR; /* its end is read back */
    struct iovec iov = {(void *)payload, m->length};
    post((int)(intptr_t)ctx, 0, m, &iov, 1);
}

static void r_close(void *ctx, int link, const char *why)
{
    (void)link, (void)why;
    w.linked[(intptr_t)ctx] = false;
    repl_target_close(w.t, (int)(intptr_t)ctx);
}

static const struct repl_target_ops t_ops = {t_send, t_close, t_complete, t_admin, t_event};
static const struct repl_replica_ops r_ops = {r_store,  r_meta, r_sync, r_log,
                                              r_buffer, r_send, r_close};

/* Delivers until nothing moves. */
static void settle(void)
{
    for (bool moved = true, first = true; moved && (first || !w.one_round); w.now += w.round_ns) {
        first = false;
        moved = false;
        repl_target_turn(w.t, w.now);
        for (int i = 0; i < N; i++)
            if (w.r[i] && !w.frozen[i])
                repl_replica_turn(w.r[i], w.now);
        int n = w.n, kept = 0;
        static struct frame batch[4096];
        memcpy(batch, w.queue, sizeof(batch[0]) * (size_t)n);
        w.n = 0;
        for (int k = 0; k < n; k++) {
            struct frame *f = &batch[k];
            if (w.frozen[f->replica] && f->to_replica && w.linked[f->replica]) {
                w.queue[w.n++] = *f;
                kept++;
                continue;
            }
            struct iovec iov = {f->payload, f->m.length};
            int pieces = f->m.length ? 1 : 0;
            if (w.linked[f->replica] && f->to_replica)
                repl_replica_input(w.r[f->replica], 0, &f->m, &iov, pieces, NULL);
            else if (w.linked[f->replica])
                repl_target_input(w.t, f->replica, &f->m, &iov, pieces, NULL);
            free(f->payload);
            moved = true;
        }
        (void)kept;
    }
}

static void pass(int64_t ns)
{
    for (int64_t end = w.now + ns; w.now < end; w.now += 10 * MS)
        settle();
}

static void link_up(int i)
{
    w.linked[i] = true;
    repl_target_open(w.t, i);
    repl_replica_open(w.r[i], 0);
}

static void revive_replica(int i)
{
    struct repl_replica_config c = {.store_size = SIZE,
                                    .ops = 64,
                                    .checked = true,
                                    .sums_with_data = w.pool,
                                    .store = {{77}},
                                    .store_generation = w.generation[i],
                                    .store_new = !w.generation[i]};
    c.replica.bytes[0] = (uint8_t)(i + 1);
    w.r[i] = repl_replica_new(&c, &r_ops, (void *)(intptr_t)i);
    assert_int_equal(repl_replica_load(w.r[i], r_meta_read, NULL), 0);
    repl_replica_start(w.r[i], w.now);
    link_up(i);
}

static void make_replica(int i)
{
    memset(w.meta[i], 0, sizeof(w.meta[i]));
    w.generation[i] = 0;
    revive_replica(i);
}

static int64_t slow_scrub_ns;
static uint32_t ahead; /* pieces that are begun before they are asked for; 0: as many as may be */

static int start_n(int n, int cf)
{
    memset(&w, 0, sizeof(w));
    w.now = 1000 * MS;
    struct repl_target_config c = {.owner_seed = 99,
                                   .create = true,
                                   .size = SIZE,
                                   .rf = (uint8_t)n,
                                   .cf = (uint8_t)cf,
                                   .window = 64,
                                   .reads = 16,
                                   .scrub_ns = slow_scrub_ns,
                                   .ahead = ahead ? ahead : REPL_PIECES};
    w.t = repl_target_new(&c, &t_ops, NULL);
    for (int i = 0; i < n; i++)
        make_replica(i);
    pass(1000 * MS);
    return 0;
}

static int start(void **state)
{
    (void)state;
    return start_n(3, 0);
}

__attribute__((unused)) static int start_slow_scrub(void **state)
{
    (void)state;
    slow_scrub_ns = 8000 * MS;
    int status = start_n(3, 0);
    slow_scrub_ns = 0;
    return status;
}

__attribute__((unused)) static int start_two(void **state)
{
    (void)state;
    return start_n(2, 0);
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++)
        repl_replica_free(w.r[i]);
    repl_target_free(w.t);
    for (int i = 0; i < w.n; i++)
        free(w.queue[i].payload);
    return 0;
}

static struct repl_status status(void)
{
    struct repl_status s;
    repl_target_status(w.t, &s);
    return s;
}

static uint8_t page[4096];
static struct iovec page_iov = {page, sizeof(page)};

__attribute__((unused)) static struct repl_io io_of(enum repl_io_op op, uint64_t offset)
{
    memset(page, (int)(offset / 4096 + 1), sizeof(page));
    return (struct repl_io){
        .op = op, .offset = offset, .length = sizeof(page), .iov = &page_iov, .iov_n = 1};
}
