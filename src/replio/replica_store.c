/*
 * Requests of the core to the store, and to where its metadata is (replica_meta.h).
 *
 *     repl_req ── job: a store_io ──> store ── done ──> repl_replica_stored(), then a turn
 *
 * Jobs are used again, so that nothing is allocated in the steady state. A payload is written from where it was
 * received: a job has only the vector of its pieces.
 */
#include <errno.h>
#include <string.h>

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
    r->under_way--;
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
    if (r->freed) { /* the last of them lets it go */
        turn_soon(r);
        return;
    }
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
    r->under_way++;
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
    r->meta->ops->write(r->meta, offset, data, size);
}

int replica_meta_sync(void *context)
{
    struct replio_replica *r = context;
    return r->meta->ops->sync(r->meta);
}

int replica_log_write(void *context, uint64_t offset, const void *data, size_t size)
{
    struct replio_replica *r = context;
    return r->meta->ops->log_write(r->meta, offset, data, size);
}

void replica_meta_synced(struct replica_meta *m, int error)
{
    m->error = error ? error : m->error;
    m->synced = true;
    turn_soon(m->replica);
}

void replica_meta_logged(struct replica_meta *m, int error)
{
    m->error = error ? error : m->error;
    m->logged = true;
    turn_soon(m->replica);
}

void replica_meta_tell(struct replica_meta *m)
{
    struct repl_replica *core = m->replica->core;
    if (m->synced) {
        m->synced = false;
        repl_replica_meta_synced(core, -m->error);
    }
    if (m->logged) {
        m->logged = false;
        repl_replica_logged(core, -m->error);
    }
}

void replica_free_jobs(struct replio_replica *r)
{
    for (struct job *j = r->free_jobs, *next; j; j = next) {
        next = j->next;
        free(j);
    }
}
