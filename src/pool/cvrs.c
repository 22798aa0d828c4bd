/*
 * The replicas of the pool as a whole: their controller, their number, and their last words.
 */
#include "base/log.h"
#include "base/str.h"
#include "kinds/cstorvolume.h"
#include "kube/condition.h"
#include "pool/cvr_impl.h"

enum { WORKERS = 4 };

static void for_each(struct pool_cvrs *c, void (*fn)(struct pool_cvrs *c, const json_t *object))
{
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_groups_list(&c->groups, &all);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *object = kube_object_json(all.p[i]);
        fn(c, object);
    }
}

static void look_at(struct pool_cvrs *c, const json_t *object)
{
    kube_controller_add(c->controller, kube_namespace(object), kube_name(object));
}

void pool_cvrs_look(struct pool_cvrs *c)
{
    for_each(c, look_at);
}

void pool_cvrs_rest(struct pool_cvrs *c, bool rests)
{
    if (atomic_exchange(&c->rests, rests) != rests)
        pool_cvrs_look(c);
}

void pool_cvrs_count(struct pool_cvrs *c, unsigned *ret_all, unsigned *ret_healthy)
{
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_groups_list(&c->groups, &all);
    *ret_all = (unsigned)all.len;
    *ret_healthy = 0;
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *object = kube_object_json(all.p[i]);
        *ret_healthy += str_eq(volume_replica_of(object).status.phase, "Healthy");
    }
}

void pool_cvrs_watch(struct pool_cvrs *c, struct kube_controller *of, struct kube_source source)
{
    kube_groups_watch(&c->groups, of, source);
}

/* The process ends in order: what says that it has a connection will have none. */
static void say_offline(struct pool_cvrs *c, const json_t *object)
{
    static const char *const connected[] = {
        "Healthy", "Degraded", "NewReplicaDegraded", "Rebuilding", "ReconstructingNewReplica",
        NULL};
    const struct volume_replica o = volume_replica_of(object);
    struct pool_cvr_verdict v = {.phase = "Offline",
                                 .message = "the process of its pool has ended",
                                 .zvol_guid = pool_number(o.status.zvol_guid),
                                 .pool_guid = pool_number(o.status.pool_guid),
                                 .recreate = o.status.recreate};
    const struct pool_replica_view nothing = {0};
    struct err e = {0};
    if (!str_in(o.status.phase, connected) || kube_deleting(object))
        return;
    json_auto_t *status = pool_cvr_status(&o, &v, &nothing, c->clock);
    json_auto_t *now = json_deep_copy(object);
    if (kube_status_write(c->client, kube_groups_of(&c->groups, object), &now, status, &e) < 0)
        log_warn("cannot say that a replica is offline", LOG_S("name", kube_name(object)),
                 LOG_ERR(&e));
}

static void end(void *context)
{
    struct pool_cvrs *c = context;
    if (!atomic_load(&c->rests))
        for_each(c, say_offline);
}

static void changed(void *context, const char *name)
{
    struct pool_cvrs *c = context;
    kube_controller_add(c->controller, c->ns, name);
}

static void free_all(void *context)
{
    struct pool_cvrs *c = context;
    map_for_each(&c->known, entry) {
        struct pool_cvr *it = entry->value;
        pool_cvr_forget_key(it);
        free(it->uid);
        free(it->zvol);
        free(it);
    }
    map_done(&c->known);
    pthread_mutex_destroy(&c->lock);
    free(c->ns);
    free(c->pool);
    free(c);
}

struct pool_cvrs *pool_cvrs_setup(struct kube_manager *m, const struct pool_options *o,
                                  struct kube_recorder *recorder, struct pool_engine *engine,
                                  struct err *e)
{
    struct pool_cvrs *c = NEW(struct pool_cvrs);
    pthread_mutex_init(&c->lock, NULL);
    c->ns = mem_strdup(o->ns);
    c->pool = mem_strdup(o->name);
    c->client = kube_manager_client(m);
    c->clock = kube_manager_clock(m);
    c->recorder = recorder;
    c->engine = engine;
    c->replicas = pool_engine_replicas(engine);
    c->write_ns = o->write_ns;
    kube_manager_on_stop(m, free_all, c);
    kube_manager_before_end(m, end, c);
    _cleanup_free_ char *labels = mem_printf(API_POOL_OF_REPLICA "=%s", o->name);
    kube_groups_init_some(&c->groups, m, "cstor.openebs.io/v1", "openebs.io/v1alpha1",
                          "CStorVolumeReplica", o->ns, labels);
    c->controller = kube_manager_controller(
        m,
        &(struct kube_controller_options){
            .name = "replicas", .workers = WORKERS, .reconcile = pool_cvr_reconcile, .context = c},
        e);
    if (!c->controller)
        return NULL;
    kube_groups_watch(&c->groups, c->controller, (struct kube_source){0});
    pool_replicas_watch(c->replicas, changed, c);
    pool_cvr_metrics_setup(kube_manager_metrics(m), c);
    return c;
}
