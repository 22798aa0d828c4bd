/*
 * What lives on pools: a pool goes only when no CStorVolumeReplica is on it. A replica names the instance
 * (CStorPoolInstance) that it is on; an instance is that of a pool when it has one of its devices, or is
 * for the same node.
 */
#include "kinds/cspc.h"
#include "kinds/pool.h"

static int check_unused(const struct api_cspc_view *v, const json_t *instance, const char *what,
                        const struct api_path *at, struct err *e)
{
    const struct api_lookup *l = v->a->lookup;
    json_auto_t *replicas = l->list(l->context, &api_cstor_volume_replica, v->ns, e);
    const char *name = api_cspc_object_name(instance), *first = NULL;
    const char *uid = json_str(json_object_get(instance, "metadata"), "uid");
    size_t i, n = 0;
    json_t *replica;
    if (!replicas)
        return -1;
    json_array_foreach(replicas, i, replica) {
        const char *its_uid = api_cspc_label(replica, "cstorpoolinstance.openebs.io/uid");
        if (!str_eq(api_cspc_label(replica, API_POOL_OF_REPLICA), name) &&
            !(uid && *uid && str_eq(its_uid, uid)))
            continue;
        first = n++ ? first : api_cspc_object_name(replica);
    }
    if (n)
        api_problem(v->a->report, at, API_FORBIDDEN, NULL,
                    "%s cannot go: %zu volume replica%s on pool \"%s\" (\"%s\"%s); delete or move "
                    "those volumes first [pool-in-use]",
                    what, n, n == 1 ? " lives" : "s live", name, first, n > 1 ? ", ..." : "");
    return 0;
}

/* Whether the instance is that of the pool, which was at that place of spec.pools. */
static bool is_instance_of(const struct api_cspc_view *v, const json_t *instance, size_t index,
                           const json_t *pool)
{
    const json_t *spec = json_object_get(instance, "spec");
    pool_each_device(spec, it) {
        const void *place = map_get(&v->place_of, it.name);
        if (place && api_cspc_place_pool(place) == index)
            return true;
    }
    return json_equal(json_object_get(spec, "nodeSelector"), json_object_get(pool, "nodeSelector"));
}

int api_cspc_check_gone(const struct api_cspc_view *v, const json_t *instances, size_t index,
                        const json_t *pool, const struct api_path *at, struct err *e)
{
    size_t i;
    json_t *instance;
    json_array_foreach(instances, i, instance) {
        if (str_eq(api_cspc_label(instance, API_POOL_CLUSTER), v->name) &&
            is_instance_of(v, instance, index, pool) &&
            check_unused(v, instance, "the pool", at, e) < 0)
            return -1;
    }
    return 0;
}

int api_cspc_check_deletion(const struct api_among *a, struct err *e)
{
    const char *ns = json_str(json_object_get(a->old, "metadata"), "namespace");
    const struct api_cspc_view v = {
        .a = a, .ns = ns ? ns : "default", .name = api_cspc_object_name(a->old)};
    const struct api_path *pools_at = API_KEY(API_KEY(NULL, "spec"), "pools");
    const struct api_lookup *l = a->lookup;
    json_auto_t *instances = l->list(l->context, &api_cstor_pool_instance, v.ns, e);
    size_t i;
    json_t *instance;
    if (!instances)
        return -1;
    json_array_foreach(instances, i, instance) {
        if (str_eq(api_cspc_label(instance, API_POOL_CLUSTER), v.name) &&
            check_unused(&v, instance, "the cluster", pools_at, e) < 0)
            return -1;
    }
    return 0;
}

int api_cstor_pool_instance_among(const struct api_among *a, struct err *e)
{
    if (a->object)
        return 0;
    const char *ns = json_str(json_object_get(a->old, "metadata"), "namespace");
    const struct api_cspc_view v = {
        .a = a, .ns = ns ? ns : "default", .name = api_cspc_object_name(a->old)};
    return check_unused(&v, a->old, "the pool", API_KEY(NULL, "spec"), e);
}
