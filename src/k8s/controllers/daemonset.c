/*
 * DaemonSets: a pod on every node that it selects and whose taints it tolerates.
 *
 * The name of a pod follows from the set, the node and the template, so that a node can never have
 * two of one template. Pods are bound when they are made.
 *
 *     template changes: on at most maxUnavailable nodes at a time the old pod is deleted, and the new
 *     one made when it is gone
 */
#include "k8s/controllers/daemonset.h"

#include <inttypes.h>

#include "k8s/controllers/embedded.h"
#include "k8s/controllers/pods.h"
#include "k8s/controllers/schedule.h"
#include "kube/condition.h"
#include "kube/names.h"

struct daemons {
    struct kube_ages *ages;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource sets_r, pods_r;
    struct kube_informer *sets, *pods, *nodes;
};

/* Taints that a pod of a DaemonSet tolerates whatever it says, as in Kubernetes. */
static const struct {
    const char *key, *effect;
} always[] = {
    {"node.kubernetes.io/not-ready", "NoExecute"},
    {"node.kubernetes.io/unreachable", "NoExecute"},
    {"node.kubernetes.io/disk-pressure", "NoSchedule"},
    {"node.kubernetes.io/memory-pressure", "NoSchedule"},
    {"node.kubernetes.io/pid-pressure", "NoSchedule"},
    {"node.kubernetes.io/unschedulable", "NoSchedule"},
};

/* The pod of a node. */
static json_t *pod_of(const json_t *set, const char *node, const char *hash)
{
    char suffix[6];
    const json_t *template = json_at(set, "spec", "template");
    _cleanup_free_ char *text = mem_printf("%s %s %s", kube_uid(set), node, hash);
    kube_suffix(text, suffix);
    _cleanup_free_ char *name = mem_printf("%.57s-%s", kube_name(set), suffix);
    json_t *pod = pods_from_template(set, template, name);
    json_t *spec = json_object_get(pod, "spec"), *metadata = json_object_get(pod, "metadata");
    json_t *tolerations = json_array_at(spec, "tolerations");
    for (size_t i = 0; i < ARRAY_SIZE(always); i++)
        json_array_append_new(tolerations,
                              json_pack("{s:s,s:s,s:s}", "key", always[i].key, "operator", "Exists",
                                        "effect", always[i].effect));
    json_object_set_new(spec, "nodeName", json_string(node));
    json_t *labels = json_object_at(metadata, "labels");
    json_object_set_new(labels, DAEMONSET_HASH, json_string(hash));
    return pod;
}

bool daemonset_wants(const json_t *set, const json_t *node, bool *ret_keeps)
{
    json_auto_t *pod = pod_of(set, kube_name(node), "");
    bool wants = schedule_selects(pod, node);
    *ret_keeps = wants;
    size_t i;
    json_t *taint;
    json_array_foreach((json_t *)json_at(node, "spec", "taints"), i, taint) {
        const char *effect = json_str(taint, "effect");
        int64_t seconds;
        if (!effect || str_eq(effect, "PreferNoSchedule") ||
            schedule_tolerates(json_at(pod, "spec", "tolerations"), taint, &seconds))
            continue;
        /* One that is there already goes only where it may not run either. */
        const char *key = json_str(taint, "key");
        bool not_ready = key && (str_eq(key, "node.kubernetes.io/not-ready") ||
                                 str_eq(key, "node.kubernetes.io/unreachable"));
        if (not_ready)
            continue;
        wants = false;
        *ret_keeps &= !str_eq(effect, "NoExecute");
    }
    return wants;
}

