/*
 * CStorVolume: what its object asks for, and what its status says.
 *
 * The ids of its replicas have two halves: the id of the CStorVolumeReplica, and the GUID of the data
 * set. knownReplicas maps one to the other, and replicaStatuses has the second.
 *
 * Numbers of I/O change all the time, and a status is an object that others watch: so they are written
 * with whatever else changes, and else at most twice a minute, and only if there was I/O.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/quantity.h"
#include "base/rfc3339.h"
#include "kinds/cstorvolume.h"
#include "kube/condition.h"
#include "sidecar/sidecar.h"

enum { BLOCK = 4096, REFRESH_SECONDS = 30 };

static uint64_t whole_blocks(int64_t bytes)
{
    return bytes > 0 ? ((uint64_t)bytes + BLOCK - 1) / BLOCK * BLOCK : 0;
}

static void read_wanted(const json_t *volume, struct sidecar_wanted *ret)
{
    struct arena arena = {0};
    const struct cstor_volume v = cstor_volume_of(volume, &arena);
    const char *id = kube_annotation(volume, API_CSTOR_ID);
    unsigned factor = cstor_volume_factor(&v);
    *ret = (struct sidecar_wanted){
        .create = !v.status.capacity.n && id && str_eq(id, kube_uid(volume)),
        .size = whole_blocks(v.spec.capacity.n),
        .replicas = factor,
        .named = true,
        .taken = *v.status.resize.name ? v.status.resize.name : NULL,
        .failed = *v.status.resize.name ? v.status.resize.message : NULL,
    };
    /* One that was chosen for as many replicas as there are. */
    if (v.spec.factor == factor && v.spec.consistency > factor / 2 && v.spec.consistency <= factor)
        ret->consistency = (unsigned)v.spec.consistency;
    for (size_t i = 0; i < v.spec.leaving.len && ret->leaving_n < SIDECAR_LEAVING; i++)
        ret->leaving[ret->leaving_n++] = strtoull(v.spec.leaving.p[i], NULL, 10);
    if (*v.spec.order.name && v.spec.order.capacity.n > 0) {
        ret->resize = v.spec.order.name;
        ret->capacity = v.spec.order.capacity.text;
        ret->grow_to = whole_blocks(v.spec.order.capacity.n);
    }
    arena_done(&arena);
}

static void write_acknowledgement(json_t *status, const struct sidecar_wanted *w,
                                  const char *failure)
{
    if (!w)
        json_object_del(status, "resize");
    else
        json_object_set_new(status, "resize",
                            json_pack("{s:s,s:s,s:s}", "name", w->resize, "capacity", w->capacity,
                                      "message", failure ? failure : ""));
}

/* Replicas. */

static json_t *decimal(uint64_t n)
{
    return json_sprintf("%" PRIu64, n);
}

static json_t *replica_of(const struct sidecar_replica *r, uint64_t data)
{
    json_t *o =
        json_pack("{s:o,s:s,s:s,s:s,s:s,s:s,s:I,s:s}", "replicaId", decimal(data), "mode",
                  sidecar_state_word(r->state), "checkpointedIOSeq", r->checkpointed,
                  "inflightRead", r->reads, "inflightWrite", r->writes, "inflightSync", r->syncs,
                  "upTime", (json_int_t)r->up_time, "quorum", *r->quorum ? r->quorum : "0");
    if (!sidecar_state_is_rebuilding(r->state))
        return o;
    json_object_set_new(o, "rebuildPercent", json_integer(r->percent));
    json_object_set_new(o, "secondsLeft", json_integer(r->seconds_left));
    return o;
}

/* The members as two lists. A target that knows none has just been started: who they are stays. */
static void write_members(json_t *status, const struct sidecar_volume *v)
{
    json_t *list = json_array(), *known = json_object();
    for (size_t i = 0; v && i < v->replicas.len; i++) {
        uint64_t name, data;
        if (!sidecar_split_id(v->replicas.p[i].id, &name, &data))
            continue;
        char key[24];
        snprintf(key, sizeof(key), "%" PRIu64, name);
        /* Of a replica and its successor of the same name, the one that is there. */
        if (!json_object_get(known, key) || v->replicas.p[i].state != SIDECAR_OFFLINE)
            json_object_set_new(known, key, decimal(data));
        json_array_append_new(list, replica_of(&v->replicas.p[i], data));
    }
    json_object_set_new(status, "replicaStatuses", list);
    if (json_object_size(known))
        json_object_set_new(status, "replicaDetails", json_pack("{s:O}", "knownReplicas", known));
    json_decref(known);
}

/*
 * Those that were to leave and are no members. The target is at nothing, so none becomes one: nobody
 * who leaves is added, and this is written over the very version in which that was read.
 */
