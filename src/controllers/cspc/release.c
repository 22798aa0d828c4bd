/*
 * Claims that nobody needs any more: of a device that was replaced, of a pool that is gone.
 *
 * A device is needed when the cluster's spec has it, an instance's spec or status or the record of one has
 * it, or the claim of a needed device says that it takes its place. The cache says when to look; what the server says then
 * decides, and is read in an order in which nothing needed can be missed: claims, instances, cluster. A
 * claim for a replacement that the spec does not have yet may be of an edit that is just being admitted,
 * and is left alone for a while.
 */
#include "base/rfc3339.h"
#include "controllers/cspc/cspc.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"

#define FRESH_NS (300 * CLOCK_SECOND)

static void need(struct map *needed, const char *name)
{
    map_set(needed, name, needed);
}

static void need_pool(struct map *needed, const json_t *pool)
{
    pool_each_device(pool, it)
        need(needed, it.name);
}

static const char *device_of(const json_t *claim)
{
    return block_device_claim_of(claim).spec.device;
}

static void need_all(struct cspc_run *r, const json_t *claims, struct map *needed)
{
    struct pool_cluster cluster = {0};
    size_t i, j;
    json_t *pool, *instance, *device, *claim;
    if (!kube_deleting(r->cluster))
        cluster = pool_cluster_of(r->cluster);
    json_array_foreach((json_t *)cluster.pools, i, pool)
        need_pool(needed, pool);
    /* An instance that is gone may have its pool all the same. */
    json_array_foreach((json_t *)cluster.records, i, pool)
        need_pool(needed, pool);
    json_array_foreach(r->instances, i, instance) {
        need_pool(needed, json_object_get(instance, "spec"));
        json_array_foreach((json_t *)json_at(instance, "status", "devices"), j, device)
            need(needed, api_raid_device(device));
    }
    json_array_foreach((json_t *)claims, i, claim) {
        const char *old = cspc_predecessor(claim);
        if (old && map_has(needed, device_of(claim)))
            need(needed, old);
    }
}

static bool is_fresh(struct cspc_run *r, const json_t *claim)
{
    struct timespec made;
    const char *text = json_str(json_object_get(claim, "metadata"), "creationTimestamp");
    if (!cspc_predecessor(claim) || kube_deleting(claim) || !text ||
        rfc3339_parse(text, &made, NULL) < 0)
        return false;
    _cleanup_free_ char *key = mem_printf("made %s", kube_uid(claim));
    int64_t at = rfc3339_to_ns(made), left = at + FRESH_NS - kube_ages_now(r->c->ages, key, at);
    if (left > 0 && (!r->result->again_ns || left < r->result->again_ns))
        r->result->again_ns = left;
    return left > 0;
}

/* The first claim from there on that can go; NULL. */
static json_t *next_free(struct cspc_run *r, const json_t *claims, size_t *at)
{
    struct map needed = {0};
    json_t *found = NULL;
    need_all(r, claims, &needed);
    for (; !found && *at < json_array_size(claims); (*at)++) {
        json_t *claim = json_array_get(claims, *at);
        if (kube_finalizer_has(claim, API_POOL_CLUSTER_FINALIZER) &&
            !map_has(&needed, device_of(claim)) && !is_fresh(r, claim))
            found = claim;
    }
    map_done(&needed);
    return found;
}

static json_t *cached_claims(struct cspc_run *r)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    _cleanup_free_ char *key =
        mem_printf("%s/%s", kube_namespace(r->cluster), kube_name(r->cluster));
    kube_informer_find(r->c->claims, CSPC_BY_CLUSTER, key, &found);
    json_t *claims = json_array();
    for (size_t i = 0; i < found.len; i++)
        json_array_append_new(claims, kube_object_json(found.p[i]));
    return claims;
}

/* Deleted first and let go when that is known, so that a crash between the two loses nothing. */
static int release(struct cspc_run *r, json_t *claim, struct err *e)
{
    /* The node that would let go of it will not be back. */
    if (kube_deleting(claim) && kube_annotation(claim, API_POOL_FORGOTTEN) &&
        cspc_unfinalize(r->c, &r->c->claims_r, claim, API_CLAIM_FINALIZER, e) < 0)
        return -1;
    if (kube_deleting(claim))
        return cspc_unfinalize(r->c, &r->c->claims_r, claim, API_POOL_CLUSTER_FINALIZER, e);
    if (cspc_delete(r->c, &r->c->claims_r, claim, e) < 0)
        return -1;
    kube_event_normal(r->c->recorder, r->cluster, "DeviceReleased", "Device %s is given back",
                      device_of(claim));
    return 0;
}

static json_t *claims_now(struct cspc_run *r, struct err *e)
{
    _cleanup_free_ char *labels = mem_printf(API_POOL_CLUSTER "=%s", kube_name(r->cluster));
    return kube_list(r->c->client, &r->c->claims_r, kube_namespace(r->cluster),
                     &(struct kube_query){.labels = labels}, e);
}

int cspc_release_claims(struct cspc_run *r, struct err *e)
{
    size_t at = 0;
    json_auto_t *cached = cached_claims(r);
    if (!next_free(r, cached, &at))
        return 0;
    json_auto_t *claims = claims_now(r, e);
    r->live = false; /* what was read before the claims is no proof */
    if (!claims || cspc_refresh(r, true, e) < 0)
        return -1;
    json_t *claim;
    for (at = 0; (claim = next_free(r, claims, &at));) {
        if (release(r, claim, e) < 0)
            return -1;
    }
    return 0;
}

int cspc_release_all(struct cspc_run *r, struct err *e)
{
    json_auto_t *claims = claims_now(r, e);
    if (!claims)
        return -1;
    size_t i, held = 0;
    json_t *claim;
    json_array_foreach(claims, i, claim) {
        if (!kube_finalizer_has(claim, API_POOL_CLUSTER_FINALIZER))
            continue;
        held += !kube_deleting(claim);
        if (release(r, claim, e) < 0)
            return -1;
    }
    return held == 0;
}
