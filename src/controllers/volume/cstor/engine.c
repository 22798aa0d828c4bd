/*
 * What is particular to cStor volumes: their object, and the table of the engine.
 */
#include "base/rfc3339.h"
#include "controllers/volume/cstor/cstor.h"
#include "json/patch.h"
#include "kinds/cvc.h"
#include "kinds/pool_names.h"

extern const struct kube_template controllers_volume_cstor_service, controllers_volume_cstor_target;

/* Reading. */

static const char *mode_of(const struct cstor_volume *v, const char *guid)
{
    for (size_t i = 0; i < v->status.replicas.len; i++) {
        if (str_eq(v->status.replicas.p[i].id, guid))
            return v->status.replicas.p[i].mode;
    }
    return "";
}

/* Members are known by the ids of their objects; the target's list has them by their data sets. */
static void read_members(const struct cstor_volume *v, struct volume_view *ret)
{
    const char *id;
    json_t *guid;
    json_object_foreach((json_t *)(uintptr_t)v->status.known, id, guid) {
        if (ret->members == VOLUME_MEMBERS)
            break;
        struct volume_member *m = &ret->member[ret->members++];
        const char *text = json_string_value(guid), *mode = mode_of(v, text ? text : "");
        *m = (struct volume_member){.id = id, .address = "", .state = mode};
        m->healthy = str_eq(mode, "Healthy");
        m->offline = str_eq(mode, "Offline") || !*mode;
        ret->healthy += m->healthy;
    }
}

static void read_volume(const json_t *volume, struct volume_view *ret)
{
    struct arena arena = {0};
    const struct cstor_volume v = cstor_volume_of(volume, &arena);
    *ret = (struct volume_view){
        .factor = cstor_volume_factor(&v),
        .size = (uint64_t)v.spec.capacity.n,
        .has = (uint64_t)v.status.capacity.n,
        .capacity = v.spec.capacity.text,
        .phase = v.status.phase,
        .made = v.status.capacity.n > 0,
        .serving = str_eq(v.status.phase, "Healthy") || str_eq(v.status.phase, "Degraded"),
        .authenticated = !str_eq(v.spec.authentication, "None"),
        .monitored = cstor_policy_of(v.spec.policy, &arena).target.monitored,
        .rehomes = true,
        .portal = v.spec.portal,
        .pv = "",
        .order = v.spec.order.capacity.text,
        .ordered = (uint64_t)v.spec.order.capacity.n,
        .growth = v.status.resize.name,
        .growth_failure = v.status.resize.message,
    };
    read_members(&v, ret);
    ret->ready = ret->serving && kube_condition_is_true(volume, "FullyReplicated");
    arena_done(&arena);
}

static bool is_rehoming(const json_t *volume)
{
    return json_array_size(json_at(volume, "spec", "leavingReplicas")) > 0;
}

/* Writing. */

/* With nobody who looks, nothing is said of replicas, and nothing is claimed to be well. */
static void tell_state(const json_t *volume, enum volume_state state, json_t *status,
                       const struct clock *clock)
{
    static const char *const types[] = {"Serving", "FullyReplicated"};
    const char *phase = state == VOLUME_STARTING ? "Init" : "Offline";
    const char *before = json_str(status, "phase");
    json_t *conditions = json_object_get(status, "conditions");
    struct volume_view view;
    read_volume(volume, &view);
    if (!before || !str_eq(before, phase)) {
        char now[RFC3339_MAX];
        rfc3339_format(rfc3339_from_ns(clock_real_ns(clock)), RFC3339_SECONDS, now);
        json_object_set_new(status, "lastTransitionTime", json_string(now));
        json_object_set_new(status, "lastUpdateTime", json_string(now));
    }
    json_object_set_new(status, "phase", json_string(phase));
    json_object_set_new(status, "replicas", json_sprintf("0/%u", view.factor));
    json_object_set_new(status, "replicaStatuses", json_array());
    json_object_set_new(status, "message",
                        json_string(state == VOLUME_STARTING ? "The volume is being made"
                                    : state == VOLUME_ENDING ? "The volume is being deleted"
                                                             : "No pod of the target is ready"));
    for (size_t i = 0; state != VOLUME_STARTING && i < ARRAY_SIZE(types); i++) {
        const struct kube_condition c = {.type = types[i],
                                         .status = state == VOLUME_ENDING ? "False" : "Unknown",
                                         .reason = "NoTargetPod",
                                         .message = "No pod of the target is ready"};
        kube_condition_set(conditions, &c, clock);
    }
}

/* What the spec does not say, as a patch. */
static json_t *make_identity(const json_t *volume)
{
    struct arena arena = {0};
    const struct cstor_volume v = cstor_volume_of(volume, &arena);
    unsigned factor = cstor_volume_factor(&v);
    json_t *patch = json_object(), *spec = json_object();
    if (!*volume_id(&volume_cstor, volume))
        json_object_set_new(patch, "metadata",
                            json_pack("{s:{s:s}}", "annotations", API_CSTOR_ID, kube_uid(volume)));
    if (!*v.spec.iqn)
        json_object_set_new(spec, "iqn",
                            json_sprintf("iqn.2016-09.com.openebs.cstor:%s", kube_name(volume)));
    if (!v.spec.consistency)
        json_object_set_new(spec, "consistencyFactor", json_integer(v.spec.factor / 2 + 1));
    if (v.spec.desired != factor)
        json_object_set_new(spec, "desiredReplicationFactor", json_integer(factor));
    if (json_object_size(spec))
        json_object_set(patch, "spec", spec);
    json_decref(spec);
    arena_done(&arena);
    return patch;
}