static void write_removed(json_t *status, const struct sidecar_wanted *w,
                          const struct sidecar_shown *shown)
{
    const struct sidecar_volume *v = sidecar_shown_volume(shown);
    json_t *list = json_array();
    for (unsigned i = 0; i < w->leaving_n; i++) {
        bool member = false;
        for (size_t k = 0; v && k < v->replicas.len; k++) {
            uint64_t name = 0, data;
            member |= sidecar_split_id(v->replicas.p[k].id, &name, &data) && name == w->leaving[i];
        }
        if (v && v->replicas.len && v->serving && !sidecar_is_busy(shown) && !member)
            json_array_append_new(list, decimal(w->leaving[i]));
    }
    if (json_array_size(list))
        json_object_set(status, "removedReplicas", list);
    else
        json_object_del(status, "removedReplicas");
    json_decref(list);
}

/* The volume. */

static struct sidecar_health health_of(const struct sidecar_volume *v)
{
    struct sidecar_health h = {0};
    if (!v)
        return h;
    h = (struct sidecar_health){.members = (unsigned)v->replicas.len,
                                .needed = (unsigned)v->needed,
                                .voters = (unsigned)v->voters,
                                .serving = v->serving};
    for (size_t i = 0; i < v->replicas.len; i++) {
        enum sidecar_state s = v->replicas.p[i].state;
        h.healthy += s == SIDECAR_HEALTHY;
        h.degraded += s == SIDECAR_DEGRADED || s == SIDECAR_REBUILDING;
        h.connected += s != SIDECAR_OFFLINE;
    }
    return h;
}

/*
 * As istgt has it: it is ready when as many as must have every write are there and one of them is
 * healthy, or when so many are there that one of them must have every write. What it says of itself
 * counts too: a volume that does not serve is Offline, whoever is there.
 */
const char *sidecar_cstor_phase(const struct sidecar_health *h, bool made)
{
    unsigned there = h->healthy + h->degraded, enough = h->voters + 1 - h->needed;
    if (enough < h->needed)
        enough = h->needed;
    bool ready = (there >= h->needed && h->healthy) || there >= enough;
    if (!h->members)
        return made ? "Offline" : "Init";
    if (!ready || !h->serving)
        return "Offline";
    return h->healthy >= h->needed ? "Healthy" : "Degraded";
}

static void set_condition(json_t *conditions, const char *type, const char *status,
                          const char *reason, const char *message, const struct clock *clock)
{
    const struct kube_condition c = {type, status, reason, message, 0};
    kube_condition_set(conditions, &c, clock);
}

static void explain(const struct sidecar_health *h, const struct sidecar_wanted *w, bool made,
                    size_t guests, char text[200])
{
    if (h->serving)
        snprintf(text, 200, "%u of %u replicas have all data", h->healthy, w->replicas);
    else if (!h->members && made)
        snprintf(text, 200, "I/O waits: the target has been started and waits for its replicas");
    else if (!h->members)
        snprintf(text, 200, "The volume is made when %u replicas have come: %zu are here",
                 w->replicas, guests);
    else
        snprintf(text, 200,
                 "I/O waits: %u of %u replicas are connected, and %u must have every write",
                 h->connected, h->members, h->needed);
}

static void set_conditions(json_t *conditions, const struct sidecar_health *h,
                           const struct sidecar_wanted *w, bool chap, const char *text,
                           const struct clock *clock)
{
    bool full = h->serving && h->healthy == h->members && h->healthy == w->replicas;
    const char *why = h->serving   ? (full ? "AllReplicas" : "SomeReplicas")
                      : h->members ? "QuorumLost"
                                   : "WaitsForReplicas";
    char count[100];
    snprintf(count, sizeof(count), "%u of %u replicas have all data", h->healthy, w->replicas);
    set_condition(conditions, "Serving", h->serving ? "True" : "False", why, text, clock);
    set_condition(conditions, "FullyReplicated", full ? "True" : "False", why, count, clock);
    set_condition(conditions, "Authenticated", chap ? "True" : "False", chap ? "CHAP" : "Disabled",
                  chap ? "Initiators log in with CHAP"
                       : "Whoever reaches the portal can read and write the volume: it says "
                         "authentication None",
                  clock);
}

static json_t *initiators_of(const struct sidecar_shown *shown)
{
    json_t *list = json_array();
    for (size_t i = 0; i < shown->sessions.len; i++) {
        const struct sidecar_session *s = &shown->sessions.p[i];
        if (!s->discovery)
            json_array_append_new(
                list, json_pack("{s:s,s:s}", "name", s->initiator, "address", s->address));
    }
    return list;
}

static json_t *quantity_of(uint64_t bytes)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int((int64_t)bytes, QUANTITY_BINARY_SI);
    return json_string(quantity_format(&q, text));
}

static void write_shown(json_t *status, const json_t *volume, const struct sidecar_shown *shown,
                        const struct clock *clock)
{
    const struct sidecar_volume *v = sidecar_shown_volume(shown);
    struct sidecar_health h = health_of(v);
    struct sidecar_wanted w;
    bool made = json_at(volume, "status", "capacity");
    char text[200];
    read_wanted(volume, &w);
    explain(&h, &w, made, v ? v->guests.len : 0, text);
    json_object_set_new(status, "phase", json_string(sidecar_cstor_phase(&h, made)));
    json_object_set_new(status, "message", json_string(text));
    json_object_set_new(status, "replicas", json_sprintf("%u/%u", h.healthy, w.replicas));
    json_object_set_new(status, "initiators", initiators_of(shown));
    json_object_set_new(status, "operation", json_string(shown->operation));
    write_members(status, v);
    write_removed(status, &w, shown);
    /* The size is known, and is the volume's, once it has been served. */
    if (shown->ready)
        json_object_set_new(status, "capacity", quantity_of((uint64_t)shown->size));
    set_conditions(json_object_get(status, "conditions"), &h, &w, shown->chap, text, clock);
}

