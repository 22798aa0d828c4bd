/*
 * Views: who counts. What the view should say follows from what is there (wanted()); if it says something
 * else, the next version is sent to everybody and counts when a quorum of the old and of the new voters has it.
 * One change at a time, so quorums of neighbouring versions always meet.
 *
 *   ADD:     no member ──> LEARNER ──rebuilt──> VOTER (and old voters still OLD) ──> OLD = VOTER
 *   REMOVE:  VOTER ──> only OLD ──> no member
 */
#include <errno.h>

#include "base/mem.h"
#include "repl/frame.h"
#include "repl/meta.h"
#include "repl/target_impl.h"
#include "repl/view.h"

int view_link(const struct repl_target *t, const struct uuid *id)
{
    if (repl_view_find(&t->view, id) < 0 && (!t->next.version || repl_view_find(&t->next, id) < 0))
        return -1;
    each_peer(t, i) if (t->peer[i].hello && uuid_eq(&t->peer[i].sb.replica, id)) return i;
    return -1;
}

static struct quorum set_of(const struct repl_target *t, const struct repl_view *v, uint8_t flag)
{
    unsigned n = repl_view_count(v, flag);
    struct quorum q = {.cf = (uint8_t)repl_cf(v->cf, n), .meet = (uint8_t)repl_meet(v->cf, n)};
    for (int m = 0; m < v->n; m++) {
        int link = v->member[m].flags & flag ? view_link(t, &v->member[m].id) : -1;
        if (link >= 0)
            q.links |= bit(link);
    }
    return q;
}

void view_sets(struct repl_target *t)
{
    const struct repl_view *next = t->next.version ? &t->next : &t->view;
    t->q[0] = set_of(t, &t->view, REPL_VOTER);
    t->q[1] = set_of(t, &t->view, REPL_OLD);
    t->q[2] = set_of(t, next, REPL_VOTER);
    t->q[3] = set_of(t, next, REPL_OLD);
}

uint16_t counted(const struct repl_target *t)
{
    uint16_t links = t->insync;
    each_peer(t, i) if (t->peer[i].lost) links &= (uint16_t)~bit(i);
    return links;
}

bool quorum_met(const struct repl_target *t, uint16_t links)
{
    for (int i = 0; i < 4; i++)
        if (__builtin_popcount(links & t->q[i].links) < (GUARD(17, false) ? 1 : t->q[i].cf))
            return false;
    return true;
}

void view_tell(struct repl_target *t, int link)
{
    uint8_t block[REPL_SUPER_SIZE];
    const struct repl_view *v = t->next.version ? &t->next : &t->view;
    struct repl_super s = {.generation = 1, .volume = t->cfg.volume, .view = *v};
    repl_super_encode(&s, block);
    struct iovec iov = {block, sizeof(block)};
    struct repl_msg m = {.type = REPL_VIEW,
                         .seq = v->version,
                         .length = sizeof(block),
                         .data_crc = repl_iov_crc(&iov, 1)};
    t->peer[link].view_sent = v->version;
    target_send(t, link, &m, &iov, 1, NULL);
}

static void propose(struct repl_target *t, const struct repl_view *v)
{
    t->next = *v;
    t->next.version =
        t->view.version >> 32 == t->epoch ? t->view.version + 1 : (uint64_t)t->epoch << 32 | 1;
    view_sets(t);
    each_peer(t, i) if (t->peer[i].ask == ASK_YES && view_link(t, &t->peer[i].sb.replica) == i)
        view_tell(t, i);
}

void view_restamp(struct repl_target *t)
{
    propose(t, &t->view);
}

void admin_end(struct repl_target *t, int status)
{
    enum repl_admin op = t->admin;
    t->admin = REPL_ADMIN_NONE;
    t->ops->admin_done(t->ctx, op, status);
}

static bool is_joint(const struct repl_view *v)
{
    for (int m = 0; m < v->n; m++)
        if (!(v->member[m].flags & REPL_VOTER) != !(v->member[m].flags & REPL_OLD))
            return true;
    return false;
}

