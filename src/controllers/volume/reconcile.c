/*
 * The controller of an engine's volumes: children, addresses, and the size after a resize.
 *
 *     finalizer ─> identity, names ─> Secret ─> account, Role ─> Service ─> Deployments ─> portal
 *                                                                   │
 *                      status: the target's, by orlop-sidecar; Unknown while that is not there
 *
 * Each step is taken only when the ones before are in place, and all are looked at again each time.
 */
#include "api/format.h"
#include "controllers/volume/volume.h"
#include "kinds/jiva.h"

enum { WORKERS = 4 };

static int ensure_identity(struct volume_work *w, struct err *e)
{
    /* Admission refuses such; where nobody asked it, nothing is made of it here. */
    if (!volume_id_is_sound(w->c->engine, w->volume))
        return err_set(e, ERR_FAILED_PRECONDITION, "InvalidIdentity", "the annotation %s %s",
                       w->c->engine->id, api_volume_id.check(volume_id(w->c->engine, w->volume)));
    if (volume_hold(w->c, &w->c->volumes_r, &w->volume, w->c->engine->finalizer, true, e) < 0)
        return -1;
    json_auto_t *patch = w->c->engine->identity(w->volume);
    return json_object_size(patch) ? volume_patch(w, patch, "identity", e) : 0;
}

/* Status. */

/* Whether somebody is there who says how the volume is. */
static bool is_observed(struct volume_work *w)
{
    json_auto_t *pods = volume_pods(w->c, w->volume, w->c->engine->target_component);
    size_t i;
    json_t *pod;
    json_array_foreach(pods, i, pod) {
        const char *node = volume_text(pod, "spec", "nodeName");
        if (!kube_deleting(pod) && kube_condition_is_true(pod, "Ready") &&
            (!*node || volume_node_is_ready(w->c, node)))
            return true;
    }
    return false;
}

static int tell_unknown(struct volume_work *w, struct err *e)
{
    bool made = volume_look(w).made;
    if (is_observed(w))
        return 0;
    const struct kube_condition c = {
        .type = "TargetReachable",
        .status = "Unknown",
        .reason = made ? "NoTargetPod" : "Starting",
        .message = made ? "No pod of the target is ready, so nothing is known of the volume"
                        : "The target's pod is being started",
    };
    return volume_say(w, made ? VOLUME_UNKNOWN : VOLUME_STARTING, &c, e);
}

/* After a resize: the object says what the volume has. */
static int take_capacity(struct volume_work *w, struct err *e)
{
    const struct volume_resize_names *names = w->c->engine->resize;
    const char *lock = names ? kube_annotation(w->volume, names->lock) : NULL;
    json_auto_t *resize =
        lock && *lock ? kube_informer_json(w->c->resizes, w->ns, lock, NULL) : NULL;
    const char *about = resize ? kube_label(resize, names->about) : NULL;
    const struct jiva_resize r = jiva_resize_of(resize, NULL);
    if (!resize || !about || !str_eq(about, w->name) || !str_eq(r.status.phase, "SUCCEEDED") ||
        volume_look(w).size >= volume_amount(r.spec.capacity))
        return 0;
    json_auto_t *patch = json_pack("{s:{s:s}}", "spec", "capacity", r.spec.capacity.text);
    if (volume_patch(w, patch, "capacity", e) < 0)
        return -1;
    kube_event_normal(w->c->recorder, w->volume, "Resized", "The volume has %s now, by %s",
                      r.spec.capacity.text, kube_name(resize));
    return 0;
}

static int keep_volume(struct volume_work *w, struct err *e)
{
    if (kube_deleting(w->volume))
        return volume_remove(w, e);
    if (ensure_identity(w, e) < 0 || (w->c->engine->check && w->c->engine->check(w, e) < 0) ||
        tell_unknown(w, e) < 0 || volume_ensure_children(w, e) < 0 ||
        (w->c->engine->tell_policy && w->c->engine->tell_policy(w, e) < 0) ||
        take_capacity(w, e) < 0)
        return -1;
    if (w->c->engine->place_replicas(w, e) < 0)
        return -1;
    *e = w->later.code ? w->later : *e;
    return w->later.code ? -1 : 0;
}

