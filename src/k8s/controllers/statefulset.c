/*
 * StatefulSets: pods with a number, each with its own claims, made and ended in order.
 *
 * Names are given, so nothing can be made twice; one step is taken at a time, and deletions name the
 * uid that was looked at. Templates that there were are kept as ControllerRevisions: a pod below the
 * partition that is lost is made again as it was.
 */
#include "k8s/controllers/statefulset.h"

#include <inttypes.h>

#include "k8s/controllers/embedded.h"
#include "k8s/controllers/pods.h"
#include "kube/condition.h"

enum { PODS_MAX = 100000 };

struct stateful {
    struct kube_ages *ages;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource sets_r, pods_r, claims_r, revisions_r;
    struct kube_informer *sets, *pods, *claims, *revisions;
};

/* One set while it is looked at. */
struct keeping {
    struct stateful *s;
    json_t *set;
    json_t *revisions;     /* all that it has */
    const json_t *update;  /* the one of the present template; in revisions */
    const json_t *current; /* the one that pods below the partition have; in revisions */
    int64_t start, wanted, partition;
    bool parallel, rolling;
    const json_t **pods; /* by number, from start; NULL: there is none */
    struct statefulset_pod_state *states;
    size_t n;
    int64_t wait_ns;
};

static int64_t number_of(const json_t *revision)
{
    return json_integer_value(json_object_get(revision, "revision"));
}

static const json_t *find_revision(const json_t *revisions, const char *name)
{
    size_t i;
    json_t *revision;
    json_array_foreach((json_t *)revisions, i, revision) {
        if (name && str_eq(kube_name(revision), name))
            return revision;
    }
    return NULL;
}

/* The present template has a revision, with the highest number. */
static int ensure_revision(struct keeping *k, struct err *e)
{
    int64_t last = 0;
    size_t i;
    json_t *revision;
    json_array_foreach(k->revisions, i, revision)
        last = number_of(revision) > last ? number_of(revision) : last;
    json_auto_t *wanted = statefulset_revision(k->set, last + 1);
    const json_t *is = find_revision(k->revisions, kube_name(wanted));
    json_t *now = NULL;
    if (is && number_of(is) == last) {
        k->update = is;
        return 0;
    }
    if (is) { /* one that was is so again */
        json_auto_t *patch = json_pack("{s:{s:s},s:o}", "metadata", "resourceVersion",
                                       kube_version(is), "revision", json_integer(last + 1));
        now = kube_patch(k->s->client, &k->s->revisions_r, kube_namespace(is), kube_name(is),
                         KUBE_MERGE_PATCH, patch, NULL, e);
    } else {
        now = kube_create(k->s->client, &k->s->revisions_r, wanted, NULL, e);
        if (!now && e->code == ERR_ALREADY_EXISTS)
            return err_set(e, ERR_ABORTED, "NotYetSeen", "%s is there already", kube_name(wanted));
    }
    if (!now)
        return -1;
    json_array_append_new(k->revisions, now);
    k->update = now;
    return 0;
}

static void find_current(struct keeping *k)
{
    const char *name = json_str(json_object_get(k->set, "status"), "currentRevision");
    k->current = find_revision(k->revisions, name);
    if (!k->current)
        k->current = k->update;
}

static struct statefulset_pod_state state_of(struct keeping *k, const json_t *pod)
{
    const char *revision = kube_label(pod, STATEFULSET_HASH);
    int64_t wait = 0, seconds = pods_integer(k->set, "spec", "minReadySeconds", 0);
    struct statefulset_pod_state state = {
        .there = true,
        .ending = kube_deleting(pod),
        .failed = !pods_is_active(pod) && !kube_deleting(pod),
        .updated = revision && str_eq(revision, kube_name(k->update)),
    };
    state.available = pods_is_active(pod) && pods_is_available(pod, seconds, k->s->ages, &wait);
    if (wait && (!k->wait_ns || wait < k->wait_ns))
        k->wait_ns = wait;
    return state;
}

static void sort_pods(struct keeping *k, const json_t *pods)
{
    size_t i;
    json_t *pod;
    k->n = (size_t)k->wanted;
    json_array_foreach((json_t *)pods, i, pod) {
        int64_t at = statefulset_ordinal(k->set, pod) - k->start;
        if (at >= (int64_t)k->n && at < PODS_MAX)
            k->n = (size_t)at + 1;
    }
    k->pods = mem_zalloc((k->n + 1) * sizeof(*k->pods));
    k->states = mem_zalloc((k->n + 1) * sizeof(*k->states));
    json_array_foreach((json_t *)pods, i, pod) {
        int64_t at = statefulset_ordinal(k->set, pod) - k->start;
        if (at < 0 || at >= (int64_t)k->n)
            continue;
        k->pods[at] = pod;
        k->states[at] = state_of(k, pod);
    }
}