/* The second half of a change of voters: only the new ones count, and who has no part leaves. */
static void finish_joint(struct repl_view *v)
{
    int n = 0;
    for (int m = 0; m < v->n; m++) {
        struct repl_member *it = &v->member[m];
        it->flags &= (uint8_t)~REPL_OLD;
        if (it->flags & REPL_VOTER)
            it->flags |= REPL_OLD;
        if (it->flags & (REPL_VOTER | REPL_LEARNER))
            v->member[n++] = *it;
    }
    memset(&v->member[n], 0, sizeof(v->member[0]) * (size_t)(REPL_MEMBERS - n));
    v->n = (uint8_t)n;
    v->rf = (uint8_t)repl_view_count(v, REPL_VOTER);
}

static void take_vote(struct repl_view *v, const struct uuid *id)
{
    int m = repl_view_find(v, id);
    if (m >= 0)
        v->member[m].flags &= (uint8_t) ~(REPL_VOTER | REPL_LEARNER);
}

/* Membership as the administrator wants it; 1 when it is so, 0 on the way, negative when it cannot be. */
static int change_members(struct repl_target *t, struct repl_view *v)
{
    int m = repl_view_find(v, &t->admin_id);
    if (t->admin == REPL_REMOVE) {
        if (m < 0)
            return 1;
        if (v->member[m].flags & REPL_VOTER && repl_view_count(v, REPL_VOTER) == 1)
            return -EINVAL;
        take_vote(v, &t->admin_id);
        if (!(v->member[m].flags & REPL_OLD))
            finish_joint(v); /* it never had a vote */
        return 0;
    }
    if (m < 0 && v->n == REPL_MEMBERS)
        return -ENOSPC;
    if (m < 0) {
        v->member[v->n++] = (struct repl_member){.id = t->admin_id, .flags = REPL_LEARNER};
        return 0;
    }
    if (v->member[m].flags & REPL_VOTER)
        return 1;
    if (GUARD(18, v->member[m].flags & t->view.member[m].flags & REPL_INSYNC)) {
        v->member[m].flags = (uint8_t)((v->member[m].flags | REPL_VOTER) & ~REPL_LEARNER);
        if (t->admin_has_out)
            take_vote(v, &t->admin_out);
    }
    return 0;
}

static void note_insync(const struct repl_target *t, struct repl_view *v)
{
    for (int m = 0; m < v->n; m++) {
        struct repl_member *it = &v->member[m];
        int link = view_link(t, &it->id);
        const struct peer *p = link >= 0 ? &t->peer[link] : NULL;
        if (!p || !p->insync) {
            it->flags &= (uint8_t)~REPL_INSYNC;
        } else if (!(it->flags & REPL_INSYNC)) {
            uint64_t durable = repl_pos(t->epoch, MUTANT(109, p->durable, p->applied));
            it->flags |= REPL_INSYNC;
            it->floor = durable > it->floor ? durable : it->floor;
        }
    }
}

static bool same_view(const struct repl_view *a, const struct repl_view *b)
{
    bool same = a->size == b->size && a->flags == b->flags && a->n == b->n && a->rf == b->rf &&
                a->cf == b->cf && a->snaps.n == b->snaps.n;
    for (int i = 0; same && i < a->snaps.n; i++)
        same = a->snaps.at[i].id == b->snaps.at[i].id;
    for (int m = 0; same && m < a->n; m++)
        same = uuid_eq(&a->member[m].id, &b->member[m].id) &&
               a->member[m].flags == b->member[m].flags && a->member[m].floor == b->member[m].floor;
    for (int i = 0; same && i < REPL_CLIENTS; i++)
        same = a->clients.at[i].id == b->clients.at[i].id &&
               a->clients.at[i].owed == b->clients.at[i].owed;
    return same;
}

