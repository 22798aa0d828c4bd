#include "replio/replica.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/file.h"
#include "base/log.h"
#include "base/net.h"
#include "repl/meta.h"
#include "replio/conn.h"
#include "store/store.h"

enum { LINK = 0, NEW_SIZE = 4096, BLOCK = 512 };

static const int64_t DIAL_FIRST = CLOCK_SECOND / 20, DIAL_MOST = 2 * CLOCK_SECOND,
                     SILENCE = 5 * CLOCK_SECOND;

/* A request of the core on its way through the store. */
struct job {
    struct store_io io;
    struct iovec iov;
    struct repl_req *req;
    struct replio_replica *replica;
    struct job *next;       /* while free */
    bool submitting, ended; /* done() came before store_submit() returned */
    int error;
};

struct replio_replica {
    struct io_loop *loop;
    struct repl_replica *core;
    struct store *store;
    struct uuid id;
    struct job *free_jobs;
    unsigned jobs;

    int meta_fd;
    int meta_error; /* of a write since the last sync */
    bool meta_busy;
    struct io_request meta_sync;

    struct replio_payloads payloads;
    const struct replio_key *key;
    char *target, *source;
    uint16_t port;
    struct replio_conn conn;
    bool connected, gone; /* gone: nothing of the connection is in use */
    int64_t heard;
    char last_end[200];
    int64_t dial_after;
    struct io_timer dial, wake, silence;
    struct io_deferred turn;

    bool stopping, freed;
    void (*done)(void *context);
    void *context;
};

static void turn_soon(struct replio_replica *r)
{
    io_loop_defer(r->loop, &r->turn);
}

/* Actions: the store. */

static void job_put(struct job *j)
{
    struct replio_replica *r = j->replica;
    j->next = r->free_jobs;
    r->free_jobs = j;
    r->jobs--;
}

static void job_end(struct job *j, int error)
{
    struct replio_replica *r = j->replica;
    if (j->submitting) {
        j->ended = true;
        j->error = error;
        return;
    }
    struct repl_req *req = j->req;
    job_put(j);
    repl_replica_stored(r->core, req, -error);
    replio_conn_resume(&r->conn);
    turn_soon(r);
}

static void io_done(struct store_io *io, int error)
{
    job_end(container_of(io, struct job, io), error);
}

/* Growth, a snapshot, or the end of one. */
static void changed(void *context, int error)
{
    crash_point("store changed");
    job_end(context, error);
}

static struct job *job_take(struct replio_replica *r, struct repl_req *req)
{
    struct job *j = r->free_jobs;
    if (j)
        r->free_jobs = j->next;
    else
        j = NEW(struct job);
    r->jobs++;
    j->replica = r;
    j->req = req;
    j->submitting = true;
    j->ended = false;
    j->io.done = io_done;
    j->io.fua = false;
    j->io.offset = req->offset;
    j->io.length = req->length;
    j->iov = (struct iovec){req->data, req->length};
    j->io.iov = &j->iov;
    j->io.iovs = 1;
    return j;
}

static int store_request(void *context, struct repl_req *req)
{
    static const enum store_op ops[] = {
        [REPL_STORE_READ] = STORE_READ,
        [REPL_STORE_WRITE] = STORE_WRITE,
        [REPL_STORE_ZERO] = STORE_ZERO,
        [REPL_STORE_FLUSH] = STORE_FLUSH,
    };
    struct replio_replica *r = context;
    struct job *j = job_take(r, req);
    char name[32];
    switch (req->kind) {
    case REPL_STORE_RESIZE:
        crash_point("prepare");
        store_grow(r->store, req->length, changed, j);
        break;
    case REPL_STORE_SNAPSHOT:
        snprintf(name, sizeof(name), "%" PRIu64, req->offset);
        store_snapshot(r->store, name, changed, j);
        break;
    case REPL_STORE_SNAP_DROP:
        snprintf(name, sizeof(name), "%" PRIu64, req->offset);
        store_snapshot_drop(r->store, name, changed, j);
        break;
    default:
        j->io.op = req->kind == REPL_STORE_ZERO && req->unmap ? STORE_UNMAP : ops[req->kind];
        store_submit(r->store, &j->io);
    }
    j->submitting = false;
    if (!j->ended)
        return 0;
    int error = j->error;
    job_put(j);
    return error ? -error : 1;
}

