#include "replio/volume.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/net.h"
#include "replio/volume_impl.h"

enum { EVENT_MOST = 200 };

static void tell_ready(struct replio_volume *v)
{
    if (!v->ready || !v->serving)
        return;
    struct repl_status status;
    repl_target_status(v->core, &status);
    v->store.size = status.size - status.size % v->store.block_size;
    void (*ready)(void *context) = v->ready;
    v->ready = NULL;
    ready(v->ready_context);
}

/* Whoever is told may submit again: never from within an action of the core. */
static void settle(struct replio_volume *v)
{
    if (v->settling)
        return;
    v->settling = true;
    volume_tell(v);
    volume_tell_admin(v);
    tell_ready(v);
    v->settling = false;
}

/* Actions. */

__attribute__((format(printf, 2, 3))) static void say(char text[EVENT_MOST], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, EVENT_MOST, fmt, ap);
    va_end(ap);
}

static void event(void *context, enum repl_event what, uint64_t a, uint64_t b)
{
    struct replio_volume *v = context;
    char text[EVENT_MOST], id[UUID_TEXT_MAX];
    struct uuid peer = {0};
    if (what == REPL_EV_DROPPED || what == REPL_EV_MISMATCH || what == REPL_EV_INSYNC ||
        what == REPL_EV_LOST || what == REPL_EV_UNREADABLE)
        peer = repl_target_peer(v->core, (int)a);
    uuid_format(&peer, id);
    switch (what) {
    case REPL_EV_EPOCH:
        say(text, "took epoch %llu", (unsigned long long)a);
        break;
    case REPL_EV_FENCED:
        say(text, "epoch %llu belongs to another target: this one ends", (unsigned long long)a);
        break;
    case REPL_EV_SERVING:
        v->serving = a != 0;
        say(text, "%s", a ? "serves I/O" : "too few replicas are in sync: I/O waits for them");
        break;
    case REPL_EV_DROPPED:
        say(text, "replica %s fell behind or was silent: the volume goes on without it", id);
        break;
    case REPL_EV_MAYBE_LOST:
        say(text,
            "too many replicas restarted at once: writes that were not flushed may be lost; the "
            "next flush of each initiator that wrote fails");
        break;
    case REPL_EV_MISMATCH:
        say(text, "replica %s differed at offset %llu and was mended", id, (unsigned long long)b);
        break;
    case REPL_EV_UNDECIDED:
        say(text,
            "%llu replicas differ at offset %llu and no checksum says which is right: nothing was "
            "changed",
            (unsigned long long)a, (unsigned long long)b);
        break;
    case REPL_EV_INSYNC:
        say(text, "replica %s has everything", id);
        break;
    case REPL_EV_LOST:
        say(text,
            "replica %s has lost its data, or its metadata is damaged: it counts in no quorum "
            "until "
            "it is rebuilt",
            id);
        break;
    case REPL_EV_UNREADABLE:
        say(text,
            "replica %s cannot read what the others must be compared with: they go on without it, "
            "and it is rebuilt from them; check its disk",
            id);
        break;
    case REPL_EV_FORCED:
        say(text, "a replica was taken out by force: %s",
            a ? "writes that were acknowledged may be lost with it"
              : "all that was acknowledged is on the others");
        break;
    }
    if (v->event)
        v->event(v->event_context, what, text);
    turn_soon(v);
}

static const struct repl_target_ops core_ops = {
    .send = volume_send,
    .close = volume_close_link,
    .complete = volume_complete,
    .admin_done = volume_admin_done,
    .event = event,
};

void replio_volume_status(const struct replio_volume *v, struct repl_status *ret_status)
{
    repl_target_status(v->core, ret_status);
}

/* Life. */

static void take_turn(struct io_deferred *d)
{
    struct replio_volume *v = container_of(d, struct replio_volume, turn);
    int64_t next = repl_target_turn(v->core, io_loop_now(v->loop));
    io_timer_start(v->loop, &v->wake, next);
    settle(v);
}

static void wake(struct io_timer *timer)
{
    turn_soon(container_of(timer, struct replio_volume, wake));
}

static void free_now(struct replio_volume *v)
{
    io_timer_stop(v->loop, &v->wake);
    io_strangers_done(&v->strangers);
    list_unlink(&v->turn.link);
    if (v->core)
        repl_target_free(v->core);
    replio_payloads_done(&v->payloads);
    free(v);
}

static void finish(struct io_deferred *d)
{
    struct replio_volume *v = container_of(d, struct replio_volume, finish);
    void (*closed)(void *context) = v->closed;
    void *context = v->closed_context;
    free_now(v);
    closed(context);
}

static void end_by_store(struct store *s)
{
    (void)s; /* replio_volume_close() does it */
}

static const struct store_ops ops = {
    .name = "replicated",
    .submit = volume_submit,
    .client = volume_client,
    .grow = volume_grow,
    .close = end_by_store,
};

struct replio_volume *replio_volume_open(const struct replio_volume_options *o, struct err *e)
{
    int fd;
    uint16_t port;
    if (net_listen_again(o->listen, o->port, &fd, &port, e) < 0)
        return NULL;
    struct replio_volume *v = NEW(struct replio_volume);
    v->store = (struct store){
        .ops = &ops, .size = o->core.size, .block_size = o->block_size, .volatile_cache = true};
    v->loop = o->loop;
    v->port = port;
    v->key = o->key;
    v->id = o->core.volume;
    v->payloads.pool = io_loop_pool(o->loop);
    v->event = o->event;
    v->event_context = o->context;
    list_init(&v->complete);
    v->turn.fn = take_turn;
    list_init(&v->turn.link);
    v->finish.fn = finish;
    list_init(&v->finish.link);
    v->wake.fn = wake;
    v->core = repl_target_new(&o->core, &core_ops, v);
    volume_listen(v, fd);
    turn_soon(v);
    return v;
}

struct store *replio_volume_store(struct replio_volume *v)
{
    return &v->store;
}

uint16_t replio_volume_port(const struct replio_volume *v)
{
    return v->port;
}

void replio_volume_on_ready(struct replio_volume *v, void (*ready)(void *context), void *context)
{
    v->ready = ready;
    v->ready_context = context;
    turn_soon(v);
}

void replio_volume_close(struct replio_volume *v, void (*done)(void *context), void *context)
{
    v->closing = true;
    v->closed = done;
    v->closed_context = context;
    repl_target_bye(v->core);
    volume_end_links(v);
}
