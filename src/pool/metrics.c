/*
 * Numbers of the pool, from the last view: those of cStor's exporter under its names, and ours beside.
 */
#include "metrics/metrics.h"

#include "base/quantity.h"
#include "base/str.h"
#include "pool/impl.h"

static double bytes(const json_t *object, const char *key)
{
    uint64_t n = 0;
    const char *text = json_str(object, key);
    return text && quantity_parse_bytes(text, &n, NULL) == 0 ? (double)n : 0;
}

static double status_number(const char *phase)
{
    static const char *const words[] = {"OFFLINE", "ONLINE",  "DEGRADED",
                                        "FAULTED", "REMOVED", "UNAVAIL"};
    enum { NO_POOL = 6 };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (phase && str_eq(phase, words[i]))
            return (double)i;
    return NO_POOL;
}

static void gauge(struct metrics_out *out, const char *name, const char *help, const char *pool,
                  double value)
{
    metrics_out_family(out, name, help, METRICS_GAUGE);
    metrics_out_value(out, METRICS_LABELS("pool"), METRICS_VALUES(pool), value);
}

static void collect_errors(struct metrics_out *out, const char *pool, const json_t *devices)
{
    static const char *const kinds[][2] = {
        {"read", "readErrors"}, {"write", "writeErrors"}, {"checksum", "checksumErrors"}};
    metrics_out_family(out, "orlop_pool_device_errors",
                       "Errors of a device since the pool was imported or cleared.", METRICS_GAUGE);
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)devices, i, it) {
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
            metrics_out_value(out, METRICS_LABELS("pool", "blockdevice", "kind"),
                              METRICS_VALUES(pool, json_str(it, "blockDeviceName"), kinds[k][0]),
                              (double)json_integer_value(json_object_get(it, kinds[k][1])));
    }
}

static void collect(void *context, struct metrics_out *out)
{
    struct pool_view v;
    pool_engine_view(context, &v);
    json_auto_t *report = v.report;
    const char *pool = v.name;
    const json_t *capacity = json_object_get(report, "capacity");
    double total = bytes(capacity, "total"), used = bytes(capacity, "used");
    gauge(out, "openebs_pool_status",
          "Status of pool (0, 1, 2, 3, 4, 5, 6) = {\"Offline\", \"Online\", \"Degraded\", "
          "\"Faulted\", \"Removed\", \"Unavail\", \"NoPoolsAvailable\"}.",
          pool, status_number(json_str(report, "phase")));
    gauge(out, "openebs_pool_size", "Size of pool in bytes.", pool, total);
    gauge(out, "openebs_used_pool_capacity", "Capacity used by pool in bytes.", pool, used);
    gauge(out, "openebs_free_pool_capacity", "Free capacity in pool in bytes.", pool,
          bytes(capacity, "free"));
    gauge(out, "openebs_used_pool_capacity_percent", "Capacity used by pool in percent.", pool,
          total > 0 ? used * 100 / total : 0);
    gauge(out, "openebs_zpool_last_sync_time", "Unix time at which the pool was last looked at.",
          pool, (double)v.seen_at);
    gauge(out, "orlop_pool_read_only",
          "1 while the pool takes no writes because it is nearly full.", pool,
          json_is_true(json_object_get(report, "readOnly")));
    collect_errors(out, pool, json_object_get(report, "devices"));
    const json_t *resilver = json_object_get(report, "resilver");
    if (resilver)
        gauge(out, "orlop_pool_resilver_percent", "How much of the resilver is done.", pool,
              (double)json_integer_value(json_object_get(resilver, "percent")));
}

void pool_metrics_setup(struct metrics *m, struct pool_engine *x)
{
    metrics_collect(m, collect, x);
}
