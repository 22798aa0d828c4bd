/*
 * UNMAP and GET LBA STATUS: what thin provisioning is made of.
 *
 * The ranges of an UNMAP are all checked before the first is unmapped, so a list that is wrong
 * anywhere changes nothing.
 */
#include "scsi/rw.h"

enum { BIT_ANCHOR = 0x01, HEADER = 8, DESCRIPTOR = 16 };

const uint32_t scsi_unmap_descriptors = 256;

uint32_t scsi_unmap_blocks(const struct scsi_unit *u)
{
    return (uint32_t)(((uint64_t)512 << 20) >> u->shift); /* 512 MiB, 2^20 blocks of 512 bytes */
}

bool scsi_check_unmap(struct scsi_task *t)
{
    t->lba = 0;
    t->blocks = t->unit->blocks; /* it is in the way of whatever is exclusive */
    return true;
}

/* 0: all is well. Sets the answer else. */
static bool check_ranges(struct scsi_task *t, const uint8_t *list, unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *d = list + HEADER + (size_t)i * DESCRIPTOR;
        sum += be_get32(d + 8);
        if (!scsi_in_range(t->unit, be_get64(d), be_get32(d + 8)))
            return scsi_refuse(t, SENSE_LBA);
    }
    if (count > scsi_unmap_descriptors || sum > scsi_unmap_blocks(t->unit))
        return scsi_refuse(t, SENSE_BAD_LIST);
    return true;
}

/* t->at: the next descriptor. */
static bool step_unmap(struct scsi_task *t)
{
    unsigned count = be_get16(t->memory + 2) / DESCRIPTOR;
    if (t->error)
        return scsi_step_failed(t);
    for (; t->at < count; t->at++) {
        const uint8_t *d = t->memory + HEADER + t->at * DESCRIPTOR;
        uint64_t blocks = be_get32(d + 8);
        if (!blocks)
            continue;
        t->at++;
        return scsi_step_io(t, t->cdb[1] & BIT_ANCHOR ? STORE_ZERO : STORE_UNMAP,
                            be_get64(d) << t->unit->shift, blocks << t->unit->shift, NULL, 0);
    }
    return scsi_step_good(t);
}

void scsi_run_unmap(struct scsi_task *t)
{
    if (!t->out_wanted) {
        scsi_good(t);
        return;
    }
    const uint8_t *list = scsi_list(t, HEADER);
    if (!list)
        return;
    unsigned size = be_get16(list + 2);
    if (be_get16(list) != size + HEADER - 2 || size % DESCRIPTOR || size + HEADER > t->size)
        scsi_fail(t, SENSE_LIST_LENGTH);
    else if (!check_ranges(t, list, size / DESCRIPTOR))
        scsi_finish(t);
    else
        scsi_steps(t, step_unmap);
}

/* ---- GET LBA STATUS ---- */

bool scsi_check_lba_status(struct scsi_task *t)
{
    t->blocks = 1; /* the first has to be there */
    return true;
}

/* How far from lba on the blocks are of one kind. A block that is mapped in part is mapped. */
static uint64_t extent(const struct scsi_unit *u, uint64_t lba, bool *ret_unmapped)
{
    uint64_t end = u->blocks << u->shift, at = lba << u->shift, length = end - at;
    *ret_unmapped = false;
    if (!u->store->ops->extent)
        return length >> u->shift;
    *ret_unmapped = u->store->ops->extent(u->store, at, &length) == STORE_UNMAPPED;
    length = length < end - at ? length : end - at;
    if (*ret_unmapped && length < u->block_size)
        *ret_unmapped = false;
    uint64_t blocks = *ret_unmapped ? length >> u->shift : (length + u->block_size - 1) >> u->shift;
    return blocks ? blocks : 1;
}

void scsi_run_lba_status(struct scsi_task *t)
{
    enum { MOST = 64 };
    uint8_t answer[HEADER + MOST * DESCRIPTOR] = {0};
    uint32_t room = t->in_wanted > HEADER ? (t->in_wanted - HEADER) / DESCRIPTOR : 0, count = 0;
    uint64_t lba = t->lba;
    do {
        bool unmapped;
        uint64_t blocks = extent(t->unit, lba, &unmapped);
        if (blocks > UINT32_MAX)
            blocks = UINT32_MAX;
        uint8_t *d = answer + HEADER + (size_t)count++ * DESCRIPTOR;
        be_put64(d, lba);
        be_put32(d + 8, blocks);
        d[12] = unmapped ? 1 : 0; /* deallocated or mapped */
        lba += blocks;
    } while (count < room && count < MOST && lba < t->unit->blocks);
    be_put32(answer, 4 + count * DESCRIPTOR);
    scsi_give(t, answer, HEADER + count * DESCRIPTOR);
}
