/*
 * EXTENDED COPY(LID1) and RECEIVE COPY RESULTS: blocks are copied from one place of the unit to
 * another, or to the same, without going over the network.
 *
 *   parameter list:  header 16 | target descriptors, 32 each | segment descriptors, 28 each
 *
 * A target has to be this unit, named by one of its own designators; a segment is a range of blocks.
 * Everything is checked before the first block is copied, except what cannot be known before.
 */
#include "scsi/rw.h"

enum {
    HEADER = 16,
    TARGET = 32,
    SEGMENT = 28,
    TARGETS_MAX = 4,
    SEGMENTS_MAX = 16,
    LISTS_MAX = 1024
};
enum { TYPE_BLOCK_TO_BLOCK = 0x02, TYPE_IDENTIFICATION = 0xe4 };
enum { STATUS, PARAMETERS = 3, FAILED_DETAILS = 4 };
enum { GOING = 0x00, COMPLETED = 0x01, FAILED = 0x02, NEVER = 0xff };

bool scsi_check_copy(struct scsi_task *t)
{
    t->lba = 0;
    t->blocks = t->unit->blocks; /* it is in the way of whatever is exclusive */
    return true;
}

static bool is_this_unit(const struct scsi_unit *u, const uint8_t *d)
{
    uint8_t kind = d[5] & 0x3f, length = d[7];
    if (length > 20)
        return false;
    if (kind == 0x03)
        return length == sizeof(u->naa) && memcmp(d + 8, u->naa, length) == 0;
    if (kind != 0x01 || length < 8)
        return false;
    char name[8 + 128];
    memset(name, ' ', 8);
    memcpy(name, u->vendor, strlen(u->vendor));
    size_t n = strlen(u->serial);
    memcpy(name + 8, u->serial, n);
    return length <= 8 + n && memcmp(d + 8, name, length) == 0;
}

struct lists {
    const uint8_t *targets, *segments;
    unsigned target_count, segment_count;
};

static struct lists lists_of(const uint8_t *list)
{
    unsigned targets = be_get16(list + 2);
    return (struct lists){
        .targets = list + HEADER,
        .segments = list + HEADER + targets,
        .target_count = targets / TARGET,
        .segment_count = be_get32(list + 8) / SEGMENT,
    };
}

static enum scsi_sense check_lengths(const uint8_t *list, size_t size)
{
    uint64_t targets = be_get16(list + 2), segments = be_get32(list + 8),
             inlined = be_get32(list + 12);
    if (targets + segments > LISTS_MAX || HEADER + targets + segments + inlined > size ||
        targets % TARGET)
        return SENSE_LIST_LENGTH;
    if (inlined)
        return SENSE_BAD_LIST;
    if (targets / TARGET > TARGETS_MAX)
        return SENSE_TOO_MANY_TARGETS;
    if (segments / SEGMENT > SEGMENTS_MAX)
        return SENSE_TOO_MANY_SEGMENTS;
    return SENSE_NONE;
}

static enum scsi_sense check_segment(const struct scsi_unit *u, const struct lists *l,
                                     const uint8_t *d)
{
    uint64_t blocks = be_get16(d + 10);
    if (be_get16(d + 4) >= l->target_count || be_get16(d + 6) >= l->target_count)
        return SENSE_COPY_UNREACHABLE;
    if (!scsi_in_range(u, be_get64(d + 12), blocks) || !scsi_in_range(u, be_get64(d + 20), blocks))
        return SENSE_COPY_RANGE;
    return SENSE_NONE;
}

static enum scsi_sense check_list(const struct scsi_unit *u, const uint8_t *list, size_t size)
{
    enum scsi_sense wrong = check_lengths(list, size);
    if (wrong)
        return wrong;
    struct lists l = lists_of(list);
    for (unsigned i = 0; i < l.target_count; i++) {
        if (l.targets[(size_t)i * TARGET] != TYPE_IDENTIFICATION)
            return SENSE_BAD_TARGET_TYPE;
    }
    /* A segment of another type is of another length: the first one says so. */
    uint32_t segments = be_get32(list + 8);
    for (uint32_t at = 0; at < segments; at += SEGMENT) {
        if (l.segments[at] != TYPE_BLOCK_TO_BLOCK)
            return SENSE_BAD_SEGMENT_TYPE;
        if (segments - at < SEGMENT || be_get16(l.segments + at + 2) != SEGMENT - 4)
            return SENSE_LIST_LENGTH;
    }
    for (unsigned i = 0; i < l.target_count; i++) {
        if (!is_this_unit(u, l.targets + (size_t)i * TARGET))
            return SENSE_COPY_UNREACHABLE;
    }
    for (unsigned i = 0; !wrong && i < l.segment_count; i++)
        wrong = check_segment(u, &l, l.segments + (size_t)i * SEGMENT);
    return wrong;
}

