/*
 * Numbers for Prometheus, under the names that dashboards of cStor volumes know, and those of our own.
 * They are read on the HTTP server's thread: from atomics, and from the store by a call that any thread
 * may make.
 */
#include "base/str.h"
#include "target/target.h"

static const double GIB = 1024.0 * 1024 * 1024;

static void one(struct metrics_out *out, const struct target *t, const char *name, const char *help,
                enum metrics_type type, double value)
{
    metrics_out_family(out, name, help, type);
    metrics_out_value(out, METRICS_LABELS("volName", "castype"), METRICS_VALUES(t->o->iqn, "orlop"),
                      value);
}

static double get(const _Atomic uint64_t *n)
{
    return (double)atomic_load_explicit(n, memory_order_relaxed);
}

/* The classes of which latencies are told. */
static const struct {
    enum iscsi_class class;
    const char *op;
} timed[] = {{ISCSI_READS, "read"}, {ISCSI_WRITES, "write"}, {ISCSI_FLUSHES, "flush"}};

static void buckets(struct metrics_out *out, const char *op, const struct iscsi_class_stats *s)
{
    double below = 0;
    for (unsigned i = 0; i < ISCSI_BUCKETS; i++) {
        char bound[32];
        below += get(&s->buckets[i]);
        snprintf(bound, sizeof(bound), "%g", (double)((uint64_t)1 << i) / 1e6);
        metrics_out_value(out, METRICS_LABELS("op", "le"),
                          METRICS_VALUES(op, i + 1 < ISCSI_BUCKETS ? bound : "+Inf"), below);
    }
}

/* A histogram as Prometheus wants it: buckets to the last, what they sum up to, and how many there are. */
static void latencies(struct metrics_out *out, const struct iscsi_stats *s)
{
    metrics_out_family(out, "orlop_target_latency_seconds_bucket",
                       "Commands by the time they took.", METRICS_COUNTER);
    for (size_t i = 0; i < ARRAY_SIZE(timed); i++)
        buckets(out, timed[i].op, &s->classes[timed[i].class]);
    metrics_out_family(out, "orlop_target_latency_seconds_sum", "The time of all.",
                       METRICS_COUNTER);
    for (size_t i = 0; i < ARRAY_SIZE(timed); i++)
        metrics_out_value(out, METRICS_LABELS("op"), METRICS_VALUES(timed[i].op),
                          get(&s->classes[timed[i].class].ns) / 1e9);
    metrics_out_family(out, "orlop_target_latency_seconds_count", "How many.", METRICS_COUNTER);
    for (size_t i = 0; i < ARRAY_SIZE(timed); i++)
        metrics_out_value(out, METRICS_LABELS("op"), METRICS_VALUES(timed[i].op),
                          get(&s->classes[timed[i].class].count));
}

