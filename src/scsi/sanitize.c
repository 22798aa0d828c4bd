/*
 * SANITIZE: the whole medium is overwritten with a pattern, or erased (unmapped, which reads as
 * zeroes), so that nothing of what was there can be read. It belongs to the unit, not to the task
 * that asked: neither ABORT TASK nor a reset nor the end of the session stops it, and while it goes
 * on nothing but INQUIRY, REQUEST SENSE and the like is answered.
 *
 *     idle ── SANITIZE ──> going ── done ──> idle
 *                            └── failed ──> failed ── SANITIZE ──> going
 *                                             └── EXIT FAILURE MODE ──> idle
 *
 * A file in the state folder is there while one goes on and after one has failed: so a sanitize that
 * the end of the program cut short is known to have failed when it starts again.
 *
 * A cryptographic erase needs a key that could be thrown away; there is none, so it is not offered.
 */
#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "scsi/rw.h"

enum { OVERWRITE = 1, BLOCK_ERASE = 2, EXIT_FAILURE_MODE = 0x1f };
enum { BIT_IMMED = 0x80, BIT_RESERVED = 0x40, BIT_INVERT = 0x80, HEADER = 4 };

uint16_t scsi_sanitize_progress(const struct scsi_unit *u)
{
    uint64_t total = u->blocks << u->shift;
    return (uint16_t)(u->sanitize.at / (total / 65536 + 1));
}

bool scsi_sanitize_forget(struct scsi_unit *u, const struct scsi_task *t)
{
    struct scsi_task *mine = u->sanitize.task;
    if (mine != t)
        return false;
    u->sanitize.task = NULL;
    scsi_finish(mine);
    return true;
}

bool scsi_check_sanitize(struct scsi_task *t)
{
    uint32_t length = be_get16(t->cdb + 7);
    if (t->cdb[1] & BIT_RESERVED)
        return scsi_refuse_field(t, 1);
    for (unsigned i = 2; i <= 6; i++) {
        if (t->cdb[i])
            return scsi_refuse_field(t, i);
    }
    if (t->command->action != OVERWRITE)
        return !length || scsi_refuse_field(t, 7);
    return (length > HEADER && length <= HEADER + t->unit->block_size) || scsi_refuse_field(t, 7);
}

void scsi_sanitize_init(struct scsi_unit *u, const char *state_dir)
{
    u->sanitize.path = state_dir ? mem_printf("%s/sanitize", state_dir) : NULL;
    u->sanitize.failed = u->sanitize.path && access(u->sanitize.path, F_OK) == 0;
}

/* Whether it is durable that one goes on, or that none does. */
static bool mark(struct scsi_sanitize *s, bool going)
{
    struct err e;
    if (!s->path)
        return true;
    if (going)
        return file_replace(s->path, "", 0, 0600, &e) == 0;
    return unlink(s->path) == 0 || errno == ENOENT;
}

bool scsi_unit_stop(struct scsi_unit *u)
{
    u->sanitize.stopping = true;
    return !u->sanitize.going;
}

static void end(struct scsi_unit *u, int error)
{
    struct scsi_sanitize *s = &u->sanitize;
    struct scsi_task *t = s->task;
    s->task = NULL;
    s->going = false;
    s->failed = error || !mark(s, false);
    free(s->pattern);
    s->pattern = NULL;
    scsi_unit_review(u);
    if (!t)
        return;
    if (error)
        scsi_fail(t, SENSE_SANITIZE_FAILED);
    else
        scsi_good(t);
}

