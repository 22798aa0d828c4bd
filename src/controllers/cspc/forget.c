/*
 * A pool that somebody said will not be back (API_POOL_FORGOTTEN on its instance): it goes from the cluster
 * without its node, and nothing that may be on its devices is touched.
 *
 *     mark the devices and claims ── Deployment ── finalizers of the instance ──(release.c)── claims
 *
 * Marks come first: a node that is back after all wipes what was released, unless the device is marked
 * (node/devices.c). A device that has a pool on it is refused to others by what is on it.
 */
#include "controllers/cspc/cspc.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"

static int mark(struct cspc_run *r, const struct kube_resource *resource, json_t *object,
                const char *word, struct err *e)
{
    const char *has = kube_annotation(object, API_POOL_FORGOTTEN);
    if (has && str_eq(has, word))
        return 0;
    json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", API_POOL_FORGOTTEN, word);
    return cspc_patch(r->c, resource, object, patch, "forgotten", e);
}

/* Of a device that this cluster has: as the server says, for a cache may be late. */
static int mark_device(struct cspc_run *r, const char *name, const char *word, struct err *e)
{
    const struct kube_resource devices = kube_resource("openebs.io/v1alpha1", "BlockDevice");
    struct err why = {0};
    json_auto_t *claim = cspc_claim_of(r, name);
    json_auto_t *device =
        claim ? kube_get(r->c->client, &devices, kube_namespace(claim), name, &why) : NULL;
    if (claim && !device && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    if (device && str_eq(block_device_of(device).spec.claim.uid, kube_uid(claim)) &&
        (mark(r, &devices, device, word, e) < 0 ||
         cspc_unfinalize(r->c, &devices, device, API_DEVICE_FINALIZER, e) < 0))
        return -1;
    return claim ? mark(r, &r->c->claims_r, claim, word, e) : 0;
}

int cspc_forget(struct cspc_run *r, const json_t *instance, struct err *e)
{
    const char *word = kube_annotation(instance, API_POOL_FORGOTTEN); /* who said so, and when */
    size_t i;
    json_t *device;
    pool_each_device(json_object_get(instance, "spec"), it) {
        if (mark_device(r, it.name, word, e) < 0)
            return -1;
    }
    json_array_foreach((json_t *)json_at(instance, "status", "devices"), i, device) {
        if (mark_device(r, api_raid_device(device), word, e) < 0)
            return -1;
    }
    return 0;
}