static int delete_pod(struct daemons *d, const json_t *set, const json_t *pod, struct err *e)
{
    const struct kube_delete options = {.uid = kube_uid(pod), .grace_seconds = -1};
    struct err why = {0};
    if (kube_deleting(pod))
        return 0;
    if (kube_delete(d->client, &d->pods_r, kube_namespace(pod), kube_name(pod), &options, &why) <
        0) {
        if (why.code == ERR_ABORTED || why.code == ERR_NOT_FOUND)
            return 0;
        *e = why;
        return -1;
    }
    kube_event_normal(d->recorder, set, "SuccessfulDelete", "Deleted pod: %s", kube_name(pod));
    return 0;
}

static int create_pod(struct daemons *d, const json_t *set, const char *node, const char *hash,
                      struct err *e)
{
    json_auto_t *pod = pod_of(set, node, hash);
    struct err why = {0};
    json_auto_t *made = kube_create(d->client, &d->pods_r, pod, NULL, &why);
    if (made) {
        kube_event_normal(d->recorder, set, "SuccessfulCreate", "Created pod: %s", kube_name(pod));
        return 0;
    }
    if (why.code == ERR_ALREADY_EXISTS)
        return 0; /* made before, or about to end: its end will be seen */
    kube_event_warning(d->recorder, set, "FailedCreate", "Error creating: %s", why.msg);
    *e = why;
    return -1;
}

static bool is_new(const json_t *pod, const char *hash)
{
    const char *own = kube_label(pod, DAEMONSET_HASH);
    return own && str_eq(own, hash);
}

/* What is counted while nodes are gone through. */
struct counts {
    int64_t desired, current, ready, available, updated, misplaced, wait_ns;
    json_t *outdated; /* pods of older templates that are in their right place */
};

/* The pods on one node: ends those that should not be there, makes the one that should. */
static int keep_node(struct daemons *d, const json_t *set, const json_t *node, const json_t *pods,
                     const char *hash, struct counts *n, struct err *e)
{
    int64_t seconds = pods_integer(set, "spec", "minReadySeconds", 0), wait = 0;
    bool keeps, wants = daemonset_wants(set, node, &keeps);
    const json_t *kept = NULL;
    bool ending = false;
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)pods, i, pod) {
        if (!str_eq(pods_node(pod), kube_name(node)))
            continue;
        ending |= kube_deleting(pod);
        bool over = !pods_is_active(pod) || kept || !keeps;
        if (over && delete_pod(d, set, pod, e) < 0)
            return -1;
        if (!over)
            kept = pod;
    }
    n->desired += wants;
    n->misplaced += kept && !wants;
    if (!kept)
        return wants && !ending ? create_pod(d, set, kube_name(node), hash, e) : 0;
    if (!wants)
        return 0;
    n->current++;
    n->ready += pods_is_ready(kept);
    n->available += pods_is_available(kept, seconds, d->ages, &wait);
    n->updated += is_new(kept, hash);
    if (wait && (!n->wait_ns || wait < n->wait_ns))
        n->wait_ns = wait;
    if (!is_new(kept, hash))
        json_array_append(n->outdated, (json_t *)(uintptr_t)kept);
    return 0;
}

/* Deletes pods of older templates, as many as may be missing; those that are not ready first. */
static int roll(struct daemons *d, const json_t *set, const struct counts *n, struct err *e)
{
    const json_t *strategy = json_at(set, "spec", "updateStrategy");
    if (str_eq(json_text(strategy, "type"), "OnDelete"))
        return 0;
    int64_t most = pods_int_or_percent(json_at(strategy, "rollingUpdate", "maxUnavailable"),
                                       n->desired, true, 1);
    int64_t room = (most > 0 ? most : 1) - (n->desired - n->available);
    size_t i;
    json_t *pod;
    json_array_foreach(n->outdated, i, pod) {
        bool ready = pods_is_ready(pod);
        if (ready && room <= 0)
            continue;
        room -= ready;
        if (delete_pod(d, set, pod, e) < 0)
            return -1;
    }
    return 0;
}