static json_t *make_portal(const json_t *volume, const char *portal)
{
    const char *colon = strrchr(portal, ':');
    size_t n = (size_t)(colon - portal), brackets = *portal == '[';
    _cleanup_free_ char *address = mem_strndup(portal + brackets, n - 2 * brackets);
    (void)volume;
    return json_pack("{s:{s:s,s:s,s:s}}", "spec", "targetIP", address, "targetPort", colon + 1,
                     "targetPortal", portal);
}

static void set_target_values(const json_t *volume, json_t *values)
{
    const struct cstor_volume v = cstor_volume_of(volume, NULL);
    struct arena arena = {0};
    const struct cstor_policy p = cstor_policy_of(v.spec.policy, &arena);
    volume_set_text(values, "iqn", v.spec.iqn);
    volume_set_some(values, "queueDepth", p.target.queue_depth);
    volume_set_some(values, "priorityClassName", p.target.priority_class);
    volume_set_value(values, "nodeSelector", p.target.node_selector);
    volume_set_value(values, "tolerations", p.target.tolerations);
    volume_set_value(values, "resources", p.target.resources);
    volume_set_value(values, "auxResources", p.target.sidecar_resources);
    volume_set_value(values, "podAffinity", p.target.affinity);
    arena_done(&arena);
}

/* What the policy asks for and nobody does here: said where its owner looks, once. */
static int tell_policy(struct volume_work *w, struct err *e)
{
    static const char type[] = "PolicyHonoured";
    static const struct kube_condition
        honoured = {type, "True", "Honoured", "The policy is followed", 0},
        ignored = {type, "False", "TunablesIgnored",
                   "policy.target.luWorkers has no effect: the target works in "
                   "one loop",
                   0};
    struct arena arena = {0};
    const json_t *policy = json_at(w->volume, "spec", "policy");
    bool asked = cstor_policy_of(policy, &arena).target.workers;
    arena_done(&arena);
    if (!asked && !kube_condition_get(w->volume, type))
        return 0;
    return volume_say(w, VOLUME_SAID, asked ? &ignored : &honoured, e);
}

/*
 * What the data plane has become is what the spec says of it: the members, and how many they are
 * when none is on its way.
 */
static int mirror_members(struct volume_work *w, struct err *e)
{
    const struct volume_view view = volume_look(w);
    const json_t *known = json_at(w->volume, "status", "replicaDetails", "knownReplicas"),
                 *said = json_at(w->volume, "spec", "replicaDetails", "knownReplicas");
    int64_t rf = json_integer_value(json_at(w->volume, "spec", "replicationFactor"));
    if (!view.serving || !known)
        return 0;
    json_auto_t *spec = json_object();
    if (!said || !json_equal(said, known)) {
        json_auto_t *none = json_object();
        json_object_set_new(
            spec, "replicaDetails",
            json_pack("{s:o}", "knownReplicas", json_merge_diff(said ? said : none, known)));
    }
    if (view.ready && view.members == view.factor && rf != view.factor) {
        json_object_set_new(spec, "replicationFactor", json_integer(view.factor));
        json_object_set_new(spec, "consistencyFactor", json_integer(view.factor / 2 + 1));
    }
    if (!json_object_size(spec))
        return 0;
    json_auto_t *patch = json_pack("{s:O}", "spec", spec);
    struct err why = {0};
    if (volume_patch(w, patch, "known replicas", &why) == 0)
        return 0;
    struct err *to = why.code == ERR_INVALID_ARGUMENT ? &w->later : e; /* it keeps nothing else */
    *to = why;
    return to == e ? -1 : 0;
}

/* What is known is said first: who has left may be forgotten only then. */
static int check(struct volume_work *w, struct err *e)
{
    return mirror_members(w, e) < 0 ? -1 : cstor_check(w, e);
}

static int keep_replicas(struct volume_work *w, struct err *e)
{
    struct cstor_world world;
    if (cstor_world_read(w, false, &world, e) < 0) {
        cstor_world_done(&world);
        return -1;
    }
    int status = cstor_tell_silent(w, &world, e);
    if (status == 0)
        status = cstor_grow(w, &world, e);
    cstor_world_done(&world);
    return status;
}

const struct volume_engine volume_cstor = {
    .name = "cstor",
    .version = "cstor.openebs.io/v1",
    .kind = "CStorVolume",
    .singular = "cstorvolume",
    .plural = "cstorvolumes",
    .group = "cstor.openebs.io",
    .controller = "cstor-volume-controller",
    .finalizer = "cstorvolume.openebs.io/finalizer",
    .id = API_CSTOR_ID,
    .target_suffix = "-target",
    .service_suffix = "",
    .target_component = "cstor-target",
    .replica_component = "cstor-replica",
    .service = &controllers_volume_cstor_service,
    .target = &controllers_volume_cstor_target,
    .view = read_volume,
    .tell_state = tell_state,
    .follow = cstor_follow,
    .watch = cstor_watch,
    .check = check,
    .identity = make_identity,
    .portal = make_portal,
    .target_values = set_target_values,
    .tell_policy = tell_policy,
    .apply_replicas = cstor_apply_replicas,
    .place_replicas = keep_replicas,
    .end_replicas = cstor_end_replicas,
    .is_rehoming = is_rehoming,
};
