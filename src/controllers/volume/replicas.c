/*
 * Which node has a replica of a volume, and how many pods there are.
 *
 *     a replica's pod, gated ──┬─ a node of the list has no pod ──> that node
 *                              │     (it is silent: the pod waits, up to the delay)
 *                              └─ all have ──> any node, by the scheduler; then it is listed
 *
 * What becomes of nodes that are lost is in rehome.c.
 */
#include "controllers/volume/volume.h"

static const int64_t LOOK_AGAIN = 10 * CLOCK_SECOND;

/* Every member is there, at the address that the status has for it, and has all data. */
static bool all_healthy(const struct volume_view *view)
{
    return view->serving && view->members && view->healthy == view->members;
}

unsigned volume_replica_count(const struct volume_view *view, unsigned now)
{
    unsigned wanted = view->factor, have = view->members;
    if (!view->made || !have)
        return now > wanted ? now : wanted; /* it is still to be made, of that many */
    if (have > wanted)
        return have; /* each needs its pod until it is no member any more */
    if (have == wanted)
        return all_healthy(view) || now < wanted ? wanted : now;
    /* One more, and the next when that has all data. */
    return all_healthy(view) || now > have ? have + 1 : have;
}

/* Pods. */

const char *volume_node_of(const json_t *pod)
{
    const char *bound = volume_text(pod, "spec", "nodeName");
    const char *told = json_str(json_at(pod, "spec", "nodeSelector"), "kubernetes.io/hostname");
    return *bound ? bound : told ? told : "";
}

static bool is_gated(const struct volume_work *w, const json_t *pod)
{
    const json_t *gate = json_array_get(json_at(pod, "spec", "schedulingGates"), 0);
    const char *name = json_str(gate, "name");
    return name && str_eq(name, w->c->engine->gate);
}

bool volume_has_pod(const json_t *pods, const char *node)
{
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)(uintptr_t)pods, i, pod) {
        if (!kube_deleting(pod) && str_eq(volume_node_of(pod), node))
            return true;
    }
    return false;
}

json_t *volume_without(const json_t *list, const char *name)
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

json_t *volume_with(const json_t *list, const char *name)
{
    json_t *more = volume_without(list, name);
    json_array_append_new(more, json_string(name));
    return more;
}

int volume_write_lists(struct volume_work *w, const json_t *nodes, const json_t *stale,
                       struct err *e)
{
    return volume_annotate(w, "nodes",
                           json_pack("{s:o,s:o}", w->c->engine->nodes, volume_list_text(nodes),
                                     w->c->engine->stale, volume_list_text(stale)),
                           e);
}

static bool is_member(const struct volume_view *view, const json_t *pod)
{
    const char *ip = volume_text(pod, "status", "podIP");
    for (unsigned i = 0; i < view->members; i++) {
        if (*ip && str_eq(view->member[i].address, ip))
            return true;
    }
    return false;
}

/*
 * A node has a folder from when its pod is bound to it. One that was given up, is back, and was given a
 * pod that is a member, has one that is needed.
 */
static int note_nodes(struct volume_work *w, const json_t *pods, struct err *e)
{
    const struct volume_view view = volume_look(w);
    json_auto_t *nodes = volume_list(w->volume, w->c->engine->nodes),
                *stale = volume_list(w->volume, w->c->engine->stale);
    size_t i, before = json_array_size(nodes);
    json_t *pod;
    json_array_foreach((json_t *)(uintptr_t)pods, i, pod) {
        const char *node = volume_text(pod, "spec", "nodeName");
        if (!*node || kube_deleting(pod) || volume_listed(nodes, node))
            continue;
        if (volume_listed(stale, node)) {
            if (volume_silence(w->c, node) || !is_member(&view, pod))
                continue;
            json_t *rest = volume_without(stale, node);
            json_decref(stale);
            stale = rest;
        }
        json_array_append_new(nodes, json_string(node));
    }
    return json_array_size(nodes) > before ? volume_write_lists(w, nodes, stale, e) : 0;
}

/* Gates. */

static int let_go(struct volume_work *w, const json_t *pod, const char *node, struct err *e)
{
    json_auto_t *patch = json_pack("{s:{s:s},s:{s:n}}", "metadata", "resourceVersion",
                                   kube_version(pod), "spec", "schedulingGates");
    if (node)
        json_object_set_new(json_object_get(patch, "spec"), "nodeSelector",
                            json_pack("{s:s}", "kubernetes.io/hostname", node));
    crash_point("placement");
    json_auto_t *now = kube_patch(w->c->client, &w->c->pods_r, w->ns, kube_name(pod),
                                  KUBE_MERGE_PATCH, patch, NULL, e);
    crash_point("placement");
    return now ? 0 : err_prefix(e, "pod %s", kube_name(pod));
}

static int open_gates(struct volume_work *w, json_t *pods, struct err *e)
{
    json_auto_t *nodes = volume_list(w->volume, w->c->engine->nodes);
    size_t i, k;
    json_t *pod, *it;
    json_array_foreach(pods, i, pod) {
        if (!is_gated(w, pod) || kube_deleting(pod))
            continue;
        const char *home = NULL;
        bool waits = false;
        json_array_foreach(nodes, k, it) {
            const char *node = json_string_value(it);
            if (volume_has_pod(pods, node))
                continue;
            if (volume_silence(w->c, node))
                waits = true; /* what it has may be back soon */
            else if (!home)
                home = node;
        }
        if (!home && waits) {
            volume_again(w, LOOK_AGAIN);
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
int volume_choose_leaver(struct volume_work *w, struct err *e)
{
    const struct volume_view view = volume_look(w);
    if (!all_healthy(&view))
        return 0; /* who is a member is known by address, of those that are there */
    json_auto_t *pods = volume_pods(w->c, w->volume, w->c->engine->replica_component);
    json_auto_t *nodes = volume_list(w->volume, w->c->engine->nodes),
                *stale = volume_list(w->volume, w->c->engine->stale);
    size_t i;
    json_t *pod;
    json_array_foreach(pods, i, pod) {
        const char *node = volume_text(pod, "spec", "nodeName");
        if (kube_deleting(pod) || is_member(&view, pod))
            continue;
        if (*node && volume_listed(nodes, node)) {
            json_auto_t *rest = volume_without(nodes, node), *more = volume_with(stale, node);
            if (volume_write_lists(w, rest, more, e) < 0)
                return -1;
        }
        if (kube_annotation(pod, "controller.kubernetes.io/pod-deletion-cost"))
            return 1;
        json_auto_t *patch =
            json_pack("{s:{s:s,s:{s:s}}}", "metadata", "resourceVersion", kube_version(pod),
                      "annotations", "controller.kubernetes.io/pod-deletion-cost", "-1000");
        json_auto_t *now = kube_patch(w->c->client, &w->c->pods_r, w->ns, kube_name(pod),
                                      KUBE_MERGE_PATCH, patch, NULL, e);
        return now ? 1 : -1;
    }
    return 1; /* there is none to choose from */
}

int volume_place_pods(struct volume_work *w, struct err *e)
{
    json_auto_t *pods = volume_pods(w->c, w->volume, w->c->engine->replica_component);
    if (note_nodes(w, pods, e) < 0 || volume_rehome(w, e) < 0 || volume_drop_pods(w, pods, e) < 0 ||
        open_gates(w, pods, e) < 0)
        return -1;
    return volume_erase_stale(w, pods, e);
}
