#include "controllers/cspc/cspc.h"

#include "api/normalize.h"
#include "base/crash.h"
#include "kinds/kinds.h"
#include "kube/condition.h"
#include "kube/object.h"

/* What all parts use. */

void cspc_trouble(struct cspc_run *r, enum cspc_part part, bool progress, const char *reason,
                  const char *fmt, ...)
{
    struct cspc_trouble *t = &r->trouble[part];
    va_list ap;
    if (!t->reason || (t->progress && !progress)) { /* what somebody has to mend stands first */
        t->reason = reason;
        t->progress = progress;
    }
    if (t->text.len)
        str_append(&t->text, "; ");
    va_start(ap, fmt);
    str_vappendf(&t->text, fmt, ap);
    va_end(ap);
}

bool cspc_is_of(const json_t *object, const json_t *cluster)
{
    const char *of = kube_label(object, API_POOL_CLUSTER), *owner = kube_controller_uid(object);
    return of && str_eq(of, kube_name(cluster)) && (!*owner || str_eq(owner, kube_uid(cluster)));
}

bool cspc_is_guarded(const json_t *instance)
{
    return kube_finalizer_has(instance, API_POOL_PROTECTION) ||
           kube_finalizer_has(instance, API_POOL_FINALIZER);
}

/* The object becomes what the server answered, in normal form. */
static void take_answer(json_t *object, json_t *now)
{
    const struct api_kind *kind =
        api_kind_find(json_str(now, "apiVersion"), json_str(now, "kind"), NULL);
    json_object_clear(object);
    json_object_update(object, now);
    if (kind)
        cspc_normalize(kind, object);
}

int cspc_patch(struct cspc *c, const struct kube_resource *resource, json_t *object, json_t *patch,
               const char *what, struct err *e)
{
    json_t *metadata = json_object_at(patch, "metadata");
    json_object_set_new(metadata, "resourceVersion", json_string(kube_version(object)));
    crash_point(what);
    json_auto_t *now = kube_patch(c->client, resource, kube_namespace(object), kube_name(object),
                                  KUBE_MERGE_PATCH, patch, NULL, e);
    crash_point(what);
    json_decref(patch);
    if (!now)
        return -1;
    take_answer(object, now);
    return 0;
}

int cspc_say(struct cspc *c, const struct kube_resource *resource, json_t *object,
             const json_t *status, const char *what, struct err *e)
{
    if (json_equal(json_object_get(object, "status"), status))
        return 0;
    json_auto_t *now = json_incref(object);
    crash_point(what);
    int written = kube_status_write(c->client, resource, &now, status, e);
    crash_point(what);
    if (now == object) /* nothing to write, or not written */
        return written;
    take_answer(object, now);
    return 0;
}

int cspc_create(struct cspc *c, const struct kube_resource *resource, json_t *object,
                json_t **ret_made, struct err *e)
{
    struct err why = {0};
    crash_point(resource->kind);
    *ret_made = kube_create(c->client, resource, object, NULL, &why);
    crash_point(resource->kind);
    json_decref(object);
    if (*ret_made || why.code == ERR_ALREADY_EXISTS)
        return 0;
    *e = why;
    return -1;
}

int cspc_unfinalize(struct cspc *c, const struct kube_resource *resource, json_t *object,
                    const char *finalizer, struct err *e)
{
    json_auto_t *now = json_incref(object);
    if (!kube_finalizer_has(object, finalizer))
        return 0;
    crash_point("finalizer off");
    int status = kube_finalizer_remove(c->client, resource, &now, finalizer, e);
    crash_point("finalizer off");
    return status;
}

int cspc_delete(struct cspc *c, const struct kube_resource *resource, const json_t *object,
                struct err *e)
{
    if (kube_deleting(object))
        return 0;
    const struct kube_delete o = {.uid = kube_uid(object), .grace_seconds = -1};
    crash_point("delete");
    int status = kube_delete(c->client, resource, kube_namespace(object), kube_name(object), &o, e);
    crash_point("delete");
    return status;
}

/* The instances of a cluster */

void cspc_normalize(const struct api_kind *kind, json_t *object)
{
    struct api_report ignored = {0};
    api_normalize(kind, object, &ignored);
    api_report_done(&ignored);
}

static void take_instance(struct cspc_run *r, json_t *instance)
{
    cspc_normalize(&api_cstor_pool_instance, instance);
    if (cspc_is_of(instance, r->cluster))
        json_array_append(r->instances, instance);
}

void cspc_plan_again(struct cspc_run *r)
{
    cspc_plan_done(&r->plan);
    cspc_plan_make(r->cluster, r->instances, &r->plan);
}

