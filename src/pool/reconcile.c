/*
 * The API's side: objects become a wish, the engine's view becomes the object's status.
 *
 *     finalizer ─> wish ─> engine                    before anything is made
 *     view ─> status, conditions                     states at once, numbers every so often
 *     view: replaced ─> claims                       claims.c
 *     view: gone ─> finalizers                       the object can go
 *     CStorVolumeReplicas on the pool ─> counts      cvr.h has the rest of them
 *
 * Each arrow can be the last before kill -9.
 */
#include <stdlib.h>
#include <unistd.h>

#include "api/normalize.h"
#include "api/report.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"
#include "kube/groups.h"
#include "pool/cvr.h"

static const int64_t BEAT_NS = 10 * CLOCK_SECOND, STUCK_NS = 30 * CLOCK_SECOND;

struct pool_serve {
    struct pool_options options;
    struct pool_kinds kinds;
    struct kube_recorder *recorder;
    const struct clock *clock;
    struct kube_informer *pools, *devices, *claims;
    struct kube_controller *controller;
    struct pool_engine *engine;
    struct pool_cvrs *cvrs;
    bool open;       /* the pool, as was last told to the replicas */
    bool kept;       /* it would be destroyed, but for its replicas */
    char *node;      /* where the pool is, as the object said first */
    json_t *lease;   /* NULL: not read yet */
    int64_t beat_at; /* monotonic; 0: never */
    struct pool_writer writer;
    bool take_over;
};

/* The object in the form that the rest reads, whichever form it is stored in. */
static void normalize(json_t *object)
{
    struct api_report report = {0};
    api_normalize(&api_cstor_pool_instance, object, &report);
    api_report_done(&report);
}

static json_t *get_device(void *context, const char *name)
{
    struct pool_serve *s = context;
    return kube_informer_json(s->devices, s->options.ns, name, NULL);
}

static json_t *get_claim(void *context, const char *name)
{
    struct pool_serve *s = context;
    return kube_informer_json(s->claims, s->options.ns, name, NULL);
}

static int write_status(struct pool_serve *s, json_t **object, const json_t *report, struct err *e)
{
    if (pool_status_write(&s->writer, object, report, e) < 0)
        return -1;
    normalize(*object);
    return 0;
}

/* What cannot be made a wish of. */
static int say_invalid(struct pool_serve *s, json_t **object, const struct err *why, struct err *e)
{
    json_auto_t *report =
        json_pack("{s:s, s:{s:{s:s, s:s, s:s}}}", "phase", "Invalid", "conditions", "Available",
                  "status", "False", "reason", why->reason, "message", why->msg);
    return write_status(s, object, report, e);
}

/* The engine has not come back from something for a while: what it said last may not be so any more. */
static void add_stuck(struct pool_serve *s, const struct pool_view *v, json_t *report)
{
    int64_t silent = clock_mono_ns(s->clock) - v->seen_ns;
    const char *phase = json_str(report, "phase");
    if (!v->doing || silent < STUCK_NS || (phase && str_eq(phase, "FAULTED"))) /* that is why */
        return;
    _cleanup_free_ char *message =
        mem_printf("the process has been %s for more than %lld s: a device may not answer",
                   v->doing, (long long)(STUCK_NS / CLOCK_SECOND));
    if (!json_object_get(report, "conditions"))
        json_object_set_new(report, "conditions", json_object());
    json_object_set_new(json_object_get(report, "conditions"), "Available",
                        json_pack("{s:s, s:s, s:s}", "status", "Unknown", "reason", "EngineSilent",
                                  "message", message));
}

/* Whether the host that had the pool last is known to be gone: no node has its id, or that node is not
 * ready. */
static int find_host(struct pool_serve *s, uint32_t host_id, bool *ret_gone, struct err *e)
{
    json_auto_t *nodes = kube_list(s->kinds.client, &s->kinds.node, NULL, NULL, e);
    if (!nodes)
        return -1;
    size_t i;
    json_t *it;
    *ret_gone = true;
    json_array_foreach(nodes, i, it) {
        if (pool_host_id(kube_name(it)) == host_id && kube_condition_is_true(it, "Ready"))
            *ret_gone = false;
    }
    return 0;
}

static int finish_replacements(struct pool_serve *s, const json_t *object, const json_t *report,
                               struct err *e)
{
    size_t i;
    json_t *it;
    json_array_foreach(json_object_get(report, "replaced"), i, it) {
        json_auto_t *device = get_device(s, json_string_value(it));
        json_auto_t *claim = get_claim(s, block_device_of(device).spec.claim.name);
        const char *old = claim ? kube_annotation(claim, API_POOL_PREDECESSOR) : NULL;
        if (!old || !*old)
            continue;
        json_auto_t *old_device = get_device(s, old);
        json_auto_t *old_claim = get_claim(s, block_device_of(old_device).spec.claim.name);
        if (pool_claims_finish(&s->kinds, s->recorder, object, claim, old_claim, e) < 0)
            return -1;
    }
    return 0;
}

