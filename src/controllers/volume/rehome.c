/*
 * Nodes that are lost, and folders that nobody needs.
 *
 *     node silent for the delay ──> node: listed ──> stale, its pod goes ──> another node is chosen
 *     stale node back, volume healthy ──> its folder is erased ──> forgotten
 *
 * A node is given up only while the volume serves without it and misses a replica. So there is
 * always somebody to copy from; and a volume that lost too many nodes at once waits for them, since
 * what they have is needed, and its pods go back to them.
 *
 * Re-homing copies a whole replica, so only some volumes do it at a time. A volume counts from the
 * moment its node becomes stale until it is healthy again, as long as it serves.
 */
#include "base/rfc3339.h"
#include "controllers/volume/volume.h"

static const int64_t LOOK_AGAIN = 10 * CLOCK_SECOND;

/* Lost nodes. */

int64_t volume_silence(struct volume_controller *v, const char *name)
{
    json_auto_t *node = kube_informer_json(v->nodes, NULL, name, NULL);
    if (!node)
        return INT64_MAX;
    const json_t *ready = kube_condition_get(node, "Ready");
    const char *status = json_str(ready, "status"), *since = json_str(ready, "lastTransitionTime");
    struct timespec at;
    if (!status || str_eq(status, "True") || !since || rfc3339_parse(since, &at, NULL) < 0)
        return 0;
    _cleanup_free_ char *key = mem_printf("silent %s", name);
    int64_t ns = kube_ages_now(v->ages, key, rfc3339_to_ns(at)) - rfc3339_to_ns(at);
    return ns > 0 ? ns : 1;
}

/* Whether the policy lets replicas run on the node. */
static bool may_have_replica(const json_t *selector, const json_t *node)
{
    const json_t *labels = json_at(node, "metadata", "labels");
    const char *key;
    json_t *wanted;
    json_object_foreach((json_t *)(uintptr_t)selector, key, wanted) {
        const json_t *label = json_object_get(labels, key);
        if (!label || !json_equal(label, wanted))
            return false;
    }
    return !json_is_true(json_at(node, "spec", "unschedulable"));
}

/* Whether a node is there that could take a replica. */
static bool has_room(struct volume_work *w, const json_t *nodes)
{
    const json_t *selector = volume_look(w).node_selector;
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(w->c->nodes, NULL, &all);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *node = kube_object_json(all.p[i]);
        if (kube_condition_is_true(node, "Ready") && !volume_listed(nodes, all.p[i]->name) &&
            may_have_replica(selector, node))
            return true;
    }
    return false;
}

bool volume_misses_replica(const struct volume_view *view)
{
    return view->serving && !view->ready;
}

/*
 * Those that are being re-homed are known by their objects, also those of before this process
 * began; or by what was noted here, until the cache has that.
 */
bool volume_take_place(struct volume_work *w)
{
    struct volume_controller *v = w->c;
    _cleanup_free_ char *key = mem_printf("%s/%s", w->ns, w->name);
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(v->volumes, NULL, &all);
    struct map now = {0};
    pthread_mutex_lock(&v->lock);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *volume = kube_object_json(all.p[i]);
        bool begun = v->engine->is_rehoming(volume) || map_has(&v->rehoming, all.p[i]->key);
        struct volume_view view;
        v->engine->view(volume, &view);
        if (begun && volume_misses_replica(&view))
            map_set(&now, all.p[i]->key, v);
    }
    bool yes = map_has(&now, key) || now.count < volume_settings.rehome_most;
    if (yes)
        map_set(&now, key, v);
    map_done(&v->rehoming);
    v->rehoming = now;
    pthread_mutex_unlock(&v->lock);
    return yes;
}

/* Takes the node off the list: whoever comes next goes elsewhere. */
static int give_up_node(struct volume_work *w, const json_t *nodes, const char *node, struct err *e)
{
    json_auto_t *rest = volume_without(nodes, node),
                *stale = volume_list(w->volume, w->c->engine->stale),
                *more = volume_with(stale, node);
    if (volume_write_lists(w, rest, more, e) < 0)
        return -1;
    kube_event_warning(w->c->recorder, w->volume, "ReplicaRehomed",
                       "Node %s is silent for too long: its replica is made anew on another", node);
    return 0;
}

