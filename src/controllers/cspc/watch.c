/*
 * Which clusters a change is about, and the start: the same for both groups of the API.
 */
#include "controllers/controllers.h"
#include "controllers/cspc/cspc.h"
#include "kinds/blockdevice.h"
#include "kinds/kinds.h"
#include "kube/condition.h"

enum { WORKERS = 8 };

/* What is about which cluster */

static void by_cluster(const json_t *object, struct kube_index_values *out)
{
    const char *cluster = kube_label(object, API_POOL_CLUSTER);
    if (!cluster)
        return;
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(object), cluster);
    kube_index_add(out, key);
}

static void index_device(const json_t *object, const char *name, struct kube_index_values *out)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(object), name);
    kube_index_add(out, key);
}

static void by_device(const json_t *object, struct kube_index_values *out)
{
    json_auto_t *cluster = json_deep_copy(object);
    size_t n;
    json_t *pool;
    cspc_normalize(&api_cstor_pool_cluster, cluster);
    json_array_foreach((json_t *)pool_cluster_of(cluster).pools, n, pool) {
        pool_each_device(pool, it)
            index_device(cluster, it.name, out);
    }
}

static void claim_by_device(const json_t *claim, struct kube_index_values *out)
{
    const char *device = block_device_claim_of(claim).spec.device;
    if (*device)
        index_device(claim, device, out);
}

static void by_label(const json_t *node, struct kube_index_values *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json_at(node, "metadata", "labels"), key, value) {
        _cleanup_free_ char *text = mem_printf("%s=%s", key, json_string_value(value));
        kube_index_add(out, text);
    }
}

static void map_cluster(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *tree = kube_object_json(object);
    const char *cluster = kube_label(tree, API_POOL_CLUSTER);
    if (cluster)
        kube_controller_add(c, object->ns, cluster);
}

static void add_found(struct kube_controller *c, const struct kube_objects *found)
{
    for (size_t i = 0; i < found->len; i++)
        kube_controller_add(c, found->p[i]->ns, found->p[i]->name);
}

static void map_device(struct kube_controller *c, const struct kube_object *device, void *context)
{
    struct cspc *s = context;
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(s->clusters, CSPC_BY_DEVICE, device->key, &found);
    add_found(c, &found);
}

/* A claim is about the clusters that have its device too: it may be in somebody's way. */
static void map_claim(struct kube_controller *c, const struct kube_object *claim, void *context)
{
    struct cspc *s = context;
    map_cluster(c, claim, NULL);
    json_auto_t *tree = kube_object_json(claim);
    _cleanup_free_ char *key =
        mem_printf("%s/%s", claim->ns, block_device_claim_of(tree).spec.device);
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(s->clusters, CSPC_BY_DEVICE, key, &found);
    add_found(c, &found);
}

static void map_all(struct kube_controller *c, const struct kube_object *node, void *context)
{
    struct cspc *s = context;
    (void)node;
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(s->clusters, NULL, &all);
    add_found(c, &all);
}

/* A replica that went may be what a pool that is to go waits for. */
static void map_replica(struct kube_controller *c, const struct kube_object *replica, void *context)
{
    struct cspc *s = context;
    json_auto_t *tree = kube_object_json(replica);
    const char *pool = kube_label(tree, API_POOL_OF_REPLICA);
    _cleanup_(kube_object_unrefp) struct kube_object *instance =
        pool ? kube_informer_get(s->instances, replica->ns, pool) : NULL;
    if (instance)
        map_cluster(c, instance, NULL);
}

static bool node_changed(const struct kube_object *old, const struct kube_object *now)
{
    if (!old || !now)
        return true;
    json_auto_t *before = kube_object_json(old), *after = kube_object_json(now);
    return !json_equal(json_at(before, "metadata", "labels"),
                       json_at(after, "metadata", "labels")) ||
           kube_condition_is_true(before, "Ready") != kube_condition_is_true(after, "Ready");
}

static bool went(const struct kube_object *old, const struct kube_object *now)
{
    return old && !now;
}

