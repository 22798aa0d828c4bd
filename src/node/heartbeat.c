/*
 * That the node is there: its Node, which says what it has and how it is, and its Lease, renewed four
 * times while it lasts, whose silence tells others that it is not.
 *
 * Where a kubelet owns both (--register-node=false) they are only read.
 */
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "json/patch.h"
#include "node/impl.h"
#include "node/machine.h"

#define LEASES "kube-node-lease"
/* The keys of the controller. */
#define LEASE  "lease"
#define STATUS "status"
static const int64_t STATUS_NS = 300 * CLOCK_SECOND;

static json_t *now_text(struct node *n, enum rfc3339_digits digits)
{
    char text[RFC3339_MAX];
    return json_string(rfc3339_format(rfc3339_from_ns(clock_real_ns(n->clock)), digits, text));
}

/* Lease */

static json_t *lease_new(struct node *n, const char *node_uid)
{
    json_t *lease =
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:i}}", "apiVersion", n->lease_kind.api_version,
                  "kind", n->lease_kind.kind, "metadata", "name", n->name.node, "namespace", LEASES,
                  "spec", "holderIdentity", n->name.node, "leaseDurationSeconds",
                  (int)(n->options.lease_ns / CLOCK_SECOND));
    json_object_set_new(json_object_get(lease, "metadata"), "ownerReferences",
                        json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "v1", "kind", "Node",
                                  "name", n->name.node, "uid", node_uid));
    return lease;
}

