/*
 * The scheduler: gives pods a node, one at a time.
 *
 * The cache lags behind what was bound just now; what was bound is kept in mind until the cache has
 * it too, so that no room is given away twice.
 */
#include "k8s/controllers/embedded.h"
#include "k8s/controllers/pods.h"
#include "k8s/controllers/schedule.h"
#include "k8s/controllers/scheduler_claims.h"
#include "kube/condition.h"

/* Even if nothing seems to change, what could not be placed is looked at again. */
#define AGAIN (60 * CLOCK_SECOND)

struct scheduler {
    const struct clock *clock;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource pods_r;
    struct kube_informer *nodes, *pods;
    struct scheduler_claims claims;
    json_t *assumed; /* uid of a pod -> name of its node; the one worker's own */
};

static void waiting_values(const json_t *pod, struct kube_index_values *out)
{
    if (schedule_concerns(pod))
        kube_index_add(out, "yes");
}

/* The world as it is, and as it will be when the cache has caught up. */
struct world {
    struct schedule_node *nodes;
    size_t n;
};

static void world_done(struct world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        json_decref((json_t *)(uintptr_t)w->nodes[i].node);
        json_decref((json_t *)(uintptr_t)w->nodes[i].pods);
    }
    free(w->nodes);
}

/* The node that a pod is on, or will be; "". */
static const char *node_of(struct scheduler *s, const json_t *pod)
{
    const char *node = pods_node(pod);
    const char *assumed = json_str(s->assumed, kube_uid(pod));
    if (*node && assumed)
        json_object_del(s->assumed, kube_uid(pod));
    return *node || !assumed ? node : assumed;
}

static void forget_gone(struct scheduler *s, const json_t *seen)
{
    const char *uid;
    json_t *node;
    void *next;
    json_object_foreach_safe(s->assumed, next, uid, node) {
        if (!json_object_get(seen, uid))
            json_object_del(s->assumed, uid);
    }
}

