/*
 * What to do next with a replica: decided by what is wanted and what is in the pool, by nothing else.
 */
#include "base/str.h"
#include "pool/replicas_impl.h"

/* The zvol that the object remembers, or one that it does not know of yet and that says it is this replica's. */
bool replica_is_own(const struct pool_replica_wish *w, const struct replica_found *f)
{
    return f->data && (f->data_ours || (w->guid && f->guid == w->guid && !f->data_other));
}

static bool is_remembered(const struct pool_replica_wish *w, const struct replica_found *f)
{
    return w->guid && f->guid == w->guid && replica_is_own(w, f);
}

static enum replica_step plan_keep(const struct pool_replica_wish *w, const struct replica_found *f)
{
    bool ready = is_remembered(w, f) && !f->meta_other && w->key && *w->target;
    return ready ? REPLICA_OPEN : REPLICA_REST;
}

enum replica_step replica_plan(const struct pool_replica_wish *w, const struct replica_found *found)
{
    if (!found)
        return REPLICA_LOOK;
    switch (w->want) {
    case POOL_REPLICA_KEEP:
        return plan_keep(w, found);
    case POOL_REPLICA_CREATE:
        return found->data || found->meta_other ? REPLICA_REST : REPLICA_MAKE;
    case POOL_REPLICA_DESTROY:
        return replica_is_own(w, found) || found->meta_ours ? REPLICA_DESTROY : REPLICA_REST;
    }
    return REPLICA_REST;
}

bool replica_may_stay(const struct pool_replica_wish *running, const struct pool_replica_wish *w)
{
    return w->want == POOL_REPLICA_KEEP && replica_wish_fits(running, w);
}

void replica_judge(const struct pool_replica_wish *w, const struct replica_found *f,
                   struct pool_replica_view *view)
{
    bool own = replica_is_own(w, f);
    view->guid = f->guid;
    view->missing = !f->data;
    /* A new one whose GUID the object does not have yet is no stranger. */
    view->foreign = (f->data && (!own || (w->guid && f->guid != w->guid))) || f->meta_other;
    view->gone = w->want == POOL_REPLICA_DESTROY && !own && !f->meta_ours;
}
