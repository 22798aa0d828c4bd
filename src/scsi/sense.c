#include "scsi/sense.h"

#include "scsi/impl.h"

/* Fixed format: everything has its place, and an LBA of more than 32 bits has none. */
static uint8_t write_fixed(uint8_t *p, enum scsi_sense code, const struct scsi_sense_more *more)
{
    enum { LENGTH = 18 };
    memset(p, 0, LENGTH);
    p[0] = 0x70;
    p[2] = (uint8_t)(code >> 16);
    p[7] = LENGTH - 8;
    be_put16(p + 12, (uint64_t)code);
    if (more->has_information && more->information <= UINT32_MAX) {
        p[0] |= 0x80;
        be_put32(p + 3, more->information);
    }
    if (more->has_field || more->has_progress) {
        p[15] = (uint8_t)(0x80 | (more->has_field && more->in_cdb ? 0x40 : 0));
        be_put16(p + 16, more->has_field ? more->field : more->progress);
    }
    return LENGTH;
}

static uint8_t write_descriptors(uint8_t *p, enum scsi_sense code,
                                 const struct scsi_sense_more *more)
{
    uint8_t at = 8;
    memset(p, 0, SENSE_BYTES);
    p[0] = 0x72;
    p[1] = (uint8_t)(code >> 16);
    be_put16(p + 2, (uint64_t)code);
    if (more->has_information) {
        p[at] = 0x00;
        p[at + 1] = 0x0a;
        p[at + 2] = 0x80;
        be_put64(p + at + 4, more->information);
        at = (uint8_t)(at + 12);
    }
    if (more->has_field || more->has_progress) {
        p[at] = 0x02;
        p[at + 1] = 0x06;
        p[at + 4] = (uint8_t)(0x80 | (more->has_field && more->in_cdb ? 0x40 : 0));
        be_put16(p + at + 5, more->has_field ? more->field : more->progress);
        at = (uint8_t)(at + 8);
    }
    p[7] = (uint8_t)(at - 8);
    return at;
}

uint8_t scsi_sense_write(uint8_t *p, bool descriptor, enum scsi_sense code,
                         const struct scsi_sense_more *more)
{
    static const struct scsi_sense_more nothing;
    more = more ? more : &nothing;
    return descriptor ? write_descriptors(p, code, more) : write_fixed(p, code, more);
}

void scsi_sense_set(struct scsi_task *t, enum scsi_sense code, const struct scsi_sense_more *more)
{
    t->status = SCSI_CHECK_CONDITION;
    t->in_length = 0;
    t->sense_length = scsi_sense_write(t->sense, t->unit->mode.descriptor_sense, code, more);
}
