/*
 * node-lifecycle: what becomes of a node whose agent is silent.
 *
 * The agent of a node renews a Lease of the node's name in kube-node-lease. Here it is noted when
 * that was last seen to change, by our own clock: the clocks of nodes are not ours. After the grace
 * period without a change
 *
 *     the node's condition Ready, and the others it has, become Unknown (NodeStatusUnknown),
 *     its Pods that were Ready are so no more,
 *     and it gets the taint node.kubernetes.io/unreachable.
 *
 * Taints follow the condition: unreachable while Ready is Unknown, not-ready while it is False, none
 * of the two when it is True, which only the agent says, as soon as it is back.
 */
#include "base/map.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "k8s/controllers/embedded.h"
#include "kube/condition.h"

#define LEASES      "kube-node-lease"
#define UNREACHABLE "node.kubernetes.io/unreachable"
#define NOT_READY   "node.kubernetes.io/not-ready"

/* What is known of a node's lease. */
struct heartbeat {
    char *version; /* of the Lease, when it was seen first; "" when there is none */
    int64_t seen;  /* and when that was */
};

struct nodelife {
    const struct clock *clock;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource nodes_r, pods_r;
    struct kube_informer *nodes, *leases, *pods;
    struct map heartbeats; /* by node; the one worker's own */
};

static int64_t grace = 40 * CLOCK_SECOND;

void embedded_node_grace(int64_t ns)
{
    grace = ns;
}

static void heartbeat_free(struct heartbeat *h)
{
    if (h)
        free(h->version);
    free(h);
}

/* How long the node has been silent. */
static int64_t silence(struct nodelife *n, const char *node)
{
    int64_t now = clock_boot_ns(n->clock);
    _cleanup_(kube_object_unrefp) struct kube_object *lease =
        kube_informer_get(n->leases, LEASES, node);
    const char *version = lease ? lease->resource_version : "";
    struct heartbeat *h = map_get(&n->heartbeats, node);
    if (!h) {
        h = NEW(struct heartbeat);
        map_set(&n->heartbeats, node, h);
    }
    if (!h->version || !str_eq(h->version, version)) {
        free(h->version);
        h->version = mem_strdup(version);
        h->seen = now;
    }
    return now - h->seen;
}

/* Conditions. */

static const char *ready_of(const json_t *object)
{
    const json_t *ready = kube_condition_get(object, "Ready");
    const char *status = ready ? json_str(ready, "status") : NULL;
    return status ? status : "Unknown";
}

static int mark_node(struct nodelife *n, json_t **node, struct err *e)
{
    static const char *const types[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};
    json_auto_t *status = kube_status_copy(*node);
    json_t *conditions = json_array_at(status, "conditions");
    bool was_ready = kube_condition_is_true(*node, "Ready");
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        bool has = kube_condition_get(*node, types[i]);
        if (!has && i > 0)
            continue;
        const struct kube_condition unknown = {
            .type = types[i],
            .status = "Unknown",
            .reason = has ? "NodeStatusUnknown" : "NodeStatusNeverUpdated",
            .message =
                has ? "Kubelet stopped posting node status." : "Kubelet never posted node status.",
        };
        kube_condition_set(conditions, &unknown, n->clock);
    }
    if (kube_status_write(n->client, &n->nodes_r, node, status, e) < 0)
        return -1;
    if (was_ready)
        kube_event_normal(n->recorder, *node, "NodeNotReady", "Node %s status is now: NodeNotReady",
                          kube_name(*node));
    return 0;
}

/* Pods. */

static int mark_pod(struct nodelife *n, const struct kube_object *object, struct err *e)
{
    json_auto_t *pod = kube_object_json(object);
    if (!kube_condition_is_true(pod, "Ready"))
        return 0;
    json_auto_t *status = json_deep_copy(json_object_get(pod, "status"));
    const struct kube_condition not_ready = {
        .type = "Ready",
        .status = "False",
        .reason = "NodeNotReady",
        .message = "the node does not answer",
    };
    kube_condition_set(json_object_get(status, "conditions"), &not_ready, n->clock);
    struct err why = {0};
    if (kube_status_write(n->client, &n->pods_r, &pod, status, &why) == 0) {
        kube_event_warning(n->recorder, pod, "NodeNotReady", "Node is not ready");
        return 0;
    }
    if (why.code == ERR_NOT_FOUND)
        return 0;
    if (e)
        *e = why;
    return -1;
}

static int mark_pods(struct nodelife *n, const char *node, struct err *e)
{
    _cleanup_(kube_objects_done) struct kube_objects pods = {0};
    kube_informer_find(n->pods, "node", node, &pods);
    for (size_t i = 0; i < pods.len; i++) {
        if (mark_pod(n, pods.p[i], e) < 0)
            return err_prefix(e, "pod %s", pods.p[i]->key);
    }
    return 0;
}

