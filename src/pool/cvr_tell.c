/*
 * What people are told of a replica: the same words once, until there are others.
 */
#include "base/str.h"
#include "pool/cvr_impl.h"

void pool_cvr_tell(struct pool_cvr_run *r, const char *reason, bool warning, const char *message)
{
    struct pool_cvr *it = r->it;
    if (it->reason && str_eq(it->reason, reason) && str_eq(it->message, message))
        return;
    it->reason = reason;
    snprintf(it->message, sizeof(it->message), "%s", message);
    (warning ? kube_event_warning : kube_event_normal)(r->c->recorder, r->json, reason, "%s",
                                                       message);
}

/* What ZFS could not read, and what was written back from other replicas. */
static void tell_damage(struct pool_cvr_run *r)
{
    struct pool_cvr *it = r->it;
    const struct pool_replica_view *v = &r->view;
    if (v->damaged > it->damaged)
        kube_event_warning(r->c->recorder, r->json, "DamageFound",
                           "%llu reads met data that the pool could not mend by itself; it is read "
                           "from other replicas",
                           (unsigned long long)(v->damaged - it->damaged));
    if (v->mended > it->mended)
        kube_event_normal(r->c->recorder, r->json, "DamageMended",
                          "%llu damaged ranges were written again from other replicas",
                          (unsigned long long)(v->mended - it->mended));
    it->damaged = v->damaged;
    it->mended = v->mended;
}

void pool_cvr_tell_verdict(struct pool_cvr_run *r, const struct pool_cvr_verdict *v)
{
    struct pool_cvr *it = r->it;
    bool made = v->reason && str_eq(v->reason, "Created");
    bool present = r->view.known && r->view.guid && r->view.guid == v->zvol_guid;
    if (made)
        pool_cvr_tell(r, it->was_there ? "AlreadyPresent" : "Created", false,
                      it->was_there ? "its data set was there already" : "its data set was made");
    else if (v->reason)
        pool_cvr_tell(r, v->reason, v->warning, *v->message ? v->message : v->reason);
    else if (present && !it->seen)
        pool_cvr_tell(r, "Imported", false, "its data set came with the pool");
    it->seen |= present;
    tell_damage(r);
}
