/*
 * Which node has a replica of a volume, and how many pods there are.
 *
 *     pod of NAME-rep, gated ──┬─ a node of the list has no pod ──> that node
 *                              │     (it is silent: the pod waits, up to the delay)
 *                              └─ all have ──> any node, by the scheduler; then it is listed
 *
 *     node silent for the delay, and there is another ──> pod deleted, node: listed ──> stale
 *     stale node back, volume healthy ──> its folder is erased ──> forgotten
 *
 * Re-homing copies a whole replica, so only some volumes do it at a time. A volume counts from the
 * moment its node becomes stale until it is healthy again.
 */
#include "base/rfc3339.h"
#include "controllers/jiva/jiva.h"

static const int64_t LOOK_AGAIN = 10 * CLOCK_SECOND;

static const json_t *members(const json_t *volume)
{
    return json_at(volume, "status", "replicaStatus");
}

/* Every member is there, at the address that the status has for it, and has all data. */
static bool all_healthy(const json_t *volume)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)members(volume), i, it) {
        const char *state = json_str(it, "state");
        if (!state || !str_eq(state, "Healthy"))
            return false;
    }
    return str_eq(jiva_text(volume, "status", "status"), "RW") && json_array_size(members(volume));
}

unsigned jiva_replica_count(const json_t *volume, unsigned now)
{
    unsigned wanted = api_jiva_factor(volume), have = (unsigned)json_array_size(members(volume));
    if (!json_at(volume, "status", "capacity") || !have)
        return now > wanted ? now : wanted; /* it is still to be made, of that many */
    if (have > wanted)
        return have; /* each needs its pod until it is no member any more */
    if (have == wanted)
        return all_healthy(volume) || now < wanted ? wanted : now;
    /* One more, and the next when that has all data. */
    return all_healthy(volume) || now > have ? have + 1 : have;
}

/* Pods. */

static const char *node_of(const json_t *pod)
{
    const char *bound = jiva_text(pod, "spec", "nodeName");
    const char *told = json_str(json_at(pod, "spec", "nodeSelector"), "kubernetes.io/hostname");
    return *bound ? bound : told ? told : "";
}

static bool is_gated(const json_t *pod)
{
    const json_t *gate = json_array_get(json_at(pod, "spec", "schedulingGates"), 0);
    const char *name = json_str(gate, "name");
    return name && str_eq(name, JIVA_GATE);
}

static bool has_pod(const json_t *pods, const char *node)
{
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)(uintptr_t)pods, i, pod) {
        if (!kube_deleting(pod) && str_eq(node_of(pod), node))
            return true;
    }
    return false;
}

/* A list of the caller's without one name. */
static json_t *without(const json_t *list, const char *name)
{
    json_t *rest = json_array();
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)list, i, it) {
        if (!str_eq(json_string_value(it), name))
            json_array_append(rest, it);
    }
    return rest;
}

static json_t *with(const json_t *list, const char *name)
{
    json_t *more = without(list, name);
    json_array_append_new(more, json_string(name));
    return more;
}

static int write_lists(struct jiva_work *w, const json_t *nodes, const json_t *stale, struct err *e)
{
    return jiva_annotate(w, "nodes",
                         json_pack("{s:o,s:o}", JIVA_NODES, jiva_list_text(nodes), JIVA_STALE,
                                   jiva_list_text(stale)),
                         e);
}

/* A node has a folder from when its pod is bound to it. */
static int note_nodes(struct jiva_work *w, const json_t *pods, struct err *e)
{
    json_auto_t *nodes = jiva_list(w->volume, JIVA_NODES),
                *stale = jiva_list(w->volume, JIVA_STALE);
    size_t i, before = json_array_size(nodes);
    json_t *pod;
    json_array_foreach((json_t *)(uintptr_t)pods, i, pod) {
        const char *node = jiva_text(pod, "spec", "nodeName");
        if (*node && !kube_deleting(pod) && !jiva_listed(nodes, node) && !jiva_listed(stale, node))
            json_array_append_new(nodes, json_string(node));
    }
    return json_array_size(nodes) > before ? write_lists(w, nodes, stale, e) : 0;
}

/* Lost nodes. */

/* How long the node has been silent; INT64_MAX: there is none; 0: it is ready. */
static int64_t silence(struct jiva *j, const char *name)
{
    json_auto_t *node = kube_informer_json(j->nodes, NULL, name, NULL);
    if (!node)
        return INT64_MAX;
    const json_t *ready = kube_condition_get(node, "Ready");
    const char *status = json_str(ready, "status"), *since = json_str(ready, "lastTransitionTime");
    struct timespec at;
    if (!status || str_eq(status, "True") || !since || rfc3339_parse(since, &at, NULL) < 0)
        return 0;
    int64_t ns = clock_real_ns(j->clock) - rfc3339_to_ns(at);
    return ns > 0 ? ns : 1;
}