/* Taints. */

static bool has_taint(const json_t *taints, const char *key, const char *effect)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)taints, i, it) {
        const char *its_key = json_str(it, "key"), *its_effect = json_str(it, "effect");
        if (its_key && its_effect && str_eq(its_key, key) && str_eq(its_effect, effect))
            return true;
    }
    return false;
}

static bool is_ours(const json_t *taint)
{
    const char *key = json_str(taint, "key");
    return key && (str_eq(key, UNREACHABLE) || str_eq(key, NOT_READY));
}

/* The taints that the node should have, those of others as they are. key NULL: none of ours. */
static json_t *make_taints(const json_t *was, const char *key, int64_t now_ns)
{
    static const char *const effects[] = {"NoSchedule", "NoExecute"};
    json_t *taints = json_array(), *it;
    size_t i;
    json_array_foreach((json_t *)was, i, it) {
        if (!is_ours(it) || (key && str_eq(json_str(it, "key"), key)))
            json_array_append(taints, it);
    }
    for (i = 0; key && i < ARRAY_SIZE(effects); i++) {
        if (has_taint(was, key, effects[i]))
            continue;
        char now[RFC3339_MAX];
        rfc3339_format(rfc3339_from_ns(now_ns), RFC3339_SECONDS, now);
        json_array_append_new(
            taints, json_pack("{s:s,s:s,s:s}", "key", key, "effect", effects[i], "timeAdded", now));
    }
    return taints;
}

static int write_taints(struct nodelife *n, const json_t *node, struct err *e)
{
    const char *ready = ready_of(node);
    const char *key = str_eq(ready, "True")    ? NULL
                      : str_eq(ready, "False") ? NOT_READY
                                               : UNREACHABLE;
    const json_t *was = json_at(node, "spec", "taints");
    json_auto_t *taints = make_taints(was, key, clock_real_ns(n->clock));
    if (json_equal(was, taints) || (!was && !json_array_size(taints)))
        return 0;
    json_auto_t *patch = json_pack("{s:{s:s},s:{s:O}}", "metadata", "resourceVersion",
                                   kube_version(node), "spec", "taints", taints);
    json_auto_t *now =
        kube_patch(n->client, &n->nodes_r, NULL, kube_name(node), KUBE_MERGE_PATCH, patch, NULL, e);
    return now ? 0 : -1;
}

/* All of it. */

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct nodelife *n = context;
    (void)ns;
    json_auto_t *node = kube_informer_json(n->nodes, NULL, name, NULL);
    if (!node) {
        heartbeat_free(map_remove(&n->heartbeats, name));
        return 0;
    }
    int64_t left = grace - silence(n, name);
    if (left > 0) {
        ret->again_ns = left;
        return write_taints(n, node, e);
    }
    if (mark_node(n, &node, e) < 0 || mark_pods(n, name, e) < 0)
        return -1;
    return write_taints(n, node, e);
}

static void map_lease(struct kube_controller *c, const struct kube_object *lease, void *context)
{
    (void)context;
    kube_controller_add(c, NULL, lease->name);
}

static void node_of_pod(const json_t *pod, struct kube_index_values *out)
{
    const char *node = json_str(json_object_get(pod, "spec"), "nodeName");
    if (node)
        kube_index_add(out, node);
}

static void nodelife_free(void *context)
{
    struct nodelife *n = context;
    map_for_each(&n->heartbeats, it)
        heartbeat_free(it->value);
    map_done(&n->heartbeats);
    free(n);
}

int embedded_node_lifecycle(struct kube_manager *m, struct err *e)
{
    static const struct kube_index by_node = {"node", node_of_pod};
    struct nodelife *n = NEW(struct nodelife);
    kube_manager_on_stop(m, nodelife_free, n);
    n->clock = kube_manager_clock(m);
    n->client = kube_manager_client(m);
    n->recorder = kube_manager_recorder(m);
    n->nodes_r = kube_resource("v1", "Node");
    n->pods_r = kube_resource("v1", "Pod");
    n->nodes = kube_manager_informer(m, n->nodes_r, NULL, NULL, NULL);
    n->pods = kube_manager_informer(m, n->pods_r, NULL, NULL, NULL);
    n->leases = kube_manager_informer(m, kube_resource("coordination.k8s.io/v1", "Lease"), LEASES,
                                      NULL, NULL);
    if (kube_informer_add_index(n->pods, &by_node) < 0)
        return err_set(e, ERR_INTERNAL, "Index", "pods cannot be found by their node");
    struct kube_controller *c =
        kube_manager_controller(m,
                                &(struct kube_controller_options){
                                    .name = "node-lifecycle", .reconcile = reconcile, .context = n},
                                e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = n->nodes});
    kube_controller_watch(c, (struct kube_source){.informer = n->leases, .map = map_lease});
    return 0;
}