static int write_status(struct daemons *d, json_t **set, const struct counts *n, struct err *e)
{
    json_auto_t *status = kube_status_copy(*set);
    const struct {
        const char *key;
        int64_t value;
        bool always;
    } members[] = {{"currentNumberScheduled", n->current, true},
                   {"numberMisscheduled", n->misplaced, true},
                   {"desiredNumberScheduled", n->desired, true},
                   {"numberReady", n->ready, true},
                   {"observedGeneration", kube_generation(*set), true},
                   {"updatedNumberScheduled", n->updated, false},
                   {"numberAvailable", n->available, false},
                   {"numberUnavailable", n->desired - n->available, false}};
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        if (members[i].value || members[i].always)
            json_object_set_new(status, members[i].key, json_integer(members[i].value));
        else
            json_object_del(status, members[i].key);
    }
    return kube_status_write(d->client, &d->sets_r, set, status, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct daemons *d = context;
    json_auto_t *set = kube_informer_json(d->sets, ns, name, NULL);
    if (!set || kube_deleting(set))
        return 0;
    json_auto_t *pods = pods_of(d->pods, set), *outdated = json_array();
    if (pods_claim(d->client, &d->pods_r, set, pods, e) < 0)
        return -1;
    char hash[KUBE_HASH];
    kube_hash(json_at(set, "spec", "template"), 0, hash);
    struct counts n = {.outdated = outdated};
    _cleanup_(kube_objects_done) struct kube_objects nodes = {0};
    kube_informer_list(d->nodes, NULL, &nodes);
    for (size_t i = 0; i < nodes.len; i++) {
        json_auto_t *node = kube_object_json(nodes.p[i]);
        if (keep_node(d, set, node, pods, hash, &n, e) < 0)
            return -1;
    }
    if (roll(d, set, &n, e) < 0)
        return -1;
    ret->again_ns = n.wait_ns;
    return write_status(d, &set, &n, e);
}

static void map_pod(struct kube_controller *c, const struct kube_object *pod, void *context)
{
    (void)context;
    kube_map_owner(c, pod, "DaemonSet");
}

static void map_node(struct kube_controller *c, const struct kube_object *node, void *context)
{
    struct daemons *d = context;
    (void)node;
    _cleanup_(kube_objects_done) struct kube_objects sets = {0};
    kube_informer_list(d->sets, NULL, &sets);
    for (size_t i = 0; i < sets.len; i++)
        kube_controller_add(c, sets.p[i]->ns, sets.p[i]->name);
}

/* Labels and taints decide. */
static bool node_changed(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *node = now ? kube_object_json(now) : NULL;
    return !before || !node ||
           !json_equal(json_object_get(before, "spec"), json_object_get(node, "spec")) ||
           !json_equal(json_at(before, "metadata", "labels"), json_at(node, "metadata", "labels"));
}

int embedded_daemon_sets(struct kube_manager *m, struct err *e)
{
    struct daemons *d = NEW(struct daemons);
    kube_manager_on_stop(m, free, d);
    d->ages = kube_manager_ages(m);
    d->client = kube_manager_client(m);
    d->recorder = kube_manager_recorder(m);
    d->sets_r = kube_resource("apps/v1", "DaemonSet");
    d->pods_r = kube_resource("v1", "Pod");
    d->sets = kube_manager_informer(m, d->sets_r, NULL, NULL, NULL);
    d->pods = kube_manager_informer(m, d->pods_r, NULL, NULL, NULL);
    d->nodes = kube_manager_informer(m, kube_resource("v1", "Node"), NULL, NULL, NULL);
    pods_add_indexes(d->pods);
    const struct kube_controller_options o = {
        .name = "daemonset", .reconcile = reconcile, .context = d};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = d->sets});
    kube_controller_watch(c, (struct kube_source){.informer = d->pods, .map = map_pod});
    kube_controller_watch(
        c, (struct kube_source){
               .informer = d->nodes, .predicate = node_changed, .map = map_node, .context = d});
    return 0;
}
