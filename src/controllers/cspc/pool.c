/*
 * What runs a pool: a Deployment of one pod on the pool's node, and the account that the pods of a
 * namespace have.
 *
 * A Deployment is written again when what it is made from is different, which a hash on it tells; what
 * people change in it beside that stays. It goes with its instance: we delete it, because an instance that
 * is deleted "in the foreground" would take it away before the pool is closed.
 */
#include "base/crash.h"
#include "base/map.h"
#include "controllers/cspc/cspc.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"
#include "kube/names.h"
#include "kube/object.h"

enum { GRACE_SECONDS = 60, METRICS_PORT = 9500 };

/* The account */

/* Takes over the object. */
static int ensure(struct cspc_run *r, const char *version, const char *kind, json_t *object,
                  struct err *e)
{
    struct kube_resource resource = kube_resource(version, kind);
    struct err why = {0};
    json_auto_t *there =
        kube_get(r->c->client, &resource, resource.namespaced ? kube_namespace(object) : NULL,
                 kube_name(object), &why);
    json_t *made = NULL;
    if (!there && why.code == ERR_NOT_FOUND) {
        int status = cspc_create(r->c, &resource, object, &made, e);
        json_decref(made);
        return status;
    }
    json_decref(object);
    if (!there)
        *e = why;
    return there ? 0 : -1;
}

static json_t *binding_new(const char *kind, const char *name, const char *ns, const char *role)
{
    json_t *binding =
        json_pack("{s:s,s:s,s:{s:s},s:{s:s,s:s,s:s},s:[{s:s,s:s,s:s}]}", "apiVersion",
                  "rbac.authorization.k8s.io/v1", "kind", kind, "metadata", "name", name, "roleRef",
                  "apiGroup", "rbac.authorization.k8s.io", "kind", "ClusterRole", "name", role,
                  "subjects", "kind", "ServiceAccount", "name", CSPC_ACCOUNT, "namespace", ns);
    if (str_eq(kind, "RoleBinding"))
        json_object_set_new(json_object_get(binding, "metadata"), "namespace", json_string(ns));
    return binding;
}

/* Its own kinds in this namespace, and of the cluster that there are nodes. */
static int ensure_rights(struct cspc_run *r, const char *ns, struct err *e)
{
    static const char version[] = "rbac.authorization.k8s.io/v1";
    _cleanup_free_ char *name = mem_printf(CSPC_ACCOUNT "-%s", ns);
    json_t *account =
        json_pack("{s:s,s:s,s:{s:s,s:s}}", "apiVersion", "v1", "kind", "ServiceAccount", "metadata",
                  "name", CSPC_ACCOUNT, "namespace", ns);
    if (ensure(r, "v1", "ServiceAccount", account, e) < 0 ||
        ensure(r, version, "RoleBinding", binding_new("RoleBinding", CSPC_ACCOUNT, ns, CSPC_ROLE),
               e) < 0)
        return -1;
    return ensure(r, version, "ClusterRoleBinding",
                  binding_new("ClusterRoleBinding", name, ns, CSPC_NODES_ROLE), e);
}

int cspc_ensure_account(struct cspc_run *r, struct err *e)
{
    const char *ns = kube_namespace(r->cluster);
    pthread_mutex_lock(&r->c->lock);
    bool known = map_has(&r->c->accounts, ns);
    pthread_mutex_unlock(&r->c->lock);
    if (known)
        return 0;
    if (ensure_rights(r, ns, e) < 0)
        return -1;
    pthread_mutex_lock(&r->c->lock);
    map_set(&r->c->accounts, ns, r->c);
    pthread_mutex_unlock(&r->c->lock);
    return 0;
}

/* The Deployment */

struct mounting {
    struct cspc_run *r;
    json_t *volumes, *mounts;
    struct map seen;
};

static void add_mount(struct mounting *m, const char *path)
{
    if (map_set(&m->seen, path, m))
        return;
    _cleanup_free_ char *name = mem_printf("devices-%zu", m->seen.count);
    json_array_append_new(m->volumes, json_pack("{s:s,s:{s:s,s:s}}", "name", name, "hostPath",
                                                "path", path, "type", "Directory"));
    json_array_append_new(m->mounts, json_pack("{s:s,s:s}", "name", name, "mountPath", path));
}

