/*
 * A target from its start to its end.
 *
 * The end: SIGTERM ──> no new logins, initiators are asked to log out ──> nobody is left, or the time
 * is over ──> connections are closed ──> their commands have left the store ──> flush ──> end. What was
 * acknowledged as flushed is safe at any moment; the flush at the end makes the rest so too.
 */
#include <unistd.h>

#include "base/log.h"
#include "base/uuid.h"
#include "target/target.h"

enum { CONNECTIONS = 1024, POLL_NS = 20 * 1000 * 1000 };

static void flushed(struct store_io *io, int error)
{
    struct target *t = container_of(io, struct target, flush);
    t->flush_error = error;
    io_loop_stop(t->loop);
}

static void server_closed(void *context)
{
    struct target *t = context;
    t->server = NULL;
}

/* Asked again until there is nothing to wait for. */
static void stop_step(struct io_timer *timer)
{
    struct target *t = container_of(timer, struct target, stop_timer);
    int64_t now = io_loop_now(t->loop);
    bool idle = iscsi_node_sessions(t->node) == 0;
    if (!t->closing && (idle || now >= t->stop_at)) {
        t->closing = true;
        iscsi_server_close(t->server, server_closed, t);
    }
    if (t->closing && !t->server && idle) {
        t->flush = (struct store_io){.op = STORE_FLUSH, .done = flushed};
        store_submit(t->store, &t->flush);
        return;
    }
    io_timer_start(t->loop, timer, now + POLL_NS);
}

static void stop_asked(struct io_watch *watch)
{
    struct target *t = container_of(watch, struct target, stop_watch);
    if (t->stopping)
        return;
    t->stopping = true;
    log_info("target stops", LOG_U("sessions", iscsi_node_sessions(t->node)));
    io_watch_remove(watch);
    iscsi_server_stop_listening(t->server);
    iscsi_node_drain(t->node, t->o->drain_seconds);
    t->stop_at = io_loop_now(t->loop) + t->o->drain_seconds * CLOCK_SECOND;
    io_timer_start(t->loop, &t->stop_timer, io_loop_now(t->loop));
}

/* Making everything, in order; what was made is undone by finish(). */

static int make_unit(struct target *t, struct err *e)
{
    const struct store_options so = {
        .loop = t->loop,
        .size = t->o->size,
        .block_size = t->o->block_size,
        .read_only = t->o->read_only,
    };
    t->store = store_open(t->o->store, &so, e);
    if (!t->store)
        return -1;
    t->size = t->store->size;
    const struct scsi_unit_config config = {
        .store = t->store,
        .block_size = t->o->block_size,
        .vendor = "ORLOP",
        .product = "volume",
        .revision = "1",
        .serial = t->o->serial ? t->o->serial : t->o->iqn,
        .read_only = t->o->read_only,
        .thin = true,
        .removable = t->o->removable,
        .state_dir = t->o->state_dir,
    };
    t->unit = scsi_unit_new(&config, e);
    return t->unit ? 0 : -1;
}

static int make_server(struct target *t, struct err *e)
{
    const struct iscsi_server_options so = {
        .connections = CONNECTIONS,
        .connections_per_address = CONNECTIONS / 2,
    };
    const struct iscsi_target_config config = {
        .name = t->o->iqn,
        .alias = t->o->alias,
        .unit = t->unit,
        .auth = t->o->auth,
        .initiators = t->o->initiators,
    };
    t->node = iscsi_node_new(io_loop_pool(t->loop), clock_system(), NULL);
    if (!iscsi_target_new(t->node, &config, e))
        return -1;
    t->server = iscsi_server_new(t->loop, t->node, &so);
    return iscsi_server_listen(t->server, t->o->address, t->o->port, &t->port, e);
}

static int make(struct target *t, int stop_fd, struct err *e)
{
    t->loop = io_loop_new(t->o->io, e);
    if (!t->loop || make_unit(t, e) < 0 || make_server(t, e) < 0)
        return -1;
    if (t->o->control && !(t->control = target_control_new(t, t->o->control, e)))
        return -1;
    if (t->o->metrics_address && target_metrics_start(t, e) < 0)
        return -1;
    t->stop_timer.fn = stop_step;
    t->stop_watch.readable = stop_asked;
    io_watch_add(t->loop, &t->stop_watch, stop_fd);
    return 0;
}

static void finish(struct target *t)
{
    if (t->http)
        http_server_stop(t->http);
    if (t->metrics)
        metrics_free(t->metrics);
    if (t->control)
        target_control_close(t->control);
    if (t->server) { /* it never got to serve */
        iscsi_server_close(t->server, server_closed, t);
        while (t->server)
            io_loop_turn(t->loop, 0);
    }
    if (t->node)
        iscsi_node_free(t->node);
    if (t->unit)
        scsi_unit_free(t->unit);
    if (t->store)
        store_close(t->store);
    if (t->loop)
        io_loop_free(t->loop);
}

int target_serve(const struct target_options *o, int stop_fd, struct err *e)
{
    struct target t = {.o = o, .began = clock_mono_ns(clock_system())};
    int status = make(&t, stop_fd, e);
    if (status == 0) {
        log_info("target serves", LOG_S("iqn", o->iqn), LOG_S("address", o->address),
                 LOG_U("port", t.port), LOG_S("store", o->store), LOG_U("size", t.store->size),
                 LOG_S("io", io_loop_backend(t.loop)), LOG_B("chap", o->auth.user != NULL),
                 LOG_B("readOnly", o->read_only));
        mem_trim();
        io_loop_run(t.loop);
        if (t.flush_error)
            status = err_errno(e, t.flush_error, "cannot flush %s", o->store);
        log_info("target stopped", LOG_S("iqn", o->iqn));
    }
    finish(&t);
    return status;
}
