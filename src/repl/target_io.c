/*
 * Clients' requests: writes, flushes, and the beginning of reads.
 *
 *     submit ──> queue ──serving──> window: sent to all ──cf have it: stable──> complete
 *                  ^                   │                └─FUA, flush: syncs ──durable on cf──> complete
 *                  └── new epoch ──────┘
 *                parked: reads that wait for a write they overlap, or for the lease
 *
 * The window holds the writes that are not yet on every replica, by count. acks has only links in sync. A write
 * that is stable stays so: at that moment cf voters had it.
 */
#include <errno.h>

#include "repl/frame.h"
#include "repl/target_impl.h"
#include "repl/view.h"

void io_complete(struct repl_target *t, struct repl_io *io, int status)
{
    if (io == &t->revert) {
        t->revert_status = status;
        t->changed = true;
        return;
    }
    pace_complete(t, io);
    t->ops->complete(t->ctx, io, status);
}

static void note_acked(struct repl_target *t, uint64_t count)
{
    if (t->acked < repl_pos(t->epoch, count))
        t->acked = repl_pos(t->epoch, count);
}

static void settle(struct repl_target *t, uint64_t count, uint16_t who)
{
    struct entry *e = &t->window[count & t->mask];
    if (e->stable || !quorum_met(t, MUTANT(111, e->acks & who, e->acks)))
        return;
    e->stable = true;
    repl_busy_count(&t->busy, e->offset, e->length, -1);
    if (e->io && !(e->io->flags & REPL_FUA)) {
        struct repl_io *io = e->io;
        e->io = NULL;
        note_acked(t, count);
        io_complete(t, io, 0);
    }
}

static void advance(struct repl_target *t)
{
    while (t->base <= t->last) {
        const struct entry *e = &t->window[t->base & t->mask];
        if (e->io || e->owed || !e->stable)
            break;
        t->base++;
    }
}

static void settle_syncs(struct repl_target *t)
{
    struct repl_io *io;
    uint16_t who = counted(t);
    while ((io = list_first(&t->syncs, struct repl_io, link))) {
        uint16_t links = 0;
        each_peer(t, i) if (who & bit(i) && t->peer[i].durable + MUTANT(112, 0, 1) >= io->point)
            links |= bit(i);
        if (!t->serving || !GUARD(21, quorum_met(t, links)))
            return;
        list_unlink(&io->link);
        t->syncs_n--;
        int status = 0;
        if (io->op == REPL_IO_FLUSH) {
            status = client_flushed(t, io->client, repl_pos(t->epoch, io->point));
        } else {
            t->window[io->point & t->mask].io = NULL;
            note_acked(t, io->point);
        }
        io_complete(t, io, status);
    }
}

void io_flush_peer(struct repl_target *t, int link)
{
    struct repl_msg m = {.type = REPL_FLUSH, .seq = t->last};
    target_send(t, link, &m, NULL, 0, NULL);
}

void io_ack(struct repl_target *t, int link, uint64_t applied, uint64_t durable)
{
    struct peer *p = &t->peer[link];
    if (applied < p->applied || applied > t->last || durable > applied) {
        target_drop(t, link, "an acknowledgement of what was not sent");
        return;
    }
    uint16_t who = counted(t);
    for (uint64_t c = p->applied + 1; c <= applied; c++) {
        struct entry *e = &t->window[c & t->mask];
        if (e->owed & bit(link))
            p->owed -= e->cost;
        e->owed &= (uint16_t)~bit(link);
        if (GUARD(22, p->insync)) {
            e->acks |= bit(link);
            settle(t, c, GUARD(22, false) ? UINT16_MAX : who);
        }
    }
    p->applied = applied;
    if (durable > p->durable)
        p->durable = durable;
    settle_syncs(t);
    advance(t);
}

