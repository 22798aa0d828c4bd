/*
 * Tasks: their memory, and the queue from which they run.
 *
 * Data-out stays in the buffers it was received into; each piece is a vector. An initiator that sends
 * it in very many pieces has them copied together, so that vectors are bounded:
 *
 *     pieces <= KEPT_PIECES:  [ref][ref][ref]          no copy
 *     more:                   [ref]...[ref][64K][64K]  the rest is copied into buffers of the task
 *
 * Tasks run in the order in which they became ready. One waits when the answers under way already
 * exceed the session's share, unless there are none; an ORDERED one until it is alone.
 */
#include <assert.h>

#include "iscsi/impl.h"

enum {
    TABLE_VECTORS = IO_SMALL / (sizeof(struct iovec) + sizeof(struct io_buf *)),
    KEPT_PIECES = 32,
    FREE_TASKS_MAX = 512,
};
_Static_assert(SCSI_TRANSFER_MAX / IO_LARGE + KEPT_PIECES + 2 <= TABLE_VECTORS,
               "the largest transfer has vectors enough");

static unsigned slot(uint32_t itt)
{
    return (itt ^ itt >> 8 ^ itt >> 16 ^ itt >> 24) % TASK_HASH;
}

static void reset(struct iscsi_task *t)
{
    /* Not the whole: two kilobytes of it need no clearing. */
    memset(t, 0, offsetof(struct iscsi_task, few_iov));
    t->last_used = 0;
    t->copying = false;
    t->room = TASK_VECTORS;
    t->iov = t->few_iov;
    t->bufs = t->few_bufs;
}

struct iscsi_task *iscsi_task_new(struct iscsi_session *s)
{
    struct list_link *l = list_take(&s->node->free_tasks);
    struct iscsi_task *t = l ? container_of(l, struct iscsi_task, link) : NEW(struct iscsi_task);
    reset(t);
    list_init(&t->queued);
    t->session = s;
    t->serial = ++s->node->serial;
    list_push(&s->tasks, &t->link);
    iscsi_count(&s->node->stats.commands, 1);
    if (++s->commands > atomic_load_explicit(&s->stats.deepest, memory_order_relaxed))
        atomic_store_explicit(&s->stats.deepest, s->commands, memory_order_relaxed);
    return t;
}

void iscsi_task_hash(struct iscsi_task *t)
{
    struct iscsi_task **place = &t->session->by_itt[slot(t->itt)];
    t->next = *place;
    *place = t;
    t->hashed = true;
}

static void unhash(struct iscsi_task *t)
{
    if (!t->hashed)
        return;
    struct iscsi_task **at = &t->session->by_itt[slot(t->itt)];
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->hashed = false;
}

struct iscsi_task *iscsi_task_find(const struct iscsi_session *s, uint32_t itt)
{
    struct iscsi_task *t = s->by_itt[slot(itt)];
    while (t && t->itt != itt)
        t = t->next;
    return t;
}

void iscsi_task_unnumber(struct iscsi_task *t)
{
    if (t->numbered)
        t->session->numbered--;
    t->numbered = false;
}

void iscsi_task_free(struct iscsi_task *t)
{
    struct iscsi_session *s = t->session;
    for (unsigned i = 0; i < t->vectors; i++)
        io_buf_unref(t->bufs[i]);
    io_buf_unref(t->table);
    s->out_bytes -= t->kept;
    unhash(t);
    list_unlink(&t->queued);
    list_unlink(&t->link);
    iscsi_task_unnumber(t);
    s->commands--;
    iscsi_count(&s->node->stats.commands, (uint64_t)-1);
    list_push_front(&s->node->free_tasks, &t->link);
}

/* Vectors. */

static void add_vector(struct iscsi_task *t, struct io_buf *buf, const uint8_t *data, uint32_t n)
{
    assert(t->iov && t->bufs);
    if (t->vectors == t->room && !t->table) {
        t->table = io_buf_new(t->session->node->pool, IO_SMALL);
        struct iovec *iov = (void *)t->table->data;
        struct io_buf **bufs = (void *)(iov + TABLE_VECTORS);
        memcpy(iov, t->iov, t->vectors * sizeof(*iov));
        memcpy(bufs, t->bufs, t->vectors * sizeof(*bufs));
        t->iov = iov;
        t->bufs = bufs;
        t->room = TABLE_VECTORS;
    }
    assert(t->vectors < t->room);
    t->iov[t->vectors] = (struct iovec){(void *)(uintptr_t)data, n};
    t->bufs[t->vectors++] = buf;
}

