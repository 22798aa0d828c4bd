/*
 * CStorVolumeConfigs: each becomes a CStorVolume, whose controller does the work.
 *
 *     config ── policy taken over ──> CStorVolume made ──> it serves: Bound ──> size, pools, settings follow
 *       └── deleted ──> CStorVolume deleted, and waited for ──> finalizer
 *
 * Invariants:
 * - A policy that the config names is copied into it once, before the volume is made; from then on the
 *   config's own counts.
 * - A CStorVolume of that name that is not the config's is never written.
 * - The status says what the CStorVolume says; nothing is remembered.
 */
#include "kinds/cvc.h"

#include "base/crash.h"
#include "base/quantity.h"
#include "base/str.h"
#include "controllers/controllers.h"
#include "kinds/cstorvolume.h"
#include "kinds/pool_names.h"
#include "kube/condition.h"
#include "kube/groups.h"

#define VOLUME_LABEL "openebs.io/persistent-volume"
#define CLAIM_LABEL  "openebs.io/persistent-volume-claim"
enum { LABEL_MAX = 63 };

struct cvc_controller {
    const struct clock *clock;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource configs_r, volumes_r, policies_r;
    struct kube_informer *configs, *volumes, *replicas, *policies;
};

/* One config that is worked on. */
struct cvc_work {
    struct cvc_controller *c;
    json_t *config; /* owned */
    json_t *volume; /* owned; NULL: there is none */
    struct cstor_volume_config its;
};

static int patch_config(struct cvc_work *w, json_t *patch, const char *what, struct err *e)
{
    json_t *metadata = json_object_at(patch, "metadata");
    json_object_set_new(metadata, "resourceVersion", json_string(kube_version(w->config)));
    crash_point(what);
    json_t *now = kube_patch(w->c->client, &w->c->configs_r, kube_namespace(w->config),
                             kube_name(w->config), KUBE_MERGE_PATCH, patch, NULL, e);
    crash_point(what);
    if (!now)
        return -1;
    json_decref(w->config);
    w->config = now;
    w->its = cstor_volume_config_of(now);
    return 0;
}

/* The policy that the config names, or none, becomes its own. */
static int take_policy(struct cvc_work *w, struct err *e)
{
    const char *name = kube_annotation(w->config, API_CVC_POLICY);
    if (w->its.spec.policy)
        return 0;
    json_auto_t *policy =
        name && *name ? kube_informer_json(w->c->policies, kube_namespace(w->config), name, NULL)
                      : NULL;
    if (name && *name && !policy)
        return err_set(e, ERR_NOT_FOUND, "NoPolicy",
                       "there is no CStorVolumePolicy %s in namespace %s, which the annotation %s "
                       "names: create it, or take the annotation off",
                       name, kube_namespace(w->config), API_CVC_POLICY);
    const json_t *spec = json_object_get(policy, "spec");
    json_auto_t *patch =
        json_pack("{s:{s:o}}", "spec", "policy", spec ? json_deep_copy(spec) : json_object());
    return patch_config(w, patch, "policy", e);
}

/* The volume. */

static json_t *volume_labels(const struct cvc_work *w)
{
    json_t *labels = json_pack("{s:s}", VOLUME_LABEL, kube_name(w->config));
    const char *cluster = kube_label(w->config, API_POOL_CLUSTER),
               *claim = kube_annotation(w->config, CLAIM_LABEL);
    if (cluster)
        json_object_set_new(labels, API_POOL_CLUSTER, json_string(cluster));
    if (claim && strlen(claim) <= LABEL_MAX)
        json_object_set_new(labels, CLAIM_LABEL, json_string(claim));
    return labels;
}

static json_t *volume_annotations(const struct cvc_work *w)
{
    json_t *annotations = json_object();
    const char *claim = kube_annotation(w->config, CLAIM_LABEL);
    if (*w->its.node && json_is_true(json_at(w->its.spec.policy, "provision", "replicaAffinity")))
        json_object_set_new(annotations, API_CSTOR_NODE, json_string(w->its.node));
    if (claim)
        json_object_set_new(annotations, CLAIM_LABEL, json_string(claim));
    return annotations;
}

/* Whether the pools are those that the system wrote: then it may choose others, when one is lost. */
static bool is_own_choice(const struct cvc_work *w, const json_t *pools)
{
    const char *text = kube_annotation(w->config, API_CVC_CHOSEN);
    json_auto_t *chosen = text ? json_parse(text, strlen(text), NULL, NULL) : NULL;
    return !json_array_size(pools) || (chosen && json_equal(chosen, pools));
}

