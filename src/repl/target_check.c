/*
 * What is always true of a target after its turn:
 *
 *   T1   Who is in sync is connected, has promised this epoch and gets every write; only a target that was elected has such.
 *   T2   It serves only when elected, with a view that was formed and is of its epoch, and cf voters in sync.
 *   T3   The window has not more writes than it may, and none beyond the last.
 *   T4   A write counts as acknowledged by a link only if that link is in sync and has applied it.
 *   T5   A write is owed only to who gets every write and has not applied it.
 *   T6   A client that waits for a write that is stable waits for it to be durable.
 *   T7   Nobody has applied, or has durably, more than was written.
 *   T8   Reads under way are counted, by link and in all.
 *   T9   Flushes and durable writes that wait are counted, in order, and of writes that there are.
 *   T10  A rebuild waits for entries, a snapshot or its end only when no piece is under way; pieces under way are counted.
 *   T11  Who is in sync is mended at most; who is rebuilt has promised this epoch.
 *   T12  A view that is proposed is newer than the one that counts; nobody confirmed more than it was sent.
 *   T13  The history of an elected target ends with its own epoch; the one before ends where the truth is.
 *   T14  Who is in sync has every snapshot of the view.
 *   T15  No answer to a ping is from the future.
 *   T16  There is a truth only as long as nobody is in sync.
 *   T17  A target that is fenced has no links and does not serve.
 *
 * The simulator looks after every turn, and so do debug and sanitizer builds. Of a long window only both ends are looked at.
 */
#include "repl/target_impl.h"
#include "repl/view.h"

enum { NEAR = 32 }; /* writes looked at, at each end of the window */

static const char *check_link(const struct repl_target *t, int i)
{
    const struct peer *p = &t->peer[i];
    const struct job *j = &p->job;
    bool insync = p->open && p->insync;
    if (insync != ((t->insync & bit(i)) != 0) ||
        (insync && (!p->hello || !p->joined || p->ask != ASK_YES || t->phase != ACTIVE)))
        return "T1: in sync without a promise, or without getting every write";
    if (!p->open)
        return NULL;
    if (p->joined && (p->durable > t->last || p->applied > t->last))
        return "T7: more is durable or applied than was written";
    int begun = 0, flying = 0;
    for (int n = 0; n < REPL_PIECES; n++) {
        begun += t->pieces[i][n].state == PIECE_BEGUN;
        flying += t->pieces[i][n].state > PIECE_BEGUN;
    }
    bool waits = j->state == JOB_MAP || j->state == JOB_SNAP || j->state == JOB_DONE;
    if (j->state != JOB_NONE && (flying != j->flying || begun != (int)(j->begins - j->asks) ||
                                 (waits && (begun || flying))))
        return "T10: pieces are under way that are not waited for";
    if (j->state != JOB_NONE && (p->ask != ASK_YES || (p->insync && !j->repair)))
        return "T11: a rebuild of who is in sync, or has not promised";
    if (p->view_ok > p->view_sent)
        return "T12: a view was confirmed that was not sent";
    if (insync && repl_held_lacks(&p->held, &t->view.snaps))
        return "T14: in sync without a snapshot of the view";
    if (p->pong > t->now)
        return "T15: a ping was answered before it was sent";
    return NULL;
}

static const char *check_write(const struct repl_target *t, uint64_t count)
{
    const struct entry *e = &t->window[count & t->mask];
    uint16_t have = 0, joined = 0;
    each_peer(t, i)
    {
        if (t->peer[i].applied >= count)
            have |= bit(i);
        if (t->peer[i].joined)
            joined |= bit(i);
    }
    if (e->acks & (uint16_t) ~(have & t->insync))
        return "T4: a write counts as acknowledged by who lacks it, or is not in sync";
    if (e->owed & (uint16_t) ~(joined & ~have))
        return "T5: a write is owed to who has it, or does not get it";
    if (e->stable && e->io && !(e->io->flags & REPL_FUA))
        return "T6: a client was not told that its write is stable";
    return NULL;
}

static const char *check_window(const struct repl_target *t)
{
    uint64_t n = t->last + 1 - t->base;
    if (t->base > t->last + 1 || n > t->cfg.window)
        return "T3: more writes under way than there may be";
    const char *broken = NULL;
    for (uint64_t c = t->base; c <= t->last && !broken; c++) {
        if (c - t->base == NEAR && n > 2 * (uint64_t)NEAR)
            c = t->last - NEAR;
        broken = check_write(t, c);
    }
    return broken;
}

static const char *check_waiting(const struct repl_target *t)
{
    uint32_t syncs = 0, reads = 0;
    uint64_t before = 0;
    list_for_each(&t->syncs, io, struct repl_io, link) {
        if (io->point < before || io->point > t->last)
            return "T9: a flush out of order, or of what was not written";
        before = io->point;
        syncs++;
    }
    if (syncs != t->syncs_n)
        return "T9: the number of flushes that wait is wrong";
    for (int i = 0; i < REPL_LINKS; i++)
        reads += t->peer[i].open ? t->peer[i].reads : 0;
    for (int i = 0; i < REPL_LINKS; i++)
        if (t->peer[i].open && t->peer[i].reading < t->peer[i].reads)
            return "T8: a read that a replica is asked for has no weight";
    return reads + t->read_free_n == t->cfg.reads ? NULL : "T8: the number of reads is wrong";
}

/* Of the view that counts; one that is proposed may want more, and then nothing is acknowledged meanwhile. */
static bool check_quorum(const struct repl_target *t)
{
    uint16_t who = counted(t);
    return __builtin_popcount(who & t->q[0].links) >= t->q[0].cf &&
           __builtin_popcount(who & t->q[1].links) >= t->q[1].cf;
}

const char *repl_target_check(const struct repl_target *t)
{
    const char *broken = NULL;
    if (t->phase == FENCED) {
        each_peer(t, i) return "T17: fenced, and has a link";
        return t->serving ? "T17: fenced, and serves" : NULL;
    }
    if (t->serving && (t->phase != ACTIVE || !(t->view.flags & REPL_FORMED) ||
                       t->view.version >> 32 != t->epoch || !check_quorum(t)))
        return "T2: serves without a view of its epoch, or without a quorum";
    for (int i = 0; i < REPL_LINKS && !broken; i++)
        broken = check_link(t, i);
    if (!broken)
        broken = check_window(t);
    if (!broken)
        broken = check_waiting(t);
    if (broken)
        return broken;
    if (t->next.version && t->next.version <= t->view.version)
        return "T12: a view that is proposed is not newer";
    const struct repl_lineage *l = &t->lineage;
    if (t->phase == ACTIVE &&
        (!l->n || l->at[l->n - 1].epoch != t->epoch || l->at[l->n - 1].owner != t->owner))
        return "T13: the history does not end with this epoch";
    if (t->truth >= 0 && l->n > 1 && l->at[l->n - 2].end != t->peer[t->truth].pos)
        return "T13: the history before does not end where the truth is";
    if (t->truth >= 0 && (t->insync || !t->peer[t->truth].open || t->phase != ACTIVE))
        return "T16: a truth that is gone, or not needed";
    return NULL;
}
