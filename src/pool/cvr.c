/*
 * The replicas' side of the API: one reconcile looks at one CStorVolumeReplica, says what is so, and wishes for what
 * follows (cvr.h).
 */
#include "api/normalize.h"
#include "api/report.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/str.h"
#include "kinds/cstorvolume.h"
#include "kube/condition.h"
#include "pool/cvr_impl.h"

static const int64_t WRITE_NS = 10 * CLOCK_SECOND, WORDS_NS = CLOCK_SECOND;

/* What is known beside the objects. */

void pool_cvr_forget(struct pool_cvrs *c, const char *name)
{
    pool_replicas_forget(c->replicas, name);
    pthread_mutex_lock(&c->lock);
    struct pool_cvr *it = map_remove(&c->known, name);
    pthread_mutex_unlock(&c->lock);
    if (!it)
        return;
    pool_cvr_forget_key(it);
    free(it->uid);
    free(it->zvol);
    free(it);
}

/* The same one while the object is. */
static struct pool_cvr *find(struct pool_cvrs *c, const json_t *object)
{
    const char *name = kube_name(object);
    pthread_mutex_lock(&c->lock);
    struct pool_cvr *it = map_get(&c->known, name);
    pthread_mutex_unlock(&c->lock);
    if (it && str_eq(it->uid, kube_uid(object)))
        return it;
    if (it)
        pool_cvr_forget(c, name);
    it = NEW(struct pool_cvr);
    it->uid = mem_strdup(kube_uid(object));
    it->zvol = pool_cvr_volume(c, object);
    pthread_mutex_lock(&c->lock);
    map_set(&c->known, name, it);
    pthread_mutex_unlock(&c->lock);
    return it;
}

/* The status. */

static void take(struct pool_cvr_run *r, json_t *json)
{
    struct api_report ignored = {0};
    api_normalize(&api_cstor_volume_replica, json, &ignored);
    api_report_done(&ignored);
    r->json = json;
    r->object = volume_replica_of(json);
}

/* Whether it is due; when not, it is said when that comes. */
static bool is_due(struct pool_cvr_run *r, enum pool_cvr_difference what)
{
    int64_t every = r->c->write_ns ? r->c->write_ns : WRITE_NS;
    if (what == POOL_CVR_WORDS && every > WORDS_NS)
        every = WORDS_NS;
    int64_t left = r->it->written_at + every - clock_mono_ns(r->c->clock);
    if (what == POOL_CVR_STATE || !r->it->written_at || left <= 0)
        return true;
    pool_cvr_again(r, left);
    return false;
}

static int write_status(struct pool_cvr_run *r, const struct pool_cvr_verdict *v, struct err *e)
{
    json_auto_t *status = pool_cvr_status(&r->object, v, &r->view, r->c->clock);
    enum pool_cvr_difference what = pool_cvr_compare(json_object_get(r->json, "status"), status);
    if (what == POOL_CVR_SAME || !is_due(r, what))
        return 0;
    json_t *json = r->json;
    crash_point("before the replica's status is written");
    int written = kube_status_write(r->c->client, r->resource, &json, status, e);
    crash_point("after the replica's status was written");
    take(r, json);
    if (written < 0)
        return -1;
    r->it->written_at = clock_mono_ns(r->c->clock);
    return 0;
}

/* One look. */

static int change_finalizer(struct pool_cvr_run *r, bool add, struct err *e)
{
    json_t *json = r->json;
    crash_point("before the replica's finalizer is changed");
    int status = (add ? kube_finalizer_add : kube_finalizer_remove)(r->c->client, r->resource,
                                                                    &json, API_CSTOR_FINALIZER, e);
    crash_point("after the replica's finalizer was changed");
    take(r, json);
    return status;
}

