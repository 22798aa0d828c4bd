/*
 * REPORT LUNS, REPORT SUPPORTED OPERATION CODES and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS. The
 * second is the table of commands, read aloud.
 */
#include "scsi/inquiry.h"

/* There is one unit, and no well known one. */
void scsi_run_report_luns(struct scsi_task *t)
{
    uint8_t p[16] = {0};
    uint8_t select = t->cdb[2];
    if (t->in_wanted < sizeof(p) || (select > 0x02 && (select < 0x10 || select > 0x12))) {
        scsi_refuse_field(t, t->in_wanted < sizeof(p) ? 6 : 2);
        scsi_finish(t);
        return;
    }
    size_t units = select == 0x00 || select == 0x02 || select == 0x11 ? 1 : 0;
    be_put32(p, 8 * units);
    p[9] = t->unit->lun;
    scsi_give(t, p, 8 + 8 * units);
}

/* ---- REPORT SUPPORTED OPERATION CODES ---- */

enum { TIMEOUTS = 12, CDB_BYTES = 16, COMMANDS_MAX = 128 };
enum { REPORT_ALL, REPORT_OPCODE, REPORT_ACTION, REPORT_EITHER };

static size_t put_timeouts(uint8_t *p, const struct scsi_command *c)
{
    be_put16(p, TIMEOUTS - 2);
    be_put32(p + 4, 0);          /* nominal: not said */
    be_put32(p + 8, c->seconds); /* recommended */
    return TIMEOUTS;
}

/* The usage of a CDB from its text; returns its length. A service action is told as it is. */
static size_t put_usage(uint8_t *p, const struct scsi_command *c, bool action)
{
    const char *hex = c->usage;
    size_t digits = 0;
    memset(p, 0, CDB_BYTES);
    for (; *hex && digits < (size_t)2 * CDB_BYTES; hex++) {
        if (*hex == ' ')
            continue;
        int value = *hex <= '9' ? *hex - '0' : *hex - 'a' + 10;
        p[digits / 2] = (uint8_t)(p[digits / 2] << 4 | value);
        digits++;
    }
    if (action)
        p[1] = (uint8_t)((p[1] & 0xe0) | c->action);
    return digits / 2;
}

static size_t put_one(uint8_t *p, const struct scsi_command *c, uint8_t opcode, bool action,
                      bool timeouts)
{
    uint8_t usage[CDB_BYTES];
    p[0] = opcode;
    be_put16(p + 2, action ? c->action : 0);
    p[5] = (uint8_t)((timeouts ? 2 : 0) | (action ? 1 : 0));
    be_put16(p + 6, put_usage(usage, c, action));
    return 8 + (timeouts ? put_timeouts(p + 8, c) : 0);
}

static void give_all(struct scsi_task *t, bool timeouts)
{
    uint8_t p[4 + COMMANDS_MAX * (8 + TIMEOUTS)] = {0};
    size_t at = 4;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const struct scsi_command *row = &scsi_commands[opcode], *c;
        bool has;
        if (row->run && (c = scsi_command_find(t->unit, (uint8_t)opcode, 0, &has)))
            at += put_one(p + at, c, (uint8_t)opcode, false, timeouts);
        for (const struct scsi_command *a = row->actions; a && a->name; a++) {
            if ((c = scsi_command_find(t->unit, (uint8_t)opcode, a->action, &has)))
                at += put_one(p + at, c, (uint8_t)opcode, true, timeouts);
        }
    }
    be_put32(p, at - 4);
    scsi_give(t, p, at);
}

static void give_one(struct scsi_task *t, const struct scsi_command *c, bool action, bool timeouts)
{
    enum { NOT_SUPPORTED = 1, AS_IN_THE_STANDARD = 3 };
    uint8_t p[4 + CDB_BYTES + TIMEOUTS] = {0};
    size_t at = 4;
    p[1] = c ? AS_IN_THE_STANDARD : NOT_SUPPORTED;
    if (c) {
        p[1] = (uint8_t)(p[1] | (timeouts ? 0x80 : 0));
        be_put16(p + 2, put_usage(p + 4, c, action));
        at += be_get16(p + 2);
        at += timeouts ? put_timeouts(p + at, c) : 0;
    }
    scsi_give(t, p, at);
}

void scsi_run_report_opcodes(struct scsi_task *t)
{
    bool timeouts = t->cdb[2] & 0x80, has_actions;
    uint8_t opcode = t->cdb[3];
    uint16_t action = be_get16(t->cdb + 4);
    const struct scsi_command *c = scsi_command_find(t->unit, opcode, action, &has_actions);
    switch (t->cdb[2] & 7) {
    case REPORT_ALL:
        give_all(t, timeouts);
        return;
    case REPORT_OPCODE:
        if (!has_actions) {
            give_one(t, c, has_actions, timeouts);
            return;
        }
        break;
    case REPORT_ACTION:
        if (has_actions || !c) {
            give_one(t, c, has_actions, timeouts);
            return;
        }
        break;
    case REPORT_EITHER:
        if (!has_actions && action)
            c = NULL;
        give_one(t, c, has_actions, timeouts);
        return;
    default:
        break;
    }
    scsi_refuse_field(t, 2);
    scsi_finish(t);
}

void scsi_run_report_management(struct scsi_task *t)
{
    /* ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, TARGET RESET; no timeouts */
    bool more = t->cdb[2] & 0x80;
    const uint8_t functions[16] = {0xda, 0x00, 0x00, more ? 0x0c : 0x00};
    scsi_give(t, functions, more ? 16 : 4);
}
