/*
 * Elections: from greetings to a truth. docs/replication.md §5 has the arguments.
 *
 *     COLLECT: who votes? k of them are here ──> PROMISE: k have promised ──> ACTIVE: the longest is the truth
 *
 * Also the making of a volume that never was: RF replicas that are all blank, or were taken for the same first view
 * before. A first view binds its members: until it is formed they can be taken for the same members only. So of two
 * views that were formed, all members differ; and where the caller names the members there is only one.
 */
#include <errno.h>

#include "repl/target_impl.h"
#include "repl/view.h"

/* The newest view that those who promised (or only greeted) have told. */
static const struct repl_view *newest(const struct repl_target *t, int least)
{
    const struct repl_view *v = NULL;
    each_peer(t, i)
    {
        const struct peer *p = &t->peer[i];
        if (p->hello && (int)p->ask >= least && p->sb.view.flags & REPL_FORMED &&
            (!v || p->sb.view.version > v->version))
            v = &p->sb.view;
    }
    return v;
}

/* The newest view that is known: who told it may have gone, or have a new disk. NULL: none was formed. */
static const struct repl_view *known(const struct repl_target *t, int least)
{
    const struct repl_view *v = newest(t, least);
    return t->view.flags & REPL_FORMED && (!v || v->version < t->view.version) ? &t->view : v;
}

static bool same_members(const struct repl_view *a, const struct repl_view *b)
{
    bool same = a->n == b->n;
    for (int m = 0; same && m < a->n; m++)
        same = repl_view_find(b, &a->member[m].id) >= 0;
    return same;
}

/* A replica that was once taken for a first view is for those members only, and for ever. */
static bool free_for(const struct peer *p, const struct repl_view *v)
{
    return !p->says_lost && (p->blank || GUARD(30, same_members(&p->sb.view, v)));
}

static void add_member(struct repl_view *v, const struct uuid *id)
{
    v->member[v->n++] = (struct repl_member){.id = *id, .flags = REPL_VOTER | REPL_OLD};
}

/* Who makes the volume: those that were named, else the blank ones here, lowest ids first. */
static void choose_members(const struct repl_target *t, struct repl_view *v)
{
    for (int i = 0; i < t->cfg.first_n && !GUARD(31, false); i++)
        add_member(v, &t->cfg.first[i]);
    while (v->n < t->cfg.rf) {
        const struct uuid *low = NULL;
        each_peer(t, i)
        {
            const struct peer *p = &t->peer[i];
            if (p->hello && GUARD(30, p->blank) && !p->says_lost &&
                repl_view_find(v, &p->sb.replica) < 0 &&
                (!low || memcmp(p->sb.replica.bytes, low->bytes, sizeof(low->bytes)) < 0))
                low = &p->sb.replica;
        }
        if (!low)
            return;
        add_member(v, low);
    }
}

/* These are all here, and each is free for it. */
static bool can_form(struct repl_target *t, const struct repl_view *v)
{
    t->view = *v;
    for (int m = 0; m < v->n; m++) {
        int link = view_link(t, &v->member[m].id);
        if (link < 0 || !free_for(&t->peer[link], v))
            return false;
        t->peer[link].lost = false;
    }
    return v->n && v->n == t->cfg.rf;
}

/* A first view: one that was begun and not ended, if its members are here, or a new one. */
static bool form(struct repl_target *t)
{
    const struct repl_view empty = {.version = 1,
                                    .size = t->cfg.size,
                                    .rf = t->cfg.rf,
                                    .cf = t->cfg.cf,
                                    .region_shift = t->cfg.region_shift,
                                    .block_shift = t->cfg.block_shift};
    struct repl_view v = empty;
    each_peer(t, i)
    {
        const struct repl_view *begun = &t->peer[i].sb.view;
        if (!t->peer[i].hello || t->peer[i].blank || t->cfg.first_n || begun->n != t->cfg.rf)
            continue;
        v.n = 0;
        for (int m = 0; m < begun->n; m++)
            add_member(&v, &begun->member[m].id);
        if (can_form(t, &v))
            return true;
    }
    v = empty;
    choose_members(t, &v);
    return can_form(t, &v);
}

