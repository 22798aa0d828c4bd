/*
 * ReplicaSets: as many pods of one template as are wanted.
 *
 * Nothing is decided twice on old news. While the cache says that all is well, it is believed; as
 * soon as something is to be made or deleted, or another number is wanted, the set and its pods are
 * read from the server, and that decides. So `observedGeneration` tells the truth: what is made from
 * then on is made for that generation. The name of a new pod follows from what was read, so that even two who decide on the
 * same, one of them killed just now with a request under way, make one pod and not two.
 */
#include <inttypes.h>

#include "k8s/controllers/embedded.h"
#include "k8s/controllers/pods.h"
#include "kube/condition.h"
#include "kube/names.h"
#include "kube/object.h"

enum { BURST = 500, NAMES = 8 };

struct replicas {
    const struct clock *clock;
    struct kube_ages *ages;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource sets_r, pods_r;
    struct kube_informer *sets, *pods;
};

/* Those that count, in an array of their own. */
static json_t *active_of(const json_t *pods)
{
    json_t *active = json_array(), *pod;
    size_t i;
    json_array_foreach((json_t *)pods, i, pod) {
        if (pods_is_active(pod))
            json_array_append(active, pod);
    }
    return active;
}

/* What a decision is made of, as text. */
static void append_world(const json_t *set, const json_t *pods, struct str *out)
{
    size_t i;
    json_t *pod;
    str_appendf(out, "%s %s", kube_uid(set), kube_version(set));
    json_array_foreach((json_t *)pods, i, pod)
        str_appendf(out, " %s", kube_uid(pod));
}

/* Makes one pod; what is there already under that name and is ours was made by us. */
static int create_pod(struct replicas *r, const json_t *set, const char *world, size_t number,
                      struct err *e)
{
    const json_t *template = json_at(set, "spec", "template");
    for (unsigned name = 0; name < NAMES; name++) {
        char suffix[6];
        _cleanup_free_ char *text = mem_printf("%s/%zu/%u", world, number, name);
        kube_suffix(text, suffix);
        _cleanup_free_ char *own = mem_printf("%.57s-%s", kube_name(set), suffix);
        json_auto_t *pod = pods_from_template(set, template, own);
        struct err why = {0};
        json_auto_t *made = kube_create(r->client, &r->pods_r, pod, NULL, &why);
        if (made) {
            kube_event_normal(r->recorder, set, "SuccessfulCreate", "Created pod: %s", own);
            return 0;
        }
        if (why.code != ERR_ALREADY_EXISTS) {
            kube_event_warning(r->recorder, set, "FailedCreate", "Error creating: %s", why.msg);
            if (e)
                *e = why;
            return -1;
        }
        json_auto_t *there = kube_get(r->client, &r->pods_r, kube_namespace(set), own, NULL);
        if (str_eq(kube_controller_uid(there), kube_uid(set)))
            return 0;
    }
    return err_set(e, ERR_ALREADY_EXISTS, "NoName", "no free name for a pod of %s", kube_name(set));
}

static int delete_pod(struct replicas *r, const json_t *set, const json_t *pod, struct err *e)
{
    const struct kube_delete options = {.uid = kube_uid(pod), .grace_seconds = -1};
    struct err why = {0};
    if (kube_delete(r->client, &r->pods_r, kube_namespace(pod), kube_name(pod), &options, &why) <
        0) {
        if (why.code == ERR_NOT_FOUND || why.code == ERR_ABORTED)
            return 0; /* another one of that name */
        kube_event_warning(r->recorder, set, "FailedDelete", "Error deleting: %s", why.msg);
        if (e)
            *e = why;
        return -1;
    }
    kube_event_normal(r->recorder, set, "SuccessfulDelete", "Deleted pod: %s", kube_name(pod));
    return 0;
}

/* Makes or deletes pods; *set and *pods are what the server has. */
static int manage(struct replicas *r, const json_t *set, json_t *pods, struct err *e)
{
    json_auto_t *active = active_of(pods);
    int64_t wanted = pods_integer(set, "spec", "replicas", 1);
    int64_t difference = (int64_t)json_array_size(active) - wanted;
    _cleanup_(str_done) struct str world = {0};
    append_world(set, pods, &world);
    for (int64_t i = 0; i < -difference && i < BURST; i++) {
        if (create_pod(r, set, str_get(&world), (size_t)i, e) < 0)
            return -1;
    }
    if (difference > 0)
        pods_sort_for_deletion(active);
    for (int64_t i = 0; i < difference && i < BURST; i++) {
        if (delete_pod(r, set, json_array_get(active, (size_t)i), e) < 0)
            return -1;
    }
    return 0;
}

/* Whether a pod has all labels of the template. */
static bool is_labeled(const json_t *set, const json_t *pod)
{
    const json_t *labels = json_at(pod, "metadata", "labels");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json_at(set, "spec", "template", "metadata", "labels"), key,
                        value) {
        if (!json_equal(value, json_object_get(labels, key)))
            return false;
    }
    return true;
}

/* The condition that tells of pods that could not be made or deleted, or that there is none. */
static void set_failure(struct replicas *r, json_t *status, const struct err *failed, bool deleting)
{
    json_t *conditions = json_object_get(status, "conditions");
    size_t i;
    json_t *it;
    if (failed) {
        const struct kube_condition failure = {
            .type = "ReplicaFailure",
            .status = "True",
            .reason = deleting ? "FailedDelete" : "FailedCreate",
            .message = failed->msg,
        };
        if (!conditions) {
            conditions = json_array();
            json_object_set_new(status, "conditions", conditions);
        }
        kube_condition_set(conditions, &failure, r->clock);
        return;
    }
    json_array_foreach(conditions, i, it) {
        const char *type = json_str(it, "type");
        if (type && str_eq(type, "ReplicaFailure")) {
            json_array_remove(conditions, i);
            break;
        }
    }
    if (conditions && !json_array_size(conditions))
        json_object_del(status, "conditions");
}

