/*
 * Pools that are to go, and instances that somebody else deleted.
 *
 *     not wanted ── replicas on it? ── API_POOL_DESTROY ── deleted ──(orlop-pool destroys the pool, takes its
 *                    then refused                                guard off)── Deployment, our finalizer
 *                                                       forgotten ── devices marked (forget.c) ── all finalizers
 *     wanted, deleted by others ── Deployment, guard, our finalizer ── create.c makes it again
 *
 * Before API_POOL_DESTROY is written, the server is asked for the instances and then for the cluster: a cache
 * that is behind could take a pool for unwanted that was only added a moment ago.
 */
#include "controllers/cspc/cspc.h"
#include "kube/condition.h"

static bool is_doomed(const json_t *instance)
{
    return kube_annotation(instance, API_POOL_DESTROY) != NULL;
}

static const char *host_of(const json_t *instance)
{
    const char *host = pool_instance_of(instance, NULL).spec.host_name;
    return *host ? host : "(none)";
}

/* How many replicas live on it; -1. */
static int64_t count_replicas(struct cspc_run *r, const json_t *instance, struct err *e)
{
    _cleanup_free_ char *labels = mem_printf(API_POOL_OF_REPLICA "=%s", kube_name(instance));
    json_auto_t *found = kube_list(r->c->client, &r->c->replicas_r, kube_namespace(instance),
                                   &(struct kube_query){.labels = labels}, e);
    return found ? (int64_t)json_array_size(found) : -1;
}

/* Says what it waits for: orlop-pool, whose node may be silent. */
static void note_going(struct cspc_run *r, const json_t *instance)
{
    json_auto_t *node = kube_informer_json(r->c->nodes, NULL, host_of(instance), NULL);
    const char *phase = pool_instance_of(instance, NULL).status.phase;
    bool lives = node && kube_condition_is_true(node, "Ready");
    if (str_eq(phase, "DeletionFailed"))
        cspc_trouble(r, CSPC_DELETION, false, "DeletionFailed",
                     "pool %s on node %s could not be destroyed and is tried again; what is in the "
                     "way: kubectl describe cspi %s -n %s",
                     kube_name(instance), host_of(instance), kube_name(instance),
                     kube_namespace(instance));
    else if (lives)
        cspc_trouble(r, CSPC_DELETION, true, "Deleting", "pool %s on node %s is being destroyed",
                     kube_name(instance), host_of(instance));
    else
        cspc_trouble(
            r, CSPC_DELETION, false, "NodeUnavailable",
            "pool %s is to be destroyed and waits for node %s, which is %s; if it will not be "
            "back: orlop pool forget %s -n %s --node %s",
            kube_name(instance), host_of(instance), node ? "not ready" : "gone",
            kube_name(r->cluster), kube_namespace(r->cluster), host_of(instance));
}

/* Nothing of the pool is left: its Deployment, its account, and the instance itself. */
static int finish(struct cspc_run *r, json_t *instance, struct err *e)
{
    if (cspc_remove_deployment(r, instance, e) < 0 || cspc_remove_account(r, instance, e) < 0)
        return -1;
    return cspc_unfinalize(r->c, &r->c->instances_r, instance, API_POOL_CLUSTER_FINALIZER, e);
}

/* Takes all our finalizers off at once. */
static int let_go(struct cspc_run *r, json_t *instance, struct err *e)
{
    static const char *const ours[] = {API_POOL_CLUSTER_FINALIZER, API_POOL_PROTECTION,
                                       API_POOL_FINALIZER, NULL};
    json_t *left = json_array();
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)json_at(instance, "metadata", "finalizers"), i, it) {
        if (!str_in(json_string_value(it), ours))
            json_array_append(left, it);
    }
    struct err why = {0};
    json_t *patch = json_pack("{s:{s:o}}", "metadata", "finalizers", left);
    if (cspc_patch(r->c, &r->c->instances_r, instance, patch, "let go", &why) == 0 ||
        why.code == ERR_NOT_FOUND)
        return 0;
    *e = why;
    return -1;
}

static int forget(struct cspc_run *r, json_t *instance, struct err *e)
{
    if (cspc_forget(r, instance, e) < 0 || cspc_write_records(r, e) < 0 ||
        cspc_remove_deployment(r, instance, e) < 0 || cspc_remove_account(r, instance, e) < 0)
        return -1;
    kube_event_warning(r->c->recorder, r->cluster, "PoolForgotten",
                       "Pool %s on node %s is forgotten; what is on its devices is left as it is",
                       kube_name(instance), host_of(instance));
    return let_go(r, instance, e);
}