static void look_around(struct scheduler *s, struct world *w)
{
    _cleanup_(kube_objects_done) struct kube_objects nodes = {0}, pods = {0};
    json_auto_t *places = json_object(), *seen = json_object();
    kube_informer_list(s->nodes, NULL, &nodes);
    kube_informer_list(s->pods, NULL, &pods);
    w->nodes = mem_zalloc((nodes.len + 1) * sizeof(*w->nodes));
    w->n = nodes.len;
    for (size_t i = 0; i < nodes.len; i++) {
        w->nodes[i].node = kube_object_json(nodes.p[i]);
        w->nodes[i].pods = json_array();
        json_object_set(places, nodes.p[i]->name, (json_t *)(uintptr_t)w->nodes[i].pods);
    }
    for (size_t i = 0; i < pods.len; i++) {
        json_auto_t *pod = kube_object_json(pods.p[i]);
        const char *phase = json_str(json_object_get(pod, "status"), "phase");
        json_object_set_new(seen, kube_uid(pod), json_true());
        json_t *place = json_object_get(places, node_of(s, pod));
        if (place && !(phase && (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"))))
            json_array_append(place, pod);
    }
    forget_gone(s, seen);
}

static int write_condition(struct scheduler *s, json_t **pod, const char *reason,
                           const char *message, struct err *e)
{
    const struct kube_condition unscheduled = {
        .type = "PodScheduled", .status = "False", .reason = reason, .message = message};
    int said = kube_condition_write(s->client, &s->pods_r, pod, &unscheduled, s->clock, e);
    return said < 0 ? -1 : 0;
}

static int bind_pod(struct scheduler *s, const json_t *pod, const char *node, struct err *e)
{
    const struct kube_write w = {.subresource = "binding"};
    json_auto_t *binding =
        json_pack("{s:s,s:s,s:{s:s,s:s,s:s},s:{s:s,s:s,s:s}}", "apiVersion", "v1", "kind",
                  "Binding", "metadata", "name", kube_name(pod), "namespace", kube_namespace(pod),
                  "uid", kube_uid(pod), "target", "apiVersion", "v1", "kind", "Node", "name", node);
    struct err why = {0};
    json_auto_t *answer = kube_create(s->client, &s->pods_r, binding, &w, &why);
    if (!answer && why.code != ERR_OK) {
        if (why.code == ERR_NOT_FOUND || why.code == ERR_ABORTED)
            return 0; /* it is gone, or bound by somebody else: the cache will say so */
        kube_event_warning(s->recorder, pod, "FailedScheduling", "binding rejected: %s", why.msg);
        *e = why;
        return -1;
    }
    json_object_set_new(s->assumed, kube_uid(pod), json_string(node));
    kube_event_normal(s->recorder, pod, "Scheduled", "Successfully assigned %s/%s to %s",
                      kube_namespace(pod), kube_name(pod), node);
    return 0;
}

/* The claims of the pod; NULL with why no node can have it. */
static json_t *claims_of(struct scheduler *s, const json_t *pod, size_t nodes, struct str *ret_why)
{
    _cleanup_(str_done) struct str why = {0};
    json_t *claims = scheduler_claims_of(&s->claims, pod, &why);
    if (!claims)
        str_appendf(ret_why, "0/%zu nodes are available: %s.", nodes, str_get(&why));
    return claims;
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct scheduler *s = context;
    json_auto_t *pod = kube_informer_json(s->pods, ns, name, NULL);
    if (!pod || !schedule_concerns(pod) || json_object_get(s->assumed, kube_uid(pod)))
        return 0;
    if (json_array_size(json_at(pod, "spec", "schedulingGates")))
        return write_condition(s, &pod, "SchedulingGated",
                               "Scheduling is blocked due to non-empty scheduling gates", e);
    _cleanup_(world_done) struct world w = {0};
    _cleanup_(str_done) struct str why = {0};
    look_around(s, &w);
    json_auto_t *claims = claims_of(s, pod, w.n, &why);
    size_t best = claims ? schedule_pick(pod, claims, w.nodes, w.n, &why) : w.n;
    if (best < w.n) {
        const char *node = kube_name(w.nodes[best].node);
        int bound = scheduler_claims_select(&s->claims, claims, node, e);
        return bound > 0 ? bind_pod(s, pod, node, e) : bound;
    }
    kube_event_warning(s->recorder, pod, "FailedScheduling", "%s", str_get(&why));
    ret->again_ns = AGAIN;
    return write_condition(s, &pod, "Unschedulable", str_get(&why), e);
}

static bool is_waiting(const struct kube_object *old, const struct kube_object *now)
{
    if (!now)
        return false;
    json_auto_t *pod = kube_object_json(now);
    if (!schedule_concerns(pod))
        return false;
    json_auto_t *before = old ? kube_object_json(old) : NULL; /* not for what we wrote ourselves */
    return !before || !json_equal(json_object_get(before, "spec"), json_object_get(pod, "spec")) ||
           !json_equal(json_at(before, "metadata", "labels"), json_at(pod, "metadata", "labels"));
}

/* Whether there may be room now where there was none. */
static bool frees_room(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *after = now ? kube_object_json(now) : NULL;
    if (!before || !*pods_node(before))
        return after && *pods_node(after); /* somebody may have waited to be near it */
    return !after || (pods_is_active(before) && !pods_is_active(after));
}

/* What a node is and has, without what changes all the time. */
static bool node_changed(const struct kube_object *old, const struct kube_object *now)
{
    if (!now)
        return false;
    json_auto_t *before = old ? kube_object_json(old) : NULL, *after = kube_object_json(now);
    return !before ||
           !json_equal(json_object_get(before, "spec"), json_object_get(after, "spec")) ||
           !json_equal(json_at(before, "metadata", "labels"),
                       json_at(after, "metadata", "labels")) ||
           !json_equal(json_at(before, "status", "allocatable"),
                       json_at(after, "status", "allocatable")) ||
           kube_condition_is_true(before, "Ready") != kube_condition_is_true(after, "Ready");
}

/* All that wait. */
static void map_waiting(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct scheduler *s = context;
    (void)object;
    _cleanup_(kube_objects_done) struct kube_objects pods = {0};
    kube_informer_find(s->pods, "waiting", "yes", &pods);
    for (size_t i = 0; i < pods.len; i++)
        kube_controller_add(c, pods.p[i]->ns, pods.p[i]->name);
}

static void scheduler_free(void *context)
{
    struct scheduler *s = context;
    json_decref(s->assumed);
    free(s);
}

int embedded_scheduler(struct kube_manager *m, struct err *e)
{
    static const struct kube_index waiting = {"waiting", waiting_values};
    struct scheduler *s = NEW(struct scheduler);
    kube_manager_on_stop(m, scheduler_free, s);
    s->assumed = json_object();
    s->clock = kube_manager_clock(m);
    s->client = kube_manager_client(m);
    s->recorder = kube_manager_recorder(m);
    s->pods_r = kube_resource("v1", "Pod");
    s->nodes = kube_manager_informer(m, kube_resource("v1", "Node"), NULL, NULL, NULL);
    s->pods = kube_manager_informer(m, s->pods_r, NULL, NULL, NULL);
    kube_informer_add_index(s->pods, &waiting);
    scheduler_claims_init(&s->claims, m);
    const struct kube_controller_options o = {
        .name = "scheduler", .workers = 1, .reconcile = reconcile, .context = s};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = s->pods, .predicate = is_waiting});
    kube_controller_watch(
        c, (struct kube_source){
               .informer = s->pods, .predicate = frees_room, .map = map_waiting, .context = s});
    kube_controller_watch(
        c, (struct kube_source){
               .informer = s->nodes, .predicate = node_changed, .map = map_waiting, .context = s});
    struct kube_informer *const storage[] = {s->claims.claims, s->claims.volumes, s->claims.classes,
                                             s->claims.drivers, s->claims.capacities};
    for (size_t i = 0; i < ARRAY_SIZE(storage); i++)
        kube_controller_watch(
            c, (struct kube_source){.informer = storage[i], .map = map_waiting, .context = s});
    return 0;
}
