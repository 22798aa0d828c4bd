/*
 * WRITE SAME: one block over a range, WORK_BYTES at a time; or, where it is to be unmapped or is all
 * zeroes, one UNMAP or ZERO of the store.
 */
#include "scsi/rw.h"

enum { BIT_NDOB = 0x01, BIT_UNMAP = 0x08, BIT_ANCHOR = 0x10 };
/* How much one may cover: the time it takes has to have a bound. Said in the block limits page. */
#define SAME_BYTES ((uint64_t)16 << 20)

uint64_t scsi_write_same_most(const struct scsi_unit *u)
{
    return SAME_BYTES >> u->shift;
}

static bool has_no_data(const struct scsi_task *t)
{
    return t->command->shape == SHAPE_16 && t->cdb[1] & BIT_NDOB;
}

bool scsi_check_write_same(struct scsi_task *t)
{
    const struct scsi_unit *u = t->unit;
    if (t->cdb[1] & (BIT_UNMAP | BIT_ANCHOR) && !u->thin)
        return scsi_refuse_field(t, 1);
    if (t->cdb[1] & BIT_ANCHOR && !(t->cdb[1] & BIT_UNMAP))
        return scsi_refuse_field(t, 1);
    if (!scsi_in_range(u, t->lba, t->blocks))
        return true; /* said by the caller */
    if (!t->blocks)  /* to the end of the medium */
        t->blocks = u->blocks - t->lba;
    if (t->blocks > scsi_write_same_most(u))
        return scsi_refuse_field(t, t->command->shape == SHAPE_10 ? 7 : 10);
    return true;
}

static bool is_zero(const uint8_t *p, size_t size)
{
    return !p[0] && memcmp(p, p + 1, size - 1) == 0;
}

/*
 * Zeroes need no memory of ours. An anchored block keeps its space, as a zeroed one does. UNMAP wins
 * over the data, as in other targets and as the conformance suite has it: whoever sets the bit and
 * sends anything but zeroes has asked for two things.
 */
static bool start(struct scsi_task *t, uint64_t total)
{
    struct scsi_unit *u = t->unit;
    uint8_t block[PHYSICAL_BLOCK] = {0};
    bool unmap = t->cdb[1] & BIT_UNMAP;
    if (!has_no_data(t))
        scsi_copy_out(t, 0, block, u->block_size);
    if (unmap || is_zero(block, u->block_size)) {
        t->at = total;
        return scsi_step_io(t, unmap && !(t->cdb[1] & BIT_ANCHOR) ? STORE_UNMAP : STORE_ZERO,
                            t->lba << u->shift, total, NULL, 0);
    }
    t->size = (uint32_t)(total < WORK_BYTES ? total : WORK_BYTES);
    t->memory = mem_alloc(t->size);
    for (size_t i = 0; i < t->size; i += u->block_size)
        memcpy(t->memory + i, block, u->block_size);
    return true;
}

static bool step_same(struct scsi_task *t)
{
    uint64_t total = t->blocks << t->unit->shift;
    if (t->error)
        return scsi_step_failed(t);
    if (t->phase++ == 0) {
        bool submitted = start(t, total);
        if (!t->memory)
            return submitted;
    }
    if (t->at == total)
        return scsi_step_good(t);
    uint64_t offset = (t->lba << t->unit->shift) + t->at;
    uint64_t length = total - t->at < t->size ? total - t->at : t->size;
    t->piece[0] = (struct iovec){t->memory, length};
    t->at += length;
    return scsi_step_io(t, STORE_WRITE, offset, length, t->piece, 1);
}

void scsi_run_write_same(struct scsi_task *t)
{
    if (t->out_offered != t->out_wanted || t->out_length < t->out_wanted)
        scsi_fail(t, SENSE_BAD_FIELD);
    else if (!t->blocks)
        scsi_good(t);
    else
        scsi_steps(t, step_same);
}
