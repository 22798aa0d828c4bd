/*
 * Numbers of the pool, from the last view: those of cStor's exporter under its names, and ours beside.
 */
#include "metrics/metrics.h"

#include "base/str.h"
#include "pool/impl.h"

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

static const char *const kinds[][2] = {
    {"read", "readErrors"}, {"write", "writeErrors"}, {"checksum", "checksumErrors"}};

static double count(const json_t *device, size_t kind)
{
    return (double)json_integer_value(json_object_get(device, kinds[kind][1]));
}

static void collect_errors(struct metrics_out *out, const char *pool, const json_t *devices)
{
    metrics_out_family(out, "orlop_pool_device_errors",
                       "Errors of a device since the pool was imported or cleared.", METRICS_GAUGE);
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)devices, i, it) {
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
            metrics_out_value(out, METRICS_LABELS("pool", "blockdevice", "kind"),
                              METRICS_VALUES(pool, json_str(it, "blockDeviceName"), kinds[k][0]),
                              count(it, k));
    }
    metrics_out_family(out, "orlop_pool_errors", "The same of all devices of the pool.",
                       METRICS_GAUGE);
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        double sum = 0;
        json_array_foreach((json_t *)devices, i, it)
            sum += count(it, k);
        metrics_out_value(out, METRICS_LABELS("pool", "kind"), METRICS_VALUES(pool, kinds[k][0]),
                          sum);
    }
}

static void collect_states(struct metrics_out *out, const char *pool, const json_t *devices)
{
    metrics_out_family(out, "orlop_pool_device_state",
                       "1, by the state that ZFS says a device is in.", METRICS_GAUGE);
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)devices, i, it)
        metrics_out_value(
            out, METRICS_LABELS("pool", "blockdevice", "state"),
            METRICS_VALUES(pool, json_str(it, "blockDeviceName"), json_str(it, "state")), 1);
}

/* How far a resilver or scrub is, when there is one to speak of. */
static void collect_scans(struct metrics_out *out, const char *pool, const json_t *report)
{
    const json_t *resilver = json_object_get(report, "resilver"),
                 *scrub = json_object_get(report, "scrub");
    if (resilver)
        gauge(out, "orlop_pool_resilver_percent", "How much of the resilver is done.", pool,
              json_number_value(json_object_get(resilver, "percent")));
    if (json_object_get(resilver, "remainingSeconds"))
        gauge(out, "orlop_pool_resilver_remaining_seconds",
              "How long the resilver will take at its present pace.", pool,
              json_number_value(json_object_get(resilver, "remainingSeconds")));
    if (scrub)
        gauge(out, "orlop_pool_scrub_percent", "How much of the last scrub is done.", pool,
              json_number_value(json_object_get(scrub, "percent")));
}

static void collect(void *context, struct metrics_out *out)
{
    struct pool_view v;
    pool_engine_view(context, &v);
    json_auto_t *report = v.report;
    const char *pool = v.name;
    const json_t *capacity = json_object_get(report, "capacity");
    double total = (double)api_quantity_int(json_object_get(capacity, "total"));
    double used = (double)api_quantity_int(json_object_get(capacity, "used"));
    gauge(out, "openebs_pool_status",
          "Status of pool (0, 1, 2, 3, 4, 5, 6) = {\"Offline\", \"Online\", \"Degraded\", "
          "\"Faulted\", \"Removed\", \"Unavail\", \"NoPoolsAvailable\"}.",
          pool, status_number(json_str(report, "phase")));
    gauge(out, "openebs_pool_size", "Size of pool in bytes.", pool, total);
    gauge(out, "openebs_used_pool_capacity", "Capacity used by pool in bytes.", pool, used);
    gauge(out, "openebs_free_pool_capacity", "Free capacity in pool in bytes.", pool,
          (double)api_quantity_int(json_object_get(capacity, "free")));
    gauge(out, "openebs_used_pool_capacity_percent", "Capacity used by pool in percent.", pool,
          total > 0 ? used * 100 / total : 0);
    gauge(out, "openebs_zpool_last_sync_time", "Unix time at which the pool was last looked at.",
          pool, (double)v.seen_at);
    gauge(out, "orlop_pool_read_only",
          "1 while the pool takes no writes because it is nearly full.", pool,
          json_is_true(json_object_get(report, "readOnly")));
    gauge(out, "orlop_pool_damaged_blocks", "Blocks that are damaged and have no other copy.", pool,
          (double)v.damaged);
    collect_errors(out, pool, json_object_get(report, "devices"));
    collect_states(out, pool, json_object_get(report, "devices"));
    collect_scans(out, pool, report);
}

void pool_metrics_setup(struct metrics *m, struct pool_engine *x)
{
    metrics_collect(m, collect, x);
}