/* The claims of a pod are there before it is. */
static int ensure_claims(struct keeping *k, int64_t ordinal, struct err *e)
{
    json_auto_t *claims = statefulset_claims(k->set, ordinal);
    size_t i;
    json_t *claim;
    json_array_foreach(claims, i, claim) {
        _cleanup_(kube_object_unrefp) struct kube_object *there =
            kube_informer_get(k->s->claims, kube_namespace(claim), kube_name(claim));
        struct err why = {0};
        if (there)
            continue;
        json_auto_t *made = kube_create(k->s->client, &k->s->claims_r, claim, NULL, &why);
        if (!made && why.code != ERR_ALREADY_EXISTS) {
            kube_event_warning(k->s->recorder, k->set, "FailedCreate",
                               "create Claim %s for set %s failed: %s", kube_name(claim),
                               kube_name(k->set), why.msg);
            *e = why;
            return -1;
        }
        if (made)
            kube_event_normal(k->s->recorder, k->set, "SuccessfulCreate",
                              "create Claim %s in StatefulSet %s success", kube_name(claim),
                              kube_name(k->set));
    }
    return 0;
}

static int create_pod(struct keeping *k, size_t at, struct err *e)
{
    int64_t ordinal = k->start + (int64_t)at;
    const json_t *revision = (int64_t)at < k->partition ? k->current : k->update;
    if (ensure_claims(k, ordinal, e) < 0)
        return -1;
    json_auto_t *template = json_deep_copy(statefulset_template(revision));
    json_object_del(template, "$patch");
    json_auto_t *pod = statefulset_pod(k->set, template, ordinal, kube_name(revision));
    struct err why = {0};
    json_auto_t *made = kube_create(k->s->client, &k->s->pods_r, pod, NULL, &why);
    if (made) {
        kube_event_normal(k->s->recorder, k->set, "SuccessfulCreate",
                          "create Pod %s in StatefulSet %s successful", kube_name(pod),
                          kube_name(k->set));
        return 0;
    }
    if (why.code == ERR_ALREADY_EXISTS)
        return 0; /* the cache will have it in a moment */
    kube_event_warning(k->s->recorder, k->set, "FailedCreate",
                       "create Pod %s in StatefulSet %s failed error: %s", kube_name(pod),
                       kube_name(k->set), why.msg);
    *e = why;
    return -1;
}

static int delete_pod(struct keeping *k, size_t at, struct err *e)
{
    const json_t *pod = k->pods[at];
    const struct kube_delete options = {.uid = kube_uid(pod), .grace_seconds = -1};
    struct err why = {0};
    if (kube_delete(k->s->client, &k->s->pods_r, kube_namespace(pod), kube_name(pod), &options,
                    &why) < 0) {
        if (why.code == ERR_ABORTED || why.code == ERR_NOT_FOUND)
            return 0;
        *e = why;
        return -1;
    }
    kube_event_normal(k->s->recorder, k->set, "SuccessfulDelete",
                      "delete Pod %s in StatefulSet %s successful", kube_name(pod),
                      kube_name(k->set));
    return 0;
}

/* One step, or for all that need no order as many as there are. */
static int act(struct keeping *k, struct err *e)
{
    for (size_t steps = 0; steps <= k->n; steps++) {
        struct statefulset_step step = statefulset_next(
            k->states, k->n, (size_t)k->wanted, (size_t)k->partition, k->parallel, k->rolling);
        if (step.action == STATEFULSET_NOTHING)
            return 0;
        bool create = step.action == STATEFULSET_CREATE;
        if ((create ? create_pod(k, step.pod, e) : delete_pod(k, step.pod, e)) < 0)
            return -1;
        struct statefulset_pod_state *state = &k->states[step.pod];
        *state = create ? (struct statefulset_pod_state){.there = true, .updated = true}
                        : (struct statefulset_pod_state){.there = true, .ending = true};
        if (!k->parallel)
            return 0;
    }
    return 0;
}

static int write_status(struct keeping *k, struct err *e)
{
    int64_t n = 0, ready = 0, available = 0, current = 0, updated = 0;
    const char *of_current = kube_name(k->current), *of_update = kube_name(k->update);
    for (size_t i = 0; i < k->n; i++) {
        const json_t *pod = k->pods[i];
        if (!pod || !pods_is_active(pod))
            continue;
        const char *revision = kube_label(pod, STATEFULSET_HASH);
        n++;
        ready += pods_is_ready(pod);
        available += pods_is_available(pod, pods_integer(k->set, "spec", "minReadySeconds", 0),
                                       k->s->ages, NULL);
        current += revision && str_eq(revision, of_current);
        updated += revision && str_eq(revision, of_update);
    }
    if (updated == k->wanted && n == k->wanted && ready == k->wanted) {
        of_current = of_update; /* all have come over */
        current = updated;
    }
    json_auto_t *status = kube_status_copy(k->set);
    const struct {
        const char *key;
        int64_t value;
        bool always;
    } counts[] = {{"observedGeneration", kube_generation(k->set), true},
                  {"replicas", n, true},
                  {"readyReplicas", ready, false},
                  {"availableReplicas", available, true},
                  {"currentReplicas", current, false},
                  {"updatedReplicas", updated, false}};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i].value || counts[i].always)
            json_object_set_new(status, counts[i].key, json_integer(counts[i].value));
        else
            json_object_del(status, counts[i].key);
    }
    json_object_set_new(status, "currentRevision", json_string(of_current));
    json_object_set_new(status, "updateRevision", json_string(of_update));
    json_object_set_new(status, "collisionCount", json_integer(0));
    return kube_status_write(k->s->client, &k->s->sets_r, &k->set, status, e);
}