/* What the volume is to have of the config: size, pools or their number, and settings. */
static json_t *volume_spec(const struct cvc_work *w)
{
    json_t *policy = json_deep_copy(w->its.spec.policy);
    json_auto_t *pools = json_incref(json_object_get(policy, "replicaPoolInfo"));
    size_t n = json_array_size(pools);
    json_object_del(policy, "replicaPoolInfo");
    json_t *spec =
        json_pack("{s:O,s:I,s:o}", "capacity", json_at(w->config, "spec", "capacity", "storage"),
                  "desiredReplicationFactor", n ? (json_int_t)n : (json_int_t)w->its.spec.replicas,
                  "policy", policy);
    if (!is_own_choice(w, pools))
        json_object_set(spec, "replicaPoolInfo", pools);
    return spec;
}

static int make_volume(struct cvc_work *w, struct err *e)
{
    if (*w->its.spec.source)
        return err_set(e, ERR_UNIMPLEMENTED, "NoClones",
                       "volumes cannot be made from %s yet: take spec.cstorVolumeSource out",
                       w->its.spec.source);
    if (!kube_label(w->config, API_POOL_CLUSTER))
        return err_set(e, ERR_INVALID_ARGUMENT, "NoPoolCluster",
                       "the label %s has to name the CStorPoolCluster whose pools have the volume",
                       API_POOL_CLUSTER);
    json_t *spec = volume_spec(w);
    json_object_set(spec, "replicationFactor", json_object_get(spec, "desiredReplicationFactor"));
    json_auto_t *volume = json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:o,s:o,s:[o]},s:o}", "apiVersion", w->c->volumes_r.api_version,
        "kind", w->c->volumes_r.kind, "metadata", "name", kube_name(w->config), "namespace",
        kube_namespace(w->config), "labels", volume_labels(w), "annotations", volume_annotations(w),
        "ownerReferences", kube_owner_reference(w->config), "spec", spec);
    crash_point("volume");
    w->volume = kube_create(w->c->client, &w->c->volumes_r, volume, NULL, e);
    crash_point("volume");
    if (!w->volume)
        return -1;
    kube_event_normal(w->c->recorder, w->config, "Provisioning", "CStorVolume %s is being made",
                      kube_name(w->config));
    return 0;
}

static int check_owner(const struct cvc_work *w, struct err *e)
{
    if (str_eq(kube_controller_uid(w->volume), kube_uid(w->config)))
        return 0;
    return err_set(
        e, ERR_FAILED_PRECONDITION, "NotOurs",
        "there is a CStorVolume %s already that does not belong to this config: give the "
        "config another name, or delete the volume",
        kube_name(w->config));
}

static bool grows(const json_t *is, const json_t *wanted)
{
    return api_quantity_int(wanted) > api_quantity_int(is);
}

/* Size, pools and settings are the config's; a size that was larger already stays. */
static int update_volume(struct cvc_work *w, struct err *e)
{
    const json_t *is = json_object_get(w->volume, "spec");
    json_auto_t *wanted = volume_spec(w);
    const char *key;
    json_t *value;
    bool changed = false;
    if (!grows(json_object_get(is, "capacity"), json_object_get(wanted, "capacity")))
        json_object_del(wanted, "capacity");
    else
        kube_event_normal(w->c->recorder, w->config, "Resizing", "CStorVolume %s grows to %s",
                          kube_name(w->volume), w->its.spec.capacity.text);
    json_object_foreach(wanted, key, value)
        changed |= !json_equal(json_object_get(is, key), value);
    if (!changed &&
        !json_object_get(is, "replicaPoolInfo") == !json_object_get(wanted, "replicaPoolInfo"))
        return 0;
    /* As a whole: a merge patch would keep what the policy has no more. */
    json_auto_t *whole = json_deep_copy(w->volume);
    json_object_del(json_object_get(whole, "spec"), "replicaPoolInfo");
    json_object_update(json_object_get(whole, "spec"), wanted);
    crash_point("update");
    json_t *now = kube_update(w->c->client, &w->c->volumes_r, whole, NULL, e);
    crash_point("update");
    if (!now)
        return -1;
    json_decref(w->volume);
    w->volume = now;
    return 0;
}

/* Status. */

static void replica_keys(const json_t *replica, struct kube_index_values *out)
{
    const char *volume = kube_label(replica, VOLUME_LABEL);
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(replica), volume ? volume : "");
    kube_index_add(out, key);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The pools that have a replica, in order. */
