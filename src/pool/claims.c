/*
 * A device that was replaced is given back: first its claim goes, and with it, by the node's hand, what
 * is on it; then the claim of the new one forgets whose place it took. A process that dies in between
 * finds the annotation still there, and does the rest.
 */
#include "base/crash.h"
#include "base/log.h"
#include "base/str.h"
#include "kube/condition.h"
#include "kube/event.h"
#include "pool/impl.h"

static int forget(const struct pool_kinds *k, const json_t *claim, struct err *e)
{
    json_auto_t *patch = json_pack("{s:{s:s, s:{s:n}}}", "metadata", "resourceVersion",
                                   kube_version(claim), "annotations", API_POOL_PREDECESSOR);
    json_auto_t *now = kube_patch(k->client, &k->claim, kube_namespace(claim), kube_name(claim),
                                  KUBE_MERGE_PATCH, patch, NULL, e);
    return now ? 0 : -1;
}

static int give_back(const struct pool_kinds *k, const json_t *claim, struct err *e)
{
    json_auto_t *own = json_deep_copy(claim);
    const struct kube_delete how = {.uid = kube_uid(claim), .grace_seconds = -1};
    if (kube_finalizer_remove(k->client, &k->claim, &own, API_POOL_CLUSTER_FINALIZER, e) < 0)
        return -1;
    crash_point("before the old device's claim is deleted");
    return kube_delete(k->client, &k->claim, kube_namespace(claim), kube_name(claim), &how, e);
}

int pool_claims_finish(const struct pool_kinds *k, struct kube_recorder *recorder,
                       const json_t *about, const json_t *claim, const json_t *old_claim,
                       struct err *e)
{
    const char *ours = kube_label(about, API_POOL_CLUSTER);
    const char *theirs = old_claim ? kube_label(old_claim, API_POOL_CLUSTER) : NULL;
    /* Somebody else's claim may have the old device by now. */
    bool same = old_claim && (!ours || (theirs && str_eq(ours, theirs)));
    const char *old = kube_annotation(claim, API_POOL_PREDECESSOR);
    crash_point("before the old device is given back");
    if (same && !kube_deleting(old_claim) && give_back(k, old_claim, e) < 0)
        return -1;
    crash_point("after the old device was given back");
    if (forget(k, claim, e) < 0)
        return -1;
    crash_point("after the predecessor was forgotten");
    log_info("a device was replaced", LOG_S("old", old), LOG_S("claim", kube_name(claim)));
    kube_event_normal(recorder, about, "Replaced", "%s was replaced, and is given back", old);
    return 0;
}
