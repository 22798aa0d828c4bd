/*
 * VERIFY and WRITE AND VERIFY: the medium is read, and compared with data-out where BYTCHK says so.
 *
 *     BYTCHK  00  the blocks can be read           01  they equal data-out
 *             11  each of them equals the one block of data-out
 *
 * memory:  [ what is read, WORK_BYTES at most | what it is compared with ]
 */
#include "scsi/rw.h"

enum { BYTCHK_NONE, BYTCHK_ALL, BYTCHK_RESERVED, BYTCHK_SAME };

static unsigned bytchk(const struct scsi_task *t)
{
    return t->cdb[1] >> 1 & 3;
}

bool scsi_check_verify(struct scsi_task *t)
{
    return bytchk(t) != BYTCHK_RESERVED || scsi_refuse_field(t, 1);
}

/* What data-out says that the piece at t->at holds. */
static void expected(struct scsi_task *t, uint8_t *p, size_t size)
{
    bool same = bytchk(t) == BYTCHK_SAME && t->command->data == DATA_OUT_CHECK;
    if (!same) {
        scsi_copy_out(t, t->at, p, size);
        return;
    }
    for (size_t i = 0; i < size; i += t->unit->block_size)
        scsi_copy_out(t, 0, p + i, t->unit->block_size);
}

static bool step_verify(struct scsi_task *t)
{
    uint64_t total = t->blocks << t->unit->shift;
    size_t work = total < WORK_BYTES ? (size_t)total : WORK_BYTES;
    if (t->error)
        return scsi_step_failed(t);
    if (t->phase++ == 0) {
        t->memory = mem_alloc(2 * work);
    } else {
        size_t size = t->piece[0].iov_len;
        if (bytchk(t) != BYTCHK_NONE) {
            expected(t, t->memory + work, size);
            if (memcmp(t->memory, t->memory + work, size) != 0)
                return scsi_step_differ(t, t->at, t->memory, t->memory + work, size);
        }
        t->at += size;
    }
    if (t->at == total)
        return scsi_step_good(t);
    t->piece[0] = (struct iovec){t->memory, total - t->at < work ? total - t->at : work};
    return scsi_step_io(t, STORE_READ, (t->lba << t->unit->shift) + t->at, t->piece[0].iov_len,
                        t->piece, 1);
}

void scsi_run_verify(struct scsi_task *t)
{
    if (t->out_length < t->out_wanted)
        scsi_fail(t, SENSE_BAD_FIELD);
    else if (!t->blocks)
        scsi_good(t);
    else
        scsi_steps(t, step_verify);
}

/* ---- WRITE AND VERIFY ---- */

/* The write comes first; from then on it is a VERIFY of what was written. */
static bool step_write_verify(struct scsi_task *t)
{
    uint64_t length = t->out_length & ~(uint64_t)(t->unit->block_size - 1);
    if (t->error)
        return scsi_step_failed(t);
    if (t->phase++ == 0 && length) {
        t->memory = mem_alloc(length);
        scsi_copy_out(t, 0, t->memory, length);
        t->piece[0] = (struct iovec){t->memory, length};
        return scsi_step_io(t, STORE_WRITE, t->lba << t->unit->shift, length, t->piece, 1);
    }
    free(t->memory);
    t->memory = NULL;
    t->phase = 0;
    t->blocks = length >> t->unit->shift;
    t->step = step_verify;
    return t->blocks ? step_verify(t) : scsi_step_good(t);
}

void scsi_run_write_verify(struct scsi_task *t)
{
    t->fua = true;
    if (!t->blocks)
        scsi_good(t);
    else
        scsi_steps(t, step_write_verify);
}
