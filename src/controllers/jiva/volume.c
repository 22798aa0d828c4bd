/*
 * jiva-volume-controller: a JivaVolume's children, its addresses, and its size after a resize.
 *
 *     finalizer ─> identity, names ─> Secret ─> account, Role ─> Service ─> Deployments ─> portal
 *                                                                   │
 *                      status: the target's, by orlop-volume; Unknown while that is not there
 *
 * Each step is taken only when the ones before are in place, and all are looked at again each time.
 */
#include "base/base64.h"
#include "base/uuid.h"
#include "controllers/jiva/jiva.h"

enum { WORKERS = 4 };

/* Makes it, or mends it; *ret_live, if given, is as it is in the cache. ABORTED: look again. */
static int ensure(struct jiva_work *w, const struct jiva_children *kind, json_t *wanted,
                  json_t **ret_live, struct err *e)
{
    json_auto_t *want = wanted;
    const char *name = kube_name(want);
    json_auto_t *live = kube_informer_json(kind->informer, w->ns, name, NULL);
    json_t *now = NULL;
    if (!live) {
        crash_point(kind->r.kind);
        struct err why = {0};
        now = kube_create(w->j->client, &kind->r, want, NULL, &why);
        crash_point(kind->r.kind);
        if (!now && why.code == ERR_ALREADY_EXISTS) /* not in the cache yet, or not ours */
            return err_set(e, ERR_ABORTED, "Exists", "%s", why.msg);
        if (!now) {
            *e = why;
            return err_prefix(e, "%s %s", kind->r.kind, name);
        }
    } else {
        const json_t *owner = json_array_get(json_at(live, "metadata", "ownerReferences"), 0);
        const char *uid = json_str(owner, "uid");
        if (!uid || !str_eq(uid, kube_uid(w->volume)))
            return err_set(e, ERR_FAILED_PRECONDITION, "NotOurs",
                           "there is a %s \"%s\" that is not this volume's: delete it, or give the "
                           "volume another name",
                           kind->r.kind, name);
        json_t *mended = json_deep_copy(live);
        if (jiva_impose(mended, want)) {
            crash_point(kind->r.kind);
            now = kube_update(w->j->client, &kind->r, mended, NULL, e);
            crash_point(kind->r.kind);
            if (now)
                kube_event_normal(w->j->recorder, w->volume, "Mended",
                                  "%s %s was not as it has to be", kind->r.kind, name);
        } else {
            now = json_incref(live);
        }
        json_decref(mended);
        if (!now)
            return err_prefix(e, "%s %s", kind->r.kind, name);
    }
    if (ret_live)
        *ret_live = now;
    else
        json_decref(now);
    return 0;
}

/* The volume's key: made once, and never looked into again. */
static int ensure_key(struct jiva_work *w, json_t **ret_secret, struct err *e)
{
    _cleanup_free_ char *name = mem_printf("%s-key", w->name);
    json_auto_t *live = kube_informer_json(w->j->secrets.informer, w->ns, name, NULL);
    const char *has = json_str(json_object_get(live, "data"), "key");
    _cleanup_(str_done) struct str key = {0};
    for (int i = 0; i < 2; i++) {
        const struct uuid random = uuid_random();
        base64_format(random.bytes, sizeof(random.bytes), BASE64_STD, &key);
    }
    json_t *wanted = jiva_secret(w->volume, str_get(&key));
    if (has && *has)
        json_object_del(wanted, "stringData");
    return ensure(w, &w->j->secrets, wanted, ret_secret, e);
}

/* A Service that is made again asks for the address that initiators and replicas know. */
static int ensure_service(struct jiva_work *w, json_t **ret_service, struct err *e)
{
    json_t *wanted = jiva_service(w->volume);
    const char *portal = jiva_text(w->volume, "iscsi", "targetPortal"),
               *colon = strrchr(portal, ':');
    json_auto_t *live = kube_informer_json(w->j->services.informer, w->ns, kube_name(wanted), NULL);
    if (!live && colon && *portal != '[') {
        json_t *with = json_deep_copy(wanted);
        json_object_set_new(json_object_get(with, "spec"), "clusterIP",
                            json_stringn(portal, (size_t)(colon - portal)));
        struct err why = {0};
        int r = ensure(w, &w->j->services, with, ret_service, &why);
        if (r == 0 || why.code != ERR_INVALID_ARGUMENT) { /* else: somebody else has it now */
            json_decref(wanted);
            *e = r == 0 ? *e : why;
            return r;
        }
    }
    return ensure(w, &w->j->services, wanted, ret_service, e);
}

static int64_t replicas_of(const json_t *deployment)
{
    return json_integer_value(json_at(deployment, "spec", "replicas"));
}