static int let_go(struct pool_cvr_run *r, struct err *e)
{
    struct err why = {0};
    if (change_finalizer(r, false, &why) == 0 || why.code == ERR_NOT_FOUND) {
        log_info("a replica is gone", LOG_S("name", kube_name(r->json)));
        pool_cvr_forget(r->c, kube_name(r->json));
        return 0;
    }
    if (why.code != ERR_ABORTED)
        pool_cvr_tell(r, "FailRemoveFinalizer", true, why.msg);
    *e = why;
    return -1;
}

/* Whether the data set is there before somebody makes one: as it is said of what was not made here. */
static void look_before(struct pool_cvr_run *r)
{
    struct pool_replica_row *rows;
    if (r->it->listed || pool_cvr_want(&r->object, false) != POOL_REPLICA_CREATE || r->pool.code)
        return;
    size_t n = pool_replicas_list(r->c->replicas, &rows);
    for (size_t i = 0; i < n; i++)
        r->it->was_there |= str_eq(rows[i].zvol, r->it->zvol);
    free(rows);
    r->it->listed = true;
}

/* Why the pool is not open; code 0: it is. */
static void find_pool(struct pool_cvrs *c, struct err *ret)
{
    struct pool_view v;
    pool_engine_view(c->engine, &v);
    const json_t *available = json_at(v.report, "conditions", "Available");
    const char *status = json_str(available, "status"), *message = json_str(available, "message");
    if (!status || !str_eq(status, "True"))
        err_set(ret, ERR_UNAVAILABLE, "PoolNotOpen", "the pool is not open: %s",
                message ? message : "its process has just started");
    json_decref(v.report);
}

static int act(struct pool_cvr_run *r, struct err *e)
{
    bool deleting = kube_deleting(r->json);
    if (!deleting && !kube_finalizer_has(r->json, API_CSTOR_FINALIZER) &&
        change_finalizer(r, true, e) < 0)
        return -1;
    const char *request = kube_annotation(r->json, API_CVR_RECREATE);
    pool_replicas_view(r->c->replicas, kube_name(r->json), &r->view);
    if (!r->view.pool_guid)
        find_pool(r->c, &r->pool);
    pool_cvr_check(r->json, &r->wrong);
    look_before(r);
    bool opens = pool_cvr_want(&r->object, deleting) == POOL_REPLICA_KEEP;
    if (opens && !r->wrong.code && !r->pool.code)
        pool_cvr_find_key(r);
    const struct pool_cvr_facts facts = {
        .object = r->object,
        .deleting = deleting,
        .destroying = r->it->wished && r->it->want == POOL_REPLICA_DESTROY,
        .request = request ? request : "",
        .wrong = &r->wrong,
        .pool = &r->pool,
        .key = &r->key,
        .view = &r->view,
    };
    struct pool_cvr_verdict v;
    pool_cvr_judge(&facts, &v);
    if (v.gone)
        return let_go(r, e);
    pool_cvr_tell_verdict(r, &v);
    if (write_status(r, &v, e) < 0)
        return -1;
    if (r->wrong.code && !deleting)
        pool_replicas_forget(r->c->replicas, kube_name(r->json)); /* it stops; its data stays */
    else
        pool_cvr_wish(r);
    return 0;
}

int pool_cvr_reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                       struct err *e)
{
    struct pool_cvrs *c = context;
    json_t *json = atomic_load(&c->rests) ? NULL : kube_groups_json(&c->groups, ns, name);
    bool ours = json && (!kube_deleting(json) || kube_finalizer_has(json, API_CSTOR_FINALIZER));
    int first = ours ? kube_groups_is_first(&c->groups, c->client, json, e) : 0;
    if (!ours || first) {
        json_decref(json);
        if (!ours)
            pool_cvr_forget(c, name);
        return first < 0 ? -1 : 0;
    }
    struct pool_cvr_run r = {.c = c, .result = ret, .resource = kube_groups_of(&c->groups, json)};
    take(&r, json);
    r.it = find(c, r.json);
    int status = act(&r, e);
    json_decref(r.json);
    return status;
}