/* A device that is a file is reached by its folder. */
static void mount_device(void *context, const char *name)
{
    struct mounting *m = context;
    json_auto_t *device = cspc_device(m->r->c, kube_namespace(m->r->cluster), name);
    const struct block_device its = block_device_of(device);
    const char *slash = strrchr(its.spec.path, '/');
    if (!str_eq(its.spec.device_type, "sparse") || !slash || slash == its.spec.path)
        return;
    _cleanup_free_ char *folder = mem_strndup(its.spec.path, (size_t)(slash - its.spec.path));
    add_mount(m, folder);
}

/* What a pool says of its pod, or the cluster for those that say nothing. */
static json_t *setting(const struct cspc_run *r, const json_t *instance, const char *key)
{
    json_t *own = json_object_get(json_at(instance, "spec", "poolConfig"), key);
    return own ? own : json_object_get(json_object_get(r->cluster, "spec"), key);
}

/* What the pod knows of itself: where it runs, and its address. */
static json_t *facts_new(void)
{
    return json_pack("[{s:s,s:{s:{s:s}}},{s:s,s:{s:{s:s}}}]", "name", "NODE_NAME", "valueFrom",
                     "fieldRef", "fieldPath", "spec.nodeName", "name", "POD_IP", "valueFrom",
                     "fieldRef", "fieldPath", "status.podIP");
}

static json_t *container_new(struct cspc_run *r, const json_t *instance, json_t *mounts)
{
    json_t *resources = setting(r, instance, "resources");
    json_t *container = json_pack(
        "{s:s,s:s,s:[s,s,s,s,s,s,s,s,s,s],s:o,s:[{s:s,s:i}],s:{s:{s:s,s:i},s:i},s:{s:b},s:o}",
        "name", "cstor-pool", "image", CSPC_IMAGE, "args", "pool", "serve", "--namespace",
        kube_namespace(instance), "--name", kube_name(instance), "--node", "$(NODE_NAME)",
        "--metrics", "$(POD_IP)", "env", facts_new(), "ports", "name", "metrics", "containerPort",
        METRICS_PORT, "readinessProbe", "httpGet", "path", "/readyz", "port", METRICS_PORT,
        "periodSeconds", 5, "securityContext", "privileged", 1, "volumeMounts", mounts);
    if (resources)
        json_object_set(container, "resources", resources);
    return container;
}

static json_t *pod_spec_new(struct cspc_run *r, const json_t *instance)
{
    static const char *const settings[] = {"tolerations", "priorityClassName"};
    struct mounting m = {.r = r, .volumes = json_array(), .mounts = json_array()};
    add_mount(&m, "/dev");
    cspc_each_device(json_object_get(instance, "spec"), mount_device, &m);
    map_done(&m.seen);
    const char *host = kube_label(instance, API_POOL_HOSTNAME);
    json_t *spec = json_pack("{s:s,s:{s:s},s:i,s:[o],s:o}", "serviceAccountName", CSPC_ACCOUNT,
                             "nodeSelector", API_POOL_HOSTNAME, host ? host : "",
                             "terminationGracePeriodSeconds", GRACE_SECONDS, "containers",
                             container_new(r, instance, m.mounts), "volumes", m.volumes);
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        json_t *value = setting(r, instance, settings[i]);
        if (value)
            json_object_set(spec, settings[i], value);
    }
    return spec;
}

/* One pod at a time: two would both want the devices. */
static json_t *deployment_spec(struct cspc_run *r, const json_t *instance)
{
    const char *name = kube_name(instance);
    return json_pack("{s:i,s:{s:s},s:{s:{s:s,s:s}},s:{s:{s:{s:s,s:s,s:s}},s:o}}", "replicas", 1,
                     "strategy", "type", "Recreate", "selector", "matchLabels", "app", "cstor-pool",
                     CSPC_INSTANCE, name, "template", "metadata", "labels", "app", "cstor-pool",
                     CSPC_INSTANCE, name, API_POOL_CLUSTER, kube_name(r->cluster), "spec",
                     pod_spec_new(r, instance));
}

