/*
 * Series of I/Os, and the data of a task in pieces.
 *
 *     step() ── submit ──> done later ──> step() ...
 *        └───── submit ──> done at once: noted, and step() is called again from the loop below, so
 *                          that the stack stays as deep as it is however many I/Os there are
 */
#include "scsi/impl.h"

static void go_on(struct scsi_task *t)
{
    do {
        if (t->aborted) {
            scsi_finish(t);
            return;
        }
        t->stepped = false;
        t->stepping = true;
        if (!t->step(t))
            return; /* ended: it is not ours any more */
        t->stepping = false;
    } while (t->stepped);
}

static void step_done(struct store_io *io, int error)
{
    struct scsi_task *t = container_of(io, struct scsi_task, io);
    t->error = error;
    if (t->stepping)
        t->stepped = true;
    else
        go_on(t);
}

void scsi_steps(struct scsi_task *t, bool (*step)(struct scsi_task *t))
{
    t->step = step;
    t->error = 0;
    t->at = 0;
    t->phase = 0;
    go_on(t);
}

bool scsi_step_io(struct scsi_task *t, enum store_op op, uint64_t offset, uint64_t length,
                  struct iovec *iov, unsigned iovs)
{
    t->io.op = op;
    t->io.fua = op == STORE_WRITE && (t->fua || !t->unit->mode.write_cache);
    t->io.offset = offset;
    t->io.length = length;
    t->io.iov = iov;
    t->io.iovs = iovs;
    t->io.bufs = iov == t->out ? t->out_bufs : NULL;
    t->io.done = step_done;
    t->io.client = t->nexus->client;
    store_submit(t->unit->store, &t->io);
    return true;
}

bool scsi_step_failed(struct scsi_task *t)
{
    scsi_fail_io(t, t->error);
    return false;
}

bool scsi_step_good(struct scsi_task *t)
{
    scsi_good(t);
    return false;
}

bool scsi_step_differ(struct scsi_task *t, uint64_t at, const uint8_t *a, const uint8_t *b,
                      size_t size)
{
    size_t same = 0;
    while (same < size && a[same] == b[same])
        same++;
    scsi_sense_set(t, SENSE_MISCOMPARE,
                   &(struct scsi_sense_more){.has_information = true, .information = at + same});
    scsi_finish(t);
    return false;
}

/* ---- data in pieces ---- */

static size_t walk(const struct iovec *iov, unsigned iovs, size_t limit, size_t at, void *data,
                   size_t size, bool to_iov)
{
    size_t copied = 0;
    if (at >= limit)
        return 0;
    size = size < limit - at ? size : limit - at;
    for (unsigned i = 0; i < iovs && copied < size; i++) {
        if (at >= iov[i].iov_len) {
            at -= iov[i].iov_len;
            continue;
        }
        size_t n = iov[i].iov_len - at < size - copied ? iov[i].iov_len - at : size - copied;
        uint8_t *there = (uint8_t *)iov[i].iov_base + at, *here = (uint8_t *)data + copied;
        memcpy(to_iov ? there : here, to_iov ? here : there, n);
        copied += n;
        at = 0;
    }
    return copied;
}

size_t scsi_copy_in(struct scsi_task *t, size_t at, const void *data, size_t size)
{
    return walk(t->in, t->ins, t->in_room, at, (void *)data, size, true);
}

size_t scsi_copy_out(struct scsi_task *t, size_t at, void *data, size_t size)
{
    return walk(t->out, t->outs, t->out_length, at, data, size, false);
}

void scsi_give(struct scsi_task *t, const void *data, size_t size)
{
    size = size < t->in_wanted ? size : t->in_wanted;
    t->in_length = (uint32_t)scsi_copy_in(t, 0, data, size);
    scsi_good(t);
}

const uint8_t *scsi_list(struct scsi_task *t, uint32_t least)
{
    t->size = t->out_length < t->out_wanted ? t->out_length : t->out_wanted;
    if (t->size < least) {
        scsi_fail(t, SENSE_LIST_LENGTH);
        return NULL;
    }
    t->memory = mem_zalloc(t->size ? t->size : 1);
    t->size = (uint32_t)scsi_copy_out(t, 0, t->memory, t->size);
    return t->memory;
}