/* Whether a node is there that could take a replica. */
static bool has_room(struct jiva_work *w, const json_t *nodes)
{
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(w->j->nodes, NULL, &all);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *node = kube_object_json(all.p[i]);
        if (kube_condition_is_true(node, "Ready") && !jiva_listed(nodes, all.p[i]->name) &&
            !json_is_true(json_at(node, "spec", "unschedulable")))
            return true;
    }
    return false;
}

/* One of the volumes that may be re-homed at a time? */
static bool take_place(struct jiva_work *w)
{
    struct jiva *j = w->j;
    _cleanup_free_ char *key = mem_printf("%s/%s", w->ns, w->name);
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(j->volumes, NULL, &all);
    pthread_mutex_lock(&j->lock);
    /* Those of before this process began are known by their stale nodes. */
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *volume = kube_object_json(all.p[i]);
        const char *stale = kube_annotation(volume, JIVA_STALE);
        bool ready = str_eq(jiva_text(volume, "status", "phase"), "Ready");
        if (stale && *stale && !ready)
            map_set(&j->rehoming, all.p[i]->key, j);
        else if (ready && !(stale && *stale))
            map_remove(&j->rehoming, all.p[i]->key);
    }
    bool yes = map_has(&j->rehoming, key) || j->rehoming.count < jiva_settings.rehome_most;
    if (yes)
        map_set(&j->rehoming, key, j);
    pthread_mutex_unlock(&j->lock);
    return yes;
}

static void leave_place(struct jiva_work *w)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", w->ns, w->name);
    pthread_mutex_lock(&w->j->lock);
    map_remove(&w->j->rehoming, key);
    pthread_mutex_unlock(&w->j->lock);
}

/* Takes the node off the list: whoever comes next goes elsewhere. */
static int give_up_node(struct jiva_work *w, const json_t *nodes, const char *node, struct err *e)
{
    json_auto_t *rest = without(nodes, node), *stale = jiva_list(w->volume, JIVA_STALE),
                *more = with(stale, node);
    if (write_lists(w, rest, more, e) < 0)
        return -1;
    kube_event_warning(w->j->recorder, w->volume, "ReplicaRehomed",
                       "Node %s is silent for too long: its replica is made anew on another", node);
    return 0;
}

/* Pods of nodes that were given up go without asking the node. */
static int drop_pods(struct jiva_work *w, const json_t *pods, struct err *e)
{
    json_auto_t *stale = jiva_list(w->volume, JIVA_STALE);
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)(uintptr_t)pods, i, pod) {
        const char *node = node_of(pod);
        if (jiva_listed(stale, node) && silence(w->j, node) &&
            jiva_delete(w->j, &w->j->pods_r, pod, true, e) < 0)
            return -1;
    }
    return 0;
}

static int rehome(struct jiva_work *w, struct err *e)
{
    json_auto_t *nodes = jiva_list(w->volume, JIVA_NODES);
    size_t i;
    json_t *it;
    json_array_foreach(nodes, i, it) {
        const char *node = json_string_value(it);
        int64_t ns = silence(w->j, node);
        if (!ns)
            continue;
        if (ns < jiva_settings.rehome_ns) {
            jiva_again(w, jiva_settings.rehome_ns - ns);
        } else if (!has_room(w, nodes) || !take_place(w)) {
            jiva_again(w, LOOK_AGAIN);
        } else {
            return give_up_node(w, nodes, node, e);
        }
    }
    return 0;
}

/* Gates. */

static int let_go(struct jiva_work *w, const json_t *pod, const char *node, struct err *e)
{
    json_auto_t *patch = json_pack("{s:{s:s},s:{s:n}}", "metadata", "resourceVersion",
                                   kube_version(pod), "spec", "schedulingGates");
    if (node)
        json_object_set_new(json_object_get(patch, "spec"), "nodeSelector",
                            json_pack("{s:s}", "kubernetes.io/hostname", node));
    crash_point("placement");
    json_auto_t *now = kube_patch(w->j->client, &w->j->pods_r, w->ns, kube_name(pod),
                                  KUBE_MERGE_PATCH, patch, NULL, e);
    crash_point("placement");
    return now ? 0 : err_prefix(e, "pod %s", kube_name(pod));
}

