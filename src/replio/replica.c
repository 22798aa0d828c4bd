#include "replio/replica.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/net.h"
#include "replio/replica_impl.h"

enum { LINK = 0 };

static const int64_t DIAL_FIRST = CLOCK_SECOND / 20, DIAL_MOST = 2 * CLOCK_SECOND,
                     SILENCE = 5 * CLOCK_SECOND, ILL_FIRST = CLOCK_SECOND / 5,
                     ILL_MOST = 30 * CLOCK_SECOND;

/* Actions: the connection. */

static struct repl_buf *get_buffer(void *context, size_t size, void **ret_data)
{
    struct replio_replica *r = context;
    return replio_payload_alloc(&r->payloads, size, ret_data);
}

static void send_frame(void *context, int link, const struct repl_msg *m, const void *payload,
                       struct repl_buf *owner)
{
    (void)link;
    struct replio_replica *r = context;
    struct iovec iov = {(void *)(uintptr_t)payload, m->length};
    (void)owner;
    replio_send(&r->conn, m, &iov, m->length ? 1 : 0);
}

/* Why a connection ended, or could not be made; said once while it stays the same. */
static void note_end(struct replio_replica *r, const char *why)
{
    if (strcmp(r->last_end, why) == 0)
        return;
    snprintf(r->last_end, sizeof(r->last_end), "%s", why);
    if (!r->stopping)
        log_warn("no connection to the target", LOG_S("target", r->target),
                 LOG_S("why", r->last_end));
}

/* The store ended it: the same would happen again at once. */
static void fall_ill(struct replio_replica *r, const char *why)
{
    char text[sizeof(r->last_end)];
    int64_t now = io_loop_now(r->loop);
    bool again = r->ill_at && now - r->ill_at < 4 * ILL_MOST;
    r->ill_after = again ? 2 * r->ill_after : ILL_FIRST;
    r->ill_after = r->ill_after < ILL_MOST ? r->ill_after : ILL_MOST;
    r->ill_at = now;
    snprintf(text, sizeof(text), "%s: %s", why, strerror(r->store_error));
    note_end(r, text);
}

static void close_link(void *context, int link, const char *why)
{
    (void)link;
    struct replio_replica *r = context;
    if (r->store_error)
        fall_ill(r, why);
    else
        note_end(r, why);
    r->connected = false;
    replio_conn_close(&r->conn);
}

static const struct repl_replica_ops core_ops = {
    .store = replica_store,
    .meta_write = replica_meta_write,
    .meta_sync = replica_meta_sync,
    .log_write = replica_log_write,
    .buffer = get_buffer,
    .send = send_frame,
    .close = close_link,
};

/* The connection. */

static bool take_frame(struct replio_conn *c, const struct repl_msg *m, const struct iovec *iov,
                       int n, struct repl_buf *owner)
{
    struct replio_replica *r = container_of(c, struct replio_replica, conn);
    r->heard = io_loop_now(r->loop);
    r->dial_after = DIAL_FIRST;
    r->last_end[0] = '\0';
    r->spoken = true;
    return repl_replica_input(r->core, LINK, m, iov, n, owner);
}

static void batch_end(struct replio_conn *c)
{
    turn_soon(container_of(c, struct replio_replica, conn));
}

static void free_now(struct replio_replica *r);
static void free_when_quiet(struct replio_replica *r);

static void conn_closed(struct replio_conn *c, const char *why)
{
    struct replio_replica *r = container_of(c, struct replio_replica, conn);
    r->gone = true;
    io_timer_stop(r->loop, &r->silence);
    if (r->freed) {
        free_when_quiet(r);
        return;
    }
    if (r->connected) {
        note_end(r, why);
        repl_replica_close(r->core, LINK);
        turn_soon(r);
    }
    r->connected = false;
    if (r->stopping)
        return;
    int64_t at = io_loop_now(r->loop) + r->dial_after;
    io_timer_start(r->loop, &r->dial,
                   at > r->ill_at + r->ill_after ? at : r->ill_at + r->ill_after);
    r->dial_after = r->dial_after * 2 < DIAL_MOST ? r->dial_after * 2 : DIAL_MOST;
}

static const struct replio_conn_ops conn_ops = {
    .frame = take_frame, .turn = batch_end, .closed = conn_closed};

/* A stream may be started before its connection stands: what it is to send leaves when it does. */
static void dial(struct io_timer *timer)
{
    struct replio_replica *r = container_of(timer, struct replio_replica, dial);
    struct err e = {0};
    int fd;
    if (net_dial(r->target, r->port, r->source, &fd, &e) < 0) {
        note_end(r, e.msg);
        io_timer_start(r->loop, &r->dial, io_loop_now(r->loop) + DIAL_MOST);
        return;
    }
    r->conn = (struct replio_conn){.ops = &conn_ops, .volume = r->conn.volume};
    r->gone = r->spoken = false;
    r->connected = true;
    r->heard = io_loop_now(r->loop);
    io_timer_start(r->loop, &r->silence, r->heard + SILENCE);
    replio_conn_start(&r->conn, r->loop, &r->payloads, fd, r->key, false);
    repl_replica_open(r->core, LINK);
    turn_soon(r);
}