void admin_start(struct repl_target *t, uint8_t type)
{
    struct repl_msg m = {.type = type, .seq = t->admin_arg};
    t->admin_wait = t->insync;
    t->admin_ok = 0;
    t->admin_failed = false;
    t->prepared = true;
    each_peer(t, i) if (t->insync & bit(i)) target_send(t, i, &m, NULL, 0, NULL);
}

/* A preparation's answers are all in? */
static void admin_progress(struct repl_target *t)
{
    if (!t->prepared) {
        if (t->serving)
            admin_start(t, REPL_PREPARE);
        return;
    }
    if (!t->admin_wait && (t->admin_failed || !quorum_met(t, t->admin_ok & counted(t))))
        admin_end(t, -ENOSPC);
}

void admin_answer(struct repl_target *t, int link, const struct repl_msg *m)
{
    if (!t->admin || m->seq != t->admin_arg || !(t->admin_wait & bit(link)))
        return;
    t->admin_wait &= (uint16_t)~bit(link);
    t->admin_ok |= bit(link);
    t->admin_failed |= (m->flags & REPL_FAILED) != 0;
}

void admin_peer_down(struct repl_target *t, int link)
{
    t->admin_wait &= (uint16_t)~bit(link);
    t->admin_ok &= (uint16_t)~bit(link);
}

static bool all_have(const struct repl_target *t)
{
    unsigned n = 0;
    each_peer(t, i) n += t->q[0].links & bit(i) && t->peer[i].view_ok >= t->view.version;
    return n == repl_view_count(&t->view, REPL_VOTER);
}

void view_step(struct repl_target *t)
{
    if (t->admin == REPL_GROW)
        admin_progress(t);
    snap_progress(t);
    if (t->next.version)
        return;
    struct repl_view v = t->view;
    note_insync(t, &v);
    client_change(t, &v);
    if (!(v.flags & REPL_FORMED)) {
        if (all_have(t))
            v.flags |= REPL_FORMED;
    } else if (is_joint(&v)) {
        finish_joint(&v);
    } else if (t->admin == REPL_ADD || t->admin == REPL_REMOVE) {
        int status = change_members(t, &v);
        if (status)
            admin_end(t, status > 0 ? 0 : status);
    } else if (t->admin == REPL_GROW && t->prepared && !t->admin_wait) {
        if (v.size >= t->admin_arg)
            admin_end(t, 0);
        else
            v.size = t->admin_arg;
    } else {
        snap_change(t, &v);
    }
    if (!same_view(&v, &t->view))
        propose(t, &v);
}

static void commit(struct repl_target *t)
{
    t->view = t->next;
    t->next.version = 0;
    t->changed = true;
    if (t->view.flags & REPL_FORMED)
        t->cfg.create = false;
    t->out_n = 0; /* those who were to be taken out are */
    for (int m = 0; m < t->view.n; m++) {
        int link = view_link(t, &t->view.member[m].id);
        if (link >= 0 && GUARD(50, t->view.member[m].flags & REPL_INSYNC) && t->peer[link].insync)
            t->peer[link].lost = t->peer[link].unreadable = false;
    }
    view_sets(t);
    each_peer(t, i) if (t->peer[i].hello && t->peer[i].ask != ASK_NO &&
                        view_link(t, &t->peer[i].sb.replica) < 0)
        target_drop(t, i, "the replica is no longer a member");
    if (t->phase == ACTIVE)
        io_update(t);
}

void view_ok(struct repl_target *t, int link, uint64_t version)
{
    struct peer *p = &t->peer[link];
    if (version > p->view_sent)
        return;
    p->view_ok = version;
    if (!t->next.version)
        return;
    uint16_t have = 0, sound = 0;
    each_peer(t, i)
    {
        if (t->peer[i].view_ok < t->next.version)
            continue;
        have |= bit(i);
        if (!t->peer[i].lost)
            sound |= bit(i);
    }
    for (int i = 0; i < 4; i++)
        if (__builtin_popcount(have & t->q[i].links) < t->q[i].cf ||
            !GUARD(40, __builtin_popcount(sound & t->q[i].links) >= t->q[i].meet))
            return;
    commit(t);
}