static int open_gates(struct jiva_work *w, json_t *pods, struct err *e)
{
    json_auto_t *nodes = jiva_list(w->volume, JIVA_NODES);
    size_t i, k;
    json_t *pod, *it;
    json_array_foreach(pods, i, pod) {
        if (!is_gated(pod) || kube_deleting(pod))
            continue;
        const char *home = NULL;
        bool waits = false;
        json_array_foreach(nodes, k, it) {
            const char *node = json_string_value(it);
            if (has_pod(pods, node))
                continue;
            if (silence(w->j, node))
                waits = true; /* what it has may be back soon */
            else if (!home)
                home = node;
        }
        if (!home && waits) {
            jiva_again(w, LOOK_AGAIN);
            continue;
        }
        if (let_go(w, pod, home, e) < 0)
            return -1;
        if (home) /* taken: the next one goes elsewhere */
            json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(home));
    }
    return 0;
}

/* Folders that nobody needs. */

int jiva_erase(struct jiva_work *w, const char *node, struct err *e)
{
    json_auto_t *wanted = jiva_eraser(w->volume, node);
    json_auto_t *pod = kube_informer_json(w->j->pods, w->ns, kube_name(wanted), NULL);
    if (!pod) {
        struct err why = {0};
        crash_point("eraser");
        json_auto_t *made = kube_create(w->j->client, &w->j->pods_r, wanted, NULL, &why);
        crash_point("eraser");
        if (!made && why.code != ERR_ALREADY_EXISTS) {
            *e = why;
            return -1;
        }
        return 0;
    }
    if (!str_eq(jiva_text(pod, "status", "phase"), "Succeeded"))
        return 0;
    return 1;
}

static int erase_stale(struct jiva_work *w, const json_t *pods, struct err *e)
{
    json_auto_t *nodes = jiva_list(w->volume, JIVA_NODES),
                *stale = jiva_list(w->volume, JIVA_STALE);
    const json_t *first = json_array_get(stale, 0);
    if (!first)
        return 0;
    if (!str_eq(jiva_text(w->volume, "status", "phase"), "Ready"))
        return 0; /* until then it may be needed yet, by hand */
    leave_place(w);
    const char *node = json_string_value(first);
    int64_t ns = silence(w->j, node);
    if (ns && ns != INT64_MAX) {
        jiva_again(w, LOOK_AGAIN);
        return 0;
    }
    json_auto_t *eraser = jiva_eraser(w->volume, node);
    int gone = ns || has_pod(pods, node) ? ns != 0 : jiva_erase(w, node, e);
    if (gone <= 0)
        return gone;
    json_auto_t *rest = without(stale, node);
    if (write_lists(w, nodes, rest, e) < 0)
        return -1;
    json_auto_t *pod = kube_informer_json(w->j->pods, w->ns, kube_name(eraser), NULL);
    return pod ? jiva_delete(w->j, &w->j->pods_r, pod, false, e) : 0;
}

/* Fewer. */

static bool is_member(const json_t *volume, const json_t *pod)
{
    const char *ip = jiva_text(pod, "status", "podIP");
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)members(volume), i, it) {
        const char *address = json_str(it, "address");
        if (address && *ip && str_eq(address, ip))
            return true;
    }
    return false;
}

/* The pod whose replica is no member any more is the cheapest, and its node's folder of no use. */
int jiva_choose_leaver(struct jiva_work *w, struct err *e)
{
    if (!all_healthy(w->volume))
        return 0; /* who is a member is known by address, of those that are there */
    json_auto_t *pods = jiva_pods(w->j, w->volume, "jiva-replica");
    json_auto_t *nodes = jiva_list(w->volume, JIVA_NODES),
                *stale = jiva_list(w->volume, JIVA_STALE);
    size_t i;
    json_t *pod;
    json_array_foreach(pods, i, pod) {
        const char *node = jiva_text(pod, "spec", "nodeName");
        if (kube_deleting(pod) || is_member(w->volume, pod))
            continue;
        if (*node && jiva_listed(nodes, node)) {
            json_auto_t *rest = without(nodes, node), *more = with(stale, node);
            if (write_lists(w, rest, more, e) < 0)
                return -1;
        }
        if (kube_annotation(pod, "controller.kubernetes.io/pod-deletion-cost"))
            return 1;
        json_auto_t *patch =
            json_pack("{s:{s:s,s:{s:s}}}", "metadata", "resourceVersion", kube_version(pod),
                      "annotations", "controller.kubernetes.io/pod-deletion-cost", "-1000");
        json_auto_t *now = kube_patch(w->j->client, &w->j->pods_r, w->ns, kube_name(pod),
                                      KUBE_MERGE_PATCH, patch, NULL, e);
        return now ? 1 : -1;
    }
    return 1; /* there is none to choose from */
}

int jiva_place_replicas(struct jiva_work *w, struct err *e)
{
    json_auto_t *pods = jiva_pods(w->j, w->volume, "jiva-replica");
    if (note_nodes(w, pods, e) < 0 || rehome(w, e) < 0 || drop_pods(w, pods, e) < 0 ||
        open_gates(w, pods, e) < 0)
        return -1;
    return erase_stale(w, pods, e) < 0 ? -1 : 0;
}