/* Pods of nodes that were given up go without asking the node. */
int volume_drop_pods(struct volume_work *w, const json_t *pods, struct err *e)
{
    json_auto_t *stale = volume_list(w->volume, w->c->engine->stale);
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)(uintptr_t)pods, i, pod) {
        const char *node = volume_node_of(pod);
        if (volume_listed(stale, node) && volume_silence(w->c, node) &&
            volume_delete(w->c, &w->c->pods_r, pod, true, e) < 0)
            return -1;
    }
    return 0;
}

int volume_rehome(struct volume_work *w, struct err *e)
{
    const struct volume_view view = volume_look(w);
    json_auto_t *nodes = volume_list(w->volume, w->c->engine->nodes);
    size_t i;
    json_t *it;
    json_array_foreach(nodes, i, it) {
        const char *node = json_string_value(it);
        int64_t ns = volume_silence(w->c, node);
        if (!ns || !view.rehomes)
            continue;
        if (ns < volume_settings.rehome_ns)
            volume_again(w, volume_settings.rehome_ns - ns);
        else if (volume_misses_replica(&view) && has_room(w, nodes) && volume_take_place(w))
            return give_up_node(w, nodes, node, e);
        else
            volume_again(w, LOOK_AGAIN);
    }
    return 0;
}

/* Folders that nobody needs. */

/* An eraser that was told of other members than there are now would refuse, or worse. */
static bool is_told(const json_t *pod, const json_t *wanted)
{
    const json_t *is = json_array_get(json_at(pod, "spec", "containers"), 0),
                 *has_to_be = json_array_get(json_at(wanted, "spec", "containers"), 0);
    const json_t *args = json_object_get(is, "args");
    return args && json_equal(args, json_object_get(has_to_be, "args"));
}

int volume_erase(struct volume_work *w, const char *node, struct err *e)
{
    if (!volume_id_is_sound(w->c->engine, w->volume))
        return 1; /* it never had a folder */
    const struct kube_children pods = {w->c->pods_r, w->c->pods};
    json_auto_t *wanted = w->c->engine->eraser(w->volume, node, e);
    json_auto_t *pod =
        wanted ? kube_informer_json(w->c->pods, w->ns, kube_name(wanted), NULL) : NULL;
    if (!wanted)
        return -1;
    if (pod && str_eq(volume_text(pod, "status", "phase"), "Succeeded"))
        return 1;
    if (pod)
        return is_told(pod, wanted) || kube_deleting(pod)
                   ? 0
                   : volume_delete(w->c, &w->c->pods_r, pod, false, e);
    const struct kube_child child = {.of = &pods, .owner = w->volume, .wanted = wanted};
    json_auto_t *made = kube_apply_child(w->c->client, &child, NULL, e);
    return made ? 0 : -1;
}

/* The eraser goes before the node is forgotten: it would be taken for one that has erased later. */
static int forget_stale(struct volume_work *w, const char *node, struct err *e)
{
    json_auto_t *nodes = volume_list(w->volume, w->c->engine->nodes),
                *stale = volume_list(w->volume, w->c->engine->stale),
                *rest = volume_without(stale, node);
    _cleanup_free_ char *name = mem_printf("%s-erase-%s", w->name, node);
    json_auto_t *pod = kube_informer_json(w->c->pods, w->ns, name, NULL);
    if (pod && !kube_deleting(pod) && volume_delete(w->c, &w->c->pods_r, pod, false, e) < 0)
        return -1;
    return volume_write_lists(w, nodes, rest, e);
}

int volume_erase_stale(struct volume_work *w, const json_t *pods, struct err *e)
{
    json_auto_t *stale = volume_list(w->volume, w->c->engine->stale);
    const char *node = json_string_value(json_array_get(stale, 0));
    if (!node || !volume_look(w).ready)
        return 0; /* until then it may be needed yet, by hand */
    int64_t ns = volume_silence(w->c, node);
    if (ns == INT64_MAX)
        return forget_stale(w, node, e); /* with the node */
    if (ns || volume_has_pod(pods, node)) {
        volume_again(w, LOOK_AGAIN);
        return 0;
    }
    int gone = volume_erase(w, node, e);
    return gone > 0 ? forget_stale(w, node, e) : gone;
}