static void silence(struct io_timer *timer)
{
    struct replio_replica *r = container_of(timer, struct replio_replica, silence);
    if (!r->connected)
        return;
    if (io_loop_now(r->loop) < r->heard + SILENCE) {
        io_timer_start(r->loop, timer, r->heard + SILENCE);
        return;
    }
    repl_replica_close(r->core, LINK);
    close_link(r, LINK, "the target was silent");
    turn_soon(r);
}

/* Turns. */

static void stop_when_done(struct replio_replica *r)
{
    if (!r->stopping || !r->done || !r->quiet || !repl_replica_stopped(r->core))
        return;
    void (*done)(void *context) = r->done;
    r->done = NULL;
    done(r->context);
}

/* True: it will do nothing any more. */
static bool has_failed(struct replio_replica *r)
{
    struct repl_replica_status core;
    char why[200];
    repl_replica_status(r->core, &core);
    if (!core.failed && !r->flush_error)
        return false;
    if (core.failed)
        snprintf(why, sizeof(why), "its metadata cannot be written: %s", strerror(r->meta->error));
    else
        snprintf(why, sizeof(why), "its data cannot be flushed: %s", strerror(r->flush_error));
    void (*failed)(void *context, const char *why) = r->failed;
    r->failed = NULL;
    if (failed)
        failed(r->owner, why);
    return true;
}

static void take_turn(struct io_deferred *d)
{
    struct replio_replica *r = container_of(d, struct replio_replica, turn);
    if (r->freed) {
        free_when_quiet(r);
        return;
    }
    replica_meta_tell(r->meta);
    int64_t next = repl_replica_turn(r->core, io_loop_now(r->loop));
    io_timer_start(r->loop, &r->wake, next);
    replio_conn_resume(&r->conn);
    r->store_error = 0;
    if (!has_failed(r))
        stop_when_done(r);
}

static void wake(struct io_timer *timer)
{
    turn_soon(container_of(timer, struct replio_replica, wake));
}

struct replio_replica *replio_replica_open(const struct replio_replica_options *o, struct err *e)
{
    struct replio_replica *r = NEW(struct replio_replica);
    r->loop = o->loop;
    r->target = mem_strdup(o->target);
    r->source = o->source ? mem_strdup(o->source) : NULL;
    r->port = o->port;
    r->key = o->key;
    r->failed = o->failed;
    r->owner = o->context;
    r->gone = true;
    r->conn.volume = o->volume;
    r->conn.ended = true;
    r->payloads.pool = io_loop_pool(o->loop);
    r->dial_after = DIAL_FIRST;
    r->dial.fn = dial;
    r->wake.fn = wake;
    r->silence.fn = silence;
    r->turn.fn = take_turn;
    list_init(&r->turn.link);
    if (replica_open_all(r, o, &core_ops, e) < 0) {
        free_now(r);
        return NULL;
    }
    r->meta->ops->loaded(r->meta);
    r->released = o->released;
    repl_replica_start(r->core, io_loop_now(r->loop));
    io_timer_start(r->loop, &r->dial, io_loop_now(r->loop));
    turn_soon(r);
    return r;
}

/* Ending. */

static void quiet(void *context)
{
    struct replio_replica *r = context;
    r->pausing--;
    r->quiet = true;
    turn_soon(r);
}

static void pause_store(struct replio_replica *r, struct store *s)
{
    r->pausing++;
    store_pause(s, quiet, r);
}

void replio_replica_stop(struct replio_replica *r, void (*done)(void *context), void *context)
{
    r->stopping = true;
    r->done = done;
    r->context = context;
    io_timer_stop(r->loop, &r->dial);
    repl_replica_stop(r->core);
    pause_store(r, r->store);
    turn_soon(r);
}

static void free_now(struct replio_replica *r)
{
    io_timer_stop(r->loop, &r->dial);
    io_timer_stop(r->loop, &r->wake);
    io_timer_stop(r->loop, &r->silence);
    list_unlink(&r->turn.link);
    if (r->core)
        repl_replica_free(r->core);
    if (r->store && !r->lent)
        store_close(r->store);
    if (r->meta)
        r->meta->ops->close(r->meta);
    replica_free_jobs(r);
    replio_payloads_done(&r->payloads);
    free(r->target);
    free(r->source);
    void (*released)(void *context) = r->released;
    void *owner = r->owner;
    free(r);
    if (released)
        released(owner);
}

static void free_when_quiet(struct replio_replica *r)
{
    if (r->gone && !r->under_way && !r->meta->under_way && !r->pausing)
        free_now(r);
}

void replio_replica_free(struct replio_replica *r)
{
    r->freed = true;
    r->connected = false;
    if (!r->gone)
        replio_conn_close(&r->conn);
    /* What waits in the stores of others, for room or for a disk, is not waited for. */
    if (r->lent && !r->stopping)
        pause_store(r, r->store);
    if (r->lent)
        pause_store(r, r->meta_store);
    free_when_quiet(r);
}

void replio_replica_status(const struct replio_replica *r, struct replio_replica_status *ret_status)
{
    *ret_status =
        (struct replio_replica_status){.id = r->id, .connected = r->connected, .spoken = r->spoken};
    repl_replica_status(r->core, &ret_status->core);
    memcpy(ret_status->last_end, r->last_end, sizeof(r->last_end));
    ret_status->used = store_used(r->store);
    ret_status->damage = r->damage[0] ? r->damage : ret_status->core.damaged;
    ret_status->set_aside = r->set_aside[0] ? r->set_aside : NULL;
}