bool admin_begin(struct repl_target *t, enum repl_admin op, uint64_t arg)
{
    if (t->admin || t->phase != ACTIVE)
        return false;
    t->changed = true;
    t->admin = op;
    t->admin_arg = arg;
    t->prepared = false;
    t->admin_has_out = false;
    t->admin_wait = t->admin_ok = 0;
    return true;
}

int repl_target_grow(struct repl_target *t, uint64_t size)
{
    if (size % REPL_SECTOR || size < t->view.size)
        return -EINVAL;
    if (size > repl_view_most(&t->view))
        return -EFBIG;
    return admin_begin(t, REPL_GROW, size) ? 0 : -EBUSY;
}

bool repl_target_add(struct repl_target *t, const struct uuid *id, const struct uuid *instead)
{
    if (!admin_begin(t, REPL_ADD, 0))
        return false;
    t->admin_id = *id;
    t->admin_has_out = instead != NULL;
    if (instead)
        t->admin_out = *instead;
    return true;
}

bool repl_target_remove(struct repl_target *t, const struct uuid *id)
{
    if (!admin_begin(t, REPL_REMOVE, 0))
        return false;
    t->admin_id = *id;
    return true;
}

/* Voters of a view that are here and have what they once had. */
static int sound_voters(const struct repl_target *t, const struct repl_view *v, uint8_t flag)
{
    int n = 0;
    for (int m = 0; m < v->n; m++) {
        int link = v->member[m].flags & flag ? view_link(t, &v->member[m].id) : -1;
        n += link >= 0 && !t->peer[link].lost;
    }
    return n;
}

static bool enough_remain(const struct repl_target *t, const struct repl_view *v, uint8_t flag)
{
    return sound_voters(t, v, flag) >= (int)repl_meet(v->cf, repl_view_count(v, flag));
}

/* The view without a member; a change of voters that was under way goes on with who is left. */
static void strike(struct repl_view *v, int m)
{
    v->n--;
    memmove(&v->member[m], &v->member[m + 1], sizeof(v->member[0]) * (size_t)(v->n - m));
    memset(&v->member[v->n], 0, sizeof(v->member[0]));
    bool voters = repl_view_count(v, REPL_VOTER), old = repl_view_count(v, REPL_OLD);
    for (int i = 0; i < v->n && !(voters && old); i++)
        if (v->member[i].flags & (REPL_VOTER | REPL_OLD))
            v->member[i].flags |= REPL_VOTER | REPL_OLD;
    v->rf = (uint8_t)repl_view_count(v, REPL_VOTER);
}

void view_strike(struct repl_target *t)
{
    for (int i = 0; i < t->out_n; i++) {
        int m = repl_view_find(&t->view, &t->out[i]);
        if (m >= 0)
            strike(&t->view, m);
    }
}

int repl_target_force_out(struct repl_target *t, const struct uuid *id)
{
    struct repl_view v = t->next.version ? t->next : t->view;
    int m = repl_view_find(&v, id);
    if (m < 0 || !(v.flags & REPL_FORMED))
        return -ENOENT;
    if (t->serving)
        return -EALREADY;
    if (view_link(t, id) >= 0)
        return -EBUSY;
    if (!sound_voters(t, &v, REPL_VOTER | REPL_OLD))
        return -EHOSTUNREACH;
    bool kept = enough_remain(t, &v, REPL_VOTER) && enough_remain(t, &v, REPL_OLD);
    /* From whatever view those who promise know by then: this one may be old. */
    if (t->out_n == REPL_MEMBERS)
        return -ENOENT;
    t->out[t->out_n++] = *id;
    target_restart(t);
    view_strike(t);
    view_sets(t);
    t->ops->event(t->ctx, REPL_EV_FORCED, !kept, 0);
    return 0;
}
