/*
 * What is shown: the fields of CStorVolume's replica statuses, progress of rebuilds, and the volume's phase.
 */
#include "repl/target_impl.h"
#include "repl/view.h"

static const char *mode_of(const struct peer *p, const struct repl_member *m)
{
    bool is_new = p && (p->lost || !(m->flags & REPL_VOTER));
    bool at_work = p && !p->insync && (p->joined || p->job.state != JOB_NONE);
    if (!p)
        return "Offline";
    if (is_new)
        return at_work ? "ReconstructingNewReplica" : "NewReplicaDegraded";
    if (p->insync)
        return "Healthy";
    return at_work ? "Rebuilding" : "Degraded";
}

static void fill(const struct repl_target *t, const struct repl_member *m,
                 struct repl_status_replica *s)
{
    int link = view_link(t, &m->id);
    const struct peer *p = link >= 0 ? &t->peer[link] : NULL;
    *s = (struct repl_status_replica){.replica_id = m->id,
                                      .mode = mode_of(p, m),
                                      .checkpointed_io_seq = m->floor,
                                      .link = link,
                                      .snapshots_missing = t->view.snaps.n,
                                      .voter = m->flags & REPL_VOTER};
    if (!p)
        return;
    uint64_t durable = p->insync ? repl_pos(t->epoch, p->durable) : p->sb.pos;
    s->checkpointed_io_seq = durable;
    s->inflight_read = p->reads;
    s->inflight_write = p->joined ? (uint32_t)(t->last - p->applied) : 0;
    s->inflight_sync = p->insync && p->durable < t->last ? t->syncs_n : 0;
    s->up_time = (uint32_t)((t->now - p->opened) / 1000000000);
    s->quorum = s->voter && p->ask == ASK_YES && !p->lost;
    s->scrub_errors = p->scrub_errors;
    s->held = p->held;
    s->snapshots_missing = repl_held_lacks(&p->held, &t->view.snaps);
    const struct job *j = &p->job;
    s->rebuild_bytes = j->bytes;
    s->rebuild_copied = j->copied;
    if (p->insync || j->state == JOB_NONE)
        return;
    uint64_t all = (t->view.size >> t->view.region_shift) + 1;
    s->rebuild_percent = (uint32_t)((uint64_t)j->region * 100 / all);
    if (j->region)
        s->rebuild_eta = (uint32_t)((t->now - j->since) / 1000000 * (int64_t)(all - j->region) /
                                    (int64_t)j->region / 1000);
}

struct uuid repl_target_peer(const struct repl_target *t, int link)
{
    return t->peer[link].sb.replica;
}

void repl_target_status(const struct repl_target *t, struct repl_status *ret_status)
{
    struct repl_status *s = ret_status;
    *s = (struct repl_status){
        .serving = t->serving,
        .epoch = t->epoch,
        .size = t->view.size,
        .version = t->view.version,
        .rf = t->view.rf,
        .cf = (uint8_t)repl_cf(t->view.cf, repl_view_count(&t->view, REPL_VOTER)),
        .n = t->view.n};
    each_peer(t, i)
    {
        const struct peer *p = &t->peer[i];
        if (p->hello && repl_view_find(&t->view, &p->sb.replica) < 0)
            s->guest[s->guests++] = (struct repl_status_guest){
                .replica_id = p->sb.replica, .link = i, .blank = p->blank};
    }
    unsigned healthy = 0;
    for (int m = 0; m < t->view.n; m++) {
        fill(t, &t->view.member[m], &s->replica[m]);
        healthy += s->replica[m].quorum && s->replica[m].mode[0] == 'H';
    }
    if (t->phase == FENCED)
        s->phase = "Fenced";
    else if (!t->view.n)
        s->phase = "Init";
    else if (!t->serving)
        s->phase = "Offline";
    else
        s->phase = healthy == repl_view_count(&t->view, REPL_VOTER) ? "Healthy" : "Degraded";
}
