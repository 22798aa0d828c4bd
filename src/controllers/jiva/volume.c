/*
 * jiva-volume-controller: a JivaVolume's children, its addresses, and its size after a resize.
 *
 *     finalizer ─> identity, names ─> Secret ─> account, Role ─> Service ─> Deployments ─> portal
 *                                                                   │
 *                      status: the target's, by orlop-volume; Unknown while that is not there
 *
 * Each step is taken only when the ones before are in place, and all are looked at again each time.
 */
#include "api/format.h"
#include "controllers/jiva/jiva.h"

enum { WORKERS = 4 };

/* What the object says of itself: who it is, and where its parts are. */
static json_t *identity(const json_t *volume)
{
    const char *ns = kube_namespace(volume), *name = kube_name(volume);
    json_t *patch = json_object();
    if (!*jiva_id(volume))
        json_object_set_new(patch, "metadata",
                            json_pack("{s:{s:s}}", "annotations", API_JIVA_ID, kube_uid(volume)));
    json_auto_t *iscsi = api_jiva_iscsi(volume);
    jiva_patch_iscsi(volume, iscsi, patch);
    static const char *const parts[][2] = {
        {"service", "svc"}, {"targetDeployment", "ctrl"}, {"replicaDeployment", "rep"}};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        json_t *wanted = json_pack("{s:o,s:s}", "name", json_sprintf("%s-%s", name, parts[i][1]),
                                   "namespace", ns);
        if (json_equal(json_object_get(volume, parts[i][0]), wanted))
            json_decref(wanted);
        else
            json_object_set_new(patch, parts[i][0], wanted);
    }
    return patch;
}

static int ensure_identity(struct jiva_work *w, struct err *e)
{
    /* Admission refuses such; where nobody asked it, nothing is made of it here. */
    if (!jiva_id_is_sound(w->volume))
        return err_set(e, ERR_FAILED_PRECONDITION, "InvalidIdentity",
                       "the annotation " API_JIVA_ID " %s",
                       api_volume_id.check(jiva_id(w->volume)));
    if (jiva_hold(w->j, &w->j->volumes_r, &w->volume, JIVA_FINALIZER, true, e) < 0)
        return -1;
    json_auto_t *patch = identity(w->volume);
    return json_object_size(patch) ? jiva_patch_volume(w, patch, "identity", e) : 0;
}

/* Status. */

/* Whether somebody is there who says how the volume is. */
static bool is_observed(struct jiva_work *w)
{
    json_auto_t *pods = jiva_pods(w->j, w->volume, "jiva-controller");
    size_t i;
    json_t *pod;
    json_array_foreach(pods, i, pod) {
        const char *node = jiva_text(pod, "spec", "nodeName");
        if (!kube_deleting(pod) && kube_condition_is_true(pod, "Ready") &&
            (!*node || jiva_node_is_ready(w->j, node)))
            return true;
    }
    return false;
}

static int tell_unknown(struct jiva_work *w, struct err *e)
{
    const char *phase = jiva_text(w->volume, "status", "phase");
    bool made = json_at(w->volume, "status", "capacity");
    if (is_observed(w) || str_eq(phase, made ? "Unknown" : "Pending"))
        return 0;
    const struct kube_condition c = {
        .type = "TargetReachable",
        .status = "Unknown",
        .reason = made ? "NoTargetPod" : "Starting",
        .message = made ? "No pod of the target is ready, so nothing is known of the volume"
                        : "The target's pod is being started",
    };
    return jiva_say(w,
                    json_pack("{s:s,s:s}", "phase", made ? "Unknown" : "Pending", "status",
                              made ? "Unknown" : "Offline"),
                    &c, e);
}

/* What the policy asks for and nobody does here: said where its owner looks, once. */
static int tell_policy(struct jiva_work *w, struct err *e)
{
    static const char type[] = "PolicyHonoured";
    const char *class = json_str(json_at(w->volume, "spec", "policy"), "replicaSC");
    _cleanup_free_ char *text = mem_printf(
        "policy.replicaSC \"%s\" has no effect: replicas keep their data in folders of the nodes, "
        "below %s; mount there what they are to use",
        class ? class : "", jiva_settings.dir);
    const struct kube_condition ignored = {type, "False", "ReplicaSCIgnored", text, 0},
                                honoured = {type, "True", "Honoured", "The policy is followed", 0};
    bool asked = class && *class;
    if (!asked && !kube_condition_get(w->volume, type))
        return 0;
    return jiva_say(w, NULL, asked ? &ignored : &honoured, e);
}