/* The I/O after the last one: of this pass, of the next one, the flush, or none. */
static bool submit(struct scsi_unit *u)
{
    struct scsi_sanitize *s = &u->sanitize;
    uint64_t total = u->blocks << u->shift;
    if (s->at == total && s->op == STORE_WRITE && s->passes > 1) {
        s->passes--;
        s->at = 0;
        for (size_t i = 0; s->invert && i < WORK_BYTES; i++)
            s->pattern[i] = (uint8_t)~s->pattern[i];
    }
    if (s->at == total) {
        if (s->io.op == STORE_FLUSH)
            return false;
        s->io.op = STORE_FLUSH;
        s->io.length = 0;
        s->io.iovs = 0;
    } else {
        /* An erase of everything at once would keep the store from all else for too long. */
        uint64_t piece = s->op == STORE_WRITE ? WORK_BYTES : (uint64_t)64 << 20;
        s->io.op = s->op;
        s->io.offset = s->at;
        s->io.length = total - s->at < piece ? total - s->at : piece;
        s->iov = (struct iovec){s->pattern, s->io.length};
        s->io.iov = &s->iov;
        s->io.iovs = s->op == STORE_WRITE ? 1 : 0;
        s->at += s->io.length;
    }
    store_submit(u->store, &s->io);
    return true;
}

static void go_on(struct scsi_unit *u)
{
    struct scsi_sanitize *s = &u->sanitize;
    bool more = true;
    do {
        s->stepped = false;
        s->stepping = true;
        more = submit(u);
        s->stepping = false;
    } while (more && s->stepped && s->going);
    if (!more)
        end(u, 0);
}

static void io_done(struct store_io *io, int error)
{
    struct scsi_sanitize *s = container_of(io, struct scsi_sanitize, io);
    struct scsi_unit *u = container_of(s, struct scsi_unit, sanitize);
    if (error || s->stopping)
        end(u, error ? error : ECANCELED);
    else if (s->stepping)
        s->stepped = true;
    else
        go_on(u);
}

static void start(struct scsi_task *t, enum store_op op)
{
    struct scsi_unit *u = t->unit;
    struct scsi_sanitize *s = &u->sanitize;
    bool immediate = t->cdb[1] & BIT_IMMED;
    if (!mark(s, true)) {
        free(s->pattern);
        s->pattern = NULL;
        scsi_fail(t, SENSE_INTERNAL);
        return;
    }
    s->op = op;
    s->at = 0;
    s->io = (struct store_io){.op = op, .done = io_done};
    s->going = true;
    s->failed = false;
    s->task = immediate ? NULL : t;
    scsi_unit_review(u);
    if (immediate)
        scsi_good(t);
    go_on(u);
}

static void overwrite(struct scsi_task *t)
{
    struct scsi_sanitize *s = &t->unit->sanitize;
    const uint8_t *list = scsi_list(t, HEADER + 1);
    if (!list)
        return;
    uint32_t length = be_get16(list + 2);
    unsigned passes = list[0] & 0x1f;
    if (!passes) {
        scsi_fail_field(t, 0);
        return;
    }
    if (!length || length > t->unit->block_size || length != t->size - HEADER) {
        scsi_fail_field(t, 2);
        return;
    }
    s->passes = passes;
    s->invert = list[0] & BIT_INVERT;
    s->pattern = mem_alloc(WORK_BYTES);
    /* The pattern begins anew in each block. */
    for (size_t i = 0; i < WORK_BYTES; i++)
        s->pattern[i] = list[HEADER + i % t->unit->block_size % length];
    start(t, STORE_WRITE);
}

void scsi_run_sanitize(struct scsi_task *t)
{
    struct scsi_unit *u = t->unit;
    if (u->sanitize.going) {
        scsi_sense_set(
            t, SENSE_SANITIZING,
            &(struct scsi_sense_more){.has_progress = true, .progress = scsi_sanitize_progress(u)});
        scsi_finish(t);
    } else if (t->command->action == OVERWRITE) {
        overwrite(t);
    } else if (t->command->action == BLOCK_ERASE) {
        start(t, STORE_UNMAP);
    } else {
        u->sanitize.failed = u->sanitize.failed && !mark(&u->sanitize, false);
        scsi_unit_review(u);
        scsi_good(t);
    }
}