static json_t *pools_of(const struct cvc_work *w)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(w->config), kube_name(w->config));
    kube_informer_find(w->c->replicas, "volume", key, &found);
    VEC(char *) names = {0};
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *replica = kube_object_json(found.p[i]);
        const char *pool = kube_label(replica, API_POOL_OF_REPLICA);
        if (pool && !kube_deleting(replica))
            vec_push(&names, mem_strdup(pool));
    }
    if (names.len)
        qsort(names.p, names.len, sizeof(*names.p), compare_texts);
    json_t *pools = json_array();
    vec_for_each(&names, it) {
        json_array_append_new(pools, json_string(*it));
        free(*it);
    }
    vec_done(&names);
    return pools;
}

/* What is wrong, for the condition; NULL: nothing. */
static json_t *conditions_of(const struct cvc_work *w, const struct err *why)
{
    const json_t *has = json_at(w->volume, "status", "capacity");
    bool growing = has && grows(has, json_at(w->config, "spec", "capacity", "storage"));
    const json_t *resizing = kube_condition_get(w->volume, "Resizing");
    const char *message = json_str(resizing, "message"), *reason = json_str(resizing, "reason");
    json_t *list = json_array();
    json_t *time = json_object_get(resizing, "lastTransitionTime");
    if (growing)
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:O*}", "type", "Resizing", "reason",
                                              reason ? reason : "Resizing", "message",
                                              message ? message : "The volume is growing",
                                              "lastTransitionTime", time));
    if (why)
        json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "type", "Provisioning", "reason",
                                              why->reason, "message", why->msg));
    return list;
}

static int write_status(struct cvc_work *w, const struct err *why, struct err *e)
{
    const json_t *size = json_at(w->volume, "status", "capacity");
    bool bound = size || str_eq(w->its.status.phase, "Bound");
    bool hopeless = why && !bound && err_is_infeasible(why->code);
    json_auto_t *status = json_pack("{s:s,s:o,s:o}", "phase",
                                    bound      ? "Bound"
                                    : hopeless ? "Failed"
                                               : "Pending",
                                    "poolInfo", pools_of(w), "condition", conditions_of(w, why));
    if (size)
        json_object_set_new(status, "capacity", json_pack("{s:O}", "storage", size));
    bool was = str_eq(w->its.status.phase, "Bound");
    crash_point("status");
    if (kube_status_write(w->c->client, &w->c->configs_r, &w->config, status, e) < 0)
        return -1;
    crash_point("status");
    if (bound && !was)
        kube_event_normal(w->c->recorder, w->config, "Synced", "CStorVolume %s serves",
                          kube_name(w->config));
    return 0;
}

/* The pools that have replicas, if the system chose them and all are there, as a patch adds them. */
static void add_choice(const struct cvc_work *w, json_t *spec, json_t *annotations)
{
    json_auto_t *pools = pools_of(w), *info = json_array();
    const json_t *known = json_object_get(w->its.spec.policy, "replicaPoolInfo");
    size_t n = json_array_size(known), i;
    json_t *it;
    json_array_foreach(pools, i, it)
        json_array_append_new(info, json_pack("{s:O}", "poolName", it));
    if (!is_own_choice(w, known) || json_equal(info, known) ||
        json_array_size(info) != (n ? n : (size_t)w->its.spec.replicas))
        return;
    _cleanup_(str_done) struct str text = {0};
    json_format(info, &text);
    json_object_set_new(annotations, API_CVC_CHOSEN, json_string(str_get(&text)));
    json_object_set_new(spec, "policy", json_pack("{s:O}", "replicaPoolInfo", info));
}

/* What the system chose is written into the config: the volume, and the pools where none were named. */
static int write_choice(struct cvc_work *w, struct err *e)
{
    json_auto_t *spec = json_object(), *annotations = json_object();
    if (!json_at(w->config, "spec", "cstorVolumeRef"))
        json_object_set_new(spec, "cstorVolumeRef",
                            json_pack("{s:s,s:s,s:s,s:s,s:s}", "apiVersion",
                                      w->c->volumes_r.api_version, "kind", w->c->volumes_r.kind,
                                      "name", kube_name(w->volume), "namespace",
                                      kube_namespace(w->volume), "uid", kube_uid(w->volume)));
    add_choice(w, spec, annotations);
    if (!json_object_size(spec))
        return 0;
    json_auto_t *patch =
        json_pack("{s:O,s:{s:O}}", "spec", spec, "metadata", "annotations", annotations);
    return patch_config(w, patch, "choice", e);
}

/* The end. */

static int remove_volume(struct cvc_work *w, struct err *e)
{
    if (w->volume && check_owner(w, NULL) == 0) {
        if (kube_deleting(w->volume))
            return 0;
        const struct kube_delete how = {.uid = kube_uid(w->volume), .grace_seconds = -1};
        crash_point("delete");
        return kube_delete(w->c->client, &w->c->volumes_r, kube_namespace(w->config),
                           kube_name(w->config), &how, e);
    }
    crash_point("finalizer");
    return kube_finalizer_remove(w->c->client, &w->c->configs_r, &w->config, API_CVC_FINALIZER, e);
}

