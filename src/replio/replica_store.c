/*
 * Requests of the core to the store, and its metadata in a file.
 *
 *     repl_req ── job: a store_io ──> store ── done ──> repl_replica_stored(), then a turn
 *
 * Jobs are used again, so that nothing is allocated in the steady state. A payload is written from where it was
 * received: a job has only the vector of its pieces.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crash.h"
#include "replio/replica_impl.h"

/* A request of the core on its way through the store. */
struct job {
    struct store_io io;
    struct iovec iov[REPLIO_PIECES];
    struct repl_req *req;
    struct replio_replica *replica;
    struct job *next;       /* while free */
    bool submitting, ended; /* done() came before store_submit() returned */
    int error;
};

/* What the disk said to a request that changes something. */
static void note_error(struct replio_replica *r, const struct repl_req *req, int error)
{
    if (error && req->kind == REPL_STORE_FLUSH)
        r->flush_error = error;
    if (error && req->kind != REPL_STORE_READ && req->kind != REPL_STORE_RESUM)
        r->store_error = error;
}

static void job_put(struct job *j)
{
    struct replio_replica *r = j->replica;
    j->next = r->free_jobs;
    r->free_jobs = j;
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
    note_error(r, req, error);
    repl_replica_stored(r->core, req, -error);
    replio_conn_resume(&r->conn);
    turn_soon(r);
}

static void io_done(struct store_io *io, int error)
{
    job_end(container_of(io, struct job, io), error);
}

/* Growth, a snapshot, its end, or the way back to it. */
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
    j->replica = r;
    j->req = req;
    j->submitting = true;
    j->ended = false;
    j->io.done = io_done;
    j->io.fua = false;
    j->io.offset = req->offset;
    j->io.length = req->length;
    j->io.snapshot = req->snap;
    j->io.unverified = req->unverified;
    j->io.sums = req->sums;
    j->io.iov = j->iov;
    j->io.iovs =
        (unsigned)repl_iov_cut(req->iov, req->iov_n, req->skip, req->length, j->iov, REPLIO_PIECES);
    return j;
}

int replica_store(void *context, struct repl_req *req)
{
    static const enum store_op ops[] = {
        [REPL_STORE_READ] = STORE_READ,   [REPL_STORE_WRITE] = STORE_WRITE,
        [REPL_STORE_ZERO] = STORE_ZERO,   [REPL_STORE_FLUSH] = STORE_FLUSH,
        [REPL_STORE_RESUM] = STORE_RESUM,
    };
    struct replio_replica *r = context;
    struct job *j = job_take(r, req);
    switch (req->kind) {
    case REPL_STORE_RESIZE:
        crash_point("prepare");
        store_grow(r->store, req->length, changed, j);
        break;
    case REPL_STORE_SNAPSHOT:
        store_snapshot(r->store, req->offset, changed, j);
        break;
    case REPL_STORE_SNAP_DROP:
        store_snapshot_drop(r->store, req->offset, changed, j);
        break;
    case REPL_STORE_REVERT:
        store_revert(r->store, req->offset, changed, j);
        break;
    case REPL_STORE_STAMP:
        store_stamp(r->store, req->length, changed, j);
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
    note_error(r, req, error);
    return error ? -error : 1;
}

/* Metadata. */

void replica_meta_write(void *context, uint64_t offset, const void *data, size_t size)
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
    if (result < 0)
        r->meta_error = (int)-result;
    repl_replica_meta_synced(r->core, -r->meta_error);
    turn_soon(r);
}

static void log_written(struct io_request *request, int64_t result)
{
    struct replio_replica *r = container_of(request, struct replio_replica, log_write);
    if (result >= 0 && result < (int64_t)r->log_iov.iov_len)
        result = -EIO;
    if (result < 0)
        r->meta_error = (int)-result;
    repl_replica_logged(r->core, result < 0 ? (int)result : 0);
    turn_soon(r);
}

int replica_log_write(void *context, uint64_t offset, const void *data, size_t size)
{
    struct replio_replica *r = context;
    memcpy(r->log_block, data, size);
    r->log_iov = (struct iovec){r->log_block, size};
    r->log_write = (struct io_request){.op = IO_WRITE,
                                       .fd = r->meta_fd,
                                       .flags = RWF_DSYNC,
                                       .offset = offset,
                                       .iov = &r->log_iov,
                                       .iovs = 1,
                                       .done = log_written};
    io_submit(r->loop, &r->log_write);
    return 0;
}

int replica_meta_sync(void *context)
{
    struct replio_replica *r = context;
    if (r->meta_error)
        return -r->meta_error;
    r->meta_busy = true;
    r->meta_sync = (struct io_request){.op = IO_SYNC, .fd = r->meta_fd, .done = meta_synced};
    io_submit(r->loop, &r->meta_sync);
    return 0;
}

void replica_free_jobs(struct replio_replica *r)
{
    for (struct job *j = r->free_jobs, *next; j; j = next) {
        next = j->next;
        free(j);
    }
}
