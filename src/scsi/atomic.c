/*
 * COMPARE AND WRITE, and ORWRITE: read, look, write. Their range is theirs alone meanwhile (range.c),
 * so nothing comes between the reading and the writing.
 *
 * memory:  [ what is read | data-out ]
 *           `---- total ---'
 */
#include "scsi/rw.h"

bool scsi_check_compare(struct scsi_task *t)
{
    t->blocks = t->cdb[13];
    return true;
}

static bool read_first(struct scsi_task *t)
{
    size_t total = (size_t)(t->blocks << t->unit->shift);
    t->memory = mem_alloc(total + t->out_wanted);
    scsi_copy_out(t, 0, t->memory + total, t->out_wanted);
    t->piece[0] = (struct iovec){t->memory, total};
    return scsi_step_io(t, STORE_READ, t->lba << t->unit->shift, total, t->piece, 1);
}

/* Writes a part of the memory over the range; FUA as in the CDB. */
static bool write_then(struct scsi_task *t, uint8_t *p)
{
    size_t total = (size_t)(t->blocks << t->unit->shift);
    t->piece[0] = (struct iovec){p, total};
    return scsi_step_io(t, STORE_WRITE, t->lba << t->unit->shift, total, t->piece, 1);
}

static bool compare_and_write(struct scsi_task *t, size_t total)
{
    uint8_t *expected = t->memory + total;
    if (memcmp(t->memory, expected, total) != 0)
        return scsi_step_differ(t, 0, t->memory, expected, total);
    return write_then(t, expected + total);
}

static bool or_and_write(struct scsi_task *t, size_t total)
{
    for (size_t i = 0; i < total; i++)
        t->memory[i] |= t->memory[total + i];
    return write_then(t, t->memory);
}

static bool step(struct scsi_task *t)
{
    size_t total = (size_t)(t->blocks << t->unit->shift);
    if (t->error)
        return scsi_step_failed(t);
    switch (t->phase++) {
    case 0:
        return read_first(t);
    case 1:
        return t->command->run == scsi_run_orwrite ? or_and_write(t, total)
                                                   : compare_and_write(t, total);
    default:
        return scsi_step_good(t);
    }
}

static void run(struct scsi_task *t)
{
    t->fua = t->cdb[1] & 0x08;
    if (t->out_length < t->out_wanted)
        scsi_fail(t, SENSE_BAD_FIELD);
    else if (!t->blocks)
        scsi_good(t);
    else
        scsi_steps(t, step);
}

void scsi_run_orwrite(struct scsi_task *t)
{
    run(t);
}

/* An initiator that has another amount of data in mind means something else than its CDB says. */
void scsi_run_compare_and_write(struct scsi_task *t)
{
    if (t->out_offered != t->out_wanted)
        scsi_fail(t, SENSE_BAD_FIELD);
    else
        run(t);
}
