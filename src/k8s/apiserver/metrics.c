#include "k8s/apiserver/metrics.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "metrics/metrics.h"

/* kube-apiserver's buckets. */
static const double request_seconds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8,
                                         1.0,   1.25,  1.5,  2,   3,   4,   5,   6,
                                         8,     10,    15,   20,  30,  45,  60};
static const double webhook_seconds[] = {0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25};
static const double commit_seconds[] = {0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032,
                                        0.064,  0.128, 0.256, 0.512, 1.024, 2.048, 4.096};
static const double batch_sizes[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

struct apiserver_metrics {
    struct metrics *registry;
    struct metrics_family *requests, *durations, *watches, *events;
    struct metrics_family *webhooks, *rejections, *open_failures;
    struct metrics_series *inflight[2]; /* readOnly, mutating */
    struct metrics_series *commits, *batches, *commit_failures;
    struct apiserver_store *store;
    char *store_path;
    const struct apiserver_audit *audit;
};

static void collect_store(void *context, struct metrics_out *out)
{
    struct apiserver_metrics *m = context;
    metrics_out_family(out, "apiserver_storage_objects",
                       "Number of stored objects at the time of last check split by kind.",
                       METRICS_GAUGE);
    struct apiserver_store_counts counts;
    apiserver_store_count(m->store, &counts);
    vec_for_each(&counts.collections, c) {
        /* "group/plural" is "plural.group" here, and "/plural" is "plural". */
        const char *plural = strchr(c->name, '/') + 1;
        int group = (int)(plural - c->name) - 1;
        _cleanup_free_ char *name =
            mem_printf("%s%s%.*s", plural, group ? "." : "", group, c->name);
        metrics_out_value(out, METRICS_LABELS("resource"), METRICS_VALUES(name),
                          (double)c->objects);
    }
    metrics_out_family(out, "orlop_store_revision", "Revision of the last change.", METRICS_GAUGE);
    metrics_out_value(out, NULL, NULL, (double)counts.revision);
    vec_done(&counts.collections);
    double bytes = 0;
    static const char *const endings[] = {"", "-wal"};
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        _cleanup_free_ char *path = mem_printf("%s%s", m->store_path, endings[i]);
        struct stat st;
        bytes += stat(path, &st) == 0 ? (double)st.st_size : 0;
    }
    metrics_out_family(out, "apiserver_storage_size_bytes",
                       "Size of the storage database file physically allocated in bytes.",
                       METRICS_GAUGE);
    metrics_out_value(out, METRICS_LABELS("storage_cluster_id"), METRICS_VALUES("orlop"), bytes);
}

void apiserver_metrics_store(struct apiserver_metrics *m, struct apiserver_store *s,
                             const char *path)
{
    m->store = s;
    m->store_path = mem_strdup(path);
    metrics_collect(m->registry, collect_store, m);
}

static void collect_audit(void *context, struct metrics_out *out)
{
    const struct apiserver_audit *a = ((const struct apiserver_metrics *)context)->audit;
    metrics_out_family(out, "apiserver_audit_event_total",
                       "Counter of audit events generated and sent to the audit backend.",
                       METRICS_COUNTER);
    metrics_out_value(out, NULL, NULL, (double)apiserver_audit_lines(a));
    metrics_out_family(out, "apiserver_audit_error_total",
                       "Counter of audit events that failed to be audited properly. Plugin "
                       "identifies the plugin affected by the error.",
                       METRICS_COUNTER);
    metrics_out_value(out, METRICS_LABELS("plugin"), METRICS_VALUES("log"),
                      (double)apiserver_audit_dropped(a));
}

void apiserver_metrics_audit(struct apiserver_metrics *m, const struct apiserver_audit *a)
{
    m->audit = a;
    metrics_collect(m->registry, collect_audit, m);
}

