/*
 * READ, WRITE, SYNCHRONIZE CACHE and PRE-FETCH: one I/O or none, in the transport's own buffers.
 *
 * When the transport has less room, or brought less data, than the CDB asks for, whole blocks of it
 * are read or written: SAM leaves what is transferred to the smaller of the two.
 */
#include "scsi/rw.h"

#include <errno.h>

enum { BIT_FUA = 0x08 };

/* What an errno of the store means to an initiator. */
static enum scsi_sense sense_of(int error, enum store_op op)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return SENSE_NO_SPACE;
    case EROFS:
        return SENSE_PROTECTED;
    case ENOTSUP:
        return SENSE_BAD_FIELD;
    case ENOTCONN:
    case ETIMEDOUT:
    case ESHUTDOWN:
        return SENSE_NOT_RESPONDING;
    default:
        return op == STORE_READ ? SENSE_READ_ERROR : SENSE_WRITE_ERROR;
    }
}

void scsi_fail_io(struct scsi_task *t, int error)
{
    scsi_sense_set(t, sense_of(error, t->io.op),
                   &(struct scsi_sense_more){.has_information = t->io.op != STORE_FLUSH,
                                             .information = t->io.offset >> t->unit->shift});
    scsi_finish(t);
}

static void io_done(struct store_io *io, int error)
{
    struct scsi_task *t = container_of(io, struct scsi_task, io);
    if (__builtin_expect(error, 0)) {
        scsi_fail_io(t, error);
        return;
    }
    if (io->op == STORE_READ)
        t->in_length = (uint32_t)io->length;
    scsi_finish(t);
}

static inline void submit(struct scsi_task *t, enum store_op op, uint64_t length, struct iovec *iov,
                          unsigned iovs)
{
    t->io.op = op;
    t->io.offset = t->lba << t->unit->shift;
    t->io.length = length;
    t->io.iov = iov;
    t->io.iovs = iovs;
    t->io.bufs = iov == t->out ? t->out_bufs : NULL;
    t->io.done = io_done;
    t->io.client = t->nexus->client;
    store_submit(t->unit->store, &t->io);
}

/* ---- READ ---- */

/* Room for less than the command reads: through memory, because a part of a block may be left. */
static bool step_short_read(struct scsi_task *t)
{
    if (t->phase++ == 0) {
        uint64_t length =
            (t->in_room + t->unit->block_size - 1) & ~(uint64_t)(t->unit->block_size - 1);
        t->memory = mem_alloc(length);
        t->piece[0] = (struct iovec){t->memory, length};
        return scsi_step_io(t, STORE_READ, t->lba << t->unit->shift, length, t->piece, 1);
    }
    if (t->error)
        return scsi_step_failed(t);
    t->in_length = (uint32_t)scsi_copy_in(t, 0, t->memory, t->in_room);
    scsi_finish(t);
    return false;
}

void scsi_run_read(struct scsi_task *t)
{
    t->io.fua = false;
    if (__builtin_expect(t->in_room < t->in_wanted, 0) && t->in_room)
        scsi_steps(t, step_short_read);
    else if (__builtin_expect(!t->in_room || !t->in_wanted, 0))
        scsi_good(t);
    else
        submit(t, STORE_READ, t->in_wanted, t->in, t->ins);
}

/* ---- WRITE ---- */

/* What arrived is no whole number of blocks, or in more memory than is to be written. */
static bool step_short_write(struct scsi_task *t)
{
    if (t->phase++ == 0) {
        uint64_t length = t->out_length & ~(uint64_t)(t->unit->block_size - 1);
        if (!length)
            return scsi_step_good(t);
        t->memory = mem_alloc(length);
        scsi_copy_out(t, 0, t->memory, length);
        t->piece[0] = (struct iovec){t->memory, length};
        return scsi_step_io(t, STORE_WRITE, t->lba << t->unit->shift, length, t->piece, 1);
    }
    return t->error ? scsi_step_failed(t) : scsi_step_good(t);
}

void scsi_run_write(struct scsi_task *t)
{
    /* WRITE(6) has a part of the LBA where the others have FUA. */
    t->fua = t->cdb[1] & BIT_FUA && t->command->shape != SHAPE_6;
    if (__builtin_expect(t->out_length < t->out_wanted, 0))
        scsi_steps(t, step_short_write);
    else if (__builtin_expect(!t->out_wanted, 0))
        scsi_good(t);
    else {
        t->io.fua = t->fua || !t->unit->mode.write_cache;
        submit(t, STORE_WRITE, t->out_wanted, t->out, t->outs);
    }
}

/* ---- WRITE ATOMIC(16): exclusive, and no longer than what the store writes whole ---- */

bool scsi_check_atomic(struct scsi_task *t)
{
    t->blocks = be_get16(t->cdb + 12);
    /* There are no atomic boundaries: bytes 10 and 11. */
    return (!be_get16(t->cdb + 10) && t->blocks <= t->unit->atomic_blocks) ||
           scsi_refuse_field(t, 12);
}

void scsi_run_write_atomic(struct scsi_task *t)
{
    if (t->out_length < t->out_wanted)
        scsi_fail(t, SENSE_BAD_FIELD);
    else
        scsi_run_write(t);
}

/* ---- SYNCHRONIZE CACHE, PRE-FETCH ---- */

void scsi_run_synchronize(struct scsi_task *t)
{
    submit(t, STORE_FLUSH, 0, NULL, 0);
}

void scsi_run_prefetch(struct scsi_task *t)
{
    scsi_good(t);
}
