/*
 * The pace of rebuilds, and of scrubs, whose pieces are compared one at a time anyway. Without clients: as many pieces at a time as there may be. While clients are busy, that
 * is until IDLE after the last request: one piece at a time, and a pause after it.
 *
 *     requests     ├──┤   ├───┤    ├─────────┤ ├──┤    ├──┤ ├───────┤
 *     pieces                         ├───┤                    ├───┤
 *                  calm   calm     loaded      calm    calm loaded
 *
 * A request that had a piece in its way is loaded, any other is calm. If the loaded ones take more than twice as long
 * as the calm ones, the pause doubles; else it becomes shorter by an eighth. It is never below the time that the
 * piece took, so that rebuilds have at most half of the time, nor below two latencies, so that there are
 * always calm requests to compare with; and never above MOST, so that a rebuild comes to its end.
 */
#include "repl/target_impl.h"

static const int64_t IDLE = 100 * 1000000LL, MOST = 50 * 1000000LL;

/* A volume that does not serve makes its clients wait for the rebuild itself. */
static bool busy(const struct repl_target *t)
{
    return t->serving && t->pace.client_at && t->now - t->pace.client_at < IDLE;
}

void pace_came(struct repl_target *t)
{
    t->pace.client_at = t->now;
}

static void mean(int64_t *m, int64_t latency)
{
    *m = *m ? *m + (latency - *m) / 32 : latency;
}

void pace_complete(struct repl_target *t, const struct repl_io *io)
{
    struct pace *p = &t->pace;
    p->client_at = t->now;
    if (io->op == REPL_IO_FLUSH)
        return;
    bool loaded = p->flying || p->ended >= io->since;
    mean(loaded ? &p->loaded : &p->calm, t->now - io->since);
    p->fresh |= loaded;
}

static void piece_ended(struct repl_target *t)
{
    struct pace *p = &t->pace;
    int64_t took = t->now - p->began, least = took > 2 * p->loaded ? took : 2 * p->loaded;
    p->ended = t->now;
    if (!busy(t)) {
        p->next_at = 0;
        return;
    }
    if (p->fresh && p->calm && p->loaded > 2 * p->calm)
        p->pause *= 2;
    else if (p->fresh)
        p->pause -= p->pause / 8;
    p->fresh = false;
    p->pause = p->pause > least ? p->pause : least;
    p->pause = p->pause < MOST ? p->pause : MOST;
    p->next_at = t->now + p->pause;
}

int pace_room(const struct repl_target *t)
{
    if (!busy(t))
        return REPL_FLYING;
    return t->pace.flying || t->now < t->pace.next_at ? 0 : 1;
}

void pace_turn(struct repl_target *t)
{
    struct pace *p = &t->pace;
    int flying = scrub_flying(t);
    each_peer(t, i) flying += t->peer[i].job.state == JOB_READY ? t->peer[i].job.flying : 0;
    if (flying > p->flying)
        p->began = t->now;
    if (flying < p->flying)
        piece_ended(t);
    p->flying = flying;
}
