/*
 * Snapshots of a life: what administrators do with them, and what must be in them. Each that is known to be taken has a
 * content that the model allowed at that moment; it must never change, be on every replica at the end, and be what is
 * read after the way back to it.
 *
 *     back:  no more requests ──all done──> asked for ──failed, or the target is gone──> asked for again
 *                                              ├──done──> the model goes on from the snapshot
 *                                              └──there are later ones──> given up
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "repl/view.h"
#include "sim.h"

static const struct repl_snaps *snaps_of(const struct sim *s, int t)
{
    return repl_target_snaps(s->target[t].core);
}

static int known(const struct sim *s, const char *name)
{
    for (int i = 0; i < SNAPS_MAX; i++)
        if (strcmp(s->snap[i].name, name) == 0)
            return i;
    return -1;
}

static void say(struct sim *s, const char *what, int t)
{
    sim_trace(s, "target %d: %s %s", t, what, s->admin_name);
}

static void take(struct sim *s, int t, enum repl_admin *ret_op)
{
    snprintf(s->admin_name, sizeof(s->admin_name), "s%lu", ++s->snap_names);
    if (repl_target_snapshot(s->target[t].core, s->admin_name, 1) == 0)
        *ret_op = REPL_SNAPSHOT;
    say(s, "snapshot", t);
}

static void delete_one(struct sim *s, int t, enum repl_admin *ret_op)
{
    const struct repl_snaps *all = snaps_of(s, t);
    snprintf(s->admin_name, sizeof(s->admin_name), "%s", all->at[sim_below(s, all->n)].name);
    if (repl_target_snap_delete(s->target[t].core, s->admin_name))
        return;
    *ret_op = REPL_SNAP_DELETE;
    int i = known(s, s->admin_name);
    if (i >= 0) /* it may be gone from now on */
        s->snap[i].name[0] = '\0';
    say(s, "deletes", t);
}

void snaps_go_back(struct sim *s)
{
    int t = sim_serving_target(s);
    if (t < 0 || s->admin || s->back || s->lossy || s->stage != RUN)
        return;
    const struct repl_snaps *all = snaps_of(s, t);
    if (!all->n || known(s, all->at[all->n - 1].name) < 0)
        return;
    snprintf(s->admin_name, sizeof(s->admin_name), "%s", all->at[all->n - 1].name);
    s->back = BACK_WAIT;
    s->quiet = true;
    say(s, "is to go back to", t);
}

void snaps_admin(struct sim *s, int t, enum repl_admin *ret_op)
{
    const struct repl_snaps *all = snaps_of(s, t);
    uint64_t what = sim_below(s, 10);
    if (all->n == 0 || (what < 5 && all->n < SNAPS_MAX)) {
        take(s, t, ret_op);
    } else if (what < 7 || known(s, all->at[all->n - 1].name) < 0 || s->lossy) {
        delete_one(s, t, ret_op);
    } else {
        snaps_go_back(s);
    }
}

static void end_back(struct sim *s)
{
    s->back = BACK_NO;
    s->quiet = s->stage > HEAL;
    s->read_next = -1;
}

bool snaps_turn(struct sim *s)
{
    int t = sim_serving_target(s);
    if (s->back != BACK_WAIT || !sim_idle(s) || t < 0 || s->target[t].p.frozen_until > s->now)
        return s->back != BACK_NO;
    model_check(s);
    int status = repl_target_revert(s->target[t].core, s->admin_name);
    if (status == -ENOENT)
        sim_fail(s, "snapshot %s is gone", s->admin_name);
    if (status == -ENOTEMPTY) /* a target that was replaced said that it is the last one */
        end_back(s);
    if (status == 0) {
        s->back = BACK_ASKED;
        s->admin_target = t;
        say(s, "goes back to", t);
        target_turn(s, t);
    }
    return true;
}

void snaps_back(struct sim *s, int target, int status)
{
    if (!s->back)
        return;
    if (status) {
        s->back = BACK_WAIT;
        return;
    }
    say(s, "went back to", target);
    model_reset(s, s->snap[known(s, s->admin_name)].values);
    s->doubt = false;
    end_back(s);
}

/* Taken: it is on a quorum, the same everywhere, and nothing in it is from the past. */
void snaps_done(struct sim *s, int target, enum repl_admin op)
{
    const struct repl_snaps *all = snaps_of(s, target);
    int named = repl_snap_named(all, s->admin_name), slot = known(s, "");
    const uint8_t *first = NULL;
    if (op == REPL_SNAP_DELETE || named < 0 || slot < 0) {
        if ((named >= 0) != (op == REPL_SNAPSHOT))
            sim_fail(s, "snapshot %s is %s the view", s->admin_name, named < 0 ? "not in" : "in");
        return;
    }
    for (int i = 0; i < REPLICAS; i++) {
        const struct disk *d = &s->replica[i].disk;
        int k = disk_find(d, all->at[named].id);
        if (k < 0)
            continue;
        if (first && memcmp(first, d->snap[k].data, s->size) != 0)
            sim_fail(s, "snapshot %s differs between replicas", s->admin_name);
        first = d->snap[k].data;
    }
    if (!first) {
        sim_fail(s, "snapshot %s is nowhere", s->admin_name);
        return;
    }
    memset(s->snap[slot].values, 0, sizeof(s->snap[slot].values));
    snprintf(s->snap[slot].name, REPL_SNAP_NAME, "%s", s->admin_name);
    for (uint64_t i = 0; i < s->size / SECTOR; i++) {
        uint64_t v = s->snap[slot].values[i] = sim_value(s, first + i * SECTOR);
        /* What was before a loss is not known any more. */
        if (!s->lossy && s->admin_started > s->reset_at &&
            !model_in_snapshot(s->model, i, v, s->admin_started))
            sim_fail(s, "snapshot %s: sector %lu has value %lu from the past", s->admin_name, i, v);
    }
}

static void check_one(struct sim *s, int replica, const struct repl_snap *snap,
                      const uint8_t **first)
{
    const struct disk *d = &s->replica[replica].disk;
    int k = disk_find(d, snap->id), i = known(s, snap->name);
    if (k < 0) {
        sim_fail(s, "replica %d has no snapshot %s", replica, snap->name);
        return;
    }
    if (*first && memcmp(*first, d->snap[k].data, s->size) != 0)
        sim_fail(s, "snapshot %s differs between replicas at the end", snap->name);
    *first = d->snap[k].data;
    for (uint64_t at = 0; i >= 0 && at < s->size / SECTOR; at++)
        if (sim_value(s, d->snap[k].data + at * SECTOR) != s->snap[i].values[at])
            sim_fail(s, "snapshot %s of replica %d has changed in sector %lu", snap->name, replica,
                     at);
}

/* All replicas are healthy: all have all snapshots. */
void snaps_check(struct sim *s)
{
    int t = sim_serving_target(s);
    const struct repl_snaps *all = snaps_of(s, t);
    struct repl_status st;
    repl_target_status(s->target[t].core, &st);
    for (int i = 0; i < SNAPS_MAX; i++)
        if (s->snap[i].name[0] && repl_snap_named(all, s->snap[i].name) < 0)
            sim_fail(s, "snapshot %s is gone", s->snap[i].name);
    for (int k = 0; k < all->n; k++) {
        const uint8_t *first = NULL;
        for (int m = 0; m < st.n && !s->failure.failed; m++)
            if (st.replica[m].link >= 0 && strcmp(st.replica[m].mode, "Healthy") == 0)
                check_one(s, st.replica[m].link, &all->at[k], &first);
    }
}
