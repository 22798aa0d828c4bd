/*
 * The life of a task: decoded by the table, let through the gate, run, finished. What READ and WRITE
 * of 10 and 16 bytes need is on one straight path; everything rarer is behind unit->special,
 * nexus->attentions and unit->exclusives.
 */
#include "scsi/impl.h"
#include "scsi/range.h"

bool scsi_refuse(struct scsi_task *t, enum scsi_sense code)
{
    scsi_sense_set(t, code, NULL);
    return false;
}

bool scsi_refuse_field(struct scsi_task *t, unsigned byte)
{
    scsi_sense_set(
        t, SENSE_BAD_FIELD,
        &(struct scsi_sense_more){.has_field = true, .in_cdb = true, .field = (uint16_t)byte});
    return false;
}

static bool refuse_lba(struct scsi_task *t, uint64_t lba)
{
    scsi_sense_set(t, SENSE_LBA,
                   &(struct scsi_sense_more){.has_information = true, .information = lba});
    return false;
}

/* ---- begin: what does it ask for ---- */

static inline void take_range(struct scsi_task *t, const struct scsi_command *c)
{
    const uint8_t *cdb = t->cdb;
    switch (c->shape) {
    case SHAPE_6:
        t->lba = be_get24(cdb + 1) & 0x1fffff;
        t->blocks = cdb[4] ? cdb[4] : 256;
        break;
    case SHAPE_10:
        t->lba = be_get32(cdb + 2);
        t->blocks = be_get16(cdb + 7);
        break;
    case SHAPE_12:
        t->lba = be_get32(cdb + 2);
        t->blocks = be_get32(cdb + 6);
        break;
    case SHAPE_16:
        t->lba = be_get64(cdb + 2);
        t->blocks = be_get32(cdb + 10);
        break;
    default:
        t->lba = t->blocks = 0;
        break;
    }
}

/* COMPARE AND WRITE, GET LBA STATUS and WRITE ATOMIC have other numbers of blocks than their shape
 * says; their check() comes after. */
static uint32_t length_field(const struct scsi_task *t, const struct scsi_command *c)
{
    const uint8_t *p = t->cdb + c->at;
    switch (c->width) {
    case 1:
        return p[0];
    case 2:
        return be_get16(p);
    case 3:
        return be_get24(p);
    case 4:
        return be_get32(p);
    default:
        return c->at; /* it is always the same */
    }
}

static uint64_t check_blocks(const struct scsi_task *t)
{
    switch (t->cdb[1] >> 1 & 3) {
    case 1:
        return t->blocks;
    case 3:
        return t->blocks ? 1 : 0;
    default:
        return 0;
    }
}

static bool take_data(struct scsi_task *t, const struct scsi_command *c)
{
    uint64_t in = 0, out = 0;
    switch (c->data) {
    case DATA_IN_BLOCKS:
        in = t->blocks;
        break;
    case DATA_OUT_BLOCKS:
        out = t->blocks;
        break;
    case DATA_OUT_BLOCK: /* NDOB: none at all */
        out = c->shape == SHAPE_16 && t->cdb[1] & 1 ? 0 : 1;
        break;
    case DATA_OUT_TWICE:
        out = 2 * t->blocks;
        break;
    case DATA_OUT_CHECK:
        out = check_blocks(t);
        break;
    case DATA_IN:
        t->in_wanted = length_field(t, c);
        if (t->in_wanted > SCSI_TRANSFER_MAX)
            t->in_wanted = SCSI_TRANSFER_MAX;
        return true;
    case DATA_OUT:
        t->out_wanted = length_field(t, c);
        return t->out_wanted <= LIST_BYTES || scsi_refuse(t, SENSE_LIST_LENGTH);
    default:
        return true;
    }
    uint64_t most = SCSI_TRANSFER_MAX >> t->unit->shift;
    if (__builtin_expect(in > most || out > most, 0))
        return scsi_refuse_field(t, c->shape == SHAPE_10 ? 7 : c->shape == SHAPE_12 ? 6 : 10);
    t->in_wanted = (uint32_t)(in << t->unit->shift);
    t->out_wanted = (uint32_t)(out << t->unit->shift);
    return true;
}

/* The length that the first three bits of an opcode say; 0: any. */
static bool is_long_enough(const struct scsi_task *t)
{
    static const uint8_t lengths[8] = {6, 10, 10, 0, 16, 12, 0, 0};
    return t->cdb_length >= lengths[t->cdb[0] >> 5] && t->cdb_length;
}

static const struct scsi_command *find(struct scsi_task *t)
{
    const struct scsi_command *c = &scsi_commands[t->cdb[0]];
    if (__builtin_expect(c->run && !(c->flags & (FLAG_THIN | FLAG_ATOMIC)), 1))
        return c;
    bool has_actions;
    c = scsi_command_find(t->unit, t->cdb[0], t->cdb[1] & 0x1f, &has_actions);
    if (!c && has_actions)
        scsi_refuse_field(t, 1);
    else if (!c)
        scsi_refuse(t, SENSE_BAD_OPCODE);
    return c;
}

