/*
 * Snapshots. Which there are is in the view, so it is as durable as who votes; what replicas have is what they say.
 *
 *   snapshot:  SNAP, FLUSH to all in sync ──all have it, durably──> view with it ──committed──> done
 *   delete:    view without it ──committed──> done; SNAP_DROP to who has it, now or when it comes
 *   revert:    REVERT: a write to everything that was written since, in the order of writes ──durable on cf──> done
 *
 * Invariants:
 *   - Who is in sync has every snapshot of the view. SNAP stands in the order of everyone in sync; a replica that is
 *     being rebuilt meanwhile begins anew, with the snapshot that it lacks first; none begins while one is taken.
 *   - A snapshot of any view is on cf voters, with everything up to its position durable. So is, among any k of them,
 *     one that has it, and nobody without it is further.
 *   - A replica is told to drop one only when a view without it is committed: nobody will miss it.
 */
#include <errno.h>

#include "base/mem.h"
#include "repl/target_impl.h"
#include "repl/view.h"

bool snap_taking(const struct repl_target *t)
{
    return t->admin == REPL_SNAPSHOT && t->prepared;
}

static void start(struct repl_target *t)
{
    each_peer(t, i) if (t->peer[i].joined && !t->peer[i].insync && !GUARD(32, false))
        rebuild_stop(t, i);
    t->admin_snap.id = (uint64_t)t->epoch << 32 | ++t->snap_ids;
    t->admin_snap.pos = repl_pos(t->epoch, t->last);
    t->admin_snap.size = t->view.size;
    t->admin_arg = t->admin_snap.id;
    admin_start(t, REPL_SNAP);
    each_peer(t, i) if (t->insync & bit(i)) io_flush_peer(t, i);
}

/* Whoever has it has everything before it durably. */
static bool durable(const struct repl_target *t)
{
    each_peer(t, i) if (t->admin_ok & bit(i) &&
                        t->peer[i].durable < repl_pos_count(t->admin_snap.pos)) return false;
    return true;
}

void snap_progress(struct repl_target *t)
{
    if (t->admin == REPL_SNAPSHOT && !t->prepared && t->serving && !t->next.version)
        start(t);
    if (t->admin == REPL_SNAPSHOT && t->prepared && !t->admin_wait &&
        repl_snap_find(&t->view.snaps, t->admin_arg) < 0 && !t->next.version &&
        (t->admin_failed || !quorum_met(t, t->admin_ok & counted(t))))
        admin_end(t, t->admin_failed ? -EIO : -EAGAIN);
    if (t->admin == REPL_BACK && t->revert_status <= 0)
        admin_end(t, t->revert_status);
}

void snap_change(struct repl_target *t, struct repl_view *v)
{
    int i = repl_snap_find(&v->snaps, t->admin_snap.id);
    bool done = (t->admin == REPL_SNAPSHOT && i >= 0) || (t->admin == REPL_SNAP_DELETE && i < 0);
    if (done) {
        admin_end(t, 0);
    } else if (snap_taking(t) && GUARD(49, !t->admin_wait) && GUARD(41, durable(t))) {
        v->snaps.at[v->snaps.n++] = t->admin_snap;
    } else if (t->admin == REPL_SNAP_DELETE) {
        v->snaps.n--;
        memmove(&v->snaps.at[i], &v->snaps.at[i + 1],
                (size_t)(v->snaps.n - i) * sizeof(v->snaps.at[0]));
        memset(&v->snaps.at[v->snaps.n], 0, sizeof(v->snaps.at[0]));
    }
}

void snap_drop(struct repl_target *t, int link, uint64_t id)
{
    struct repl_msg m = {.type = REPL_SNAP_DROP, .seq = id};
    repl_held_drop(&t->peer[link].held, id);
    target_send(t, link, &m, NULL, 0, NULL);
}

/* Taken by a target that could not finish it, or deleted: no view will have it. */
static bool is_stray(const struct repl_target *t, uint64_t id)
{
    return repl_snap_find(&t->view.snaps, id) < 0 &&
           (!t->next.version || repl_snap_find(&t->next.snaps, id) < 0) &&
           !(t->admin == REPL_SNAPSHOT && id == t->admin_arg);
}

void snap_turn(struct repl_target *t)
{
    if (t->view.version >> 32 != t->epoch)
        return; /* whether what is not in it was deleted is not certain yet */
    each_peer(t, i)
    {
        struct peer *p = &t->peer[i];
        if (p->ask != ASK_YES || p->view_ok >> 32 != t->epoch || p->job.state == JOB_SNAP)
            continue;
        for (int k = p->held.n; k-- > 0;)
            if (is_stray(t, p->held.id[k]))
                snap_drop(t, i, p->held.id[k]);
    }
}

static bool somebody_has(const struct repl_target *t, uint64_t id)
{
    each_peer(t, i) if (t->peer[i].insync && repl_held_has(&t->peer[i].held, id)) return true;
    return false;
}

/* What comes after it in the replica's store must go first: snapshots are made in their order. */
int snap_missing(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    while (p->lost && !p->purged && p->held.n)
        snap_drop(t, link, p->held.id[p->held.n - 1]);
    p->purged = true;
    int missing = -1;
    for (int i = 0; i < t->view.snaps.n; i++) {
        uint64_t id = t->view.snaps.at[i].id;
        if (missing >= 0 && repl_held_has(&p->held, id))
            snap_drop(t, link, id);
        else if (missing < 0 && !repl_held_has(&p->held, id) && somebody_has(t, id))
            missing = i;
    }
    return missing;
}

static bool good_name(const char *name)
{
    return name[0] && strlen(name) < REPL_SNAP_NAME;
}

int repl_target_snapshot(struct repl_target *t, const char *name, uint64_t created)
{
    if (!good_name(name))
        return -EINVAL;
    if (repl_snap_named(&t->view.snaps, name) >= 0)
        return -EEXIST;
    if (t->view.snaps.n == REPL_SNAPS)
        return -ENOSPC;
    if (!admin_begin(t, REPL_SNAPSHOT, 0))
        return -EBUSY;
    t->admin_snap = (struct repl_snap){.created = created};
    memcpy(t->admin_snap.name, name, strlen(name));
    return 0;
}

/* Begins something with a snapshot that there is. */
static int begin(struct repl_target *t, enum repl_admin op, const char *name)
{
    int i = repl_snap_named(&t->view.snaps, name);
    if (i < 0)
        return -ENOENT;
    if (op == REPL_BACK && i + 1 < t->view.snaps.n)
        return -ENOTEMPTY;
    if (!admin_begin(t, op, 0))
        return -EBUSY;
    t->admin_snap = t->view.snaps.at[i];
    return 0;
}

int repl_target_snap_delete(struct repl_target *t, const char *name)
{
    return begin(t, REPL_SNAP_DELETE, name);
}

int repl_target_revert(struct repl_target *t, const char *name)
{
    int status = begin(t, REPL_BACK, name);
    if (status)
        return status;
    t->revert = (struct repl_io){.op = REPL_IO_REVERT, .flags = REPL_FUA, .length = t->view.size};
    t->revert_status = 1;
    list_init(&t->revert.link);
    list_push(&t->queue, &t->revert.link);
    return 0;
}

const struct repl_snaps *repl_target_snaps(const struct repl_target *t)
{
    return &t->view.snaps;
}
