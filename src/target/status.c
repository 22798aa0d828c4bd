/*
 * The state of a target as JSON, and what of it a person sees.
 */
#include <inttypes.h>

#include "base/str.h"
#include "json/json.h"
#include "target/target.h"

static const char *const classes[ISCSI_CLASSES] = {
    [ISCSI_READS] = "reads",
    [ISCSI_WRITES] = "writes",
    [ISCSI_FLUSHES] = "flushes",
    [ISCSI_OTHERS] = "others",
};

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *class_json(const struct iscsi_class_stats *s)
{
    uint64_t count = atomic_load(&s->count), ns = atomic_load(&s->ns);
    json_t *o = json_object();
    json_t *histogram = json_array();
    for (unsigned i = 0; i < ISCSI_BUCKETS; i++)
        json_array_append_new(histogram, number(atomic_load(&s->buckets[i])));
    json_object_set_new(o, "count", number(count));
    json_object_set_new(o, "bytes", number(atomic_load(&s->bytes)));
    json_object_set_new(o, "errors", number(atomic_load(&s->errors)));
    json_object_set_new(o, "meanMicroseconds", number(count ? ns / count / 1000 : 0));
    json_object_set_new(o, "p50Microseconds", number(iscsi_stats_quantile(s, 500)));
    json_object_set_new(o, "p99Microseconds", number(iscsi_stats_quantile(s, 990)));
    json_object_set_new(o, "latencyPowersOfTwoMicroseconds", histogram);
    return o;
}

static json_t *stats_json(const struct iscsi_stats *s)
{
    json_t *o = json_object();
    for (unsigned i = 0; i < ISCSI_CLASSES; i++)
        json_object_set_new(o, classes[i], class_json(&s->classes[i]));
    json_object_set_new(o, "deepestQueue", number(atomic_load(&s->deepest)));
    return o;
}

static void add_session(void *context, const struct iscsi_session_info *info)
{
    json_t *list = context, *o = json_object();
    int64_t age = (clock_mono_ns(clock_system()) - info->since_ns) / CLOCK_SECOND;
    json_object_set_new(o, "initiator", json_string(info->initiator));
    json_object_set_new(o, "address", json_string(info->address));
    json_object_set_new(o, "discovery", json_boolean(!info->target));
    json_object_set_new(o, "tsih", number(info->tsih));
    json_object_set_new(o, "commands", number(info->commands));
    json_object_set_new(o, "seconds", number((uint64_t)age));
    json_object_set_new(o, "statistics", stats_json(info->stats));
    json_array_append_new(list, o);
}

static json_t *text_number(uint64_t n)
{
    return json_sprintf("%" PRIu64, n);
}

/* A replica as CStorVolume's status has it, and what is ours besides. */
static json_t *replica_json(const struct target *t, const struct repl_status_replica *r)
{
    char id[UUID_TEXT_MAX];
    json_t *o =
        json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:I,s:s}", "replicaId", uuid_format(&r->replica_id, id),
                  "mode", r->mode, "checkpointedIOSeq", text_number(r->checkpointed_io_seq),
                  "inflightRead", text_number(r->inflight_read), "inflightWrite",
                  text_number(r->inflight_write), "inflightSync", text_number(r->inflight_sync),
                  "upTime", (json_int_t)r->up_time, "quorum", r->quorum ? "1" : "0");
    json_object_set_new(o, "address", json_string(replio_volume_address(t->volume, r->link)));
    json_object_set_new(o, "voter", json_boolean(r->voter));
    json_object_set_new(o, "rebuildPercent", number(r->rebuild_percent));
    json_object_set_new(o, "rebuildBytes", number(r->rebuild_bytes));
    json_object_set_new(o, "rebuildCopied", number(r->rebuild_copied));
    json_object_set_new(o, "rebuildSecondsLeft", number(r->rebuild_eta));
    json_object_set_new(o, "lag", number(r->inflight_write));
    json_object_set_new(o, "scrubErrors", number(r->scrub_errors));
    if (r->link >= 0) /* what one has that is away is known when it is back */
        json_object_set_new(o, "snapshotsMissing", number(r->snapshots_missing));
    return o;
}