static void make_request_families(struct apiserver_metrics *m)
{
    struct metrics *r = m->registry;
    m->requests = metrics_counter(
        r, "apiserver_request_total",
        "Counter of apiserver requests broken out for each verb, dry run value, group, version, "
        "resource, scope, component, and HTTP response code.",
        METRICS_LABELS("verb", "dry_run", "group", "version", "resource", "subresource", "scope",
                       "component", "code"));
    m->durations = metrics_histogram(
        r, "apiserver_request_duration_seconds",
        "Response latency distribution in seconds for each verb, dry run value, group, version, "
        "resource, subresource, scope and component.",
        METRICS_LABELS("verb", "dry_run", "group", "version", "resource", "subresource", "scope",
                       "component"),
        request_seconds, ARRAY_SIZE(request_seconds));
    struct metrics_family *inflight =
        metrics_gauge(r, "apiserver_current_inflight_requests",
                      "Number of requests that are being handled, by request kind.",
                      METRICS_LABELS("request_kind"));
    m->inflight[0] = metrics_at(inflight, METRICS_VALUES("readOnly"));
    m->inflight[1] = metrics_at(inflight, METRICS_VALUES("mutating"));
    m->watches = metrics_gauge(
        r, "apiserver_longrunning_requests", "Gauge of all active long-running apiserver requests.",
        METRICS_LABELS("verb", "group", "version", "resource", "scope", "component"));
    m->events = metrics_counter(r, "apiserver_watch_events_total",
                                "Number of events sent in watch clients.",
                                METRICS_LABELS("group", "version", "resource"));
}

struct apiserver_metrics *apiserver_metrics_new(void)
{
    struct apiserver_metrics *m = NEW(struct apiserver_metrics);
    struct metrics *r = m->registry = metrics_new();
    make_request_families(m);
    m->webhooks = metrics_histogram(
        r, "apiserver_admission_webhook_admission_duration_seconds",
        "Admission webhook latency histogram in seconds, identified by name and broken out for "
        "each operation and type (validate or admit).",
        METRICS_LABELS("name", "type", "operation", "rejected"), webhook_seconds,
        ARRAY_SIZE(webhook_seconds));
    m->open_failures = metrics_counter(
        r, "apiserver_admission_webhook_fail_open_count",
        "Admission webhook fail open count, identified by name and type (validating or admit).",
        METRICS_LABELS("name", "type"));
    m->commits = metrics_at(metrics_histogram(r, "orlop_store_commit_duration_seconds",
                                              "Time that a transaction takes until it is on disk.",
                                              NULL, commit_seconds, ARRAY_SIZE(commit_seconds)),
                            NULL);
    m->batches = metrics_at(metrics_histogram(r, "orlop_store_commit_batch_size",
                                              "Changes that share a transaction.", NULL,
                                              batch_sizes, ARRAY_SIZE(batch_sizes)),
                            NULL);
    m->commit_failures =
        metrics_at(metrics_counter(r, "orlop_store_commit_failures_total",
                                   "Transactions that the disk did not take.", NULL),
                   NULL);
    metrics_process(r);
    return m;
}

void apiserver_metrics_free(struct apiserver_metrics *m)
{
    if (!m)
        return;
    metrics_free(m->registry);
    free(m->store_path);
    free(m);
}

/* "resource", "namespace" or "cluster"; "" for what is no resource. */
static const char *scope_of(const struct apiserver_path *p)
{
    if (p->asked != APISERVER_ASKED_OBJECTS)
        return "";
    if (*p->name || p->verb == APISERVER_CREATE)
        return "resource";
    return *p->namespace ? "namespace" : "cluster";
}

static const char *verb_of(const struct apiserver_metrics_request *r)
{
    static const char *const verbs[] = {
        [APISERVER_GET] = "GET",       [APISERVER_LIST] = "LIST",
        [APISERVER_WATCH] = "WATCH",   [APISERVER_CREATE] = "POST",
        [APISERVER_UPDATE] = "PUT",    [APISERVER_PATCH] = "PATCH",
        [APISERVER_DELETE] = "DELETE", [APISERVER_DELETE_COLLECTION] = "DELETECOLLECTION",
    };
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", NULL};
    if (r->parsed && r->path->asked == APISERVER_ASKED_OBJECTS)
        return r->apply ? "APPLY" : verbs[r->path->verb];
    return str_in(r->method, methods) ? r->method : "OTHER";
}

