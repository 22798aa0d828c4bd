/*
 * What runs a pool: a Deployment of one pod on the pool's node, with an account of the pool's own (account.c; kube/child.h,
 * and the templates beside this file).
 *
 * A Deployment goes with its instance: we delete it, because an instance that is deleted "in the
 * foreground" would take it away before the pool is closed.
 */
#include "base/map.h"
#include "controllers/cspc/cspc.h"
#include "kinds/blockdevice.h"
#include "kube/object.h"

extern const struct kube_template controllers_cspc_pool;

/* Takes over the values. */
int cspc_apply_template(struct cspc_run *r, const struct kube_template *template, json_t *values,
                        const struct kube_children *of, const json_t *owner, struct err *e)
{
    json_auto_t *given = values, *wanted = kube_template_fill(template, given, e);
    const struct kube_child child = {.of = of, .owner = owner, .wanted = wanted};
    json_auto_t *now = wanted ? kube_apply_child(r->c->client, &child, NULL, e) : NULL;
    return now ? 0 : -1;
}

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
static void mount_device(struct mounting *m, const char *name)
{
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

static json_t *pool_values(struct cspc_run *r, const json_t *instance)
{
    static const char *const settings[] = {"tolerations", "priorityClassName", "resources"};
    struct mounting m = {.r = r, .volumes = json_array(), .mounts = json_array()};
    const char *host = kube_label(instance, API_POOL_HOSTNAME);
    _cleanup_free_ char *account = api_pool_account(kube_name(instance));
    add_mount(&m, "/dev");
    pool_each_device(json_object_get(instance, "spec"), it)
        mount_device(&m, it.name);
    map_done(&m.seen);
    json_t *values = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "name", kube_name(instance),
                               "namespace", kube_namespace(instance), "cluster",
                               kube_name(r->cluster), "version", ORLOP_VERSION, "account", account,
                               "host", host ? host : "", "volumes", m.volumes, "mounts", m.mounts);
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        json_t *value = setting(r, instance, settings[i]);
        if (value)
            json_object_set(values, settings[i], value);
    }
    return values;
}

/* Whether it was made for an instance of that name which is no more: the next one gets its own. */
static bool is_of_another(const json_t *deployment, const json_t *instance)
{
    const char *owner = kube_controller_uid(deployment);
    return *owner && !str_eq(owner, kube_uid(instance));
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

static int keep_deployment(struct cspc_run *r, json_t *instance, struct err *e)
{
    const struct kube_children of = {r->c->deployments_r, r->c->deployments};
    json_auto_t *there =
        kube_informer_json(r->c->deployments, kube_namespace(instance), kube_name(instance), NULL);
    if (there && (kube_deleting(there) || is_of_another(there, instance)))
        return cspc_delete(r->c, &r->c->deployments_r, there, e); /* its going calls us again */
    if (there && runs_elsewhere(there, instance) && say_moving(r, instance, e) < 0)
        return -1;
    if (cspc_ensure_account(r, kube_name(instance), e) < 0)
        return -1;
    /* An instance that is going cannot own what comes: it would be collected at once. */
    bool owns = !kube_deleting(instance) || (there && *kube_controller_uid(there));
    return cspc_apply_template(r, &controllers_cspc_pool, pool_values(r, instance), &of,
                               owns ? instance : NULL, e);
}

int cspc_keep_deployments(struct cspc_run *r, struct err *e)
{
    size_t i;
    json_t *instance;
    json_array_foreach(r->instances, i, instance) {
        /* One that is going is needed until the pool is closed. */
        bool needed = !kube_deleting(instance) || cspc_is_guarded(instance);
        if (needed && keep_deployment(r, instance, e) < 0)
            return -1;
    }
    return cspc_retire_shared_account(r, e);
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