/* After a resize: the object says what the volume has. */
static int take_capacity(struct jiva_work *w, struct err *e)
{
    const char *lock = kube_annotation(w->volume, API_JIVA_RESIZE_LOCK);
    json_auto_t *resize =
        lock && *lock ? kube_informer_json(w->j->resizes, w->ns, lock, NULL) : NULL;
    const char *about = resize ? kube_label(resize, API_JIVA_NAME) : NULL;
    const json_t *wanted = json_at(resize, "spec", "capacity");
    if (!resize || !about || !str_eq(about, w->name) ||
        !str_eq(jiva_text(resize, "status", "phase"), "SUCCEEDED") ||
        jiva_bytes(json_at(w->volume, "spec", "capacity")) >= jiva_bytes(wanted))
        return 0;
    json_auto_t *patch = json_pack("{s:{s:O}}", "spec", "capacity", wanted);
    if (jiva_patch_volume(w, patch, "capacity", e) < 0)
        return -1;
    kube_event_normal(w->j->recorder, w->volume, "Resized", "The volume has %s now, by %s",
                      json_string_value(wanted), kube_name(resize));
    return 0;
}

static int work(struct jiva_work *w, struct err *e)
{
    if (kube_deleting(w->volume))
        return jiva_remove(w, e);
    if (ensure_identity(w, e) < 0 || tell_unknown(w, e) < 0 || jiva_ensure_children(w, e) < 0 ||
        tell_policy(w, e) < 0 || take_capacity(w, e) < 0)
        return -1;
    return jiva_place_replicas(w, e);
}

/* What does not get better by trying again is said in the volume, and that it is over, too. */
static int tell_configured(struct jiva_work *w, const struct err *why, struct err *e)
{
    const struct kube_condition c = {
        .type = "Configured",
        .status = why ? "False" : "True",
        .reason = why ? why->reason : "AsWanted",
        .message = why ? why->msg : "All that belongs to the volume is there",
    };
    if (!why && (!kube_condition_get(w->volume, c.type) || kube_deleting(w->volume)))
        return 0;
    return jiva_say(w, NULL, &c, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct jiva_work w = {.j = context, .ns = ns, .name = name, .result = ret};
    w.volume = kube_informer_json(w.j->volumes, ns, name, NULL);
    if (!w.volume)
        return 0;
    int status = work(&w, e);
    bool lasts = status < 0 && e->code != ERR_NOT_FOUND &&
                 (err_is_infeasible(e->code) || e->code == ERR_PERMISSION_DENIED);
    if (lasts) {
        struct err why = {0}; /* that this is not said is no other failure */
        tell_configured(&w, e, &why);
        jiva_again(&w, 30 * CLOCK_SECOND);
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
    const char *name = kube_label(o, JIVA_VOLUME_LABEL);
    if (name)
        kube_controller_add(c, object->ns, name);
}

static void map_resize(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *o = kube_object_json(object);
    const char *name = kube_label(o, API_JIVA_NAME);
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
    struct jiva *j = context;
    (void)object;
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(j->volumes, NULL, &all);
    for (size_t i = 0; i < all.len; i++)
        kube_controller_add(c, all.p[i]->ns, all.p[i]->name);
}

int jiva_setup_volume(struct jiva *j, struct kube_manager *m, struct err *e)
{
    const struct kube_controller_options o = {
        .name = "jiva-volume-controller", .workers = WORKERS, .reconcile = reconcile, .context = j};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    struct kube_informer *const children[] = {j->pods,
                                              j->secrets.informer,
                                              j->accounts.informer,
                                              j->roles.informer,
                                              j->bindings.informer,
                                              j->services.informer,
                                              j->deployments.informer};
    kube_controller_watch(c, (struct kube_source){.informer = j->volumes});
    kube_controller_watch(c, (struct kube_source){.informer = j->resizes, .map = map_resize});
    kube_controller_watch(
        c, (struct kube_source){
               .informer = j->nodes, .predicate = readiness_changed, .map = map_all, .context = j});
    for (size_t i = 0; i < ARRAY_SIZE(children); i++)
        kube_controller_watch(c, (struct kube_source){.informer = children[i], .map = map_label});
    return 0;
}