/* Times, and what is not worth a write. */

/* The same with the numbers of I/O left out; those of `keep` are what counts as I/O. */
static json_t *without_numbers(const json_t *status, bool keep_io)
{
    static const char *const io[] = {"checkpointedIOSeq", "inflightRead", "inflightWrite",
                                     "inflightSync"};
    json_t *copy = json_deep_copy(status), *it;
    size_t i;
    json_array_foreach(json_object_get(copy, "replicaStatuses"), i, it) {
        json_object_del(it, "upTime");
        for (size_t k = 0; !keep_io && k < ARRAY_SIZE(io); k++)
            json_object_del(it, io[k]);
    }
    return copy;
}

static bool is_recent(const json_t *before, int64_t now)
{
    const char *said = json_str(before, "lastUpdateTime");
    struct timespec at;
    return said && rfc3339_parse(said, &at, NULL) == 0 &&
           now - rfc3339_to_ns(at) < REFRESH_SECONDS * CLOCK_SECOND && rfc3339_to_ns(at) <= now;
}

/* What is to be written: with new times, or what there is if nothing speaks for a write. */
static json_t *with_times(json_t *status, const json_t *before, const struct clock *clock)
{
    int64_t now = clock_real_ns(clock);
    const char *phase = json_str(status, "phase"), *was = json_str(before, "phase");
    json_auto_t *plain = without_numbers(status, false),
                *plain_before = before ? without_numbers(before, false) : NULL,
                *io = without_numbers(status, true),
                *io_before = before ? without_numbers(before, true) : NULL;
    bool same = before && json_equal(plain, plain_before);
    if (same && (json_equal(io, io_before) || is_recent(before, now))) {
        json_decref(status);
        return json_deep_copy(before);
    }
    char text[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(now), RFC3339_SECONDS, text);
    json_object_set_new(status, "lastUpdateTime", json_string(text));
    if (!was || !phase || !str_eq(was, phase))
        json_object_set_new(status, "lastTransitionTime", json_string(text));
    return status;
}

static json_t *begin_status(const json_t *volume)
{
    json_t *o = json_deep_copy(json_object_get(volume, "status"));
    if (!json_is_object(o)) {
        json_decref(o);
        o = json_object();
    }
    if (!json_is_array(json_object_get(o, "conditions")))
        json_object_set_new(o, "conditions", json_array());
    return o;
}

/* Nothing is known of the volume. */
static void write_unknown(json_t *status, const json_t *volume, const char *phase,
                          const char *reason, const char *why, const struct clock *clock)
{
    json_t *conditions = json_object_get(status, "conditions");
    struct sidecar_wanted w;
    read_wanted(volume, &w);
    json_object_set_new(status, "phase", json_string(phase));
    json_object_set_new(status, "message", json_string(why));
    json_object_set_new(status, "replicas", json_sprintf("0/%u", w.replicas));
    json_object_set_new(status, "replicaStatuses", json_array());
    json_object_del(status, "removedReplicas");
    set_condition(conditions, "TargetReachable", "False", reason, why, clock);
    set_condition(conditions, "Serving", "Unknown", reason, why, clock);
    set_condition(conditions, "FullyReplicated", "Unknown", reason, why, clock);
}

static json_t *make_status(const json_t *volume, const struct sidecar_shown *shown, const char *why,
                           const struct clock *clock)
{
    json_t *o = begin_status(volume);
    if (shown) {
        set_condition(json_object_get(o, "conditions"), "TargetReachable", "True", "Answers",
                      "The target answers", clock);
        write_shown(o, volume, shown, clock);
    } else {
        write_unknown(o, volume, json_object_get(o, "capacity") ? "Error" : "Init", "NoAnswer", why,
                      clock);
    }
    return with_times(o, json_object_get(volume, "status"), clock);
}

static json_t *make_last_status(const json_t *volume, const struct clock *clock)
{
    json_t *o = begin_status(volume);
    write_unknown(o, volume, "Offline", "TargetEnds", "The target ends", clock);
    return with_times(o, json_object_get(volume, "status"), clock);
}

static bool is_good_news(const char *phase)
{
    return str_eq(phase, "Init") || str_eq(phase, "Healthy") || str_eq(phase, "Degraded");
}

const struct sidecar_kind sidecar_cstor = {
    .version = "cstor.openebs.io/v1",
    .kind = "CStorVolume",
    .wanted = read_wanted,
    .status = make_status,
    .last_status = make_last_status,
    .tells_phase = is_good_news,
    .acknowledge = write_acknowledgement,
};