static json_t *deployment_new(struct cspc_run *r, const json_t *instance, json_t *spec,
                              const char *hash)
{
    json_t *deployment = json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:{s:s,s:s,s:s,s:s},s:{s:s}},s:O}", "apiVersion", "apps/v1", "kind",
        "Deployment", "metadata", "name", kube_name(instance), "namespace",
        kube_namespace(instance), "labels", "app", "cstor-pool", CSPC_INSTANCE, kube_name(instance),
        API_POOL_CLUSTER, kube_name(r->cluster), "openebs.io/version", ORLOP_VERSION, "annotations",
        CSPC_TEMPLATE, hash, "spec", spec);
    /* One that is going cannot own what comes: it would be collected at once. */
    if (!kube_deleting(instance))
        json_object_set_new(json_object_get(deployment, "metadata"), "ownerReferences",
                            json_pack("[o]", kube_owner_reference(instance)));
    return deployment;
}

/* Made for an instance of that name which is no more: the next one gets its own. */
static bool is_of_another(const json_t *deployment, const json_t *instance)
{
    const char *owner = kube_controller_uid(deployment);
    return *owner && !str_eq(owner, kube_uid(instance));
}

static int update(struct cspc_run *r, json_t *there, json_t *spec, const char *hash, struct err *e)
{
    const char *has = kube_annotation(there, CSPC_TEMPLATE);
    if (has && str_eq(has, hash))
        return 0;
    json_auto_t *wanted = json_deep_copy(there);
    json_t *metadata = json_object_get(wanted, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    if (!annotations) {
        annotations = json_object();
        json_object_set_new(metadata, "annotations", annotations);
    }
    json_object_set_new(annotations, CSPC_TEMPLATE, json_string(hash));
    const char *const parts[] = {"strategy", "template"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        json_object_set(json_object_get(wanted, "spec"), parts[i], json_object_get(spec, parts[i]));
    crash_point("Deployment changed");
    json_auto_t *now = kube_update(r->c->client, &r->c->deployments_r, wanted, NULL, e);
    crash_point("Deployment changed");
    return now ? 0 : -1;
}

static bool runs_elsewhere(const json_t *deployment, const json_t *instance)
{
    const json_t *node = json_at(deployment, "spec", "template", "spec", "nodeSelector");
    const char *is = json_str(node, API_POOL_HOSTNAME),
               *host = kube_label(instance, API_POOL_HOSTNAME);
    return is && host && !str_eq(is, host);
}

/*
 * A pool that moves is in no node's hands until the next one has imported it. This is said before the Deployment
 * moves, while nobody on the new node can have said more.
 */
static int say_moving(struct cspc_run *r, json_t *instance, struct err *e)
{
    return cspc_say_unknown(r, instance, "Pending", "Moving", "the pool moves to another node", e);
}

static int keep(struct cspc_run *r, json_t *instance, struct err *e)
{
    json_auto_t *there =
        kube_informer_json(r->c->deployments, kube_namespace(instance), kube_name(instance), NULL);
    char hash[KUBE_HASH];
    if (there && (kube_deleting(there) || is_of_another(there, instance)))
        return cspc_delete(r->c, &r->c->deployments_r, there, e); /* its going calls us again */
    json_auto_t *spec = deployment_spec(r, instance);
    kube_hash(spec, 0, hash);
    if (there && runs_elsewhere(there, instance) && say_moving(r, instance, e) < 0)
        return -1;
    if (there)
        return update(r, there, spec, hash, e);
    json_t *made;
    int status =
        cspc_create(r->c, &r->c->deployments_r, deployment_new(r, instance, spec, hash), &made, e);
    json_decref(made);
    return status;
}

int cspc_keep_deployments(struct cspc_run *r, struct err *e)
{
    size_t i;
    json_t *instance;
    json_array_foreach(r->instances, i, instance) {
        /* One that is going is needed until the pool is closed. */
        bool needed = !kube_deleting(instance) || cspc_is_guarded(instance);
        if (needed && keep(r, instance, e) < 0)
            return -1;
    }
    return 0;
}

int cspc_remove_deployment(struct cspc_run *r, const json_t *instance, struct err *e)
{
    struct err why = {0};
    json_auto_t *there = kube_get(r->c->client, &r->c->deployments_r, kube_namespace(instance),
                                  kube_name(instance), &why);
    const char *of = there ? kube_label(there, CSPC_INSTANCE) : NULL;
    if (there)
        return of && str_eq(of, kube_name(instance))
                   ? cspc_delete(r->c, &r->c->deployments_r, there, e)
                   : 0;
    if (why.code == ERR_NOT_FOUND)
        return 0;
    *e = why;
    return -1;
}
