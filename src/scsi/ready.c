/*
 * Whether the unit is ready, and whether its medium is in: TEST UNIT READY, REQUEST SENSE, START STOP
 * UNIT, PREVENT ALLOW MEDIUM REMOVAL; and READ DEFECT DATA, of which there is none.
 */
#include "scsi/inquiry.h"

void scsi_run_test_unit_ready(struct scsi_task *t)
{
    scsi_good(t);
}

/* Sense data as parameter data. Attentions are told where it is asked for them. */
void scsi_run_request_sense(struct scsi_task *t)
{
    struct scsi_unit *u = t->unit;
    uint8_t p[SENSE_BYTES];
    enum scsi_sense code = SENSE_NONE;
    struct scsi_sense_more more = {0};
    if (!scsi_unit_is(u, t->lun)) {
        code = SENSE_BAD_LUN;
    } else if (t->nexus->attentions) {
        code = scsi_attention_take(t->nexus);
    } else if (u->sanitize.going) {
        code = SENSE_SANITIZING;
        more.has_progress = true;
        more.progress = scsi_sanitize_progress(u);
    } else if (u->ejected) {
        code = SENSE_NO_MEDIUM;
    }
    scsi_give(t, p, scsi_sense_write(p, t->cdb[1] & 1, code, &more));
}

/* ---- START STOP UNIT ---- */

enum { BIT_START = 1, BIT_LOEJ = 2, BIT_NO_FLUSH = 4 };

bool scsi_check_start_stop(struct scsi_task *t)
{
    bool eject = t->cdb[4] & BIT_LOEJ && !(t->cdb[4] >> 4);
    return !eject || t->unit->removable || scsi_refuse_field(t, 4);
}

static bool is_prevented(struct scsi_unit *u)
{
    list_for_each(&u->nexuses, it, struct scsi_nexus, link) {
        if (it->prevents)
            return true;
    }
    return false;
}

/* Loads or ejects. A unit that is told to stop goes on: there is nothing to spin down. */
static bool step_start_stop(struct scsi_task *t)
{
    struct scsi_unit *u = t->unit;
    bool start = t->cdb[4] & BIT_START, loej = t->cdb[4] & BIT_LOEJ && !(t->cdb[4] >> 4);
    if (t->error)
        return scsi_step_failed(t);
    if (loej && is_prevented(u)) {
        scsi_fail(t, SENSE_REMOVAL_PREVENTED);
        return false;
    }
    if (loej && start && u->ejected) {
        u->ejected = false;
        scsi_attention_all(u, t->nexus, ATTENTION_MEDIUM);
        scsi_unit_review(u);
    } else if (!start && !u->ejected && t->phase++ == 0 && !(t->cdb[4] & BIT_NO_FLUSH)) {
        return scsi_step_io(t, STORE_FLUSH, 0, 0, NULL, 0);
    } else if (loej && !start) {
        u->ejected = true;
        scsi_unit_review(u);
    }
    return scsi_step_good(t);
}

void scsi_run_start_stop(struct scsi_task *t)
{
    scsi_steps(t, step_start_stop);
}

void scsi_run_prevent_allow(struct scsi_task *t)
{
    t->nexus->prevents = t->cdb[4] & 1;
    scsi_good(t);
}

/* ---- READ DEFECT DATA ---- */

void scsi_run_read_defects(struct scsi_task *t)
{
    uint8_t p[8] = {0};
    bool is_12 = t->cdb[0] == 0xb7;
    /* The lists and the format that were asked for, of which there are no entries. */
    p[1] = t->cdb[is_12 ? 1 : 2] & 0x1f;
    scsi_give(t, p, is_12 ? 8 : 4);
}
