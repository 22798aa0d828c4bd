/*
 * The end of pods whose node is lost.
 *
 *     node has a NoExecute taint   pods that do not tolerate it are deleted, those that tolerate it
 *                                  for a time after that time
 *     node is gone                 its pods are deleted at once, without asking it
 *
 * Nodes that are silent, or say that they are not ready, have such a taint. A pod that says nothing
 * of it tolerates it for five minutes.
 */
#include "base/rfc3339.h"
#include "k8s/controllers/embedded.h"
#include "k8s/controllers/pods.h"
#include "k8s/controllers/schedule.h"

enum { PATIENCE_SECONDS = 300 };

struct evictor {
    struct kube_ages *ages;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource nodes_r, pods_r;
    struct kube_informer *nodes, *pods;
};

static bool is_default(const json_t *taint)
{
    static const char *const keys[] = {"node.kubernetes.io/unreachable",
                                       "node.kubernetes.io/not-ready", NULL};
    const char *key = json_str(taint, "key");
    return key && str_in(key, keys);
}

/* How long the node has had the taint; one that does not say since when is as good as new. */
static int64_t age_of(const json_t *node, const json_t *taint, struct kube_ages *ages)
{
    const char *added = json_str(taint, "timeAdded"), *key = json_str(taint, "key");
    struct timespec since;
    if (!added || rfc3339_parse(added, &since, NULL) < 0)
        return 0;
    _cleanup_free_ char *what = mem_printf("taint %s %s", kube_name(node), key ? key : "");
    return kube_ages_now(ages, what, rfc3339_to_ns(since)) - rfc3339_to_ns(since);
}

int64_t pods_stay_ns(const json_t *pod, const json_t *node, struct kube_ages *ages)
{
    int64_t stay = INT64_MAX;
    size_t i;
    json_t *taint;
    json_array_foreach((json_t *)json_at(node, "spec", "taints"), i, taint) {
        const char *effect = json_str(taint, "effect");
        int64_t seconds;
        if (!effect || !str_eq(effect, "NoExecute"))
            continue;
        bool tolerated = schedule_tolerates(json_at(pod, "spec", "tolerations"), taint, &seconds);
        if (tolerated && seconds < 0)
            continue;
        if (!tolerated)
            seconds = is_default(taint) ? PATIENCE_SECONDS : 0;
        int64_t left = seconds * CLOCK_SECOND - age_of(node, taint, ages);
        stay = left < stay ? left : stay;
    }
    return stay == INT64_MAX ? stay : stay > 0 ? stay : 0;
}

static int delete_pod(struct evictor *v, const json_t *pod, bool force, struct err *e)
{
    const struct kube_delete options = {.uid = kube_uid(pod), .grace_seconds = force ? 0 : -1};
    struct err why = {0};
    if (kube_delete(v->client, &v->pods_r, kube_namespace(pod), kube_name(pod), &options, &why) <
            0 &&
        why.code != ERR_NOT_FOUND && why.code != ERR_ABORTED) {
        *e = why;
        return err_prefix(e, "pod %s/%s", kube_namespace(pod), kube_name(pod));
    }
    kube_event_normal(v->recorder, pod, force ? "NodeGone" : "TaintManagerEviction",
                      force ? "Deleting Pod %s/%s: its node is gone"
                            : "Marking for deletion Pod %s/%s",
                      kube_namespace(pod), kube_name(pod));
    return 0;
}

/* Whether the server says so, too: what is not in the cache may only not be there yet. */
static int is_gone(struct evictor *v, const char *node, bool *ret_gone, struct err *e)
{
    struct err why = {0};
    json_auto_t *there = kube_get(v->client, &v->nodes_r, NULL, node, &why);
    *ret_gone = !there && why.code == ERR_NOT_FOUND;
    if (there || *ret_gone)
        return 0;
    *e = why;
    return -1;
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct evictor *v = context;
    (void)ns;
    _cleanup_(kube_objects_done) struct kube_objects pods = {0};
    json_auto_t *node = kube_informer_json(v->nodes, NULL, name, NULL);
    bool gone = false;
    kube_informer_find(v->pods, "bound", name, &pods);
    if (!node && pods.len && is_gone(v, name, &gone, e) < 0)
        return -1;
    for (size_t i = 0; i < pods.len; i++) {
        json_auto_t *pod = kube_object_json(pods.p[i]);
        int64_t stay = gone ? 0 : pods_stay_ns(pod, node, v->ages);
        if (stay == 0 && (gone || !kube_deleting(pod))) {
            if (delete_pod(v, pod, gone, e) < 0)
                return -1;
        } else if (stay != INT64_MAX && stay && (!ret->again_ns || stay < ret->again_ns)) {
            ret->again_ns = stay;
        }
    }
    return 0;
}

static void map_pod(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *pod = kube_object_json(object);
    if (*pods_node(pod))
        kube_controller_add(c, NULL, pods_node(pod));
}

static bool is_bound(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *pod = now ? kube_object_json(now) : NULL;
    return pod && *pods_node(pod) && (!before || !*pods_node(before));
}

/* Taints, not what a node says of itself all the time. */
static bool is_tainted(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *node = now ? kube_object_json(now) : NULL;
    return !before || !node ||
           !json_equal(json_object_get(before, "spec"), json_object_get(node, "spec"));
}

int embedded_evictor(struct kube_manager *m, struct err *e)
{
    struct evictor *v = NEW(struct evictor);
    kube_manager_on_stop(m, free, v);
    v->ages = kube_manager_ages(m);
    v->client = kube_manager_client(m);
    v->recorder = kube_manager_recorder(m);
    v->nodes_r = kube_resource("v1", "Node");
    v->pods_r = kube_resource("v1", "Pod");
    v->nodes = kube_manager_informer(m, v->nodes_r, NULL, NULL, NULL);
    v->pods = kube_manager_informer(m, v->pods_r, NULL, NULL, NULL);
    pods_add_indexes(v->pods);
    const struct kube_controller_options o = {
        .name = "pod-eviction", .reconcile = reconcile, .context = v};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = v->nodes, .predicate = is_tainted});
    kube_controller_watch(
        c, (struct kube_source){.informer = v->pods, .predicate = is_bound, .map = map_pod});
    return 0;
}