/* Actions: metadata. */

static void meta_write(void *context, uint64_t offset, const void *data, size_t size)
{
    struct replio_replica *r = context;
    ssize_t n = pwrite(r->meta_fd, data, size, (off_t)offset);
    if (n != (ssize_t)size)
        r->meta_error = n < 0 ? errno : EIO;
}

static void meta_synced(struct io_request *request, int64_t result)
{
    struct replio_replica *r = container_of(request, struct replio_replica, meta_sync);
    r->meta_busy = false;
    repl_replica_meta_synced(r->core, (int)(result < 0 ? result : -r->meta_error));
    turn_soon(r);
}

static int meta_sync(void *context)
{
    struct replio_replica *r = context;
    if (r->meta_error)
        return -r->meta_error;
    r->meta_busy = true;
    r->meta_sync = (struct io_request){.op = IO_SYNC, .fd = r->meta_fd, .done = meta_synced};
    io_submit(r->loop, &r->meta_sync);
    return 0;
}

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
    replio_send(&r->conn, m, &iov, m->length ? 1 : 0, owner);
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

static void close_link(void *context, int link, const char *why)
{
    (void)link;
    struct replio_replica *r = context;
    note_end(r, why);
    r->connected = false;
    replio_conn_close(&r->conn);
}

static const struct repl_replica_ops core_ops = {
    .store = store_request,
    .meta_write = meta_write,
    .meta_sync = meta_sync,
    .buffer = get_buffer,
    .send = send_frame,
    .close = close_link,
};

/* The connection. */

static bool take_frame(struct replio_conn *c, const struct repl_msg *m, const void *payload,
                       struct repl_buf *owner)
{
    struct replio_replica *r = container_of(c, struct replio_replica, conn);
    r->heard = io_loop_now(r->loop);
    r->dial_after = DIAL_FIRST;
    r->last_end[0] = '\0';
    return repl_replica_input(r->core, LINK, m, payload, owner);
}

static void batch_end(struct replio_conn *c)
{
    turn_soon(container_of(c, struct replio_replica, conn));
}

static void free_now(struct replio_replica *r);

