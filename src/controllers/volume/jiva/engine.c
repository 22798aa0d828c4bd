/*
 * What is particular to Jiva volumes: their object, the policy in it, and replicas that are pods of
 * one Deployment, one a node, with their data in a folder of it.
 */
#include "controllers/volume/volume.h"
#include "json/patch.h"
#include "kinds/jiva.h"

extern const struct kube_template controllers_volume_jiva_eraser, controllers_volume_jiva_replicas,
    controllers_volume_jiva_target, controllers_volume_service;

/* Reading. */

/* Whether the target is at a snapshot, or has been told to be. */
static bool is_snapshotting(const struct jiva_volume *v)
{
    static const char *const operations[] = {"Snapshot", "SnapshotDeletion", "Revert", NULL};
    const char *phase = v->status.snapshot.phase;
    bool open = v->spec.snapshot.generation &&
                (v->status.snapshot.generation != v->spec.snapshot.generation || !*phase ||
                 str_eq(phase, "Running"));
    return open || str_in(v->status.operation, operations);
}

static void read_members(const struct jiva_volume *v, struct volume_view *ret)
{
    for (size_t i = 0; i < VOLUME_MEMBERS && i < v->status.replicas.len; i++) {
        const struct jiva_replica *r = &v->status.replicas.p[i];
        ret->member[ret->members++] = (struct volume_member){
            .id = r->id,
            .address = r->address,
            .state = r->state,
            .healthy = str_eq(r->state, "Healthy"),
            .offline = str_eq(r->state, "Offline") || !*r->state,
        };
        ret->healthy += str_eq(r->state, "Healthy");
    }
}

static void read_volume(const json_t *volume, struct volume_view *ret)
{
    _cleanup_(arena_done) struct arena arena = {0};
    const struct jiva_volume v = jiva_volume_of(volume, &arena);
    *ret = (struct volume_view){
        .factor = jiva_volume_factor(&v),
        .size = volume_amount(v.spec.capacity),
        .has = volume_amount(v.status.capacity),
        .capacity = v.spec.capacity.text,
        .phase = v.status.phase,
        .made = *v.status.capacity.text,
        .serving = str_eq(v.status.status, "RW"),
        .ready = str_eq(v.status.phase, "Ready"),
        .snapshotting = is_snapshotting(&v),
        .authenticated = jiva_volume_is_authenticated(&v),
        .monitored = !v.spec.policy.target.unmonitored,
        .rehomes = v.spec.policy.rehomes,
        .portal = v.iscsi.portal,
        .pv = v.spec.pv,
        .node_selector = v.spec.policy.replica.node_selector,
        .order = v.spec.resize.capacity.text,
        .ordered = volume_amount(v.spec.resize.capacity),
        .growth = v.status.resize.name,
        .growth_failure = v.status.resize.message,
    };
    read_members(&v, ret);
}

static void tell_state(const json_t *volume, enum volume_state state, json_t *status,
                       const struct clock *clock)
{
    static const char *const words[][2] = {[VOLUME_STARTING] = {"Pending", "Offline"},
                                           [VOLUME_UNKNOWN] = {"Unknown", "Unknown"},
                                           [VOLUME_ENDING] = {"Deleting", "Offline"}};
    (void)volume;
    (void)clock;
    json_object_set_new(status, "phase", json_string(words[state][0]));
    json_object_set_new(status, "status", json_string(words[state][1]));
}

static bool is_rehoming(const json_t *volume)
{
    return kube_annotation(volume, API_JIVA_STALE);
}

static void set_diff(json_t *patch, const char *key, const json_t *is, const json_t *wanted)
{
    json_auto_t *nothing = json_object();
    json_t *diff = json_merge_diff(is ? is : nothing, wanted);
    if (json_object_size(diff))
        json_object_set_new(patch, key, diff);
    else
        json_decref(diff);
}

