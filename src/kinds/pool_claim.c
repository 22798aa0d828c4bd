/*
 * The claim by which a CStorPoolCluster has a device. Its name follows from the device, so that
 * whoever makes it, admission or the operator, makes the same one.
 */
#include "kinds/cspc.h"

static char *claim_name(const json_t *bd)
{
    const char *uid = json_str(json_object_get(bd, "metadata"), "uid");
    return mem_printf("bdc-cstor-%s", uid ? uid : api_cspc_object_name(bd));
}

static json_t *owner_of(const json_t *cluster)
{
    const json_t *metadata = json_object_get(cluster, "metadata");
    const char *version = json_str(cluster, "apiVersion"), *uid = json_str(metadata, "uid");
    return json_pack("[{s:s, s:s, s:s, s:s, s:b, s:b}]", "apiVersion", version ? version : "",
                     "kind", "CStorPoolCluster", "name", api_cspc_object_name(cluster), "uid",
                     uid ? uid : "", "controller", 1, "blockOwnerDeletion", 1);
}

json_t *api_pool_claim(const json_t *cluster, const json_t *bd, const char *predecessor)
{
    const char *ns = json_str(json_object_get(cluster, "metadata"), "namespace");
    const char *host = api_cspc_label(bd, API_POOL_HOSTNAME);
    _cleanup_free_ char *name = claim_name(bd);
    json_t *claim = json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}, s:o}, s:{s:s}}", "apiVersion",
                              "openebs.io/v1alpha1", "kind", "BlockDeviceClaim", "metadata", "name",
                              name, "namespace", ns ? ns : "default", "labels", API_POOL_CLUSTER,
                              api_cspc_object_name(cluster), "ownerReferences", owner_of(cluster),
                              "spec", "blockDeviceName", api_cspc_object_name(bd));
    json_t *spec = json_object_get(claim, "spec");
    const json_t *size = json_at(bd, "spec", "capacity", "storage");
    if (size)
        json_object_set_new(spec, "resources", json_pack("{s:{s:O}}", "requests", "storage", size));
    if (*host)
        json_object_set_new(spec, "blockDeviceNodeAttributes",
                            json_pack("{s:s}", "hostName", host));
    if (predecessor)
        json_object_set_new(json_object_get(claim, "metadata"), "annotations",
                            json_pack("{s:s}", API_POOL_PREDECESSOR, predecessor));
    return claim;
}