static void collect(void *context, struct metrics_out *out)
{
    const struct target *t = context;
    const struct iscsi_stats *s = iscsi_node_stats(t->node);
    const struct iscsi_class_stats *r = &s->classes[ISCSI_READS], *w = &s->classes[ISCSI_WRITES];
    double size = (double)atomic_load(&t->size), block = t->o->block_size;
    double up = (double)(clock_mono_ns(clock_system()) - t->began) / 1e9;
    const struct {
        const char *name, *help;
        enum metrics_type type;
        double value;
    } table[] = {
        {"openebs_size_of_volume", "Size of the volume in GiB.", METRICS_GAUGE, size / GIB},
        {"openebs_logical_size", "Size as initiators see it in GiB.", METRICS_GAUGE, size / GIB},
        {"openebs_sector_size", "Bytes of a block.", METRICS_GAUGE, block},
        {"openebs_reads", "Reads.", METRICS_COUNTER, get(&r->count)},
        {"openebs_read_time", "Time of all reads in ns.", METRICS_COUNTER, get(&r->ns)},
        {"openebs_read_block_count", "Blocks read.", METRICS_COUNTER, get(&r->bytes) / block},
        {"openebs_total_read_bytes", "Bytes read.", METRICS_COUNTER, get(&r->bytes)},
        {"openebs_writes", "Writes.", METRICS_COUNTER, get(&w->count)},
        {"openebs_write_time", "Time of all writes in ns.", METRICS_COUNTER, get(&w->ns)},
        {"openebs_write_block_count", "Blocks written.", METRICS_COUNTER, get(&w->bytes) / block},
        {"openebs_total_write_bytes", "Bytes written.", METRICS_COUNTER, get(&w->bytes)},
        {"openebs_volume_status", "1 Offline, 2 Degraded, 3 Healthy, 4 Unknown.", METRICS_GAUGE,
         t->volume ? get(&t->status) : TARGET_HEALTHY},
        {"openebs_volume_uptime", "Seconds since the target started.", METRICS_COUNTER, up},
        {"openebs_iscsi_initiator_login_status", "1 while an initiator is logged in.",
         METRICS_GAUGE, get(&s->sessions) > 0 ? 1 : 0},
        {"openebs_target_reject_request_counter", "Reject PDUs sent.", METRICS_COUNTER,
         get(&s->rejects)},
        {"openebs_healthy_replica_count", "Replicas that have everything.", METRICS_GAUGE,
         get(&t->healthy)},
        {"openebs_degraded_replica_count", "Replicas that lack something, or are not there.",
         METRICS_GAUGE, get(&t->degraded)},
        {"openebs_total_replica_count", "Replicas of the volume.", METRICS_GAUGE, get(&t->members)},
        {"orlop_target_sessions", "Sessions.", METRICS_GAUGE, get(&s->sessions)},
        {"orlop_target_commands", "Commands under way.", METRICS_GAUGE, get(&s->commands)},
        {"orlop_target_logins_total", "Logins.", METRICS_COUNTER, get(&s->logins)},
        {"orlop_target_login_failures_total", "Logins that were refused.", METRICS_COUNTER,
         get(&s->login_failures)},
        {"orlop_target_digest_errors_total", "PDUs with a wrong digest.", METRICS_COUNTER,
         get(&s->digest_errors)},
        {"orlop_target_aborts_total", "Commands that were aborted.", METRICS_COUNTER,
         get(&s->aborts)},
        {"orlop_target_errors_total", "Commands that did not succeed.", METRICS_COUNTER,
         get(&r->errors) + get(&w->errors) + get(&s->classes[ISCSI_FLUSHES].errors)},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        one(out, t, table[i].name, table[i].help, table[i].type, table[i].value);
    if (!t->volume) /* of a replicated one only its replicas know */
        one(out, t, "openebs_actual_used", "What the data takes in GiB.", METRICS_GAUGE,
            (double)store_used(t->store) / GIB);
    latencies(out, s);
}

static void free_text(void *text)
{
    free(text);
}

static void handle(void *context, struct http_request *r)
{
    struct target *t = context;
    static const char missing[] = "see /metrics\n";
    if (!str_eq(r->path, "/metrics")) {
        http_reply(r, 404, "text/plain", missing, sizeof(missing) - 1, NULL, NULL);
        return;
    }
    struct str text = {0};
    metrics_format(t->metrics, &text);
    size_t n = text.len;
    char *bytes = str_take(&text);
    http_reply(r, 200, METRICS_CONTENT_TYPE, bytes, n, free_text, bytes);
}

int target_metrics_start(struct target *t, struct err *e)
{
    t->metrics = metrics_new();
    metrics_process(t->metrics);
    metrics_collect(t->metrics, collect, t);
    const struct http_server_options o = {
        .address = t->o->metrics_address,
        .port = t->o->metrics_port,
        .threads = 1,
        .connections = 16,
        .handle = handle,
        .context = t,
    };
    return http_server_start(&o, &t->http, e);
}