/* A voter that is blank, damaged or unreadable, or behind what it once had, or without a snapshot that it must have taken. */
bool has_lost(const struct peer *p, const struct repl_member *m, const struct repl_view *v)
{
    bool whole = !p->blank && !p->says_lost && !p->unreadable && p->sb.pos >= m->floor;
    for (int i = 0; i < v->snaps.n; i++)
        if (p->sb.pos > v->snaps.at[i].pos && !repl_held_has(&p->sb.held, v->snaps.at[i].id))
            whole = false;
    return m->flags & (REPL_VOTER | REPL_OLD) && !GUARD(14, whole);
}

static void take_view(struct repl_target *t, const struct repl_view *v)
{
    t->view = *v;
    view_strike(t);
    for (int m = 0; m < t->view.n; m++) {
        struct repl_member *it = &t->view.member[m];
        it->flags &= (uint8_t)~REPL_INSYNC;
        int link = view_link(t, &it->id);
        if (link >= 0)
            t->peer[link].lost = has_lost(&t->peer[link], it, &t->view);
    }
}

void ask_promise(struct repl_target *t, int link)
{
    struct repl_msg m = {.type = REPL_PROMISE, .seq = t->owner};
    t->peer[link].ask = ASK_SENT;
    t->peer[link].view_sent = t->peer[link].view_ok = 0;
    target_send(t, link, &m, NULL, 0, NULL);
}

void collect(struct repl_target *t)
{
    const struct repl_view *v = known(t, ASK_NO);
    if (v)
        take_view(t, v);
    else if (!t->cfg.create || !form(t))
        return;
    view_sets(t);
    uint16_t here = 0;
    uint32_t epoch = t->epoch;
    each_peer(t, i)
    {
        struct peer *p = &t->peer[i];
        if (p->hello) {
            here |= bit(i);
            epoch = p->sb.promised > epoch ? p->sb.promised : epoch;
        }
    }
    /* Another has written since: what clients wait for here must not be sent again. */
    if (t->was_active && !GUARD(28, epoch == t->epoch)) {
        target_fenced(t, epoch);
        return;
    }
    for (int i = 0; i < 2; i++)
        if (__builtin_popcount(here & t->q[i].links) < t->q[i].meet)
            return;
    if (epoch >= REPL_EPOCH_LAST)
        return; /* the next one would be taken for the first */
    t->epoch = epoch + 1;
    t->owner = (t->cfg.owner_seed + ++t->attempts) * 0x9e3779b97f4a7c15u | 1;
    t->phase = PROMISE;
    t->elect_at = t->now;
    each_peer(t, i) if (t->peer[i].hello && view_link(t, &t->peer[i].sb.replica) == i)
        ask_promise(t, i);
}

/* Enough have promised: of each set k that are not lost, and k whose memory is whole, or all, or it took long. */
static bool enough_promised(struct repl_target *t, bool *ret_doubt)
{
    uint16_t yes = 0, whole = 0, lost = 0;
    each_peer(t, i)
    {
        const struct peer *p = &t->peer[i];
        if (p->ask != ASK_YES)
            continue;
        if (p->lost) {
            lost |= bit(i);
            continue;
        }
        yes |= bit(i);
        if (p->intact || !p->pos)
            whole |= bit(i);
    }
    bool late = t->cfg.grace_ns >= 0 && t->now - t->elect_at >= t->cfg.grace_ns;
    bool forming = !(t->view.flags & REPL_FORMED);
    *ret_doubt = false;
    for (int i = 0; i < 2; i++) {
        struct quorum *q = &t->q[i];
        int n = __builtin_popcount(yes & q->links);
        if (forming && n < t->view.rf)
            return false;
        unsigned voters = repl_view_count(&t->view, i ? REPL_OLD : REPL_VOTER);
        bool all = __builtin_popcount((yes | lost) & q->links) == (int)voters;
        bool sure = __builtin_popcount(whole & q->links) >= q->meet;
        bool memory = sure || all || late;
        *ret_doubt |= !sure;
        if (!n || !GUARD(15, n >= q->meet && GUARD(29, memory)))
            return false;
    }
    if (*ret_doubt)
        t->ops->event(t->ctx, REPL_EV_MAYBE_LOST, 0, 0);
    return true;
}

