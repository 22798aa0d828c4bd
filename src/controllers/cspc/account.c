/*
 * The account that a pool's pod has, and what it may: one for each pool, so that a pool reads the keys of the volumes
 * that have a replica on it and no others.
 *
 *     ServiceAccount orlop-pool-POOL ── RoleBinding (this namespace) ── ClusterRoleBinding orlop-pool:NS:POOL
 *
 * Invariants:
 * - They are there before the Deployment that needs them, and go after it. They have no owner: an instance that is
 *   deleted "in the foreground" would take them away before its pool is closed.
 * - Earlier versions gave all pools of a namespace one account, orlop-pool. It stays while a Deployment of the
 *   namespace names it or has yet to replace its pod, and then goes. Nothing is deleted that has not our hash.
 */
#include "controllers/cspc/cspc.h"

extern const struct kube_template controllers_cspc_account, controllers_cspc_clusterrolebinding,
    controllers_cspc_rolebinding;

enum part { ACCOUNT, ROLE_BINDING, CLUSTER_ROLE_BINDING, PARTS };

static const struct {
    const struct kube_template *template;
    const char *version, *kind;
} parts[PARTS] = {
    {&controllers_cspc_account, "v1", "ServiceAccount"},
    {&controllers_cspc_rolebinding, "rbac.authorization.k8s.io/v1", "RoleBinding"},
    {&controllers_cspc_clusterrolebinding, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding"},
};

static bool is_known(struct cspc *c, const char *key)
{
    pthread_mutex_lock(&c->lock);
    bool known = map_has(&c->accounts, key);
    pthread_mutex_unlock(&c->lock);
    return known;
}

static void set_known(struct cspc *c, const char *key, bool known)
{
    pthread_mutex_lock(&c->lock);
    if (known)
        map_set(&c->accounts, key, c);
    else
        map_remove(&c->accounts, key);
    pthread_mutex_unlock(&c->lock);
}

int cspc_ensure_account(struct cspc_run *r, const char *instance, struct err *e)
{
    const char *ns = kube_namespace(r->cluster);
    _cleanup_free_ char *key = mem_printf("%s/%s", ns, instance),
                        *account = api_pool_account(instance);
    if (is_known(r->c, key))
        return 0;
    for (size_t i = 0; i < PARTS; i++) {
        const struct kube_children of = {.r = kube_resource(parts[i].version, parts[i].kind)};
        json_t *values =
            json_pack("{s:s,s:s,s:s}", "account", account, "namespace", ns, "name", instance);
        if (cspc_apply_template(r, parts[i].template, values, &of, NULL, e) < 0)
            return -1;
    }
    set_known(r->c, key, true);
    return 0;
}

/* Deletes what was applied under a name; what is not there, or not ours, is no error. */
static int remove_part(struct cspc_run *r, enum part part, const char *ns, const char *name,
                       struct err *e)
{
    const struct kube_resource kind = kube_resource(parts[part].version, parts[part].kind);
    struct err why = {0};
    json_auto_t *there =
        kube_get(r->c->client, &kind, part == CLUSTER_ROLE_BINDING ? NULL : ns, name, &why);
    if (there)
        return kube_annotation(there, KUBE_CHILD_HASH) ? cspc_delete(r->c, &kind, there, e) : 0;
    if (why.code == ERR_NOT_FOUND)
        return 0;
    *e = why;
    return -1;
}

/* Rights first: an account without any is harmless, and one that is made anew under its name gets none. */
static int remove_parts(struct cspc_run *r, const char *ns, const char *account,
                        const char *cluster_binding, struct err *e)
{
    if (remove_part(r, CLUSTER_ROLE_BINDING, ns, cluster_binding, e) < 0 ||
        remove_part(r, ROLE_BINDING, ns, account, e) < 0)
        return -1;
    return remove_part(r, ACCOUNT, ns, account, e);
}

int cspc_remove_account(struct cspc_run *r, const json_t *instance, struct err *e)
{
    const char *ns = kube_namespace(instance), *name = kube_name(instance);
    _cleanup_free_ char *key = mem_printf("%s/%s", ns, name), *account = api_pool_account(name),
                        *binding = mem_printf("orlop-pool:%s:%s", ns, name);
    set_known(r->c, key, false);
    return remove_parts(r, ns, account, binding, e);
}

/* Whether a Deployment may still have a pod with the shared account: its newest template names it, or is not yet what
 * runs. */
static bool shares_account(const json_t *deployment)
{
    const json_t *spec = json_object_get(deployment, "spec"),
                 *status = json_object_get(deployment, "status");
    const char *account = json_str(json_at(spec, "template", "spec"), "serviceAccountName");
    const json_t *wanted = json_object_get(spec, "replicas");
    json_int_t replicas = wanted ? json_integer_value(wanted) : 1;
    json_int_t observed = json_integer_value(json_object_get(status, "observedGeneration"));
    json_int_t updated = json_integer_value(json_object_get(status, "updatedReplicas"));
    return (account && str_eq(account, API_ACCESS_POOLS_ACCOUNT)) ||
           (observed && (observed < kube_generation(deployment) || updated < replicas));
}

int cspc_retire_shared_account(struct cspc_run *r, struct err *e)
{
    const char *ns = kube_namespace(r->cluster);
    _cleanup_free_ char *key = mem_printf("%s/", ns),
                        *binding = mem_printf(API_ACCESS_POOLS_ACCOUNT "-%s", ns);
    if (is_known(r->c, key))
        return 0;
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_list(r->c->deployments, ns, &found);
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *deployment = kube_object_json(found.p[i]);
        if (shares_account(deployment))
            return 0; /* its next change calls us again */
    }
    if (remove_parts(r, ns, API_ACCESS_POOLS_ACCOUNT, binding, e) < 0)
        return -1;
    set_known(r->c, key, true);
    return 0;
}