/* Removes revisions that no pod has and nobody will go back to, the oldest first. */
static int clean_up(struct keeping *k, struct err *e)
{
    int64_t keep = pods_integer(k->set, "spec", "revisionHistoryLimit", 10), old = 0;
    size_t i;
    json_t *revision;
    const json_t *oldest = NULL;
    json_array_foreach(k->revisions, i, revision) {
        bool used = revision == k->update || revision == k->current;
        for (size_t j = 0; j < k->n && !used; j++) {
            const char *of = k->pods[j] ? kube_label(k->pods[j], STATEFULSET_HASH) : NULL;
            used = of && str_eq(of, kube_name(revision));
        }
        if (used)
            continue;
        old++;
        if (!oldest || number_of(revision) < number_of(oldest))
            oldest = revision;
    }
    if (old <= keep || !oldest)
        return 0;
    const struct kube_delete options = {.uid = kube_uid(oldest), .grace_seconds = -1};
    return kube_delete(k->s->client, &k->s->revisions_r, kube_namespace(oldest), kube_name(oldest),
                       &options, e);
}

static void read_spec(struct keeping *k)
{
    const json_t *spec = json_object_get(k->set, "spec");
    const char *policy = json_str(spec, "podManagementPolicy");
    const char *type = json_str(json_object_get(spec, "updateStrategy"), "type");
    const json_t *partition = json_at(spec, "updateStrategy", "rollingUpdate", "partition");
    k->wanted = pods_integer(k->set, "spec", "replicas", 1);
    if (k->wanted > PODS_MAX)
        k->wanted = PODS_MAX;
    k->start = json_integer_value(json_at(spec, "ordinals", "start"));
    k->parallel = policy && str_eq(policy, "Parallel");
    k->rolling = !(type && str_eq(type, "OnDelete"));
    k->partition = json_integer_value(partition) - k->start;
    if (k->partition < 0)
        k->partition = 0;
    if (k->partition > k->wanted)
        k->partition = k->wanted;
}

static int keep_set(struct keeping *k, struct kube_result *ret, struct err *e)
{
    json_auto_t *pods = pods_of(k->s->pods, k->set);
    if (pods_claim(k->s->client, &k->s->pods_r, k->set, pods, e) < 0 || ensure_revision(k, e) < 0)
        return -1;
    read_spec(k);
    find_current(k);
    sort_pods(k, pods);
    int status = act(k, e);
    struct err why = {0};
    if (write_status(k, &why) < 0 && status == 0) {
        *e = why;
        status = -1;
    }
    ret->again_ns = k->wait_ns;
    return status == 0 ? clean_up(k, e) : status;
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct stateful *s = context;
    struct keeping k = {.s = s, .set = kube_informer_json(s->sets, ns, name, NULL)};
    if (!k.set || kube_deleting(k.set)) {
        json_decref(k.set);
        return 0;
    }
    json_auto_t *bare = json_pack("{s:s,s:{s:s,s:s,s:s}}", "kind", "StatefulSet", "metadata",
                                  "name", name, "namespace", ns, "uid", kube_uid(k.set));
    k.revisions = pods_of(s->revisions, bare); /* without a selector: its own only */
    int status = keep_set(&k, ret, e);
    json_decref(k.revisions);
    json_decref(k.set);
    free(k.pods);
    free(k.states);
    return status;
}

static void map_owned(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    kube_map_owner(c, object, "StatefulSet");
}

int embedded_stateful_sets(struct kube_manager *m, struct err *e)
{
    struct stateful *s = NEW(struct stateful);
    kube_manager_on_stop(m, free, s);
    s->ages = kube_manager_ages(m);
    s->client = kube_manager_client(m);
    s->recorder = kube_manager_recorder(m);
    s->sets_r = kube_resource("apps/v1", "StatefulSet");
    s->pods_r = kube_resource("v1", "Pod");
    s->claims_r = kube_resource("v1", "PersistentVolumeClaim");
    s->revisions_r = kube_resource("apps/v1", "ControllerRevision");
    s->sets = kube_manager_informer(m, s->sets_r, NULL, NULL, NULL);
    s->pods = kube_manager_informer(m, s->pods_r, NULL, NULL, NULL);
    s->claims = kube_manager_informer(m, s->claims_r, NULL, NULL, NULL);
    s->revisions = kube_manager_informer(m, s->revisions_r, NULL, NULL, NULL);
    pods_add_indexes(s->pods);
    pods_add_owner_index(s->revisions);
    const struct kube_controller_options o = {
        .name = "statefulset", .reconcile = reconcile, .context = s};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = s->sets});
    kube_controller_watch(c, (struct kube_source){.informer = s->pods, .map = map_owned});
    kube_controller_watch(c, (struct kube_source){.informer = s->revisions, .map = map_owned});
    return 0;
}