/* One step of destroying a pool. */
static int destroy(struct cspc_run *r, json_t *instance, const char *why, struct err *e)
{
    if (!is_doomed(instance)) {
        int64_t replicas = count_replicas(r, instance, e);
        if (replicas < 0)
            return -1;
        if (replicas) {
            cspc_trouble(r, CSPC_DELETION, false, "ReplicasExist",
                         "pool %s on node %s is not destroyed: %lld volume replica%s on it; delete "
                         "or move them first, or put the pool back",
                         kube_name(instance), host_of(instance), (long long)replicas,
                         replicas == 1 ? " lives" : "s live");
            return 0;
        }
        json_t *patch =
            json_pack("{s:{s:{s:s}}}", "metadata", "annotations", API_POOL_DESTROY, why);
        if (cspc_patch(r->c, &r->c->instances_r, instance, patch, "destroy", e) < 0)
            return -1;
        kube_event_normal(r->c->recorder, r->cluster, "PoolDeleted",
                          "Pool %s on node %s is to be destroyed", kube_name(instance),
                          host_of(instance));
    }
    note_going(r, instance);
    if (!kube_deleting(instance))
        return cspc_delete(r->c, &r->c->instances_r, instance, e); /* the event calls us again */
    if (kube_annotation(instance, API_POOL_FORGOTTEN))
        return forget(r, instance, e);
    if (cspc_is_guarded(instance))
        return 0;
    /* Before it can come again under its name, nobody may take it for the one that was. */
    if (cspc_write_records(r, e) < 0)
        return -1;
    return finish(r, instance, e);
}

/* Somebody deleted what is wanted: it is let go, and comes again. */
static int revive(struct cspc_run *r, json_t *instance, struct err *e)
{
    cspc_trouble(r, CSPC_PROVISION, true, "InstanceDeleted",
                 "instance %s was deleted and is made again; its pool stays", kube_name(instance));
    if (cspc_write_records(r, e) < 0 || cspc_remove_deployment(r, instance, e) < 0)
        return -1;
    return let_go(r, instance, e);
}

/* The pool was to go, and then it was put back in time. */
static int pardon(struct cspc_run *r, json_t *instance, struct err *e)
{
    json_t *patch = json_pack("{s:{s:{s:n}}}", "metadata", "annotations", API_POOL_DESTROY);
    return cspc_patch(r->c, &r->c->instances_r, instance, patch, "pardon", e);
}

static bool is_any_going(const struct cspc_run *r)
{
    size_t i;
    json_t *instance;
    json_array_foreach(r->instances, i, instance) {
        if (kube_deleting(instance) || is_doomed(instance))
            return true;
    }
    return r->plan.unwanted.len > 0;
}

static bool is_unwanted(const struct cspc_run *r, const json_t *instance)
{
    vec_for_each(&r->plan.unwanted, it) {
        if (*it == instance)
            return true;
    }
    return false;
}

int cspc_remove_unwanted(struct cspc_run *r, struct err *e)
{
    if (!is_any_going(r))
        return 0;
    if (cspc_refresh(r, true, e) < 0)
        return -1;
    size_t i;
    json_t *instance;
    json_array_foreach(r->instances, i, instance) {
        bool unwanted = is_unwanted(r, instance), deleting = kube_deleting(instance);
        int status = unwanted || (deleting && is_doomed(instance))
                         ? destroy(r, instance, "PoolSpecRemoved", e)
                     : deleting            ? revive(r, instance, e)
                     : is_doomed(instance) ? pardon(r, instance, e)
                                           : 0;
        if (status < 0)
            return -1;
    }
    return 0;
}

int cspc_remove_all(struct cspc_run *r, struct err *e)
{
    size_t i;
    json_t *instance;
    if (cspc_refresh(r, false, e) < 0)
        return -1;
    json_array_foreach(r->instances, i, instance) {
        if (destroy(r, instance, "ClusterDeleted", e) < 0)
            return -1;
    }
    if (json_array_size(r->instances)) {
        if (cspc_keep_deployments(r, e) < 0)
            return -1;
        return 0;
    }
    return cspc_release_all(r, e);
}
