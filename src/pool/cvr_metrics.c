/*
 * Numbers of the replicas, from their last views: those of cStor's exporter under its names, and ours beside.
 */
#include "base/str.h"
#include "metrics/metrics.h"
#include "pool/cvr_impl.h"

enum status { OFFLINE, HEALTHY, DEGRADED, REBUILDING };
enum rebuild { REBUILD_INIT, REBUILD_DONE, REBUILD_IN_PROGRESS, REBUILD_ACTIVE };

struct sample {
    char *name, *zvol; /* of the object, of the data set; owned */
    struct pool_replica_view view;
};
typedef VEC(struct sample) samples;

static double status_of(const struct pool_replica_view *v)
{
    return !v->open || !v->connected ? OFFLINE
           : v->rebuilding           ? REBUILDING
           : v->complete             ? HEALTHY
                                     : DEGRADED;
}

static double rebuild_of(const struct pool_replica_view *v)
{
    return v->rebuilding ? REBUILD_ACTIVE : v->complete ? REBUILD_DONE : REBUILD_INIT;
}

static double used_of(const struct pool_replica_view *v)
{
    return (double)v->used;
}

static double percent_of(const struct pool_replica_view *v)
{
    return v->rebuilding ? v->percent : v->complete ? 100 : 0;
}

static double full_of(const struct pool_replica_view *v)
{
    return v->full;
}

static double damaged_of(const struct pool_replica_view *v)
{
    return (double)v->damaged;
}

static double mended_of(const struct pool_replica_view *v)
{
    return (double)v->mended;
}

static const struct {
    const char *name, *help;
    double (*value)(const struct pool_replica_view *v);
} families[] = {
    {"openebs_replica_status",
     "Status of replica (0, 1, 2, 3) = {\"Offline\", \"Healthy\", \"Degraded\", \"Rebuilding\"}.",
     status_of},
    {"openebs_rebuild_status",
     "Status of rebuild on replica (0, 1, 2, 3, 4, 5, 6) = {\"INIT\", \"DONE\", \"SNAP REBUILD "
     "INPROGRESS\", \"ACTIVE DATASET REBUILD INPROGRESS\", \"ERRORED\", \"FAILED\", \"UNKNOWN\"}.",
     rebuild_of},
    {"orlop_replica_rebuild_percent", "How much of its data a replica has been given.", percent_of},
    {"orlop_replica_frozen", "1 while writes of the volume wait for room in the pool.", full_of},
    {"orlop_replica_damaged_reads",
     "Reads that the pool could not do for damage, since the replica was opened.", damaged_of},
    {"orlop_replica_mended_ranges",
     "Damaged ranges that were written again from other replicas since.", mended_of},
};

static void take_samples(struct pool_cvrs *c, samples *ret)
{
    pthread_mutex_lock(&c->lock);
    map_for_each(&c->known, entry) {
        const struct pool_cvr *it = entry->value;
        vec_push(ret, ((struct sample){mem_strdup(entry->key), mem_strdup(it->zvol), {0}}));
    }
    pthread_mutex_unlock(&c->lock);
    vec_for_each(ret, it)
        pool_replicas_view(c->replicas, it->name, &it->view);
}

static void collect(void *context, struct metrics_out *out)
{
    struct pool_cvrs *c = context;
    samples all = {0};
    struct pool_view pool;
    pool_engine_view(c->engine, &pool);
    json_decref(pool.report);
    take_samples(c, &all);
    for (size_t i = 0; i < ARRAY_SIZE(families) && all.len; i++) {
        metrics_out_family(out, families[i].name, families[i].help, METRICS_GAUGE);
        vec_for_each(&all, it)
            metrics_out_value(out, METRICS_LABELS("vol", "pool"),
                              METRICS_VALUES(it->zvol, pool.name), families[i].value(&it->view));
    }
    if (all.len) {
        metrics_out_family(out, "openebs_volume_replica_used_size",
                           "Used size of volume replica on a pool in bytes.", METRICS_GAUGE);
        vec_for_each(&all, it) {
            _cleanup_free_ char *name = mem_printf("%s/%s", pool.name, it->zvol);
            metrics_out_value(out, METRICS_LABELS("name"), METRICS_VALUES(name),
                              used_of(&it->view));
        }
    }
    vec_for_each(&all, it) {
        free(it->name);
        free(it->zvol);
    }
    vec_done(&all);
}

void pool_cvr_metrics_setup(struct metrics *m, struct pool_cvrs *c)
{
    metrics_collect(m, collect, c);
}
