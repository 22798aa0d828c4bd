/*
 * Clients' reads: from one replica in sync, while cf of them have answered pings of late. A read that overlaps a write
 * which is not stable waits (parked), and so does one without a lease; one that a replica fails, or does not answer, is
 * tried elsewhere, and what it failed is mended.
 */
#include <errno.h>

#include "repl/frame.h"
#include "repl/target_impl.h"

bool lease_held(const struct repl_target *t)
{
    uint16_t links = 0;
    each_peer(t, i)
    {
        const struct peer *p = &t->peer[i];
        if (p->ask == ASK_YES && !p->lost && t->now - p->pong < t->cfg.lease_ns / 4 * 3)
            links |= bit(i);
    }
    return GUARD(20, quorum_met(t, links));
}

static bool unstable(const struct repl_target *t, uint64_t offset, uint64_t length)
{
    if (!repl_busy_maybe(&t->busy, offset, length))
        return false;
    for (uint64_t c = t->base; c <= t->last; c++) {
        const struct entry *e = &t->window[c & t->mask];
        if (!e->stable && repl_overlap(e->offset, e->length, offset, length))
            return true;
    }
    return false;
}

/* A read's share of what a replica has to read. */
static uint32_t weight(const struct repl_io *io)
{
    return 1 + (uint32_t)(io->length >> 15);
}

/*
 * A link in sync that has not failed this read; -1: none. The same place is read from the same replica, so that caches
 * hold different parts of the volume, and what is read in order is read ahead; but from the one with the least to read if the
 * other has much more: many small reads, or two large ones, so that several replicas work for who reads much in order.
 */
static int read_link(const struct repl_target *t, uint16_t avoid, uint64_t offset)
{
    enum { MANY = 8 };
    int link[REPL_LINKS], n = 0, best = 0;
    each_peer(t, i)
    {
        const struct peer *p = &t->peer[i];
        if (!GUARD(23, p->insync) || !p->joined || avoid & bit(i))
            continue;
        link[n] = i;
        if (p->reading < t->peer[link[best]].reading)
            best = n;
        n++;
    }
    if (!n)
        return -1;
    int home = (int)((offset >> t->cfg.place_shift) % (unsigned)n);
    return t->peer[link[home]].reading > t->peer[link[best]].reading + MANY ? link[best]
                                                                            : link[home];
}

bool read_issue(struct repl_target *t, struct repl_io *io)
{
    if (t->serving && !io_in_range(t, io)) {
        io_complete(t, io, -ERANGE);
        return true;
    }
    if (!t->serving || !t->read_free_n || !lease_held(t) ||
        !GUARD(24, !unstable(t, io->offset, io->length)))
        return false;
    int link = read_link(t, io->tried, io->offset);
    if (link < 0) {
        io_complete(t, io, -EIO);
        return true;
    }
    uint32_t slot = t->read_free[--t->read_free_n];
    struct read_slot *s = &t->reads[slot];
    s->io = io;
    io->point = (uint64_t)++s->life << 32 | slot;
    io->peer = link;
    io->since = t->now;
    t->peer[link].reads++;
    t->peer[link].reading += weight(io);
    struct repl_msg m = {
        .type = REPL_READ, .seq = io->point, .offset = io->offset, .count = io->length};
    target_send(t, link, &m, NULL, 0, NULL);
    return true;
}

static struct repl_io *end_read(struct repl_target *t, uint64_t tag)
{
    uint32_t slot = (uint32_t)tag;
    if (slot >= t->cfg.reads || !t->reads[slot].io || t->reads[slot].life != tag >> 32)
        return NULL;
    struct repl_io *io = t->reads[slot].io;
    t->reads[slot].io = NULL;
    t->read_free[t->read_free_n++] = slot;
    struct peer *p = &t->peer[io->peer];
    if (p->reads) {
        p->reads--;
        p->reading -= weight(io);
    }
    return io;
}

bool read_answer(struct repl_target *t, int link, const struct repl_msg *m, const struct iovec *iov,
                 int n)
{
    if (m->seq & REPL_TAG_OWN)
        return false;
    uint32_t slot = (uint32_t)m->seq;
    if (slot >= t->cfg.reads || !t->reads[slot].io || t->reads[slot].life != m->seq >> 32 ||
        t->reads[slot].io->peer != link)
        return true;
    struct repl_io *io = end_read(t, m->seq);
    if (m->flags & REPL_FAILED || m->length != io->length) {
        io->tried |= bit(link);
        rebuild_repair(t, link, -1, io->offset);
        list_push(&t->parked, &io->link);
        return true;
    }
    repl_iov_copy(io->iov, io->iov_n, iov, n, 0, m->length);
    io_complete(t, io, 0);
    return true;
}

void read_turn(struct repl_target *t)
{
    struct list_link parked;
    if (list_empty(&t->parked) || !t->serving)
        return;
    list_init(&parked);
    list_splice(&parked, &t->parked);
    struct list_link *l;
    while ((l = list_take(&parked))) {
        struct repl_io *io = container_of(l, struct repl_io, link);
        if (!read_issue(t, io))
            list_push(&t->parked, &io->link);
    }
}

void read_retry(struct repl_target *t, int link, int64_t older, bool all)
{
    for (uint32_t s = 0; s < t->cfg.reads; s++) {
        struct repl_io *io = t->reads[s].io;
        if (!io || (link >= 0 && io->peer != link) || t->now - io->since < older)
            continue;
        uint16_t avoid = (uint16_t)(io->tried | bit(io->peer));
        if (!all && read_link(t, avoid, io->offset) < 0)
            continue;
        end_read(t, io->point);
        if (!all)
            io->tried = avoid;
        list_push(&t->parked, &io->link);
    }
}