static int let_go(struct pool_serve *s, json_t **object, struct err *e)
{
    crash_point("before the finalizer is removed");
    if (kube_finalizer_remove(s->kinds.client, &s->kinds.pool, object, API_POOL_PROTECTION, e) <
            0 ||
        kube_finalizer_remove(s->kinds.client, &s->kinds.pool, object, API_POOL_FINALIZER, e) < 0)
        return -1;
    log_info("the pool is gone", LOG_S("name", s->options.name));
    return 0;
}

/* The pool is to be elsewhere: it is exported, so that the process there can have it. */
static bool has_moved(struct pool_serve *s, const json_t *object)
{
    const char *host = pool_instance_of(object, NULL).spec.host_name;
    if (!*host)
        return false;
    if (!s->node)
        s->node = mem_strdup(s->options.node ? s->options.node : host);
    if (str_eq(host, s->node))
        return false;
    log_info("the pool moves to another node", LOG_S("from", s->node), LOG_S("to", host));
    pool_engine_release(s->engine);
    return true;
}

static int beat(struct pool_serve *s, const json_t *object, const struct pool_view *v,
                struct err *e)
{
    int64_t now = clock_mono_ns(s->clock);
    if ((s->beat_at && now - s->beat_at < BEAT_NS) || (v->doing && now - v->seen_ns > STUCK_NS))
        return 0;
    if (pool_heartbeat(&s->kinds, object, s->node ? s->node : "", &s->lease, s->clock, e) < 0)
        return -1;
    s->beat_at = now;
    return 0;
}

static bool is_open(const json_t *report)
{
    const char *status = json_str(json_at(report, "conditions", "Available"), "status");
    return status && str_eq(status, "True");
}

/* How many replicas name the pool; and those learn whether it is open. */
static void add_replicas(struct pool_serve *s, json_t *report)
{
    unsigned all, healthy;
    bool open = is_open(report);
    pool_cvrs_count(s->cvrs, &all, &healthy);
    json_object_set_new(report, "provisionedReplicas", json_integer(all));
    json_object_set_new(report, "healthyReplicas", json_integer(healthy));
    if (open != s->open) {
        s->open = open;
        pool_cvrs_look(s->cvrs);
    }
}

/*
 * A pool that replicas live on is not destroyed, whoever deleted its object: they go first. Meanwhile it is served as
 * before, and says so.
 */
static void keep_for_replicas(struct pool_serve *s, const json_t *object, struct pool_wish *w)
{
    unsigned all, healthy;
    pool_cvrs_count(s->cvrs, &all, &healthy);
    bool kept = w->destroy && all > 0;
    if (kept) {
        w->destroy = false;
        str_append(&w->text, "; kept");
    }
    if (kept && !s->kept)
        kube_event_warning(s->recorder, object, "DeletionFailed",
                           "the pool is not destroyed while %u replicas of volumes name it: delete "
                           "or move them first",
                           all);
    s->kept = kept;
}

static void add_kept(struct pool_serve *s, json_t *report)
{
    if (!s->kept)
        return;
    _cleanup_free_ char *message = mem_printf(
        "the pool is not destroyed while replicas of volumes name it: kubectl get cvr -n %s "
        "-l " API_POOL_OF_REPLICA "=%s",
        s->options.ns, s->options.name);
    json_object_set_new(report, "phase", json_string("DeletionFailed"));
    json_object_set_new(json_object_get(report, "conditions"), "Available",
                        json_pack("{s:s, s:s, s:s}", "status", s->open ? "True" : "False", "reason",
                                  "ReplicasExist", "message", message));
}