static void copy_together(struct iscsi_task *t, const uint8_t *data, uint32_t n)
{
    while (n) {
        if (!t->copying || t->last_used == IO_LARGE) {
            struct io_buf *buf = io_buf_new(t->session->node->pool, IO_LARGE);
            add_vector(t, buf, buf->data, 0);
            t->copying = true;
            t->last_used = 0;
        }
        struct iovec *last = &t->iov[t->vectors - 1];
        uint32_t room = IO_LARGE - t->last_used, part = n < room ? n : room;
        memcpy((uint8_t *)last->iov_base + last->iov_len, data, part);
        last->iov_len += part;
        t->last_used += part;
        data += part;
        n -= part;
    }
}

void iscsi_task_keep(struct iscsi_task *t, struct io_buf *buf, const uint8_t *data, uint32_t n)
{
    if (t->kept >= t->want)
        return;
    if (n > t->want - t->kept)
        n = t->want - t->kept;
    struct iovec *last = t->vectors ? &t->iov[t->vectors - 1] : NULL;
    if (t->copying || t->vectors >= KEPT_PIECES)
        copy_together(t, data, n);
    else if (last && t->bufs[t->vectors - 1] == buf &&
             (uint8_t *)last->iov_base + last->iov_len == data)
        last->iov_len += n;
    else
        add_vector(t, io_buf_ref(buf), data, n);
    t->kept += n;
    t->session->out_bytes += n;
}

void iscsi_task_make_room(struct iscsi_task *t, uint32_t n)
{
    uint32_t size = n <= 4 * IO_SMALL ? IO_SMALL : IO_LARGE;
    while (n) {
        uint32_t part = n < size ? n : size;
        struct io_buf *buf = io_buf_new(t->session->node->pool, size);
        add_vector(t, buf, buf->data, part);
        n -= part;
    }
}

/* Running. */

static void task_done(struct scsi_task *scsi)
{
    struct iscsi_task *t = container_of(scsi, struct iscsi_task, scsi);
    struct iscsi_session *s = t->session;
    struct iscsi_node *node = s->node;
    s->running--;
    s->in_bytes -= t->scsi.in_room;
    if (t->ordered)
        s->ordered_running = false;
    if (!t->aborted && s->conn && !s->conn->closing) {
        iscsi_task_answer(t);
    } else {
        bool aborted = t->aborted;
        iscsi_task_free(t);
        if (aborted)
            iscsi_manage_check(node);
    }
    if (!s->conn) {
        if (list_empty(&s->tasks) && !s->ending)
            iscsi_session_end(s);
    } else if (!s->in_run) { /* it came later: who waited may run, and what was answered leaves */
        iscsi_session_run(s);
        iscsi_conn_settle(s->conn);
    }
}

static bool may_run(const struct iscsi_session *s, const struct iscsi_task *t, uint32_t need)
{
    if (s->ordered_running || (t->ordered && s->running))
        return false;
    uint64_t under_way = s->in_bytes + s->conn->out->bytes;
    return !need || !under_way || under_way + need <= s->node->limits.session_in;
}

void iscsi_session_run(struct iscsi_session *s)
{
    if (s->in_run || !s->conn)
        return;
    s->in_run = true;
    struct iscsi_task *t;
    while (s->conn && !s->conn->closing && (t = list_first(&s->ready, struct iscsi_task, queued))) {
        uint32_t need = t->read && t->scsi.in_wanted
                            ? (t->expected < t->scsi.in_wanted ? t->expected : t->scsi.in_wanted)
                            : 0;
        if (!may_run(s, t, need))
            break;
        list_unlink(&t->queued);
        t->scsi.out = t->iov;
        t->scsi.outs = t->vectors;
        t->scsi.out_length = t->kept;
        t->outs = t->vectors;
        if (need)
            iscsi_task_make_room(t, need);
        t->scsi.out = t->iov; /* the table may have moved */
        t->scsi.out_bufs = t->bufs;
        t->scsi.in = t->iov + t->outs;
        t->scsi.ins = t->vectors - t->outs;
        t->scsi.in_room = need;
        t->scsi.done = task_done;
        t->state = TASK_RUNNING;
        s->in_bytes += need;
        s->running++;
        s->ordered_running = t->ordered;
        scsi_task_run(&t->scsi);
    }
    s->in_run = false;
}

void iscsi_task_ready(struct iscsi_task *t)
{
    if (t->refused) {
        iscsi_task_answer(t);
        return;
    }
    t->state = TASK_READY;
    list_push(&t->session->ready, &t->queued);
}

bool iscsi_task_abort(struct iscsi_task *t)
{
    struct iscsi_session *s = t->session;
    if (t->state == TASK_RUNNING) {
        if (!t->aborted) {
            t->aborted = true;
            scsi_task_abort(&t->scsi);
        }
        return false;
    }
    if (s->conn && s->conn->task == t) { /* its PDU is just being read */
        s->conn->task = NULL;
        s->conn->sink = SINK_DROP;
    }
    iscsi_task_free(t);
    return true;
}
