/*
 * Scrub: sums of one piece after another, asked of all replicas in sync at one point of the order, must be
 * equal. What more than half say is right; the others are mended from one of those. Without a majority nothing
 * is changed.
 */
#include "base/mem.h"
#include "repl/target_impl.h"

bool repl_target_scrub(struct repl_target *t)
{
    if (t->scrub.active || t->phase != ACTIVE)
        return false;
    t->scrub.active = true;
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
    t->scrub.asked = t->scrub.answered = t->scrub.failed = 0;
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

/* Of the replicas that could read: those that say the same of this block as most do. */
static uint16_t agree_on(const struct repl_target *t, uint16_t sound, size_t block)
{
    uint16_t most = 0;
    for (int i = 0; i < REPL_LINKS; i++) {
        uint16_t with = 0;
        for (int k = 0; k < REPL_LINKS && sound & bit(i); k++)
            if (sound & bit(k) && t->scrub.sums[i][block] == t->scrub.sums[k][block])
                with |= bit(k);
        if (__builtin_popcount(with) > __builtin_popcount(most))
            most = with;
    }
    return most;
}

static void compare(struct repl_target *t)
{
    uint16_t sound = t->scrub.answered & (uint16_t)~t->scrub.failed, right = sound;
    if (!sound)
        return;
    for (size_t b = 0; b < sums_size(t) / 8; b++) {
        uint16_t agree = agree_on(t, sound, b);
        if (__builtin_popcount(agree) * 2 <= __builtin_popcount(sound)) {
            t->ops->event(t->ctx, REPL_EV_UNDECIDED, (uint64_t)__builtin_popcount(sound),
                          t->scrub.at + (b << t->view.block_shift));
            return;
        }
        right &= agree;
    }
    /* Who is right in every block mends the others; if nobody is, no single source can. */
    int best = right ? __builtin_ctz(right) : -1;
    each_peer(t, i)
    {
        if (!(t->scrub.answered & bit(i)) || right & bit(i))
            continue;
        t->peer[i].scrub_errors++;
        t->ops->event(t->ctx, best < 0 ? REPL_EV_UNDECIDED : REPL_EV_MISMATCH, (uint64_t)i,
                      t->scrub.at);
        if (best >= 0)
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
        return;
    if (scrub_flying(t))
        return;
    if (t->scrub.asked && mending(t))
        return; /* a replica is mended in one piece at a time: what is wrong here must not be passed over */
    if (t->scrub.asked)
        compare(t);
    t->scrub.asked = 0;
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
}

void scrub_peer_down(struct repl_target *t, int link)
{
    t->scrub.asked &= (uint16_t)~bit(link);
    t->scrub.answered &= (uint16_t)~bit(link);
}