static int renew(struct node *n, struct err *e)
{
    _cleanup_(kube_object_unrefp) struct kube_object *node =
        kube_informer_get(n->nodes, NULL, n->name.node);
    if (!node)
        return 0; /* its Node comes first, and calls again */
    struct err why = {0};
    if (!n->lease) {
        n->lease = kube_get(n->client, &n->lease_kind, LEASES, n->name.node, &why);
        if (!n->lease && why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
    }
    json_auto_t *lease = lease_new(n, node->uid);
    json_object_set_new(json_object_get(lease, "spec"), "renewTime", now_text(n, RFC3339_MICRO));
    if (n->lease)
        json_object_set_new(json_object_get(lease, "metadata"), "resourceVersion",
                            json_string(kube_version(n->lease)));
    json_t *now = n->lease ? kube_update(n->client, &n->lease_kind, lease, NULL, e)
                           : kube_create(n->client, &n->lease_kind, lease, NULL, e);
    json_decref(n->lease);
    n->lease = now; /* what failed is read again */
    return now ? 0 : -1;
}

/* Node */

static void set_labels(struct node *n, json_t *metadata)
{
    json_t *labels = json_object_at(metadata, "labels");
    json_auto_t *info = node_machine_info(n->options.places);
    const char *arch = json_str(info, "architecture");
    json_object_set_new(labels, "kubernetes.io/hostname", json_string(n->name.node));
    json_object_set_new(labels, "kubernetes.io/os", json_string("linux"));
    json_object_set_new(labels, "kubernetes.io/arch", json_string(arch));
    json_object_set_new(labels, "topology.topolvm.io/node", json_string(n->name.node));
    vec_for_each(&n->options.labels, it)
        json_object_set_new(labels, it->key, json_string(it->value));
}

static int create(struct node *n, struct err *e)
{
    json_auto_t *node = json_pack("{s:s, s:s, s:{s:s}, s:{}}", "apiVersion", "v1", "kind", "Node",
                                  "metadata", "name", n->name.node, "spec");
    set_labels(n, json_object_get(node, "metadata"));
    if (n->options.pod_cidr) {
        json_t *spec = json_object_get(node, "spec");
        json_object_set_new(spec, "podCIDR", json_string(n->options.pod_cidr));
        json_object_set_new(spec, "podCIDRs", json_pack("[s]", n->options.pod_cidr));
    }
    json_auto_t *made = kube_create(n->client, &n->node_kind, node, NULL, e);
    if (made)
        log_info("registered the node", LOG_S("node", n->name.node));
    return made ? 0 : -1;
}

static bool set_conditions(struct node *n, json_t *status)
{
    struct node_pressure p;
    node_machine_pressure(n->options.places, n->options.data_dir, &p);
    const struct kube_condition wanted[] = {
        {"MemoryPressure", p.memory ? "True" : "False",
         p.memory ? "NodeHasInsufficientMemory" : "NodeHasSufficientMemory",
         p.memory ? p.memory_text : "there is enough memory"},
        {"DiskPressure", p.disk ? "True" : "False",
         p.disk ? "NodeHasDiskPressure" : "NodeHasNoDiskPressure",
         p.disk ? p.disk_text : "there is enough room on the disk"},
        {"PIDPressure", p.pid ? "True" : "False",
         p.pid ? "NodeHasInsufficientPID" : "NodeHasSufficientPID",
         p.pid ? p.pid_text : "there are enough process ids"},
        {"Ready", "True", "NodeReady", "the agent is at work"},
    };
    json_t *conditions = json_array_at(status, "conditions");
    bool differs = false;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        differs |= kube_condition_set(conditions, &wanted[i], n->clock);
    return differs;
}

/* The status as it should be; true when more than a time is different. */
static bool make_status(struct node *n, const json_t *node, json_t **ret_status)
{
    const json_t *was = json_object_get(node, "status");
    json_t *status = was ? json_deep_copy(was) : json_object();
    json_t *capacity = node_machine_capacity(n->options.places, n->options.data_dir);
    json_object_set_new(status, "capacity", capacity);
    json_object_set_new(status, "allocatable", node_machine_allocatable(capacity));
    json_object_set_new(status, "nodeInfo", node_machine_info(n->options.places));
    json_object_set_new(status, "addresses",
                        json_pack("[{s:s, s:s}, {s:s, s:s}]", "type", "InternalIP", "address",
                                  n->options.address, "type", "Hostname", "address", n->name.node));
    set_conditions(n, status);
    bool differs = !was || !json_equal(was, status);
    size_t i;
    json_t *it;
    json_array_foreach(json_object_get(status, "conditions"), i, it)
        json_object_set_new(it, "lastHeartbeatTime", now_text(n, RFC3339_SECONDS));
    *ret_status = status;
    return differs;
}

/* The label that others find the node's devices by is the Node's, whoever wrote it. */
static void take_hostname(struct node *n, const json_t *node)
{
    const char *host = kube_label(node, "kubernetes.io/hostname");
    if (!host || n->host || str_eq(host, n->name.host))
        return;
    node_inventory_hold(&n->inventory, "");
    n->name.host = n->host = mem_strdup(host); /* once in a life: nobody holds an old one */
    node_inventory_release(&n->inventory);
    kube_controller_add(n->scan_controller, "", "scan");
}

static int keep(struct node *n, struct kube_result *ret, struct err *e)
{
    json_auto_t *node = kube_informer_json(n->nodes, NULL, n->name.node, NULL);
    ret->again_ns = n->options.lease_ns / 4;
    if (!n->options.register_node) {
        if (node)
            take_hostname(n, node);
        return 0;
    }
    if (!node)
        return create(n, e);
    json_auto_t *labelled = json_deep_copy(node);
    set_labels(n, json_object_get(labelled, "metadata"));
    if (node_write(n, &n->node_kind, &node, labelled, e) < 0)
        return -1;
    json_t *made;
    int64_t now = clock_mono_ns(n->clock);
    bool differs = make_status(n, node, &made);
    json_auto_t *status = made;
    if (!differs && n->status_written && now - n->status_written < STATUS_NS)
        return 0;
    if (kube_status_write(n->client, &n->node_kind, &node, status, e) < 0)
        return -1;
    n->status_written = now;
    return 0;
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct node *n = context;
    (void)ns;
    if (!str_eq(name, LEASE))
        return keep(n, ret, e);
    ret->again_ns = n->options.lease_ns / 4;
    return n->options.register_node ? renew(n, e) : 0;
}

static void map_status(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)object;
    (void)context;
    kube_controller_add(c, "", STATUS);
}

static void map_lease(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)object;
    (void)context;
    kube_controller_add(c, "", LEASE);
}

static bool appeared(const struct kube_object *old, const struct kube_object *now)
{
    return now && (!old || !str_eq(old->uid, now->uid));
}

int node_heartbeat_setup(struct node *n, struct err *e)
{
    n->heartbeat = kube_manager_controller(
        n->manager,
        &(struct kube_controller_options){
            .name = "heartbeat", .workers = 2, .reconcile = reconcile, .context = n},
        e);
    if (!n->heartbeat)
        return -1;
    kube_controller_watch(n->heartbeat,
                          (struct kube_source){.informer = n->nodes, .map = map_status});
    kube_controller_watch(
        n->heartbeat,
        (struct kube_source){.informer = n->nodes, .predicate = appeared, .map = map_lease});
    kube_controller_add(n->heartbeat, "", STATUS);
    kube_controller_add(n->heartbeat, "", LEASE);
    return 0;
}
