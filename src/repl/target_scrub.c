/*
 * Scrub: sums of one piece after another, asked of all replicas in sync at one point of the order, must be
 * equal. A replica *vouches* for what it says if its data matched its checksums at rest. Who cannot read the piece, or
 * differs from those that vouch for it, is mended from them. A copy that a checksum vouches for is never overwritten, however
 * many say otherwise: if such copies differ, or if copies differ and nobody vouches, it is reported and nothing changes.
 *
 * One that nobody asked for goes on all the time, a piece now and then, so that the whole volume is read once in
 * `scrub_ns`: what rots is found while there are others to mend it from. It begins anywhere, so that targets that end often
 * do not look at the beginning alone.
 */
#include "base/mem.h"
#include "repl/target_impl.h"

bool repl_target_scrub(struct repl_target *t)
{
    if ((t->scrub.active && !t->scrub.slow) || t->phase != ACTIVE)
        return false;
    t->scrub.active = true;
    t->scrub.slow = false;
    t->scrub.tag = 0;
    t->scrub.at = t->scrub.length = 0;
    t->scrub.asked = 0;
    return true;
}

/* Done when what was found is mended, too. */
static bool mending(const struct repl_target *t)
{
    each_peer(t, i) if (t->peer[i].job.state != JOB_NONE && t->peer[i].job.repair) return true;
    return false;
}

static void finish(struct repl_target *t)
{
    if (mending(t))
        return;
    t->scrub.active = false;
    t->ops->admin_done(t->ctx, REPL_SCRUB, 0);
}

static bool rebuilding(const struct repl_target *t)
{
    each_peer(t, i) if (t->peer[i].job.state != JOB_NONE) return true;
    return false;
}

/* The next piece of the slow one, if it is time. */
static void begin_slow(struct repl_target *t)
{
    static const int64_t LEAST = 50 * 1000000LL, MOST = 1000 * 1000000LL;
    if (t->cfg.scrub_ns <= 0 || !t->serving || t->now < t->scrub.slow_next || rebuilding(t))
        return;
    uint64_t pieces = t->view.size / REPL_PIECE + 1;
    int64_t every = t->cfg.scrub_ns / (int64_t)pieces;
    every = every < LEAST ? LEAST : every > MOST ? MOST : every;
    if (!t->scrub.slow_next)
        t->scrub.slow_at = t->owner % pieces * REPL_PIECE;
    if (t->scrub.slow_at >= t->view.size)
        t->scrub.slow_at = 0;
    t->scrub.slow_next = t->now + every;
    t->scrub.active = t->scrub.slow = true;
    t->scrub.at = t->scrub.slow_at;
    t->scrub.length = 0;
    t->scrub.asked = 0;
}

/* True: its one piece is done with. */
static bool end_slow(struct repl_target *t)
{
    if (!t->scrub.slow || !t->scrub.length)
        return false;
    t->scrub.slow_at = t->scrub.at + t->scrub.length;
    t->scrub.active = false;
    return true;
}

static void ask(struct repl_target *t)
{
    if (!t->serving || pace_room(t) <= 0 || (t->cfg.rebuild_rate && t->rate_tokens <= 0))
        return;
    t->scrub.at += t->scrub.length;
    t->scrub.length = 0;
    if (t->scrub.at >= t->view.size) {
        finish(t);
        return;
    }
    uint64_t left = t->view.size - t->scrub.at;
    t->scrub.length = left < REPL_PIECE ? left : REPL_PIECE;
    t->scrub.tag = REPL_TAG_OWN | ++t->tags;
    t->scrub.asked = t->scrub.answered = t->scrub.failed = t->scrub.vouched = 0;
    t->rate_tokens -= (int64_t)t->scrub.length;
    struct repl_msg m = {
        .type = REPL_SUMS, .seq = t->scrub.tag, .offset = t->scrub.at, .count = t->scrub.length};
    each_peer(t, i)
    {
        if (!t->peer[i].insync)
            continue;
        t->scrub.asked |= bit(i);
        target_send(t, i, &m, NULL, 0, NULL);
    }
    pace_turn(t);
}

static size_t sums_size(const struct repl_target *t)
{
    uint64_t block = (uint64_t)1 << t->view.block_shift;
    return (t->scrub.length + block - 1) / block * 8;
}

static bool same_sums(const struct repl_target *t, int a, int b)
{
    return memcmp(t->scrub.sums[a], t->scrub.sums[b], sums_size(t)) == 0;
}

/* Whether all of these say the same. */
static bool agree(const struct repl_target *t, uint16_t links)
{
    int first = links ? __builtin_ctz(links) : 0;
    for (int i = first; i < REPL_LINKS; i++)
        if (links & bit(i) && !same_sums(t, first, i))
            return false;
    return true;
}

static void compare(struct repl_target *t)
{
    uint16_t sound = t->scrub.answered & (uint16_t)~t->scrub.failed;
    uint16_t vouched = sound & t->scrub.vouched;
    if (!sound)
        return;
    /* Those that could read and agree are right where nobody vouches for anything else. */
    uint16_t right = vouched ? vouched : sound;
    if (!agree(t, GUARD(69, false) ? 0 : right)) {
        t->ops->event(t->ctx, REPL_EV_UNDECIDED, (uint64_t)__builtin_popcount(sound), t->scrub.at);
        return;
    }
    int best = __builtin_ctz(right);
    each_peer(t, i)
    {
        bool wrong = t->scrub.failed & bit(i) || (sound & bit(i) && !same_sums(t, best, i));
        if (!(t->scrub.answered & bit(i)) || !wrong)
            continue;
        t->peer[i].scrub_errors++;
        t->ops->event(t->ctx, REPL_EV_MISMATCH, (uint64_t)i, t->scrub.at);
        rebuild_repair(t, i, best, t->scrub.at);
    }
}

bool scrub_flying(const struct repl_target *t)
{
    return t->scrub.active && t->scrub.asked & (uint16_t)~t->scrub.answered;
}

void scrub_turn(struct repl_target *t)
{
    if (!t->scrub.active)
        begin_slow(t);
    if (!t->scrub.active || scrub_flying(t))
        return;
    if (t->scrub.asked && mending(t))
        return; /* a replica is mended in one piece at a time: what is wrong here must not be passed over */
    if (t->scrub.asked)
        compare(t);
    t->scrub.asked = 0;
    if (!end_slow(t))
        ask(t);
}

void scrub_answer(struct repl_target *t, int link, const struct repl_msg *m, const void *payload)
{
    if (!t->scrub.active || m->seq != t->scrub.tag || !(t->scrub.asked & bit(link)))
        return;
    t->scrub.answered |= bit(link);
    if (m->flags & REPL_FAILED || m->length != sums_size(t))
        t->scrub.failed |= bit(link);
    else
        memcpy(t->scrub.sums[link], payload, m->length);
    if (m->flags & REPL_VOUCHED)
        t->scrub.vouched |= bit(link);
}

void scrub_peer_down(struct repl_target *t, int link)
{
    t->scrub.asked &= (uint16_t)~bit(link);
    t->scrub.answered &= (uint16_t)~bit(link);
}
