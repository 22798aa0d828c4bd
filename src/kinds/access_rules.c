/*
 * The table of api/access.h, and whose an object is.
 *
 * A function here sees an object as it was or as it will be. It says true only where it is sure: an
 * identity without a name, a token without a Pod, an object that cannot be found own nothing.
 */
#include "base/str.h"
#include "kinds/access.h"
#include "kinds/kinds.h"
#include "kinds/pool_names.h"

#define NODE_LEASES "kube-node-lease"

static bool is_text(const json_t *value, const char *text)
{
    const char *is = json_string_value(value);
    return is && text && *text && str_eq(is, text);
}

static bool is_in(const json_t *object, const char *ns)
{
    return is_text(json_at(object, "metadata", "namespace"), ns);
}

static bool is_named(const json_t *object, const char *name)
{
    return is_text(json_at(object, "metadata", "name"), name);
}

/* Nodes */

static bool owns_by_name(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                         struct err *e)
{
    (void)l;
    (void)e;
    return is_named(o, a->name);
}

static bool owns_node_lease(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                            struct err *e)
{
    (void)l;
    (void)e;
    return is_in(o, NODE_LEASES) && is_named(o, a->name);
}

static bool owns_on_node(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                         struct err *e)
{
    (void)l;
    (void)e;
    return is_text(json_at(o, "spec", "nodeName"), a->name);
}

static bool owns_device(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                        struct err *e)
{
    (void)l;
    (void)e;
    return is_text(json_at(o, "spec", "nodeAttributes", "nodeName"), a->name);
}

/*
 * A disk that nobody sees any more may turn up at another node, which then takes its object over: the
 * state of such a device is not Active, since its node, or for a silent node the controller, said so.
 */
static bool is_lost_device(const json_t *old)
{
    const json_t *state = json_at(old, "status", "state");
    return state && !is_text(state, "Active");
}

static json_t *get(const struct api_lookup *l, const struct api_kind *kind, const json_t *ns,
                   const char *name, struct err *e)
{
    return l && name && *name ? l->get(l->context, kind, json_string_value(ns), name, e) : NULL;
}

/* A claim belongs to the node of its device; one without a device to whoever has a device for it. */
static bool owns_claim(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                       struct err *e)
{
    const char *name = json_str(json_object_get(o, "spec"), "blockDeviceName");
    if (!a->name)
        return false;
    if (!name || !*name)
        return true;
    json_auto_t *device = get(l, &api_block_device, json_at(o, "metadata", "namespace"), name, e);
    /* Of a device that is no more, a claim can only wait. */
    return device ? is_text(json_at(device, "spec", "nodeAttributes", "nodeName"), a->name)
                  : !e || !e->code;
}

static bool owns_by_host(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                         struct err *e)
{
    (void)l;
    (void)e;
    return is_text(json_at(o, "source", "host"), a->name) ||
           is_text(json_object_get(o, "reportingInstance"), a->name);
}

static bool owns_all(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                     struct err *e)
{
    (void)o;
    (void)l;
    (void)e;
    return a->name;
}

/* Pools */

/* The name of the pool that asks: its account's, or of the shared account that of the Pod its token is bound to; NULL. */
static char *pool_of(const struct api_actor *a, const struct api_lookup *l, struct err *e)
{
    if (a->name)
        return mem_strdup(a->name);
    if (!a->pod || !a->pod_uid || !l)
        return NULL;
    json_auto_t *pod = l->get(l->context, &api_kubernetes_pod, a->ns, a->pod, e);
    const json_t *metadata = json_object_get(pod, "metadata");
    const char *name = json_str(json_object_get(metadata, "labels"), API_ACCESS_POOL_LABEL);
    return name && is_text(json_object_get(metadata, "uid"), a->pod_uid) ? mem_strdup(name) : NULL;
}

static bool owns_by_pool(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                         struct err *e)
{
    _cleanup_free_ char *pool = is_in(o, a->ns) ? pool_of(a, l, e) : NULL;
    return is_named(o, pool);
}

static bool owns_replica(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                         struct err *e)
{
    _cleanup_free_ char *pool = is_in(o, a->ns) ? pool_of(a, l, e) : NULL;
    return is_text(json_at(o, "metadata", "labels", API_POOL_OF_REPLICA), pool);
}

/* Where a device or a pool is: both have the label. */
static const char *host_of(const json_t *object)
{
    const char *host = json_str(json_at(object, "metadata", "labels"), API_POOL_HOSTNAME);
    return host ? host : json_str(json_at(object, "spec", "nodeAttributes"), "nodeName");
}