/* Those who have promised are still free for the first view. */
static bool still_free(const struct repl_target *t)
{
    bool free = true;
    each_peer(t, i) if (t->peer[i].ask == ASK_YES) free = free && free_for(&t->peer[i], &t->view);
    return free;
}

void elect(struct repl_target *t)
{
    if (!(t->view.flags & REPL_FORMED) && (newest(t, ASK_NO) || !still_free(t))) {
        target_restart(t); /* it was made before, or another has begun to make it */
        return;
    }
    /* Also when no view is new: who came since may have lost what it had. */
    const struct repl_view *v = known(t, ASK_YES);
    if (v)
        take_view(t, v);
    view_sets(t);
    each_peer(t, i)
    {
        struct peer *p = &t->peer[i];
        if (p->hello && p->ask == ASK_NO && view_link(t, &p->sb.replica) == i)
            ask_promise(t, i);
    }
    bool doubt;
    if (!enough_promised(t, &doubt))
        return;
    int best = -1;
    each_peer(t, i)
    {
        const struct peer *p = &t->peer[i];
        bool votes = bit(i) & (t->q[0].links | t->q[1].links);
        if (p->ask != ASK_YES || p->lost || !votes)
            continue;
        /* Of those who have everything, one that has the snapshots too. */
        bool better = best >= 0 && p->pos == t->peer[best].pos &&
                      repl_held_lacks(&p->held, &t->view.snaps) <
                          repl_held_lacks(&t->peer[best].held, &t->view.snaps);
        if (best < 0 || better || GUARD(16, p->pos > t->peer[best].pos))
            best = i;
    }
    if (best < 0)
        return;
    struct peer *p = &t->peer[best];
    t->lineage = p->sb.lineage;
    repl_lineage_add(&t->lineage, p->pos, t->epoch, t->owner);
    client_elected(t, p->pos, doubt);
    t->truth = best;
    t->phase = ACTIVE;
    t->changed = true;
    t->frozen_since = t->now;
    view_restamp(t);
    t->ops->event(t->ctx, REPL_EV_EPOCH, t->epoch, 0);
}

/*
 * The only one in sync cannot read what all others must be compared with. They are elected without it, as if it were away: any k
 * of them have every acknowledged write. It counts as lost until it is rebuilt. This is done only if nothing is lost by it that
 * this one has: k of them have their memory, or one of them is as far. (Else it is better to wait.)
 */
bool elect_without(struct repl_target *t, int link)
{
    const struct repl_lineage *l = &t->lineage;
    uint64_t adopted = l->n > 1 ? l->at[l->n - 2].end : 0;
    uint64_t has = t->last ? repl_pos(t->epoch, t->last) : adopted;
    if (t->serving || t->insync != bit(link))
        return false;
    for (int k = 0; k < 2; k++) {
        int n = 0, whole = 0;
        bool as_far = false;
        each_peer(t, i)
        {
            const struct peer *p = &t->peer[i];
            if (i == link || p->ask != ASK_YES || p->lost || !(t->q[k].links & bit(i)))
                continue;
            n++;
            whole += p->intact;
            as_far |= p->pos >= has;
        }
        if (n < t->q[k].meet || (whole < t->q[k].meet && !as_far))
            return false;
    }
    t->peer[link].unreadable = true;
    t->ops->event(t->ctx, REPL_EV_UNREADABLE, (uint64_t)link, 0);
    target_restart(t);
    return true;
}