static void find_instances(struct cspc_run *r)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    _cleanup_free_ char *key =
        mem_printf("%s/%s", kube_namespace(r->cluster), kube_name(r->cluster));
    kube_informer_find(r->c->instances, CSPC_BY_CLUSTER, key, &found);
    r->instances = json_array();
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *instance = kube_object_json(found.p[i]);
        take_instance(r, instance);
    }
    cspc_plan_again(r);
}

static int read_instances(struct cspc_run *r, struct err *e)
{
    _cleanup_free_ char *labels = mem_printf(API_POOL_CLUSTER "=%s", kube_name(r->cluster));
    json_auto_t *found = kube_list(r->c->client, &r->c->instances_r, kube_namespace(r->cluster),
                                   &(struct kube_query){.labels = labels}, e);
    if (!found)
        return -1;
    json_array_clear(r->instances);
    size_t i;
    json_t *instance;
    json_array_foreach(found, i, instance)
        take_instance(r, instance);
    r->live = true;
    r->live_cluster = false;
    return 0;
}

static int read_cluster(struct cspc_run *r, struct err *e)
{
    json_auto_t *now = kube_get(r->c->client, &r->c->clusters_r, kube_namespace(r->cluster),
                                kube_name(r->cluster), e);
    if (!now)
        return -1;
    if (!str_eq(kube_uid(now), kube_uid(r->cluster)) ||
        kube_deleting(now) != kube_deleting(r->cluster))
        return err_set(e, ERR_ABORTED, "Conflict", "the cluster has changed");
    json_decref(r->cluster);
    r->cluster = json_incref(now);
    cspc_normalize(&api_cstor_pool_cluster, r->cluster);
    r->live_cluster = true;
    return 0;
}

int cspc_refresh(struct cspc_run *r, bool cluster, struct err *e)
{
    if ((!r->live && read_instances(r, e) < 0) ||
        (cluster && !r->live_cluster && read_cluster(r, e) < 0))
        return -1;
    cspc_plan_again(r);
    return 0;
}

/* Reconcile */

static bool is_disabled(const json_t *cluster)
{
    const char *label = kube_label(cluster, API_POOL_PAUSED);
    const char *annotation = kube_annotation(cluster, API_POOL_PAUSED);
    return (label && str_eq(label, "true")) || (annotation && str_eq(annotation, "true"));
}

static int add_finalizer(struct cspc_run *r, struct err *e)
{
    if (kube_finalizer_has(r->cluster, API_POOL_CLUSTER_FINALIZER))
        return 0;
    crash_point("finalizer on");
    int status = kube_finalizer_add(r->c->client, &r->c->clusters_r, &r->cluster,
                                    API_POOL_CLUSTER_FINALIZER, e);
    crash_point("finalizer on");
    if (status == 0)
        cspc_plan_again(r); /* it points into the cluster */
    return status;
}

static int go(struct cspc_run *r, struct err *e)
{
    int gone = cspc_remove_all(r, e);
    if (gone < 0)
        return -1;
    if (gone)
        return cspc_unfinalize(r->c, &r->c->clusters_r, r->cluster, API_POOL_CLUSTER_FINALIZER, e);
    return cspc_note_silent(r, e) < 0 ? -1 : cspc_write_status(r, e);
}

static int keep(struct cspc_run *r, struct err *e)
{
    if (add_finalizer(r, e) < 0 || cspc_remove_unwanted(r, e) < 0 ||
        cspc_create_missing(r, e) < 0 || cspc_keep_deployments(r, e) < 0 ||
        cspc_operate(r, e) < 0 || cspc_release_claims(r, e) < 0 || cspc_note_silent(r, e) < 0)
        return -1;
    return cspc_write_status(r, e);
}

static int act(struct cspc_run *r, struct err *e)
{
    int known = kube_groups_is_first(r->c->groups, r->c->client, r->cluster, e);
    if (known)
        return known < 0 ? -1 : 0;
    if (is_disabled(r->cluster))
        return 0;
    if (!kube_deleting(r->cluster))
        return keep(r, e);
    return kube_finalizer_has(r->cluster, API_POOL_CLUSTER_FINALIZER) ? go(r, e) : 0;
}

int cspc_reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                   struct err *e)
{
    struct cspc_run r = {.c = context, .result = ret};
    r.cluster = kube_informer_json(r.c->clusters, ns, name, NULL);
    if (!r.cluster)
        return 0;
    cspc_normalize(&api_cstor_pool_cluster, r.cluster);
    find_instances(&r);
    int status = act(&r, e);
    for (size_t i = 0; i < CSPC_PARTS; i++)
        str_done(&r.trouble[i].text);
    cspc_plan_done(&r.plan);
    json_decref(r.instances);
    json_decref(r.cluster);
    return status;
}