/* As CVStatus: name, status and replicaStatus. */
static json_t *volume_json(const struct target *t)
{
    struct repl_status s;
    replio_volume_status(t->volume, &s);
    json_t *replicas = json_array();
    for (int i = 0; i < s.n; i++)
        json_array_append_new(replicas, replica_json(t, &s.replica[i]));
    json_t *o = json_pack("{s:s,s:s,s:o}", "name", t->o->volume, "status", s.phase, "replicaStatus",
                          replicas);
    json_t *guests = json_array();
    for (int i = 0; i < s.guests; i++) {
        char id[UUID_TEXT_MAX];
        json_array_append_new(guests, json_pack("{s:s,s:s,s:b}", "replicaId",
                                                uuid_format(&s.guest[i].replica_id, id), "address",
                                                replio_volume_address(t->volume, s.guest[i].link),
                                                "blank", (int)s.guest[i].blank));
    }
    json_object_set_new(o, "guests", guests);
    json_object_set_new(o, "serving", json_boolean(s.serving));
    json_object_set_new(o, "epoch", number(s.epoch));
    json_object_set_new(o, "replicationFactor", number(s.rf));
    json_object_set_new(o, "consistencyFactor", number(s.cf));
    json_object_set_new(o, "replicaAddress", json_string(t->o->replica_address));
    json_object_set_new(o, "replicaPort", number(replio_volume_port(t->volume)));
    return o;
}

void target_status(const struct target *t, struct str *out)
{
    json_auto_t *o = json_object();
    json_t *sessions = json_array();
    const struct iscsi_stats *s = iscsi_node_stats(t->node);
    iscsi_node_each_session(t->node, add_session, sessions);
    json_object_set_new(o, "iqn", json_string(t->o->iqn));
    if (t->volume)
        json_object_set_new(o, "volumeStatus", json_pack("[o]", volume_json(t)));
    if (t->volume)
        json_object_set_new(o, "snapshots", target_snapshots_brief(t));
    else
        json_object_set_new(o, "store", json_string(t->o->store));
    json_object_set_new(o, "ready", json_boolean(t->ready));
    if (t->control) {
        json_object_set_new(o, "doing", json_string(target_control_doing(t->control)));
        json_object_set_new(o, "operation", json_string(target_control_operation(t->control)));
    }
    json_object_set_new(o, "chap", json_boolean(t->o->auth.user != NULL));
    json_object_set_new(o, "address", json_string(t->o->address));
    json_object_set_new(o, "port", number(t->port));
    json_object_set_new(o, "io", json_string(io_loop_backend(t->loop)));
    json_object_set_new(o, "size", number(t->store->size));
    if (!t->volume)
        json_object_set_new(o, "used", number(store_used(t->store)));
    json_object_set_new(o, "blockSize", number(t->o->block_size));
    json_object_set_new(o, "readOnly", json_boolean(t->o->read_only));
    json_object_set_new(o, "draining", json_boolean(iscsi_node_draining(t->node)));
    json_object_set_new(o, "logins", number(atomic_load(&s->logins)));
    json_object_set_new(o, "loginFailures", number(atomic_load(&s->login_failures)));
    json_object_set_new(o, "rejects", number(atomic_load(&s->rejects)));
    json_object_set_new(o, "digestErrors", number(atomic_load(&s->digest_errors)));
    json_object_set_new(o, "aborts", number(atomic_load(&s->aborts)));
    json_object_set_new(o, "commands", number(iscsi_node_commands(t->node)));
    json_object_set_new(o, "connections",
                        number(t->server ? iscsi_server_connections(t->server) : 0));
    json_object_set_new(o, "statistics", stats_json(s));
    json_object_set_new(o, "sessions", sessions);
    json_format(o, out);
}