void io_update(struct repl_target *t)
{
    uint16_t who = counted(t);
    bool serving = t->phase == ACTIVE && t->view.flags & REPL_FORMED &&
                   t->view.version >> 32 == t->epoch && quorum_met(t, who);
    if (serving != t->serving) {
        t->serving = serving;
        t->has_served |= serving;
        t->frozen_since = t->now;
        t->ops->event(t->ctx, REPL_EV_SERVING, serving, 0);
    }
    if (serving)
        for (uint64_t c = t->base; c <= t->last; c++)
            settle(t, c, who);
    settle_syncs(t);
    advance(t);
}

void io_joined(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    for (uint64_t c = t->base; c <= MUTANT(101, p->applied, t->last) && c <= t->last; c++)
        t->window[c & t->mask].acks |= bit(link);
    if (t->syncs_n)
        io_flush_peer(t, link);
    io_update(t);
}

bool io_in_range(const struct repl_target *t, const struct repl_io *io)
{
    return io->op == REPL_IO_FLUSH ||
           (io->offset <= t->view.size && io->length <= t->view.size - io->offset);
}

static void issue_write(struct repl_target *t, struct repl_io *io)
{
    uint64_t count = ++t->last;
    struct entry *e = &t->window[count & t->mask];
    *e = (struct entry){.io = io,
                        .offset = io->offset,
                        .length = io->length,
                        .cost = io->op == REPL_IO_REVERT ? 0 : io->length,
                        .since = t->now};
    io->point = count;
    client_wrote(t, io->client, repl_pos(t->epoch, count));
    repl_busy_count(&t->busy, io->offset, io->length, 1);
    static const uint8_t types[] = {
        [REPL_IO_WRITE] = REPL_WRITE, [REPL_IO_ZERO] = REPL_ZERO, [REPL_IO_REVERT] = REPL_REVERT};
    bool data = io->op == REPL_IO_WRITE;
    struct repl_msg m = {.type = types[io->op],
                         .flags = io->flags,
                         .seq = count,
                         .offset = io->offset,
                         .count = io->length,
                         .length = data ? (uint32_t)io->length : 0,
                         .data_crc = io->crc};
    if (io == &t->revert) {
        m.offset = t->admin_snap.id;
        m.count = t->admin_snap.pos;
    }
    each_peer(t, i)
    {
        struct peer *p = &t->peer[i];
        if (!p->joined)
            continue;
        e->owed |= bit(i);
        p->owed += e->cost;
        target_send(t, i, &m, io->iov, data ? io->iov_n : 0, io->buf);
    }
    if (io == &t->revert)
        rebuild_reverted(t, t->admin_snap.pos, repl_pos(t->epoch, count));
    if (io->flags & REPL_FUA) {
        list_push(&t->syncs, &io->link);
        t->syncs_n++;
    }
}

static void issue_flush(struct repl_target *t, struct repl_io *io)
{
    io->point = MUTANT(113, t->last, t->base - 1);
    list_push(&t->syncs, &io->link);
    t->syncs_n++;
    each_peer(t, i) if (t->insync & bit(i) && t->peer[i].durable < t->last) io_flush_peer(t, i);
    settle_syncs(t);
}

/*
 * A write with FUA that was stable in an epoch before, and is part of the history that was adopted: every voter in sync has
 * it durably. To send it again would undo what was written over it and acknowledged since.
 */
static bool is_written(const struct repl_target *t, const struct repl_io *io)
{
    return io->point && repl_fork_mark(io->point, &t->lineage) == io->point;
}

static void drain(struct repl_target *t)
{
    struct repl_io *io;
    while (t->serving && (io = list_first(&t->queue, struct repl_io, link))) {
        bool writes = io->op != REPL_IO_FLUSH;
        if (writes && is_written(t, io)) {
            list_unlink(&io->link);
            io->point = 0;
            io_complete(t, io, 0);
            continue;
        }
        if (writes && (t->last + 1 - t->base >= t->cfg.window || !client_known(t, io->client)))
            return;
        list_unlink(&io->link);
        if (!io_in_range(t, io))
            io_complete(t, io, -ERANGE);
        else if (writes)
            issue_write(t, io);
        else
            issue_flush(t, io);
    }
}