static void watch_all(struct cspc *s)
{
    const struct kube_source sources[] = {
        {.informer = s->clusters},
        {.informer = s->instances, .map = map_cluster},
        {.informer = s->deployments, .map = map_cluster},
        {.informer = s->claims, .map = map_claim, .context = s},
        {.informer = s->devices, .map = map_device, .context = s},
        {.informer = s->replicas, .predicate = went, .map = map_replica, .context = s},
        {.informer = s->nodes, .predicate = node_changed, .map = map_all, .context = s},
    };
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        kube_controller_watch(s->controller, sources[i]);
}

static void add_indexes(struct cspc *s)
{
    static const struct kube_index cluster = {CSPC_BY_CLUSTER, by_cluster},
                                   device = {CSPC_BY_DEVICE, by_device},
                                   label = {CSPC_BY_LABEL, by_label},
                                   claim = {CSPC_BY_DEVICE, claim_by_device};
    kube_informer_add_index(s->clusters, &device);
    kube_informer_add_index(s->instances, &cluster);
    kube_informer_add_index(s->claims, &cluster);
    kube_informer_add_index(s->claims, &claim);
    kube_informer_add_index(s->nodes, &label);
}

static void free_all(void *context)
{
    struct cspc *s = context;
    pthread_mutex_destroy(&s->lock);
    map_done(&s->accounts);
    free(s);
}

static struct kube_informer *follow(struct kube_manager *m, const char *version, const char *kind,
                                    const char *labels, struct kube_resource *ret_resource)
{
    struct kube_resource resource = kube_resource(version, kind);
    resource.optional = true; /* a server may have one of the two groups alone */
    if (ret_resource)
        *ret_resource = resource;
    return kube_manager_informer(m, resource, NULL, labels, NULL);
}

/* The controller of one of the groups. */
static struct cspc *group_new(struct kube_manager *m, struct kube_groups *groups, size_t group)
{
    const char *version = groups->resources[group].api_version;
    struct cspc *s = NEW(struct cspc);
    pthread_mutex_init(&s->lock, NULL);
    kube_manager_on_stop(m, free_all, s);
    s->clock = kube_manager_clock(m);
    s->ages = kube_manager_ages(m);
    s->client = kube_manager_client(m);
    s->recorder = kube_manager_recorder(m);
    s->groups = groups;
    s->clusters_r = groups->resources[group];
    s->clusters = groups->informers[group];
    s->instances = follow(m, version, "CStorPoolInstance", NULL, &s->instances_r);
    s->claims = follow(m, "openebs.io/v1alpha1", "BlockDeviceClaim", NULL, &s->claims_r);
    s->devices = follow(m, "openebs.io/v1alpha1", "BlockDevice", NULL, NULL);
    s->replicas = follow(m, "cstor.openebs.io/v1", "CStorVolumeReplica", NULL, &s->replicas_r);
    s->deployments = follow(m, "apps/v1", "Deployment", CSPC_APP, &s->deployments_r);
    s->nodes = follow(m, "v1", "Node", NULL, NULL);
    add_indexes(s);
    return s;
}

static int start(struct kube_manager *m, struct cspc *s, const char *name, unsigned workers,
                 struct err *e)
{
    const struct kube_controller_options o = {
        .name = name, .workers = workers, .reconcile = cspc_reconcile, .context = s};
    s->controller = kube_manager_controller(m, &o, e);
    if (!s->controller)
        return -1;
    watch_all(s);
    /* Whose a cluster is can be known only when the other group is: it is asked for before we begin. */
    if (s->clusters != s->groups->informers[0])
        kube_controller_watch(s->controller,
                              (struct kube_source){.informer = s->groups->informers[0]});
    return 0;
}

int controllers_cspc(struct kube_manager *m, struct err *e)
{
    struct kube_groups *groups = NEW(struct kube_groups);
    kube_manager_on_stop(m, free, groups);
    kube_groups_init(groups, m, "openebs.io/v1alpha1", "cstor.openebs.io/v1", "CStorPoolCluster");
    struct cspc *seed = group_new(m, groups, 0), *published = group_new(m, groups, 1);
    if (start(m, seed, "cspc-operator", WORKERS, e) < 0)
        return -1;
    return start(m, published, "cspc-operator-published", WORKERS / 4, e);
}