/* Of what is no object the path stands here, as in the original. */
static const char *subresource_of(const struct apiserver_metrics_request *r)
{
    static const char *const paths[] = {
        [APISERVER_ASKED_ROOT] = "/",
        [APISERVER_ASKED_HEALTH] = "/healthz",
        [APISERVER_ASKED_VERSION] = "/version",
        [APISERVER_ASKED_METRICS] = "/metrics",
        [APISERVER_ASKED_CORE] = "/api",
        [APISERVER_ASKED_GROUPS] = "/apis",
        [APISERVER_ASKED_GROUP] = "/apis",
        [APISERVER_ASKED_RESOURCES] = "/apis",
        [APISERVER_ASKED_OPENAPI_V2] = "/openapi/v2",
        [APISERVER_ASKED_OPENAPI_V3] = "/openapi/v3",
        [APISERVER_ASKED_OPENAPI_V3_DOCUMENT] = "/openapi/v3",
        [APISERVER_ASKED_OBJECTS] = "",
    };
    if (!r->parsed)
        return "";
    if (r->path->asked == APISERVER_ASKED_HEALTH)
        return str_eq(r->path->name, "livez")    ? "/livez"
               : str_eq(r->path->name, "readyz") ? "/readyz"
                                                 : "/healthz";
    const char *text = (size_t)r->path->asked < ARRAY_SIZE(paths) ? paths[r->path->asked] : "";
    return text && *text ? text : apiserver_subresource_text(r->path->subresource);
}

void apiserver_metrics_inflight(struct apiserver_metrics *m, bool mutating, int change)
{
    metrics_add(m->inflight[mutating], change);
}

void apiserver_metrics_done(struct apiserver_metrics *m, const struct apiserver_metrics_request *r)
{
    const struct apiserver_path *p = r->path;
    const struct api_group_version *gv = r->parsed && p->kind ? p->gv : NULL;
    char code[] = {(char)('0' + r->status / 100 % 10), (char)('0' + r->status / 10 % 10),
                   (char)('0' + r->status % 10), '\0'};
    const char *values[] = {verb_of(r),
                            r->dry_run ? "All" : "",
                            gv ? gv->group : "",
                            gv ? gv->version : "",
                            gv ? p->kind->plural : "",
                            subresource_of(r),
                            r->parsed ? scope_of(p) : "",
                            "apiserver",
                            code};
    metrics_add(metrics_at(m->requests, values), 1);
    metrics_observe(metrics_at(m->durations, values), (double)r->ns / (double)CLOCK_SECOND);
}

void apiserver_metrics_watch(struct apiserver_metrics *m, const struct apiserver_path *p,
                             int change)
{
    const char *values[] = {"WATCH",         p->gv->group, p->gv->version,
                            p->kind->plural, scope_of(p),  "apiserver"};
    metrics_add(metrics_at(m->watches, values), change);
}

void apiserver_metrics_events(struct apiserver_metrics *m, const struct apiserver_path *p, size_t n)
{
    const char *values[] = {p->gv->group, p->gv->version, p->kind->plural};
    metrics_add(metrics_at(m->events, values), (int64_t)n);
}

static const char *type_of(bool mutating)
{
    return mutating ? "admit" : "validating";
}

void apiserver_metrics_webhook(struct apiserver_metrics *m, const char *name, bool mutating,
                               const char *operation, bool rejected, int64_t ns)
{
    const char *values[] = {name, type_of(mutating), operation, rejected ? "true" : "false"};
    if (m)
        metrics_observe(metrics_at(m->webhooks, values), (double)ns / (double)CLOCK_SECOND);
}

void apiserver_metrics_fail_open(struct apiserver_metrics *m, const char *name, bool mutating)
{
    const char *values[] = {name, type_of(mutating)};
    if (m)
        metrics_add(metrics_at(m->open_failures, values), 1);
}

void apiserver_metrics_commit(struct apiserver_metrics *m, size_t changes, int64_t ns, bool failed)
{
    if (failed) {
        metrics_add(m->commit_failures, 1);
        return;
    }
    metrics_observe(m->commits, (double)ns / (double)CLOCK_SECOND);
    metrics_observe(m->batches, (double)changes);
}

void apiserver_metrics_format(struct apiserver_metrics *m, struct str *out)
{
    metrics_format(m->registry, out);
}