/* What does not get better by trying again is said in the volume, and that it is over, too. */
static int tell_configured(struct volume_work *w, const struct err *why, struct err *e)
{
    const struct kube_condition c = {
        .type = "Configured",
        .status = why ? "False" : "True",
        .reason = why ? why->reason : "AsWanted",
        .message = why ? why->msg : "All that belongs to the volume is there",
    };
    if (!why && (!kube_condition_get(w->volume, c.type) || kube_deleting(w->volume)))
        return 0;
    return volume_say(w, VOLUME_SAID, &c, e);
}

static int reconcile_volume(void *context, const char *ns, const char *name,
                            struct kube_result *ret, struct err *e)
{
    struct volume_work w = {.c = context, .ns = ns, .name = name, .result = ret};
    w.volume = kube_informer_json(w.c->volumes, ns, name, NULL);
    if (!w.volume)
        return 0;
    int status = keep_volume(&w, e);
    bool lasts = status < 0 && e->code != ERR_NOT_FOUND &&
                 (err_is_infeasible(e->code) || e->code == ERR_PERMISSION_DENIED ||
                  str_eq(e->reason, VOLUME_NO_ROOM));
    if (lasts) {
        struct err why = {0}; /* that this is not said is no other failure */
        tell_configured(&w, e, &why);
        volume_again(&w, 30 * CLOCK_SECOND);
        if (!why.code && e->code == ERR_RESOURCE_EXHAUSTED)
            e->code = ERR_FAILED_PRECONDITION; /* it is said, and looked at when a pool changes */
    } else if (status == 0) {
        status = tell_configured(&w, NULL, e);
    }
    json_decref(w.volume);
    return status;
}

/* What else is about a volume. */

static void map_label(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *o = kube_object_json(object);
    const char *name = kube_label(o, VOLUME_LABEL);
    if (name)
        kube_controller_add(c, object->ns, name);
}

static void map_resize(struct kube_controller *c, const struct kube_object *object, void *context)
{
    const struct volume_controller *v = context;
    json_auto_t *o = kube_object_json(object);
    const char *name = kube_label(o, v->engine->resize->about);
    if (name)
        kube_controller_add(c, object->ns, name);
}

static bool readiness_changed(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *after = now ? kube_object_json(now) : NULL;
    return !before != !after ||
           kube_condition_is_true(before, "Ready") != kube_condition_is_true(after, "Ready");
}

static void map_all(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct volume_controller *v = context;
    (void)object;
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(v->volumes, NULL, &all);
    for (size_t i = 0; i < all.len; i++)
        kube_controller_add(c, all.p[i]->ns, all.p[i]->name);
}

int volume_setup(struct volume_controller *v, struct kube_manager *m, struct err *e)
{
    const struct kube_controller_options o = {.name = v->engine->controller,
                                              .workers = WORKERS,
                                              .reconcile = reconcile_volume,
                                              .context = v};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    struct kube_informer *const children[] = {v->pods,
                                              v->secrets.informer,
                                              v->accounts.informer,
                                              v->roles.informer,
                                              v->bindings.informer,
                                              v->services.informer,
                                              v->deployments.informer};
    kube_controller_watch(c, (struct kube_source){.informer = v->volumes});
    if (v->resizes)
        kube_controller_watch(
            c, (struct kube_source){.informer = v->resizes, .map = map_resize, .context = v});
    kube_controller_watch(
        c, (struct kube_source){
               .informer = v->nodes, .predicate = readiness_changed, .map = map_all, .context = v});
    if (v->engine->watch)
        v->engine->watch(v, c);
    for (size_t i = 0; i < ARRAY_SIZE(children); i++)
        kube_controller_watch(c, (struct kube_source){.informer = children[i], .map = map_label});
    return 0;
}