/* Of the same cluster of pools, for a device where the pool is. */
static bool owns_pool_claim(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                            struct err *e)
{
    _cleanup_free_ char *name = is_in(o, a->ns) ? pool_of(a, l, e) : NULL;
    const json_t *ns = json_at(o, "metadata", "namespace");
    json_auto_t *pool = get(l, &api_cstor_pool_instance, ns, name, e);
    const char *cluster = json_str(json_at(pool, "metadata", "labels"), API_POOL_CLUSTER);
    if (!is_text(json_at(o, "metadata", "labels", API_POOL_CLUSTER), cluster))
        return false;
    json_auto_t *device =
        get(l, &api_block_device, ns, json_str(json_object_get(o, "spec"), "blockDeviceName"), e);
    const char *there = host_of(device), *here = host_of(pool);
    return !device || (there && here && str_eq(there, here));
}

static bool owns_by_component(const struct api_actor *a, const json_t *o,
                              const struct api_lookup *l, struct err *e)
{
    static const char *const components[API_WHO_COUNT] = {[API_WHO_POOL] = "orlop-pool",
                                                          [API_WHO_TARGET] = "orlop-sidecar",
                                                          [API_WHO_CSI_NODE] = "orlop-csi"};
    (void)l;
    (void)e;
    return is_in(o, a->ns) && is_text(json_at(o, "source", "component"), components[a->who]);
}

/* Targets */

static bool owns_volume(const struct api_actor *a, const json_t *o, const struct api_lookup *l,
                        struct err *e)
{
    (void)l;
    (void)e;
    return is_in(o, a->ns) && is_named(o, a->name);
}

const struct api_access_rule api_access_rules[] = {
    {API_WHO_NODE, "Node", "", "create update", "metadata.labels metadata.annotations spec status",
     owns_by_name, "the Node of its name; labels of its own, no taints"},
    {API_WHO_NODE, "Node", "status", "update", "status", owns_by_name, "the Node of its name"},
    {API_WHO_NODE, "Pod", "", "create delete", NULL, owns_on_node,
     "Pods that are bound to it; it makes only mirror Pods that refer to nothing"},
    {API_WHO_NODE, "Pod", "status", "update", "status", owns_on_node, "Pods that are bound to it"},
    {API_WHO_NODE, "ServiceAccount", "token", "create", NULL, owns_all,
     "for Pods that are bound to it and that it did not make itself"},
    {API_WHO_NODE, "Lease", "", "create update delete", NULL, owns_node_lease,
     "the Lease of its name in kube-node-lease"},
    {API_WHO_NODE, "CSINode", "", "create update delete", NULL, owns_by_name,
     "the CSINode of its name"},
    {API_WHO_NODE, "CertificateSigningRequest", "", "create", NULL, owns_all,
     "requests for a certificate of its own name are approved"},
    {API_WHO_NODE, "Event", "", "create update", NULL, owns_by_host,
     "events that name it as their source"},
    {API_WHO_NODE, "BlockDevice", "", "create update", NULL, owns_device,
     "devices of its own, and those that no node sees any more", is_lost_device},
    {API_WHO_NODE, "BlockDevice", "status", "update", "status", owns_device, "devices of its own"},
    {API_WHO_NODE, "BlockDeviceClaim", "", "update", "+spec.blockDeviceName metadata.finalizers",
     owns_claim, "claims for its devices, and those that have none yet"},
    {API_WHO_NODE, "BlockDeviceClaim", "status", "update", "status", owns_claim,
     "claims for its devices, and those that have none yet"},
    {API_WHO_NODE, "LogicalVolume", "", "update", "metadata.finalizers", owns_on_node,
     "logical volumes on it"},
    {API_WHO_NODE, "LogicalVolume", "status", "update", "status", owns_on_node,
     "logical volumes on it"},

    {API_WHO_POOL, "CStorPoolInstance", "", "update", "metadata.finalizers", owns_by_pool,
     "the instance of its name"},
    {API_WHO_POOL, "CStorPoolInstance", "status", "update", "status", owns_by_pool,
     "the instance of its name"},
    {API_WHO_POOL, "CStorVolumeReplica", "", "update", "metadata.finalizers", owns_replica,
     "replicas that are on it"},
    {API_WHO_POOL, "CStorVolumeReplica", "status", "update", "status", owns_replica,
     "replicas that are on it"},
    {API_WHO_POOL, "BlockDeviceClaim", "", "update delete",
     "metadata.finalizers metadata.annotations", owns_pool_claim,
     "claims of its cluster for devices of its node"},
    {API_WHO_POOL, "Lease", "", "create update delete", NULL, owns_by_pool,
     "the Lease of its name"},
    {API_WHO_POOL, "Event", "", "create update", NULL, owns_by_component,
     "events of pools in its namespace"},

    {API_WHO_TARGET, "CStorVolume", "status", "update", "status", owns_volume, "its volume"},
    {API_WHO_TARGET, "JivaVolume", "status", "update", "status", owns_volume, "its volume"},
    {API_WHO_TARGET, "Event", "", "create update", NULL, owns_by_component,
     "events of volumes in its namespace"},

    {API_WHO_CSI_NODE, "Event", "", "create update", NULL, owns_by_component,
     "events of the driver in its namespace"},
    {0},
};