/* What the pods come to; *ret_wait_ns: when one more will be available. */
static json_t *status_of(struct replicas *r, const json_t *set, const json_t *pods,
                         int64_t *ret_wait_ns)
{
    int64_t n = 0, labeled = 0, ready = 0, available = 0;
    int64_t seconds = pods_integer(set, "spec", "minReadySeconds", 0);
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)pods, i, pod) {
        int64_t wait = 0;
        if (!pods_is_active(pod))
            continue;
        n++;
        labeled += is_labeled(set, pod);
        ready += pods_is_ready(pod);
        available += pods_is_available(pod, seconds, r->ages, &wait);
        if (wait && (!*ret_wait_ns || wait < *ret_wait_ns))
            *ret_wait_ns = wait;
    }
    json_t *status = kube_status_copy(set);
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"replicas", n},
                  {"fullyLabeledReplicas", labeled},
                  {"readyReplicas", ready},
                  {"availableReplicas", available},
                  {"observedGeneration", kube_generation(set)}};
    for (i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i].value || i == 0)
            json_object_set_new(status, counts[i].key, json_integer(counts[i].value));
        else
            json_object_del(status, counts[i].key);
    }
    return status;
}

/* Whether, by the cache, something is to be done with pods. */
static bool is_due(const json_t *set, const json_t *pods)
{
    json_auto_t *active = active_of(pods);
    if ((int64_t)json_array_size(active) != pods_integer(set, "spec", "replicas", 1) ||
        !pods_is_observed(set))
        return true;
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)pods, i, pod) {
        bool own = str_eq(kube_controller_uid(pod), kube_uid(set));
        if (own !=
            pods_selected(json_at(set, "spec", "selector"), json_at(pod, "metadata", "labels")))
            return true;
    }
    return false;
}

static int write_status(struct replicas *r, json_t **set, const json_t *pods,
                        const struct err *failed, bool deleting, struct kube_result *ret,
                        struct err *e)
{
    json_auto_t *status = status_of(r, *set, pods, &ret->again_ns);
    set_failure(r, status, failed, deleting);
    return kube_status_write(r->client, &r->sets_r, set, status, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct replicas *r = context;
    json_auto_t *set = kube_informer_json(r->sets, ns, name, NULL);
    if (!set)
        return 0;
    json_auto_t *pods = pods_of(r->pods, set);
    if (kube_deleting(set) || !is_due(set, pods))
        return write_status(r, &set, pods, NULL, false, ret, e);

    struct err why = {0};
    json_auto_t *now = kube_get(r->client, &r->sets_r, ns, name, &why);
    if (!now) {
        if (why.code == ERR_NOT_FOUND)
            return 0;
        *e = why;
        return -1;
    }
    json_auto_t *there = kube_deleting(now) ? NULL : pods_read(r->client, &r->pods_r, now, e);
    if (kube_deleting(now))
        return 0;
    if (!there || pods_claim(r->client, &r->pods_r, now, there, e) < 0)
        return -1;
    bool deleting = (int64_t)json_array_size(there) > pods_integer(now, "spec", "replicas", 1);
    if (manage(r, now, there, &why) == 0)
        return write_status(r, &now, there, NULL, false, ret, e);
    write_status(r, &now, there, &why, deleting, ret, NULL);
    *e = why;
    return -1;
}

/* A pod is its owner's; one without might be of any set that selects it. */
static void map_pod(struct kube_controller *c, const struct kube_object *pod, void *context)
{
    struct replicas *r = context;
    if (*pod->owner_uid) {
        kube_map_owner(c, pod, "ReplicaSet");
        return;
    }
    json_auto_t *tree = kube_object_json(pod);
    _cleanup_(kube_objects_done) struct kube_objects sets = {0};
    kube_informer_list(r->sets, pod->ns, &sets);
    for (size_t i = 0; i < sets.len; i++) {
        json_auto_t *set = kube_object_json(sets.p[i]);
        if (pods_selected(json_at(set, "spec", "selector"), json_at(tree, "metadata", "labels")))
            kube_controller_add(c, sets.p[i]->ns, sets.p[i]->name);
    }
}

int embedded_replica_sets(struct kube_manager *m, struct err *e)
{
    struct replicas *r = NEW(struct replicas);
    kube_manager_on_stop(m, free, r);
    r->clock = kube_manager_clock(m);
    r->ages = kube_manager_ages(m);
    r->client = kube_manager_client(m);
    r->recorder = kube_manager_recorder(m);
    r->sets_r = kube_resource("apps/v1", "ReplicaSet");
    r->pods_r = kube_resource("v1", "Pod");
    r->sets = kube_manager_informer(m, r->sets_r, NULL, NULL, NULL);
    r->pods = kube_manager_informer(m, r->pods_r, NULL, NULL, NULL);
    pods_add_indexes(r->pods);
    const struct kube_controller_options o = {
        .name = "replicaset", .workers = 4, .reconcile = reconcile, .context = r};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = r->sets});
    kube_controller_watch(c,
                          (struct kube_source){.informer = r->pods, .map = map_pod, .context = r});
    return 0;
}