/* ---- copying: phase counts I/Os, reads are even; t->at is the place in the segment ---- */

static bool failed(struct scsi_task *t)
{
    t->nexus->copied.state = FAILED;
    scsi_fail(t, SENSE_COPY_FAILED);
    return false;
}

static bool step_copy(struct scsi_task *t)
{
    struct scsi_unit *u = t->unit;
    struct lists l = lists_of(t->memory);
    uint8_t *work = t->memory + HEADER + LISTS_MAX;
    if (t->error)
        return failed(t);
    if (t->phase++ % 2) { /* read: now it is written */
        const uint8_t *d = l.segments + (size_t)t->nexus->copied.segments * SEGMENT;
        uint64_t to = (be_get64(d + 20) << u->shift) + t->at;
        t->at += t->piece[0].iov_len;
        t->nexus->copied.kilobytes += (uint32_t)(t->piece[0].iov_len >> 10);
        return scsi_step_io(t, STORE_WRITE, to, t->piece[0].iov_len, t->piece, 1);
    }
    for (; t->nexus->copied.segments < l.segment_count; t->nexus->copied.segments++, t->at = 0) {
        const uint8_t *d = l.segments + (size_t)t->nexus->copied.segments * SEGMENT;
        uint64_t total = (uint64_t)be_get16(d + 10) << u->shift;
        if (t->at == total)
            continue;
        t->piece[0] = (struct iovec){work, total - t->at < WORK_BYTES ? total - t->at : WORK_BYTES};
        return scsi_step_io(t, STORE_READ, (be_get64(d + 12) << u->shift) + t->at,
                            t->piece[0].iov_len, t->piece, 1);
    }
    t->nexus->copied.state = COMPLETED;
    return scsi_step_good(t);
}

void scsi_run_copy(struct scsi_task *t)
{
    struct scsi_unit *u = t->unit;
    if (!t->out_wanted) {
        scsi_good(t);
        return;
    }
    const uint8_t *list = scsi_list(t, HEADER);
    if (!list)
        return;
    enum scsi_sense wrong = check_list(u, list, t->size);
    if (wrong) {
        scsi_fail(t, wrong);
        return;
    }
    t->nexus->copied.list = list[0];
    t->nexus->copied.state = GOING;
    t->nexus->copied.segments = 0;
    t->nexus->copied.kilobytes = 0;
    t->memory = mem_realloc(t->memory, HEADER + LISTS_MAX + WORK_BYTES);
    scsi_steps(t, step_copy);
}

/* ---- RECEIVE COPY RESULTS ---- */

static void give_status(struct scsi_task *t)
{
    uint8_t p[12] = {0};
    if (t->nexus->copied.state == NEVER || t->nexus->copied.list != t->cdb[2]) {
        scsi_refuse_field(t, 2);
        scsi_finish(t);
        return;
    }
    be_put32(p, sizeof(p) - 4);
    p[4] = t->nexus->copied.state;
    be_put16(p + 5, t->nexus->copied.segments);
    p[7] = 1; /* in KiB */
    be_put32(p + 8, t->nexus->copied.kilobytes);
    scsi_give(t, p, sizeof(p));
}

static void give_parameters(struct scsi_task *t)
{
    uint8_t p[46] = {0};
    be_put32(p, sizeof(p) - 4);
    be_put16(p + 8, TARGETS_MAX);
    be_put16(p + 10, SEGMENTS_MAX);
    be_put32(p + 12, LISTS_MAX);
    be_put32(p + 16, (uint64_t)UINT16_MAX << t->unit->shift); /* the longest segment */
    be_put16(p + 34, 1);                                      /* copies at a time: in all, */
    p[36] = 1;                                                /* and of one initiator */
    p[37] = t->unit->shift;                                   /* granularity */
    p[43] = 2;
    p[44] = TYPE_BLOCK_TO_BLOCK;
    p[45] = TYPE_IDENTIFICATION;
    scsi_give(t, p, sizeof(p));
}

void scsi_run_copy_results(struct scsi_task *t)
{
    if (t->command->action == PARAMETERS)
        give_parameters(t);
    else if (t->command->action == FAILED_DETAILS)
        scsi_give(t, (const uint8_t[60]){0}, 60);
    else
        give_status(t);
}