static int ensure_deployments(struct jiva_work *w, const char *address, const char *key,
                              const char *account, struct err *e)
{
    _cleanup_free_ char *name = mem_printf("%s-rep", w->name);
    json_auto_t *live = kube_informer_json(w->j->deployments.informer, w->ns, name, NULL);
    unsigned now = live ? (unsigned)replicas_of(live) : 0;
    unsigned count = jiva_replica_count(w->volume, now);
    if (live && count < now) {
        int said = jiva_choose_leaver(w, e);
        if (said < 0)
            return -1;
        count = said ? count : now;
    }
    if (ensure(w, &w->j->deployments, jiva_target_deployment(w->volume, address, key, account),
               NULL, e) < 0)
        return -1;
    return ensure(w, &w->j->deployments, jiva_replica_deployment(w->volume, address, key, count),
                  NULL, e);
}

/* What the object says of itself: who it is, and where its parts are. */
static json_t *identity(const json_t *volume)
{
    const char *iqn = jiva_text(volume, "iscsi", "iqn"), *ns = kube_namespace(volume),
               *name = kube_name(volume);
    json_t *patch = json_object();
    if (!*jiva_id(volume))
        json_object_set_new(patch, "metadata",
                            json_pack("{s:{s:s}}", "annotations", API_JIVA_ID, kube_uid(volume)));
    if (!*iqn)
        json_object_set_new(
            patch, "iscsi",
            json_pack("{s:o}", "iqn", json_sprintf("iqn.2016-09.com.openebs.jiva:%s", name)));
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
    if (jiva_hold(w->j, &w->j->volumes_r, &w->volume, JIVA_FINALIZER, true, e) < 0)
        return -1;
    json_auto_t *patch = identity(w->volume);
    return json_object_size(patch) ? jiva_patch_volume(w, patch, "identity", e) : 0;
}

static int ensure_portal(struct jiva_work *w, const char *address, struct err *e)
{
    bool v6 = strchr(address, ':');
    _cleanup_free_ char *portal = mem_printf(v6 ? "[%s]:%d" : "%s:%d", address, JIVA_ISCSI_PORT);
    if (str_eq(jiva_text(w->volume, "iscsi", "targetPortal"), portal))
        return 0;
    json_auto_t *patch = json_pack("{s:{s:s}}", "iscsi", "targetPortal", portal);
    return jiva_patch_volume(w, patch, "portal", e);
}

static int ensure_children(struct jiva_work *w, struct err *e)
{
    json_t *secret = NULL, *service = NULL, *made = NULL;
    if (ensure_key(w, &secret, e) < 0)
        return -1;
    json_auto_t *key = secret;
    if (ensure(w, &w->j->accounts, jiva_account(w->volume), &made, e) < 0)
        return -1;
    json_auto_t *account = made;
    if (ensure(w, &w->j->roles, jiva_role(w->volume), NULL, e) < 0 ||
        ensure(w, &w->j->bindings, jiva_role_binding(w->volume), NULL, e) < 0 ||
        ensure_service(w, &service, e) < 0)
        return -1;
    json_auto_t *svc = service;
    const char *address = jiva_text(svc, "spec", "clusterIP");
    if (!*address)
        return err_set(e, ERR_UNAVAILABLE, "NoAddress", "Service %s has no address yet",
                       kube_name(svc));
    if (ensure_deployments(w, address, kube_uid(key), kube_uid(account), e) < 0)
        return -1;
    return ensure_portal(w, address, e);
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
        .status = made ? "Unknown" : "False",
        .reason = made ? "NoTargetPod" : "Starting",
        .message = made ? "No pod of the target is ready, so nothing is known of the volume"
                        : "The target's pod is being started",
    };
    return jiva_say(w,
                    json_pack("{s:s,s:s}", "phase", made ? "Unknown" : "Pending", "status",
                              made ? "Unknown" : "Offline"),
                    &c, e);
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
    if (ensure_identity(w, e) < 0 || ensure_children(w, e) < 0 || tell_unknown(w, e) < 0 ||
        take_capacity(w, e) < 0)
        return -1;
    return jiva_place_replicas(w, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct jiva_work w = {.j = context, .ns = ns, .name = name, .result = ret};
    w.volume = kube_informer_json(w.j->volumes, ns, name, NULL);
    if (!w.volume)
        return 0;
    int status = work(&w, e);
    if (status < 0 && e->code == ERR_FAILED_PRECONDITION) {
        struct err why = {0};
        const struct kube_condition c = {
            .type = "Configured", .status = "False", .reason = e->reason, .message = e->msg};
        jiva_say(&w, NULL, &c, &why);
        jiva_again(&w, 30 * CLOCK_SECOND);
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