bool scsi_task_begin(struct scsi_task *t)
{
    t->unit = t->nexus->unit;
    t->status = SCSI_GOOD;
    t->sense_length = 0;
    t->in_length = t->in_wanted = t->out_wanted = 0;
    t->running = t->aborted = t->exclusive = t->waiting = t->stepping = t->fua = false;
    t->memory = NULL;
    const struct scsi_command *c = t->command = find(t);
    if (!c)
        return false;
    if (__builtin_expect(!scsi_unit_is(t->unit, t->lun) && !(c->flags & FLAG_ANY_LUN), 0))
        return scsi_refuse(t, SENSE_BAD_LUN);
    if (__builtin_expect(!is_long_enough(t), 0))
        return scsi_refuse_field(t, 0);
    if (__builtin_expect(t->cdb[1] & c->refused, 0))
        return scsi_refuse_field(t, 1);
    take_range(t, c);
    if (c->check && !c->check(t))
        return false;
    if (__builtin_expect(!scsi_in_range(t->unit, t->lba, t->blocks), 0))
        return refuse_lba(t, t->lba);
    t->exclusive = c->flags & FLAG_EXCLUSIVE && t->blocks;
    return take_data(t, c);
}

/* ---- run: may it now ---- */

static bool pass_gate(struct scsi_task *t)
{
    struct scsi_unit *u = t->unit;
    uint8_t flags = t->command->flags;
    if (t->nexus->attentions && !(flags & FLAG_ANY_TIME) && scsi_unit_is(u, t->lun))
        return scsi_refuse(t, scsi_attention_take(t->nexus));
    if (!u->special)
        return true;
    if (!scsi_reserve_allows(t, t->command->guard)) {
        t->status = SCSI_RESERVATION_CONFLICT;
        return false;
    }
    if (u->sanitize.going && !(flags & (FLAG_ANY_TIME | FLAG_SANITIZE))) {
        scsi_sense_set(
            t, SENSE_SANITIZING,
            &(struct scsi_sense_more){.has_progress = true, .progress = scsi_sanitize_progress(u)});
        return false;
    }
    if (flags & FLAG_MEDIUM) {
        if (u->ejected)
            return scsi_refuse(t, SENSE_NO_MEDIUM);
        if (u->sanitize.failed && !(flags & FLAG_SANITIZE))
            return scsi_refuse(t, SENSE_SANITIZE_FAILED);
    }
    if (flags & FLAG_WRITES && scsi_is_protected(u))
        return scsi_refuse(t,
                           u->mode.write_protect ? SENSE_PROTECTED_BY_SOFTWARE : SENSE_PROTECTED);
    return true;
}

void scsi_task_run(struct scsi_task *t)
{
    t->running = true;
    list_init(&t->link);
    if (__builtin_expect(t->unit->special || t->nexus->attentions, 0) && !pass_gate(t)) {
        scsi_finish(t);
        return;
    }
    if (scsi_range_claim(t))
        t->command->run(t);
}

void scsi_task_broken(struct scsi_task *t)
{
    scsi_refuse(t, SENSE_DATA_PHASE);
}

/* ---- finish ---- */

void scsi_finish(struct scsi_task *t)
{
    struct scsi_unit *u = t->unit;
    if (__builtin_expect(t->memory != NULL, 0)) {
        free(t->memory);
        t->memory = NULL;
    }
    if (__builtin_expect(t->aborted, 0)) {
        t->status = SCSI_TASK_ABORTED;
        t->in_length = t->sense_length = 0;
    }
    t->running = false;
    scsi_range_release(t);
    if (__builtin_expect(!list_empty(&u->waiting), 0))
        scsi_range_wake(u);
    t->done(t); /* last: the unit may be gone after it */
}

void scsi_good(struct scsi_task *t)
{
    t->status = SCSI_GOOD;
    scsi_finish(t);
}

void scsi_fail(struct scsi_task *t, enum scsi_sense code)
{
    scsi_sense_set(t, code, NULL);
    scsi_finish(t);
}

void scsi_fail_field(struct scsi_task *t, unsigned byte)
{
    scsi_sense_set(t, SENSE_BAD_LIST,
                   &(struct scsi_sense_more){.has_field = true, .field = (uint16_t)byte});
    scsi_finish(t);
}

/* ---- task management ---- */

void scsi_task_abort(struct scsi_task *t)
{
    if (!t->running || t->aborted)
        return;
    t->aborted = true;
    if (!scsi_sanitize_forget(t->unit, t) && t->waiting)
        scsi_finish(t);
}

/* done() may begin or end other tasks, so the search starts again after each. */
static void abort_all(struct scsi_unit *u, const struct scsi_nexus *only)
{
    struct list_link *const lists[] = {&u->waiting, &u->running};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
    again:
        list_for_each(lists[i], it, struct scsi_task, link) {
            if (it->aborted || (only && it->nexus != only))
                continue;
            scsi_task_abort(it);
            goto again;
        }
    }
}

void scsi_nexus_abort(struct scsi_nexus *nexus)
{
    abort_all(nexus->unit, nexus);
}

void scsi_unit_reset(struct scsi_unit *u, struct scsi_nexus *by)
{
    (void)by; /* it is told as well: whatever else uses the session does not know of the reset */
    abort_all(u, NULL);
    scsi_reserve_reset(u);
    scsi_mode_reset(u);
    list_for_each(&u->nexuses, it, struct scsi_nexus, link)
        it->prevents = false;
    scsi_attention_all(u, NULL, ATTENTION_RESET);
    scsi_unit_review(u);
}