/* Adds to a patch of the volume what makes it say, in both forms, how it is reached. */
static void patch_iscsi(const json_t *volume, const json_t *iscsi, json_t *patch)
{
    json_auto_t *published = api_jiva_iscsi_published(iscsi), *spec = json_object();
    set_diff(patch, "iscsi", json_object_get(volume, "iscsi"), iscsi);
    set_diff(spec, "iscsiSpec", json_at(volume, "spec", "iscsiSpec"), published);
    if (json_object_size(spec))
        json_object_set(patch, "spec", spec);
}

/* What the object says of itself: who it is, and where its parts are. */
static json_t *make_identity(const json_t *volume)
{
    static const char *const parts[][2] = {
        {"service", "svc"}, {"targetDeployment", "ctrl"}, {"replicaDeployment", "rep"}};
    const char *ns = kube_namespace(volume), *name = kube_name(volume);
    json_t *patch = json_object();
    if (!*volume_id(&volume_jiva, volume))
        json_object_set_new(patch, "metadata",
                            json_pack("{s:{s:s}}", "annotations", API_JIVA_ID, kube_uid(volume)));
    json_auto_t *iscsi = api_jiva_iscsi(volume);
    patch_iscsi(volume, iscsi, patch);
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

static json_t *make_portal(const json_t *volume, const char *portal)
{
    json_auto_t *iscsi = api_jiva_iscsi(volume);
    json_t *patch = json_object();
    json_object_set_new(iscsi, "targetPortal", json_string(portal));
    patch_iscsi(volume, iscsi, patch);
    return patch;
}

static json_t *order_growth(const char *by, const char *capacity)
{
    json_t *order = by ? json_pack("{s:s,s:s}", "name", by, "capacity", capacity) : json_null();
    return json_pack("{s:{s:o}}", "spec", "resizeOrder", order);
}

/* What the policy asks for and nobody does here: said where its owner looks, once. */
static int tell_policy(struct volume_work *w, struct err *e)
{
    static const char type[] = "PolicyHonoured";
    const char *class = jiva_volume_of(w->volume, NULL).spec.policy.replica_class;
    _cleanup_free_ char *text = mem_printf(
        "policy.replicaSC \"%s\" has no effect: replicas keep their data in folders of the nodes, "
        "below %s; mount there what they are to use",
        class, volume_settings.dir);
    const struct kube_condition ignored = {type, "False", "ReplicaSCIgnored", text, 0},
                                honoured = {type, "True", "Honoured", "The policy is followed", 0};
    if (!*class && !kube_condition_get(w->volume, type))
        return 0;
    return volume_say(w, VOLUME_SAID, *class ? &ignored : &honoured, e);
}

/* Templates. */

/* What the policy says of the pods of one part. */
static void set_policy(json_t *values, const struct jiva_volume *v, const struct jiva_part *part)
{
    volume_set_some(values, "priorityClassName",
                    *part->priority_class ? part->priority_class : v->spec.policy.priority_class);
    volume_set_value(values, "nodeSelector", part->node_selector);
    volume_set_value(values, "tolerations", part->tolerations);
    volume_set_value(values, "resources", part->resources);
    volume_set_value(values, "affinity", part->affinity);
    volume_set_value(values, "nodeAffinity", json_object_get(part->affinity, "nodeAffinity"));
    volume_set_value(values, "podAffinity", json_object_get(part->affinity, "podAffinity"));
}

static void set_target_values(const json_t *volume, json_t *values)
{
    const struct jiva_volume v = jiva_volume_of(volume, NULL);
    _cleanup_free_ char *lun = mem_printf("%d", (int)v.spec.lun);
    volume_set_text(values, "iqn", v.iscsi.iqn);
    volume_set_text(values, "lun", lun);
    volume_set_value(values, "auxResources", v.spec.policy.target.side_resources);
    set_policy(values, &v, &v.spec.policy.target);
}

json_t *volume_jiva_replicas(const json_t *volume, const char *address, const char *key,
                             unsigned replicas, struct err *e)
{
    const struct jiva_volume v = jiva_volume_of(volume, NULL);
    json_auto_t *values = volume_values(&volume_jiva, volume);
    volume_set_text(values, "keyUid", key);
    volume_set_text(values, "address", address);
    json_object_set_new(values, "count", json_integer(replicas));
    json_object_set_new(values, "direct", json_boolean(!v.spec.policy.buffered));
    volume_set_some(values, "serviceAccountName", v.spec.policy.service_account);
    set_policy(values, &v, &v.spec.policy.replica);
    return kube_template_fill(&controllers_volume_jiva_replicas, values, e);
}

static json_t *make_eraser(const json_t *volume, const char *node, struct err *e)
{
    struct volume_view view;
    _cleanup_(str_done) struct str members = {0};
    read_volume(volume, &view);
    /* Whatever led here: who is a member is not erased while there is a volume. */
    for (unsigned i = 0; !kube_deleting(volume) && i < view.members; i++)
        str_appendf(&members, "%s%s", i ? "," : "", view.member[i].id);
    json_auto_t *values = volume_values(&volume_jiva, volume);
    volume_set_text(values, "node", node);
    volume_set_text(values, "members", str_get(&members));
    return kube_template_fill(&controllers_volume_jiva_eraser, values, e);
}

/* Replicas. */

static int apply_replicas(struct volume_work *w, const char *address,
                          const struct volume_uids *uids, struct err *e)
{
    _cleanup_free_ char *name = mem_printf("%s-rep", w->name);
    json_auto_t *live = kube_informer_json(w->c->deployments.informer, w->ns, name, NULL);
    unsigned now = (unsigned)json_integer_value(json_at(live, "spec", "replicas"));
    const struct volume_view view = volume_look(w);
    unsigned count = volume_replica_count(&view, now);
    if (live && count < now) {
        int said = volume_choose_leaver(w, e);
        if (said < 0)
            return -1;
        count = said ? count : now;
    }
    return volume_apply_child(w, &w->c->deployments,
                              volume_jiva_replicas(w->volume, address, uids->key, count, e), NULL,
                              NULL, e);
}

static int end_replicas(struct volume_work *w, struct err *e)
{
    return volume_end_part(w, "-rep", volume_jiva.replica_component, "ReplicasEnd",
                           "The replicas end", e);
}

static const struct volume_resize_names resize = {
    .kind = "JivaVolumeResize",
    .controller = "jiva-volume-resize-controller",
    .finalizer = "resize.jiva.openebs.io/cleanup",
    .about = API_JIVA_NAME,
    .enabled = API_JIVA_RESIZE_ENABLED,
    .lock = API_JIVA_RESIZE_LOCK,
    .order = order_growth,
};

const struct volume_engine volume_jiva = {
    .name = "jiva",
    .version = "openebs.io/v1alpha1",
    .kind = "JivaVolume",
    .singular = "jivavolume",
    .plural = "jivavolumes",
    .group = "openebs.io",
    .controller = "jiva-volume-controller",
    .finalizer = "jiva.openebs.io/volume",
    .id = API_JIVA_ID,
    .reclaim = API_JIVA_RECLAIM,
    .nodes = API_JIVA_NODES,
    .stale = API_JIVA_STALE,
    .gate = "jiva.openebs.io/placement",
    .target_suffix = "-ctrl",
    .service_suffix = "-svc",
    .target_component = "jiva-controller",
    .replica_component = "jiva-replica",
    .service = &controllers_volume_service,
    .target = &controllers_volume_jiva_target,
    .view = read_volume,
    .tell_state = tell_state,
    .identity = make_identity,
    .portal = make_portal,
    .target_values = set_target_values,
    .tell_policy = tell_policy,
    .apply_replicas = apply_replicas,
    .place_replicas = volume_place_pods,
    .end_replicas = end_replicas,
    .erase_data = volume_erase_folders,
    .is_rehoming = is_rehoming,
    .eraser = make_eraser,
    .resize = &resize,
};
