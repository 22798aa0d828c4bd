/*
 * Deployments: a ReplicaSet for each template that there was, and pods moving from the old ones to
 * the new one a few at a time.
 *
 * Every write names the version of what it was decided on, and the name of a new set follows from its
 * template: on old news nothing is written, and nothing twice. Two more rules keep the number of pods
 * below what maxSurge allows, whoever is killed when:
 *
 *   - While the cache says that all is done, it is believed. When something is to be done, the sets are
 *     read from the server: the cache may not know yet that one of them has just grown.
 *   - No step is taken before every set has observed the last one. A set that was told to shrink may
 *     still be making pods for the number before; only its status says that it no longer does.
 */
#include "k8s/controllers/deployment_impl.h"
#include "k8s/controllers/embedded.h"

static int by_age(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = strcmp(json_text(x, "metadata", "creationTimestamp"),
                       json_text(y, "metadata", "creationTimestamp"));
    return order ? order : strcmp(kube_name(x), kube_name(y));
}

/* The sets of a Deployment, the oldest first; those that are being deleted are no longer its. */
static json_t *sorted(json_t *sets)
{
    VEC(json_t *) list = {0};
    size_t i;
    json_t *set;
    json_array_foreach(sets, i, set) {
        if (!kube_deleting(set))
            vec_push(&list, set);
    }
    if (list.len)
        qsort(list.p, list.len, sizeof(*list.p), by_age);
    json_t *result = json_array();
    vec_for_each(&list, it)
        json_array_append(result, *it);
    vec_done(&list);
    json_decref(sets);
    return result;
}

/* The numbers of all sets; to be freed. */
static struct rollout_set *numbers_of(const struct deploying *g)
{
    size_t n = json_array_size(g->sets), i;
    struct rollout_set *sets = mem_zalloc((n + 1) * sizeof(*sets));
    json_t *set;
    json_array_foreach(g->sets, i, set) {
        const char *most = kube_annotation(set, MOST);
        sets[i] = (struct rollout_set){
            .replicas = pods_integer(set, "spec", "replicas", 1),
            .available = pods_integer(set, "status", "availableReplicas", 0),
            .present = pods_integer(set, "status", "replicas", 0),
            .most = most ? strtoll(most, NULL, 10) : 0,
            .is_new = i == g->new,
        };
        /* Of what it no longer should have none counts. */
        if (sets[i].available > sets[i].replicas)
            sets[i].available = sets[i].replicas;
    }
    return sets;
}

static int apply(struct deploying *g, const struct rollout_set *sets, struct err *e)
{
    for (size_t i = 0; i < json_array_size(g->sets); i++) {
        if (deploying_scale(g, i, sets[i].replicas, e) < 0)
            return -1;
    }
    return 0;
}

/* Whether another number is wanted than when the sets were last scaled. */
static bool is_scaled(const struct deploying *g)
{
    int64_t wanted = pods_integer(g->deployment, "spec", "replicas", 1);
    size_t i;
    json_t *set;
    json_array_foreach(g->sets, i, set) {
        const char *desired = kube_annotation(set, DESIRED);
        if (pods_integer(set, "spec", "replicas", 1) && desired &&
            strtoll(desired, NULL, 10) != wanted)
            return true;
    }
    return false;
}

/* Brings the sets to the number that is wanted, without moving anything from one to another. */
static int scale(struct deploying *g, struct err *e)
{
    struct rollout r = rollout_of(g->deployment);
    size_t n = json_array_size(g->sets), active = 0, last = n;
    _cleanup_free_ struct rollout_set *sets = numbers_of(g);
    for (size_t i = 0; i < n; i++) {
        if (sets[i].replicas > 0) {
            active++;
            last = i;
        }
    }
    if (active == 0)
        last = g->new != SIZE_MAX ? g->new : n - 1;
    if (n && active <= 1)
        return deploying_scale(g, last, r.wanted, e);
    const struct rollout_set *new = g->new == SIZE_MAX ? NULL : &sets[g->new];
    if (new &&new->replicas == r.wanted &&new->available == r.wanted) {
        for (size_t i = 0; i < n; i++)
            sets[i].replicas = i == g->new ? r.wanted : 0;
    } else if (!r.recreate) {
        rollout_scale(&r, sets, n);
    }
    return apply(g, sets, e);
}

static int roll(struct deploying *g, struct err *e)
{
    struct rollout r = rollout_of(g->deployment);
    _cleanup_free_ struct rollout_set *before = numbers_of(g);
    int64_t first = rollout_new_replicas(&r, before, json_array_size(g->sets));
    if (deploying_ensure_new(g, true, first, e) < 0)
        return -1;
    _cleanup_free_ struct rollout_set *sets = numbers_of(g);
    size_t n = json_array_size(g->sets);
    sets[g->new].replicas = rollout_new_replicas(&r, sets, n);
    if (deploying_scale(g, g->new, sets[g->new].replicas, e) < 0)
        return -1;
    rollout_scale_down(&r, sets, n);
    return apply(g, sets, e);
}

/* Whether pods of old sets are still there, also such as are about to end. */
static bool old_pods_run(const struct deploying *g)
{
    size_t i;
    json_t *set;
    json_array_foreach(g->sets, i, set) {
        _cleanup_(kube_objects_done) struct kube_objects pods = {0};
        if (i == g->new)
            continue;
        if (pods_integer(set, "status", "replicas", 0))
            return true;
        kube_informer_find(g->d->pods, "owner", kube_uid(set), &pods);
        for (size_t j = 0; j < pods.len; j++) {
            json_auto_t *pod = kube_object_json(pods.p[j]);
            if (kube_deleting(pod) || pods_is_active(pod))
                return true;
        }
    }
    return false;
}

