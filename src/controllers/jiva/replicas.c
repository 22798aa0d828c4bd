/*
 * Which node has a replica of a volume, and how many pods there are.
 *
 *     pod of NAME-rep, gated ──┬─ a node of the list has no pod ──> that node
 *                              │     (it is silent: the pod waits, up to the delay)
 *                              └─ all have ──> any node, by the scheduler; then it is listed
 *
 * What becomes of nodes that are lost is in rehome.c.
 */
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

const char *jiva_node_of(const json_t *pod)
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

bool jiva_has_pod(const json_t *pods, const char *node)
{
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)(uintptr_t)pods, i, pod) {
        if (!kube_deleting(pod) && str_eq(jiva_node_of(pod), node))
            return true;
    }
    return false;
}

json_t *jiva_without(const json_t *list, const char *name)
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

json_t *jiva_with(const json_t *list, const char *name)
{
    json_t *more = jiva_without(list, name);
    json_array_append_new(more, json_string(name));
    return more;
}

int jiva_write_lists(struct jiva_work *w, const json_t *nodes, const json_t *stale, struct err *e)
{
    return jiva_annotate(w, "nodes",
                         json_pack("{s:o,s:o}", JIVA_NODES, jiva_list_text(nodes), JIVA_STALE,
                                   jiva_list_text(stale)),
                         e);
}

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

/*
 * A node has a folder from when its pod is bound to it. One that was given up, is back, and was given a
 * pod that is a member, has one that is needed.
 */
static int note_nodes(struct jiva_work *w, const json_t *pods, struct err *e)
{
    json_auto_t *nodes = jiva_list(w->volume, JIVA_NODES),
                *stale = jiva_list(w->volume, JIVA_STALE);
    size_t i, before = json_array_size(nodes);
    json_t *pod;
    json_array_foreach((json_t *)(uintptr_t)pods, i, pod) {
        const char *node = jiva_text(pod, "spec", "nodeName");
        if (!*node || kube_deleting(pod) || jiva_listed(nodes, node))
            continue;
        if (jiva_listed(stale, node)) {
            if (jiva_silence(w->j, node) || !is_member(w->volume, pod))
                continue;
            json_t *rest = jiva_without(stale, node);
            json_decref(stale);
            stale = rest;
        }
        json_array_append_new(nodes, json_string(node));
    }
    return json_array_size(nodes) > before ? jiva_write_lists(w, nodes, stale, e) : 0;
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
            if (jiva_has_pod(pods, node))
                continue;
            if (jiva_silence(w->j, node))
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

/* Fewer. */

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
            json_auto_t *rest = jiva_without(nodes, node), *more = jiva_with(stale, node);
            if (jiva_write_lists(w, rest, more, e) < 0)
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
    if (note_nodes(w, pods, e) < 0 || jiva_rehome(w, e) < 0 || jiva_drop_pods(w, pods, e) < 0 ||
        open_gates(w, pods, e) < 0)
        return -1;
    return jiva_erase_stale(w, pods, e);
}
