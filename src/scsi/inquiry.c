/*
 * INQUIRY: what this is, and (vpd.c) the pages of vital product data.
 */
#include "scsi/inquiry.h"

enum { BIT_EVPD = 0x01 };

static void put_text(uint8_t *p, const char *text, size_t size)
{
    size_t n = strnlen(text, size);
    memset(p, ' ', size);
    memcpy(p, text, n);
}

static void give_standard(struct scsi_task *t, bool absent)
{
    /* SAM-5, SPC-4, SBC-3, iSCSI: no version claimed */
    static const uint16_t versions[] = {0x00a0, 0x0460, 0x04c0, 0x0960};
    const struct scsi_unit *u = t->unit;
    uint8_t p[96] = {0};
    p[0] = absent ? 0x7f : 0x00; /* a direct access block device, or none is possible here */
    p[1] = u->removable ? 0x80 : 0x00;
    p[2] = 0x06; /* SPC-4 */
    p[3] = 0x12; /* hierarchical LUNs are possible; the format of this */
    p[4] = sizeof(p) - 5;
    p[5] = 0x08; /* third-party copy */
    p[7] = 0x02; /* commands are queued */
    put_text(p + 8, u->vendor, 8);
    put_text(p + 16, u->product, 16);
    put_text(p + 32, u->revision, 4);
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
        be_put16(p + 58 + 2 * i, versions[i]);
    scsi_give(t, p, sizeof(p));
}

void scsi_run_inquiry(struct scsi_task *t)
{
    bool absent = !scsi_unit_is(t->unit, t->lun);
    bool vital = t->cdb[1] & BIT_EVPD;
    if (!vital && t->cdb[2]) {
        scsi_refuse_field(t, 2);
        scsi_finish(t);
    } else if (vital && !absent) {
        scsi_give_vpd(t, t->cdb[2]);
    } else if (vital) {
        scsi_fail(t, SENSE_BAD_LUN);
    } else {
        give_standard(t, absent);
    }
}
