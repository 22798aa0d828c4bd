/*
 * The end of a volume, behind its finalizer:
 *
 *     target ends (it flushes) ─> replicas end ─> their data, if that was said ─> the rest
 *
 * Each waits until the one before is gone: pods, not only their Deployment. What has no say in it,
 * the Service, Secret and account, goes with the volume by its owner reference.
 *
 * Whether data goes is said by the engine's annotation `reclaim` of the volume, else by the reclaim
 * policy of its PersistentVolume; when neither says Delete, data stays where it is.
 */
#include "controllers/volume/volume.h"

static const int64_t LOOK_AGAIN = 10 * CLOCK_SECOND;

/*
 * 1 when neither the Deployment nor a pod of it is left; else *ret_lost, if a pod is on a lost
 * node.
 */
static int end_part(struct volume_work *w, const char *suffix, const char *component,
                    char **ret_lost, struct err *e)
{
    _cleanup_free_ char *name = mem_printf("%s%s", w->name, suffix);
    json_auto_t *deployment = kube_informer_json(w->c->deployments.informer, w->ns, name, NULL);
    if (deployment && !kube_deleting(deployment) &&
        volume_delete(w->c, &w->c->deployments.r, deployment, false, e) < 0)
        return -1;
    json_auto_t *pods = volume_pods(w->c, w->volume, component);
    size_t i;
    json_t *pod;
    json_array_foreach(pods, i, pod) {
        const char *node = volume_text(pod, "spec", "nodeName");
        int64_t silent = *node ? volume_silence(w->c, node) : 0;
        /* It was forgotten: nobody will say that the pod has ended. */
        if (silent == INT64_MAX && volume_delete(w->c, &w->c->pods_r, pod, true, e) < 0)
            return -1;
        if (silent && silent != INT64_MAX && !*ret_lost)
            *ret_lost = mem_strdup(node);
    }
    return !deployment && !json_array_size(pods);
}

static bool wants_erasure(struct volume_work *w)
{
    const char *said = kube_annotation(w->volume, w->c->engine->reclaim);
    const char *pv = volume_look(w).pv;
    json_auto_t *volume = !said && *pv ? kube_informer_json(w->c->pvs, NULL, pv, NULL) : NULL;
    if (volume)
        said = json_str(json_object_get(volume, "spec"), "persistentVolumeReclaimPolicy");
    return said && str_eq(said, "Delete");
}

int volume_erase_folders(struct volume_work *w, struct err *e)
{
    const char *const lists[] = {w->c->engine->nodes, w->c->engine->stale};
    int all = 1;
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        json_auto_t *nodes = volume_list(w->volume, lists[l]);
        size_t i;
        json_t *it;
        json_array_foreach(nodes, i, it) {
            const char *node = json_string_value(it);
            json_auto_t *there = kube_informer_json(w->c->nodes, NULL, node, NULL);
            int gone = there ? volume_erase(w, node, e) : 1;
            if (gone < 0)
                return -1;
            if (there && !gone && !kube_condition_is_true(there, "Ready"))
                kube_event_warning(w->c->recorder, w->volume, "NodeUnavailable",
                                   "Its data on node %s is erased when that is back; if it will "
                                   "not be, run: orlop node forget %s",
                                   node, node);
            all &= gone;
        }
    }
    return all;
}

int volume_say_ending(struct volume_work *w, const char *reason, const char *message, struct err *e)
{
    const struct kube_condition c = {
        .type = "Deleting", .status = "True", .reason = reason, .message = message};
    return volume_say(w, VOLUME_ENDING, &c, e);
}

int volume_end_part(struct volume_work *w, const char *suffix, const char *component,
                    const char *reason, const char *message, struct err *e)
{
    _cleanup_free_ char *lost = NULL;
    int gone = end_part(w, suffix, component, &lost, e);
    if (gone)
        return gone;
    if (!lost)
        return volume_say_ending(w, reason, message, e);
    _cleanup_free_ char *text =
        mem_printf("%s; waits for node %s, which is lost. If it will not be back, run: orlop node "
                   "forget %s",
                   message, lost, lost);
    return volume_say_ending(w, "NodeUnavailable", text, e);
}

int volume_remove(struct volume_work *w, struct err *e)
{
    if (!kube_finalizer_has(w->volume, w->c->engine->finalizer))
        return 0;
    volume_again(w, LOOK_AGAIN);
    const struct volume_engine *x = w->c->engine;
    int gone = volume_end_part(
        w, x->target_suffix, x->target_component, "TargetEnds",
        "The target ends first, so that all that was written is with the replicas", e);
    if (gone > 0)
        gone = x->end_replicas(w, e);
    if (gone <= 0)
        return gone;
    if (x->erase_data && wants_erasure(w)) {
        gone = x->erase_data(w, e);
        if (gone <= 0)
            return gone < 0 ? -1
                            : volume_say_ending(w, "DataGoes",
                                                "The replicas' data is erased where it is", e);
    }
    w->result->again_ns = 0;
    return volume_hold(w->c, &w->c->volumes_r, &w->volume, w->c->engine->finalizer, false, e);
}
