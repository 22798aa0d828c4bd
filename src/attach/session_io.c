#include <errno.h>
#include <string.h>

#include "attach/session_impl.h"
#include "base/log.h"

enum { ZERO_BYTES = 64 << 10 }; /* written at a time where the target has no WRITE SAME */

_Static_assert(sizeof(struct scsi_iovec) <= sizeof(((struct attach_io *)0)->iov),
               "an I/O has room for libiscsi's vector");

static uint8_t zeroes[ZERO_BYTES];

static void send_io(struct attach_io *io);

static void send_again(struct attach_io *io, bool at_once)
{
    struct attach_session *s = io->session;
    list_unlink(&io->link);
    list_push(&s->waiting, &io->link);
    if (at_once)
        s->again_at = s->now;
    else if (s->again_at <= s->now)
        s->again_at = s->now + AGAIN_TIME;
}

static int errno_of(const struct scsi_task *t)
{
    if (t->sense.key == SCSI_SENSE_DATA_PROTECTION)
        return t->sense.ascq == 0x2707 ? ENOSPC
                                       : EROFS; /* space allocation failed: the pool is full */
    return EIO;
}

static void check_condition(struct attach_io *io, const struct scsi_task *t)
{
    struct attach_session *s = io->session;
    bool same = io->op == ATTACH_UNMAP || io->op == ATTACH_ZERO;
    switch (t->sense.key) {
    case SCSI_SENSE_NO_SENSE:
    case SCSI_SENSE_RECOVERED_ERROR:
    case SCSI_SENSE_UNIT_ATTENTION:
        s->facts.attentions++;
        s->rescan |= t->sense.ascq == SCSI_SENSE_ASCQ_CAPACITY_DATA_HAS_CHANGED;
        send_again(io, true);
        return;
    case SCSI_SENSE_NOT_READY:
    case SCSI_SENSE_COMMAND_ABORTED:
        send_again(io, false);
        return;
    case SCSI_SENSE_ILLEGAL_REQUEST:
        if (same && !s->no_same && t->sense.ascq != SCSI_SENSE_ASCQ_LBA_OUT_OF_RANGE) {
            s->no_same = true; /* zeroes are written instead */
            send_again(io, true);
            return;
        }
        break;
    default:
        break;
    }
    log_error("the target failed an I/O", LOG_U("op", io->op), LOG_U("offset", io->offset + io->at),
              LOG_U("key", t->sense.key), LOG_U("ascq", (unsigned)t->sense.ascq));
    attach_finish(io, errno_of(t));
}

static void io_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    (void)iscsi;
    struct attach_io *io = private;
    struct attach_session *s = io->session;
    struct scsi_task *t = data;
    switch (status) {
    case SCSI_STATUS_GOOD:
        io->at += io->piece;
        if (io->at < io->length)
            send_io(io);
        else
            attach_finish(io, 0);
        break;
    case SCSI_STATUS_CHECK_CONDITION:
        check_condition(io, t);
        break;
    case SCSI_STATUS_BUSY:
    case SCSI_STATUS_TASK_SET_FULL:
    case SCSI_STATUS_TASK_ABORTED:
    case SCSI_STATUS_ACA_ACTIVE:
        send_again(io, false);
        break;
    case SCSI_STATUS_CANCELLED:
    case SCSI_STATUS_ERROR:
    case SCSI_STATUS_TIMEOUT:
        attach_lose(s, "the connection ended"); /* it stays on its list until drop() */
        break;
    default:
        log_error("the target refused an I/O", LOG_U("op", io->op), LOG_I("status", status));
        attach_finish(io, EIO);
        break;
    }
    if (t)
        scsi_free_scsi_task(t);
}

static uint32_t piece_of(const struct attach_io *io, uint64_t most)
{
    uint64_t left = io->length - io->at;
    return (uint32_t)(left < most ? left : most);
}

static void send_io(struct attach_io *io)
{
    struct attach_session *s = io->session;
    uint32_t block = s->facts.block_size;
    uint64_t lba = (io->offset + io->at) / block;
    int lun = (int)s->o.lun;
    struct scsi_task *t = NULL;
    enum attach_op op = io->op;
    bool same = op == ATTACH_UNMAP || op == ATTACH_ZERO;
    struct scsi_iovec iov = {.iov_base = io->data ? io->data + io->at : NULL};
    if (same && s->no_same) {
        op = ATTACH_WRITE;
        iov.iov_base = zeroes;
    }
    io->piece =
        piece_of(io, op == ATTACH_READ || op == ATTACH_WRITE ? s->transfer_most : s->same_most);
    if (iov.iov_base == zeroes)
        io->piece = piece_of(io, ZERO_BYTES);
    iov.iov_len = io->piece;
    struct scsi_iovec *place = memcpy(io->iov, &iov, sizeof(iov));
    switch (op) {
    case ATTACH_READ:
        t = iscsi_read16_iov_task(s->iscsi, lun, lba, io->piece, (int)block, 0, 0, 0, 0, 0, io_done,
                                  io, place, 1);
        break;
    case ATTACH_WRITE:
        t = iscsi_write16_iov_task(s->iscsi, lun, lba, NULL, io->piece, (int)block, 0, 0, io->fua,
                                   0, 0, io_done, io, place, 1);
        break;
    case ATTACH_FLUSH:
        t = iscsi_synchronizecache16_task(s->iscsi, lun, 0, 0, 0, 0, io_done, io);
        break;
    default: /* with UNMAP the target may give the space back, and reads zeroes in any case */
        t = iscsi_writesame16_task(s->iscsi, lun, lba, zeroes, block, io->piece / block, 0,
                                   op == ATTACH_UNMAP && s->unmaps, 0, 0, io_done, io);
        break;
    }
    s->unsent++;
    if (!t) {
        attach_lose(s, "cannot send a command");
        if (!list_is_linked(&io->link))
            list_push(&s->waiting, &io->link);
    }
}

void attach_send_waiting(struct attach_session *s)
{
    if (s->state != READY || s->lost || s->now < s->again_at)
        return;
    struct list_link all;
    list_init(&all);
    list_splice(&all, &s->waiting);
    struct list_link *l;
    while ((l = list_take(&all))) {
        struct attach_io *io = container_of(l, struct attach_io, link);
        list_push(&s->busy, &io->link);
        if (!s->lost)
            send_io(io);
    }
}

void attach_session_submit(struct attach_session *s, struct attach_io *io)
{
    io->session = s;
    io->at = 0;
    io->since = s->now;
    list_init(&io->link);
    bool now = s->state == READY && !s->lost && list_empty(&s->waiting);
    list_push(now ? &s->busy : &s->waiting, &io->link);
    if (now)
        send_io(io);
}