static void conn_closed(struct replio_conn *c, const char *why)
{
    struct replio_replica *r = container_of(c, struct replio_replica, conn);
    r->gone = true;
    io_timer_stop(r->loop, &r->silence);
    if (r->freed) {
        free_now(r);
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
    io_timer_start(r->loop, &r->dial, io_loop_now(r->loop) + r->dial_after);
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
    r->gone = false;
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
    if (!r->stopping || !r->done || !repl_replica_stopped(r->core))
        return;
    void (*done)(void *context) = r->done;
    r->done = NULL;
    done(r->context);
}

static void take_turn(struct io_deferred *d)
{
    struct replio_replica *r = container_of(d, struct replio_replica, turn);
    int64_t next = repl_replica_turn(r->core, io_loop_now(r->loop));
    io_timer_start(r->loop, &r->wake, next);
    replio_conn_resume(&r->conn);
    stop_when_done(r);
}

static void wake(struct io_timer *timer)
{
    turn_soon(container_of(timer, struct replio_replica, wake));
}

/* Opening. */

static int read_id(const char *dir, struct uuid *ret_id, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/id", dir);
    _cleanup_(str_done) struct str text = {0};
    struct err why = {0};
    if (file_read(path, 100, &text, &why) == 0) {
        char *end = strchr(str_get(&text), '\n');
        if (end)
            *end = '\0';
        return uuid_from_text(str_get(&text), ret_id, e) < 0 ? err_prefix(e, "%s", path) : 0;
    }
    if (why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    char line[UUID_TEXT_MAX + 1];
    *ret_id = uuid_random();
    uuid_format(ret_id, line);
    strcat(line, "\n");
    return file_replace(path, line, strlen(line), 0600, e);
}

static int load(struct replio_replica *r, struct err *e)
{
    uint8_t a[REPL_SUPER_SIZE], b[REPL_SUPER_SIZE] = {0};
    memset(a, 0, sizeof(a));
    if (pread(r->meta_fd, a, sizeof(a), 0) < 0 || pread(r->meta_fd, b, sizeof(b), sizeof(a)) < 0)
        return err_errno(e, errno, "cannot read the metadata");
    if (repl_replica_load_super(r->core, a, b, e) < 0)
        return -1;
    for (uint64_t page = 0; page < repl_replica_pages(r->core); page++) {
        memset(a, 0, sizeof(a));
        if (pread(r->meta_fd, a, sizeof(a), (off_t)repl_page_offset(page)) < 0)
            return err_errno(e, errno, "cannot read the region map");
        repl_replica_load_page(r->core, page, a);
    }
    return 0;
}

static int open_meta(struct replio_replica *r, const char *dir, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/meta", dir);
    r->meta_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (r->meta_fd < 0)
        return err_errno(e, errno, "cannot open %s", path);
    if (file_lock(r->meta_fd, false) < 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "InUse", "%s is in use by another replica", dir);
    return 0;
}

/* The names of what was made in the folder are on disk. */
static int sync_dir(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 || fsync(fd) < 0 ? err_errno(e, errno, "cannot sync %s", dir) : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

static int open_store(struct replio_replica *r, const struct replio_replica_options *o,
                      struct err *e)
{
    _cleanup_free_ char *data = mem_printf("%s/data", o->dir), *name = mem_printf("file:%s", data);
    struct store_options options = {
        .loop = o->loop,
        .size = o->store || access(data, F_OK) == 0 ? 0 : NEW_SIZE,
        .block_size = BLOCK,
    };
    r->store = store_open(o->store ? o->store : name, &options, e);
    return r->store ? 0 : -1;
}

static int open_all(struct replio_replica *r, const struct replio_replica_options *o, struct err *e)
{
    if (file_make_dirs(o->dir, 0700, e) < 0 || read_id(o->dir, &r->id, e) < 0 ||
        open_meta(r, o->dir, e) < 0 || open_store(r, o, e) < 0 || sync_dir(o->dir, e) < 0)
        return -1;
    const struct repl_replica_config config = {
        .volume = o->volume, .replica = r->id, .store_size = r->store->size};
    r->core = repl_replica_new(&config, &core_ops, r);
    return load(r, e) < 0 ? err_prefix(e, "%s", o->dir) : 0;
}

struct replio_replica *replio_replica_open(const struct replio_replica_options *o, struct err *e)
{
    struct replio_replica *r = NEW(struct replio_replica);
    r->loop = o->loop;
    r->target = mem_strdup(o->target);
    r->source = o->source ? mem_strdup(o->source) : NULL;
    r->port = o->port;
    r->key = o->key;
    r->meta_fd = -1;
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
    if (open_all(r, o, e) < 0) {
        free_now(r);
        return NULL;
    }
    repl_replica_start(r->core, io_loop_now(r->loop));
    io_timer_start(r->loop, &r->dial, io_loop_now(r->loop));
    turn_soon(r);
    return r;
}

/* Ending. */

void replio_replica_stop(struct replio_replica *r, void (*done)(void *context), void *context)
{
    r->stopping = true;
    r->done = done;
    r->context = context;
    io_timer_stop(r->loop, &r->dial);
    repl_replica_stop(r->core);
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
    if (r->store)
        store_close(r->store);
    if (r->meta_fd >= 0)
        close(r->meta_fd);
    for (struct job *j = r->free_jobs, *next; j; j = next) {
        next = j->next;
        free(j);
    }
    replio_payloads_done(&r->payloads);
    free(r->target);
    free(r->source);
    free(r);
}

void replio_replica_free(struct replio_replica *r)
{
    r->freed = true;
    r->connected = false;
    if (r->gone)
        free_now(r);
    else
        replio_conn_close(&r->conn);
}

void replio_replica_status(const struct replio_replica *r, struct replio_replica_status *ret_status)
{
    *ret_status = (struct replio_replica_status){.id = r->id, .connected = r->connected};
    repl_replica_status(r->core, &ret_status->core);
    memcpy(ret_status->last_end, r->last_end, sizeof(r->last_end));
    ret_status->used = r->store->ops->used ? r->store->ops->used(r->store) : r->store->size;
}