void repl_target_submit(struct repl_target *t, struct repl_io *io)
{
    list_init(&io->link);
    io->since = t->now;
    io->tried = 0;
    io->point = 0;
    pace_came(t);
    uint64_t most = io->op == REPL_IO_ZERO ? REPL_MAX_ZERO : REPL_MAX_DATA;
    bool ranged = io->op != REPL_IO_FLUSH;
    if (ranged && (!io->length || io->length > most || (io->offset | io->length) % REPL_SECTOR)) {
        io_complete(t, io, -EINVAL);
        return;
    }
    if (io->op == REPL_IO_READ) {
        if (!read_issue(t, io))
            list_push(&t->parked, &io->link);
        return;
    }
    if (io->op == REPL_IO_WRITE)
        io->crc = repl_iov_crc(io->iov, io->iov_n);
    list_push(&t->queue, &io->link);
    drain(t);
}

void io_peer_down(struct repl_target *t, int link)
{
    for (uint64_t c = t->base; c <= t->last; c++) {
        t->window[c & t->mask].owed &= (uint16_t)~bit(link);
        t->window[c & t->mask].acks &= (uint16_t)MUTANT(114, ~bit(link), ~0);
    }
    read_retry(t, link, 0, true);
    io_update(t);
}

/* Another epoch begins: what clients still wait for is sent again, oldest first, unless it is written (is_written()). */
void io_restart(struct repl_target *t)
{
    struct list_link again;
    list_init(&again);
    for (uint64_t c = t->base; c <= t->last; c++) {
        struct entry *e = &t->window[c & t->mask];
        if (e->io) {
            e->io->point = e->stable ? repl_pos(t->epoch, c) : 0;
            list_unlink(&e->io->link); /* FUA: from syncs */
            list_push(&again, &e->io->link);
        }
    }
    list_splice(&again, &t->syncs); /* flushes */
    list_splice(&again, &t->queue);
    list_splice(&t->queue, &again);
    t->syncs_n = 0;
    t->base = 1;
    t->last = 0;
    memset(&t->busy, 0, sizeof(t->busy));
    read_retry(t, -1, 0, true);
    each_peer(t, i)
    {
        t->peer[i].owed = t->peer[i].applied = t->peer[i].durable = 0;
        t->peer[i].reads = t->peer[i].reading = 0;
    }
    io_update(t);
}

static void fail_list(struct repl_target *t, struct list_link *list, int status)
{
    struct list_link *l;
    while ((l = list_take(list))) {
        struct repl_io *io = container_of(l, struct repl_io, link);
        if (list == &t->syncs) {
            t->syncs_n--;
            if (io->op != REPL_IO_FLUSH)
                t->window[io->point & t->mask].io = NULL;
        }
        io_complete(t, io, status);
    }
}

/* Frozen for too long. What was sent may still happen; the client does not know, and is told so. */
static void fail_all(struct repl_target *t)
{
    read_retry(t, -1, 0, true);
    fail_list(t, &t->parked, -EIO);
    fail_list(t, &t->syncs, -EIO);
    for (uint64_t c = t->base; c <= t->last; c++) {
        struct entry *e = &t->window[c & t->mask];
        struct repl_io *io = e->io;
        e->io = NULL;
        if (io)
            io_complete(t, io, -EIO);
    }
    fail_list(t, &t->queue, -EIO);
}

void io_turn(struct repl_target *t)
{
    drain(t);
    read_turn(t);
}

void io_watch(struct repl_target *t)
{
    read_retry(t, -1, t->cfg.lag_ns, false);
    if (!t->serving && t->cfg.fail_ns && t->now - t->frozen_since > t->cfg.fail_ns)
        fail_all(t);
}