/* What follows from the view. */
static int follow(struct pool_serve *s, json_t **object, struct err *e)
{
    struct pool_view v;
    pool_engine_view(s->engine, &v);
    json_auto_t *report = v.report ? v.report : json_object();
    if (v.gone && kube_deleting(*object))
        return let_go(s, object, e);
    bool gone = false; /* and no longer when that host is back */
    if (v.host_id && find_host(s, v.host_id, &gone, e) < 0)
        return -1;
    if (gone != s->take_over) {
        s->take_over = gone;
        if (gone)
            log_info("the host that had the pool last is gone", LOG_U("host id", v.host_id));
        kube_controller_add(s->controller, s->options.ns, s->options.name);
    }
    add_stuck(s, &v, report);
    /* First that we live: of whom nothing is heard, the operator does not believe the status. */
    if (beat(s, *object, &v, e) < 0)
        return -1;
    if (!json_object_size(report))
        return 0;
    add_replicas(s, report);
    add_kept(s, report);
    return finish_replacements(s, *object, report, e) < 0 ? -1 : write_status(s, object, report, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct pool_serve *s = context;
    struct err why = {0};
    ret->again_ns = BEAT_NS / 2;
    json_auto_t *object = kube_informer_json(s->pools, ns, name, NULL);
    if (object)
        normalize(object);
    /* Whoever comes in its place imports the pool. */
    bool leaves = !object || (kube_deleting(object) && !pool_is_doomed(object));
    if (leaves)
        pool_engine_release(s->engine);
    leaves = leaves || has_moved(s, object);
    pool_cvrs_rest(s->cvrs, leaves);
    if (leaves)
        return 0;
    if (!kube_deleting(object) && !kube_finalizer_has(object, API_POOL_FINALIZER)) {
        crash_point("before the finalizer is added");
        if (kube_finalizer_add(s->kinds.client, &s->kinds.pool, &object, API_POOL_FINALIZER, e) < 0)
            return -1;
        normalize(object);
    }
    const struct pool_lookup lookup = {get_device, get_claim, s};
    _cleanup_(pool_wish_unrefp) struct pool_wish *w =
        pool_wish_new(object, &s->options, &lookup, &why);
    if (!w)
        return say_invalid(s, &object, &why, e);
    w->take_over = s->take_over;
    keep_for_replicas(s, object, w);
    pool_engine_wish(s->engine, w);
    return follow(s, &object, e);
}

/* Setting up. */

static void engine_changed(void *context)
{
    struct pool_serve *s = context;
    kube_controller_add(s->controller, s->options.ns, s->options.name);
}

static void map_own(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct pool_serve *s = context;
    (void)object;
    kube_controller_add(c, s->options.ns, s->options.name);
}

static void serve_free(void *context)
{
    struct pool_serve *s = context;
    if (s->engine)
        pool_engine_stop(s->engine);
    if (s->recorder)
        kube_recorder_free(s->recorder);
    json_decref(s->lease);
    free(s->node);
    free(s);
}

/*
 * Which of the two groups has the object: where they are the same objects, and where it is not there yet,
 * the seed's.
 */
static struct kube_resource find_kind(struct pool_serve *s)
{
    struct kube_resource seed = kube_resource("openebs.io/v1alpha1", "CStorPoolInstance");
    struct kube_resource published = kube_resource("cstor.openebs.io/v1", "CStorPoolInstance");
    struct err e = {0};
    json_auto_t *found =
        kube_get_any(s->kinds.client, &api_cstor_pool_instance, s->options.ns, s->options.name, &e);
    const char *version = json_str(found, "apiVersion");
    return version && str_eq(version, published.api_version) ? published : seed;
}

/* readyz: whether the pool is there to be used. */
static int check_open(void *context, struct err *e)
{
    struct pool_serve *s = context;
    struct pool_view v;
    pool_engine_view(s->engine, &v);
    bool open = is_open(v.report);
    json_decref(v.report);
    return open ? 0 : err_set(e, ERR_UNAVAILABLE, "NotOpen", "the pool is not open");
}

static void watch(struct pool_serve *s, struct kube_informer *i)
{
    kube_controller_watch(s->controller,
                          (struct kube_source){.informer = i, .map = map_own, .context = s});
}

int pool_reconcile_setup(struct kube_manager *m, const struct pool_options *o, struct err *e)
{
    struct pool_serve *s = NEW(struct pool_serve);
    s->options = *o;
    s->clock = kube_manager_clock(m);
    s->kinds = (struct pool_kinds){
        .client = kube_manager_client(m),
        .device = kube_resource("openebs.io/v1alpha1", "BlockDevice"),
        .claim = kube_resource("openebs.io/v1alpha1", "BlockDeviceClaim"),
        .lease = kube_resource("coordination.k8s.io/v1", "Lease"),
        .node = kube_resource("v1", "Node"),
    };
    s->writer =
        (struct pool_writer){.kinds = &s->kinds, .clock = s->clock, .write_ns = o->write_ns};
    kube_manager_on_stop(m, serve_free, s);
    /* One of its own, which is there as long as the engine is. */
    s->recorder = kube_recorder_new(s->kinds.client, "orlop-pool", o->node, s->clock, e);
    if (!s->recorder)
        return -1;
    s->kinds.pool = find_kind(s);
    _cleanup_free_ char *fields = mem_printf("metadata.name=%s", o->name);
    s->pools = kube_manager_informer(m, s->kinds.pool, o->ns, NULL, fields);
    s->devices = kube_manager_informer(m, s->kinds.device, o->ns, NULL, NULL);
    s->claims = kube_manager_informer(m, s->kinds.claim, o->ns, NULL, NULL);
    s->controller = kube_manager_controller(
        m, &(struct kube_controller_options){.name = "pool", .reconcile = reconcile, .context = s},
        e);
    if (!s->controller)
        return -1;
    watch(s, s->pools);
    watch(s, s->devices);
    watch(s, s->claims);
    s->engine = pool_engine_start(o, s->recorder, engine_changed, s, e);
    s->cvrs = s->engine ? pool_cvrs_setup(m, o, s->recorder, s->engine, e) : NULL;
    if (!s->cvrs)
        return -1;
    pool_cvrs_watch(s->cvrs, s->controller, (struct kube_source){.map = map_own, .context = s});
    pool_metrics_setup(kube_manager_metrics(m), s->engine);
    kube_manager_add_check(m, "pool", check_open, s);
    return 0;
}
