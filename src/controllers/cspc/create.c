/*
 * Pools that are wanted and have no instance.
 *
 *     node found? ── claims for all devices ── all bound? ── account ── instance
 *
 * A pool that had an instance before gets one with the same name and with the identity of its pool in an
 * annotation, which is there from the first moment as a status cannot be: orlop-pool imports what is on the
 * devices and never makes a new pool over it.
 */
#include "controllers/cspc/cspc.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"

/* 1: all devices are claimed. */
static int claim_devices(struct cspc_run *r, const struct cspc_pool *pool, const char *node,
                         struct err *e)
{
    const json_t *from = cspc_groups_from(pool);
    int all = 1;
    pool_each_device(from, it) {
        /* The pool exists: devices that were claimed for it need not be well. */
        json_auto_t *claim = from == pool->record ? cspc_claim_of(r, it.name) : NULL;
        if (block_device_claim_is_bound(claim) &&
            kube_finalizer_has(claim, API_POOL_CLUSTER_FINALIZER))
            continue;
        int bound = cspc_claim(r, CSPC_PROVISION, it.name, node, NULL, e);
        if (bound < 0)
            return -1;
        all &= bound;
    }
    return all;
}

static json_t *instance_new(struct cspc_run *r, const struct cspc_pool *pool, const json_t *node)
{
    _cleanup_free_ char *name = cspc_instance_name(r->cluster, pool, r->instances);
    const char *host = kube_label(node, API_POOL_HOSTNAME);
    const char *guid = pool_record_of(pool->record).guid;
    json_t *spec = cspc_instance_spec(pool, kube_name(node));
    cspc_describe(r, spec);
    json_t *instance =
        json_pack("{s:s,s:s,s:{s:s,s:s,s:{s:s,s:s,s:s,s:s},s:[s,s],s:[o]},s:o}", "apiVersion",
                  r->c->instances_r.api_version, "kind", r->c->instances_r.kind, "metadata", "name",
                  name, "namespace", kube_namespace(r->cluster), "labels", API_POOL_HOSTNAME,
                  host ? host : kube_name(node), "openebs.io/cas-type", "cstor", API_POOL_CLUSTER,
                  kube_name(r->cluster), "openebs.io/version", ORLOP_VERSION, "finalizers",
                  API_POOL_CLUSTER_FINALIZER, API_POOL_PROTECTION, "ownerReferences",
                  kube_owner_reference(r->cluster), "spec", spec);
    if (*guid)
        json_object_set_new(json_object_get(instance, "metadata"), "annotations",
                            json_pack("{s:s}", API_POOL_GUID, guid));
    return instance;
}

/* 1: made; 0: what it waits for is noted. */
static int create(struct cspc_run *r, const struct cspc_pool *pool, struct err *e)
{
    json_auto_t *node = cspc_node(r, CSPC_PROVISION, json_object_get(pool->spec, "nodeSelector"));
    if (!node)
        return 0;
    int claimed = claim_devices(r, pool, kube_name(node), e);
    if (claimed <= 0)
        return claimed;
    json_t *made;
    if (cspc_create(r->c, &r->c->instances_r, instance_new(r, pool, node), &made, e) < 0)
        return -1;
    if (!made) /* one of that name is not in the cache, or not of this cluster */
        return err_set(e, ERR_UNAVAILABLE, "NameTaken", "the name of a new instance is taken");
    kube_event_normal(r->c->recorder, r->cluster, "PoolCreated", "Pool %s is to be %s on node %s",
                      kube_name(made), pool->record ? "imported" : "made", kube_name(node));
    json_array_append_new(r->instances, made);
    return 1;
}

static bool is_any_missing(const struct cspc_run *r)
{
    vec_for_each(&r->plan.pools, p) {
        if (!p->instance)
            return true;
    }
    return false;
}

/* Its name is a label of all it has, and their names are its and some letters more. */
static bool has_short_name(struct cspc_run *r)
{
    if (strlen(kube_name(r->cluster)) <= CSPC_NAME_MAX)
        return true;
    cspc_trouble(r, CSPC_PROVISION, false, "NameTooLong",
                 "the cluster's name is longer than %d letters, so that its pools cannot be named "
                 "after it; make it anew under a shorter name",
                 CSPC_NAME_MAX);
    return false;
}

int cspc_create_missing(struct cspc_run *r, struct err *e)
{
    if (!is_any_missing(r) || !has_short_name(r))
        return 0;
    if (cspc_refresh(r, false, e) < 0)
        return -1;
    for (size_t i = 0; i < r->plan.pools.len; i++) {
        if (!r->plan.pools.p[i].instance && create(r, &r->plan.pools.p[i], e) < 0)
            return -1;
    }
    cspc_plan_again(r);
    return 0;
}