static int recreate(struct deploying *g, struct err *e)
{
    for (size_t i = 0; i < json_array_size(g->sets); i++) {
        if (i != g->new &&deploying_scale(g, i, 0, e) < 0)
            return -1;
    }
    if (old_pods_run(g))
        return deploying_ensure_new(g, false, 0, e);
    int64_t wanted = pods_integer(g->deployment, "spec", "replicas", 1);
    if (deploying_ensure_new(g, true, wanted, e) < 0)
        return -1;
    return deploying_scale(g, g->new, wanted, e);
}

static bool are_observed(const struct deploying *g)
{
    size_t i;
    json_t *set;
    json_array_foreach(g->sets, i, set) {
        if (!pods_is_observed(set))
            return false;
    }
    return true;
}

/* The sets as they are: from the cache where nothing is to be done, else from the server. */
static int find_sets(struct deploying *g, struct err *e)
{
    g->sets = sorted(pods_of(g->d->sets, g->deployment));
    deploying_find_new(g);
    if (kube_deleting(g->deployment) ||
        (are_observed(g) && deploying_is_complete(g) && !is_scaled(g)))
        return 0;
    json_t *there = pods_read(g->d->client, &g->d->sets_r, g->deployment, e);
    if (!there)
        return -1;
    json_decref(g->sets);
    g->sets = sorted(there);
    return 0;
}

/* One step. */
static int step(struct deploying *g, struct err *e)
{
    if (!are_observed(g))
        return 0; /* the status that says so brings us back */
    if (json_is_true(json_at(g->deployment, "spec", "paused"))) {
        if (deploying_ensure_new(g, false, 0, e) < 0)
            return -1;
        return json_array_size(g->sets) ? scale(g, e) : 0;
    }
    if (is_scaled(g)) {
        if (deploying_ensure_new(g, false, 0, e) < 0)
            return -1;
        return scale(g, e);
    }
    int status = rollout_of(g->deployment).recreate ? recreate(g, e) : roll(g, e);
    return status == 0 && deploying_is_complete(g) ? deploying_clean_up(g, e) : status;
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct deployments *d = context;
    struct deploying g = {.d = d, .deployment = kube_informer_json(d->deployments, ns, name, NULL)};
    if (!g.deployment)
        return 0;
    g.collisions = pods_integer(g.deployment, "status", "collisionCount", 0);
    int status = find_sets(&g, e);
    if (status == 0 && kube_deleting(g.deployment)) {
        status = deploying_write_status(&g, ret, e);
    } else if (status == 0 &&
               (status = pods_claim(d->client, &d->sets_r, g.deployment, g.sets, e)) == 0) {
        deploying_find_new(&g);
        status = step(&g, e);
        struct err why = {0};
        bool wrote = deploying_write_status(&g, ret, &why) == 0;
        if (status == 0 && !wrote) {
            *e = why;
            status = -1;
        }
    }
    json_decref(g.deployment);
    json_decref(g.sets);
    json_decref(g.progress);
    return status;
}

/* A pod that went may be what a Deployment with Recreate waits for. */
static void map_pod(struct kube_controller *c, const struct kube_object *pod, void *context)
{
    struct deployments *d = context;
    if (!str_eq(pod->owner_kind, "ReplicaSet"))
        return;
    _cleanup_(kube_object_unrefp) struct kube_object *set =
        kube_informer_get(d->sets, pod->ns, pod->owner_name);
    if (set)
        kube_map_owner(c, set, "Deployment");
}

static bool went(const struct kube_object *old, const struct kube_object *now)
{
    return old && !now;
}

static void map_set(struct kube_controller *c, const struct kube_object *set, void *context)
{
    struct deployments *d = context;
    if (*set->owner_uid) {
        kube_map_owner(c, set, "Deployment");
        return;
    }
    json_auto_t *tree = kube_object_json(set);
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(d->deployments, set->ns, &all);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *object = kube_object_json(all.p[i]);
        if (pods_selected(json_at(object, "spec", "selector"), json_at(tree, "metadata", "labels")))
            kube_controller_add(c, all.p[i]->ns, all.p[i]->name);
    }
}

int embedded_deployments(struct kube_manager *m, struct err *e)
{
    struct deployments *d = NEW(struct deployments);
    kube_manager_on_stop(m, free, d);
    d->clock = kube_manager_clock(m);
    d->ages = kube_manager_ages(m);
    d->client = kube_manager_client(m);
    d->recorder = kube_manager_recorder(m);
    d->deployments_r = kube_resource("apps/v1", "Deployment");
    d->sets_r = kube_resource("apps/v1", "ReplicaSet");
    d->deployments = kube_manager_informer(m, d->deployments_r, NULL, NULL, NULL);
    d->sets = kube_manager_informer(m, d->sets_r, NULL, NULL, NULL);
    d->pods = kube_manager_informer(m, kube_resource("v1", "Pod"), NULL, NULL, NULL);
    pods_add_owner_index(d->sets);
    pods_add_indexes(d->pods);
    const struct kube_controller_options o = {
        .name = "deployment", .workers = 2, .reconcile = reconcile, .context = d};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = d->deployments});
    kube_controller_watch(c,
                          (struct kube_source){.informer = d->sets, .map = map_set, .context = d});
    kube_controller_watch(
        c,
        (struct kube_source){.informer = d->pods, .predicate = went, .map = map_pod, .context = d});
    return 0;
}