static int keep_volume(struct cvc_work *w, struct err *e)
{
    if (kube_finalizer_add(w->c->client, &w->c->configs_r, &w->config, API_CVC_FINALIZER, e) < 0)
        return -1;
    w->its = cstor_volume_config_of(w->config);
    if (take_policy(w, e) < 0)
        return -1;
    if (!w->volume ? make_volume(w, e) < 0 : check_owner(w, e) < 0 || update_volume(w, e) < 0)
        return -1;
    return write_choice(w, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct cvc_controller *c = context;
    struct cvc_work w = {.c = c, .config = kube_informer_json(c->configs, ns, name, NULL)};
    if (!w.config)
        return 0;
    w.volume = kube_informer_json(c->volumes, ns, name, NULL);
    w.its = cstor_volume_config_of(w.config);
    int status = kube_deleting(w.config) ? remove_volume(&w, e) : keep_volume(&w, e);
    bool lasts = status < 0 && (err_is_infeasible(e->code) || e->code == ERR_NOT_FOUND ||
                                e->code == ERR_FAILED_PRECONDITION || e->code == ERR_UNIMPLEMENTED);
    if (!kube_deleting(w.config) && (status == 0 || lasts)) {
        struct err why = {0};
        if (lasts) {
            kube_event_warning(c->recorder, w.config, "Provisioning", "%s", e->msg);
            ret->again_ns = 30 * CLOCK_SECOND;
        }
        int written = write_status(&w, lasts ? e : NULL, &why);
        if (lasts) {
            *e = (struct err){0};
            status = 0;
        }
        if (written < 0) {
            *e = why;
            status = -1;
        }
    }
    json_decref(w.config);
    json_decref(w.volume);
    return status;
}

/* Setting up. */

/* A volume has its config's name, and a replica says its volume's. */
static void map_name(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    kube_controller_add(c, object->ns, object->name);
}

static void map_replica(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *replica = kube_object_json(object);
    const char *volume = kube_label(replica, VOLUME_LABEL);
    if (volume)
        kube_controller_add(c, object->ns, volume);
}

/* A policy that has just been made: those that wait for it. */
static void map_policy(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct cvc_controller *v = context;
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(v->configs, object->ns, &all);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *config = kube_object_json(all.p[i]);
        const char *policy = kube_annotation(config, API_CVC_POLICY);
        if (policy && str_eq(policy, object->name) && !cstor_volume_config_of(config).spec.policy)
            kube_controller_add(c, all.p[i]->ns, all.p[i]->name);
    }
}

int controllers_cvc(struct kube_manager *m, struct err *e)
{
    static const struct kube_index by_volume = {"volume", replica_keys};
    struct cvc_controller *c = NEW(struct cvc_controller);
    kube_manager_on_stop(m, free, c);
    c->clock = kube_manager_clock(m);
    c->client = kube_manager_client(m);
    c->recorder = kube_manager_recorder(m);
    c->configs_r = kube_resource("cstor.openebs.io/v1", "CStorVolumeConfig");
    c->volumes_r = kube_resource("cstor.openebs.io/v1", "CStorVolume");
    c->policies_r = kube_resource("cstor.openebs.io/v1", "CStorVolumePolicy");
    const struct kube_resource replicas =
        kube_resource("cstor.openebs.io/v1", "CStorVolumeReplica");
    c->configs = kube_manager_informer(m, c->configs_r, NULL, NULL, NULL);
    c->volumes = kube_manager_informer(m, c->volumes_r, NULL, NULL, NULL);
    c->policies = kube_manager_informer(m, c->policies_r, NULL, NULL, NULL);
    c->replicas = kube_manager_informer(m, replicas, NULL, NULL, NULL);
    kube_informer_add_index(c->replicas, &by_volume);
    const struct kube_controller_options o = {
        .name = "cstorvolumeconfig-controller", .reconcile = reconcile, .context = c, .workers = 2};
    struct kube_controller *k = kube_manager_controller(m, &o, e);
    if (!k)
        return -1;
    kube_controller_watch(k, (struct kube_source){.informer = c->configs});
    kube_controller_watch(k, (struct kube_source){.informer = c->volumes, .map = map_name});
    kube_controller_watch(k, (struct kube_source){.informer = c->replicas, .map = map_replica});
    kube_controller_watch(
        k, (struct kube_source){.informer = c->policies, .map = map_policy, .context = c});
    return 0;
}
