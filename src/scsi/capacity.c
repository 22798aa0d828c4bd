/*
 * READ CAPACITY.
 */
#include "scsi/inquiry.h"

/* The LBA is obsolete in both and has to be 0 where PMI, obsolete too, is not set. */
bool scsi_check_capacity(struct scsi_task *t)
{
    uint64_t lba = t->command->shape == SHAPE_10 ? be_get32(t->cdb + 2) : be_get64(t->cdb + 2);
    t->lba = t->blocks = 0;
    bool pmi = t->cdb[t->command->shape == SHAPE_10 ? 8 : 14] & 1;
    return pmi || !lba || scsi_refuse_field(t, 2);
}

void scsi_run_read_capacity_10(struct scsi_task *t)
{
    uint8_t p[8];
    uint64_t last = t->unit->blocks - 1;
    be_put32(p, last < UINT32_MAX ? last : UINT32_MAX);
    be_put32(p + 4, t->unit->block_size);
    scsi_give(t, p, sizeof(p));
}

void scsi_run_read_capacity_16(struct scsi_task *t)
{
    const struct scsi_unit *u = t->unit;
    uint8_t p[32] = {0};
    be_put64(p, u->blocks - 1);
    be_put32(p + 8, u->block_size);
    p[13] =
        (uint8_t)(__builtin_ctz(PHYSICAL_BLOCK) - u->shift); /* logical in a physical: exponent */
    p[14] = u->thin ? 0xc0 : 0x00; /* provisioning is managed; unmapped blocks read as zeroes */
    scsi_give(t, p, sizeof(p));
}
