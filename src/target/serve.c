/*
 * A target from its start to its end.
 *
 * The end: SIGTERM ──> no new logins, initiators are asked to log out ──> nobody is left, or the time
 * is over ──> connections are closed ──> their commands have left the store ──> flush ──> end. What was
 * acknowledged as flushed is safe at any moment; the flush at the end makes the rest so too.
 */
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/uuid.h"
#include "target/target.h"

enum { CONNECTIONS = 1024, POLL_NS = 20 * 1000 * 1000 };

static const int64_t LEAVE_NS = 5 * CLOCK_SECOND; /* for commands to leave the store at the end */

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
    bool left = t->closing && !t->server && idle;
    if (left && !t->ready) {
        io_loop_stop(t->loop);
        return;
    }
    if (now >= t->stop_at + LEAVE_NS) {
        /* Without a quorum commands do not end. Nothing is lost by going as in a crash. */
        log_warn("target ends with I/O under way", LOG_S("iqn", t->o->iqn));
        _exit(1);
    }
    if (left && scsi_unit_stop(t->unit)) {
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

/*
 * Making everything, in order; what was made is undone by finish(). A local volume is ready at once. A
 * replicated one is when its replicas have chosen it: only then is its size known and may initiators come.
 */

static void replication_event(void *context, enum repl_event what, const char *sentence)
{
    struct target *t = context;
    bool bad = what == REPL_EV_MAYBE_LOST || what == REPL_EV_UNDECIDED ||
               what == REPL_EV_MISMATCH || what == REPL_EV_FORCED || what == REPL_EV_LOST ||
               what == REPL_EV_UNREADABLE;
    if (what == REPL_EV_FENCED) {
        /* Whatever is under way here must not be answered: as after a crash. */
        log_error("target ends", LOG_S("volume", t->o->volume), LOG_S("why", sentence));
        _exit(1);
    }
    if (bad)
        log_warn(sentence, LOG_S("volume", t->o->volume));
    else
        log_info(sentence, LOG_S("volume", t->o->volume));
}

/* What other threads are to know of replicas, looked at every second. */
static void look(struct io_timer *timer)
{
    struct target *t = container_of(timer, struct target, look);
    struct repl_status s;
    uint64_t healthy = 0;
    replio_volume_status(t->volume, &s);
    for (int i = 0; i < s.n; i++)
        healthy += str_eq(s.replica[i].mode, "Healthy");
    t->healthy = healthy;
    t->degraded = (uint64_t)s.n - healthy;
    t->members = (uint64_t)s.n;
    t->status = !s.serving ? TARGET_OFFLINE : t->degraded ? TARGET_DEGRADED : TARGET_HEALTHY;
    io_timer_start(t->loop, timer, io_loop_now(t->loop) + CLOCK_SECOND);
}

static int open_store(struct target *t, struct err *e)
{
    const struct target_options *o = t->o;
    if (!o->volume) {
        const struct store_options so = {
            .loop = t->loop,
            .size = o->size,
            .block_size = o->block_size,
            .read_only = o->read_only,
        };
        t->store = store_open(o->store, &so, e);
        return t->store ? 0 : -1;
    }
    const struct uuid seed = uuid_random();
    struct replio_volume_options vo = {
        .loop = t->loop,
        .listen = o->replica_address,
        .port = o->replica_port,
        .core =
            {
                .volume = uuid_of_name(o->volume),
                .create = o->create,
                .first_n = (uint8_t)o->first_n,
                .size = o->size,
                .rf = (uint8_t)o->replicas,
                .cf = (uint8_t)o->consistency,
                .fail_ns = o->fail_seconds * CLOCK_SECOND,
                .rebuild_rate = o->rebuild_rate,
                .scrub_ns = (int64_t)o->scrub_days * 86400 * CLOCK_SECOND,
            },
        .block_size = o->block_size,
        .key = o->key,
        .event = replication_event,
        .context = t,
    };
    memcpy(vo.core.first, o->first, sizeof(o->first));
    memcpy(&vo.core.owner_seed, seed.bytes, sizeof(vo.core.owner_seed));
    t->volume = replio_volume_open(&vo, e);
    t->store = t->volume ? replio_volume_store(t->volume) : NULL;
    return t->volume ? 0 : -1;
}

static int open_portal(struct target *t, struct err *e)
{
    const struct scsi_unit_config unit = {
        .store = t->store,
        .block_size = t->o->block_size,
        .vendor = "ORLOP",
        .product = "volume",
        .revision = "1",
        .serial = t->o->serial ? t->o->serial : t->o->iqn,
        .lun = (uint8_t)t->o->lun,
        .read_only = t->o->read_only,
        .removable = t->o->removable,
        .thin = true,
        .state_dir = t->o->state_dir,
    };
    t->size = t->store->size;
    t->unit = scsi_unit_new(&unit, e);
    if (!t->unit)
        return -1;
    const struct iscsi_target_config config = {
        .name = t->o->iqn,
        .alias = t->o->alias,
        .unit = t->unit,
        .auth = t->o->auth,
        .initiators = t->o->initiators,
    };
    if (!iscsi_target_new(t->node, &config, e) ||
        iscsi_server_listen(t->server, t->o->address, t->o->port, &t->port, e) < 0)
        return -1;
    t->ready = true;
    log_info("target serves", LOG_S("iqn", t->o->iqn), LOG_S("address", t->o->address),
             LOG_U("port", t->port), LOG_S("store", t->o->volume ? t->o->volume : t->o->store),
             LOG_U("size", t->store->size), LOG_S("io", io_loop_backend(t->loop)),
             LOG_B("chap", t->o->auth.user != NULL), LOG_B("readOnly", t->o->read_only));
    return 0;
}

static void volume_ready(void *context)
{
    struct target *t = context;
    if (!t->stopping && open_portal(t, &t->why) < 0) {
        t->error = -1;
        io_loop_stop(t->loop);
    }
}

static int make(struct target *t, int stop_fd, struct err *e)
{
    const struct iscsi_server_options so = {
        .connections = CONNECTIONS,
        .connections_per_address = CONNECTIONS / 2,
    };
    t->loop = io_loop_new(t->o->io, e);
    if (!t->loop || open_store(t, e) < 0)
        return -1;
    struct iscsi_limits limits = iscsi_default_limits;
    if (t->o->queue_depth)
        limits.window = t->o->queue_depth;
    t->node = iscsi_node_new(io_loop_pool(t->loop), clock_system(), &limits);
    t->server = iscsi_server_new(t->loop, t->node, &so);
    if (t->o->control && !(t->control = target_control_new(t, t->o->control, e)))
        return -1;
    if (t->o->metrics_address && target_metrics_start(t, e) < 0)
        return -1;
    t->stop_timer.fn = stop_step;
    t->stop_watch.readable = stop_asked;
    io_watch_add(t->loop, &t->stop_watch, stop_fd);
    if (!t->volume)
        return open_portal(t, e);
    log_info("target waits for replicas", LOG_S("volume", t->o->volume),
             LOG_S("address", t->o->replica_address), LOG_U("port", replio_volume_port(t->volume)),
             LOG_S("cipher", replio_fastest_cipher()));
    replio_volume_on_ready(t->volume, volume_ready, t);
    t->look.fn = look;
    look(&t->look);
    return 0;
}

static void volume_closed(void *context)
{
    struct target *t = context;
    t->volume = NULL;
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
    if (t->volume) {
        io_timer_stop(t->loop, &t->look);
        replio_volume_close(t->volume, volume_closed, t);
        while (t->volume)
            io_loop_turn(t->loop, -1);
    } else if (t->store) {
        store_close(t->store);
    }
    if (t->loop)
        io_loop_free(t->loop);
}

int target_serve(const struct target_options *o, int stop_fd, struct err *e)
{
    struct target t = {.o = o, .began = clock_mono_ns(clock_system())};
    int status = make(&t, stop_fd, e);
    if (status == 0) {
        mem_trim();
        io_loop_run(t.loop);
        if (t.flush_error)
            status = err_errno(e, t.flush_error, "cannot flush the volume");
        if (t.error) {
            *e = t.why;
            status = -1;
        }
        log_info("target stopped", LOG_S("iqn", o->iqn));
    }
    finish(&t);
    return status;
}
