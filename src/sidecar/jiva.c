/*
 * JivaVolume: what its object asks for, and what its status says.
 */
#include "kinds/jiva.h"

#include "base/quantity.h"
#include "kube/condition.h"
#include "sidecar/sidecar.h"

enum { BLOCK = 4096 };

/* Whole blocks of a quantity, in bytes; 0 for none, and for a bare number, of which admission makes GiB. */
static uint64_t bytes_of(struct api_amount amount)
{
    return *amount.text && amount.n > 0 ? ((uint64_t)amount.n + BLOCK - 1) / BLOCK * BLOCK : 0;
}

/* NULL for "". */
static const char *some(const char *text)
{
    return *text ? text : NULL;
}

static void read_wanted(const json_t *volume, struct sidecar_wanted *ret)
{
    const struct jiva_volume v = jiva_volume_of(volume, NULL);
    const char *id = kube_annotation(volume, API_JIVA_ID);
    const char *lock = kube_annotation(volume, API_JIVA_RESIZE_LOCK);
    *ret = (struct sidecar_wanted){
        .create = !*v.status.capacity.text && id && str_eq(id, kube_uid(volume)),
        .size = bytes_of(v.spec.capacity),
        .replicas = jiva_volume_factor(&v),
        .taken = some(v.status.resize.name),
        .failed = some(v.status.resize.message),
    };
    /* Whoever ordered it must still hold the lock. */
    if (lock && *lock && str_eq(v.spec.resize.name, lock) && bytes_of(v.spec.resize.capacity)) {
        ret->resize = v.spec.resize.name;
        ret->capacity = v.spec.resize.capacity.text;
        ret->grow_to = bytes_of(v.spec.resize.capacity);
    }
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

static void read_order(const json_t *volume, struct sidecar_order *ret)
{
    static const char *const words[SIDECAR_COMMANDS] = {"create", "delete", "revert"};
    const struct jiva_volume v = jiva_volume_of(volume, NULL);
    const char *phase = v.status.snapshot.phase;
    *ret = (struct sidecar_order){v.spec.snapshot.generation, .name = v.spec.snapshot.name};
    while (ret->command < SIDECAR_COMMANDS && !str_eq(words[ret->command], v.spec.snapshot.command))
        ret->command++;
    if (v.status.snapshot.generation == ret->generation && *phase)
        ret->phase = str_eq(phase, "Running") ? SIDECAR_RUNNING : SIDECAR_ENDED;
}

static void write_answer(json_t *status, int64_t generation, const char *phase, const char *message)
{
    json_object_set_new(status, "snapshotOrder",
                        json_pack("{s:I,s:s,s:s}", "generation", (json_int_t)generation, "phase",
                                  phase, "message", message));
}

/* Replicas. */

static const char *mode_of(enum sidecar_state state)
{
    return state == SIDECAR_HEALTHY ? "RW" : state == SIDECAR_OFFLINE ? "ERR" : "WO";
}

/* Where it was last seen, for one that is not there now. */
static const char *last_address(const struct jiva_volume *v, const char *id)
{
    for (size_t i = 0; i < v->status.replicas.len; i++) {
        if (str_eq(v->status.replicas.p[i].id, id))
            return v->status.replicas.p[i].address;
    }
    return "";
}

static json_t *replica_of(const struct jiva_volume *v, const struct sidecar_replica *r)
{
    bool rebuilding = sidecar_state_is_rebuilding(r->state);
    const struct jiva_replica replica = {
        .id = r->id,
        .address = *r->address ? r->address : last_address(v, r->id),
        .mode = mode_of(r->state),
        .state = sidecar_state_word(r->state),
        .percent = rebuilding ? r->percent : JIVA_NOT_SAID,
        .seconds_left = rebuilding ? r->seconds_left : JIVA_NOT_SAID,
        .lag = rebuilding ? r->lag : JIVA_NOT_SAID,
    };
    return jiva_replica_json(&replica);
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

/*
 * A target that has just been started does not know the replicas before enough of them have come:
 * they are still who they were, and none is in sync.
 */
static json_t *replicas_of(const struct jiva_volume *volume, const struct sidecar_volume *v)
{
    json_t *list = json_array();
    for (size_t i = 0; v && i < v->replicas.len; i++)
        json_array_append_new(list, replica_of(volume, &v->replicas.p[i]));
    for (size_t i = 0; !(v && v->replicas.len) && i < volume->status.replicas.len; i++) {
        struct jiva_replica replica = volume->status.replicas.p[i];
        replica.state = sidecar_state_word(SIDECAR_OFFLINE);
        replica.mode = mode_of(SIDECAR_OFFLINE);
        json_array_append_new(list, jiva_replica_json(&replica));
    }
    return list;
}

/* The volume. */

struct health {
    unsigned members, healthy, connected, guests, needed;
    bool serving;
};

static struct health health_of(const struct sidecar_volume *v)
{
    struct health h = {0};
    if (!v)
        return h;
    h = (struct health){.members = (unsigned)v->replicas.len,
                        .guests = (unsigned)v->guests.len,
                        .needed = (unsigned)v->needed,
                        .serving = v->serving};
    for (size_t i = 0; i < v->replicas.len; i++) {
        h.healthy += v->replicas.p[i].state == SIDECAR_HEALTHY;
        h.connected += v->replicas.p[i].state != SIDECAR_OFFLINE;
    }
    return h;
}

/* Whether it has been served before. */
static bool is_made(const struct jiva_volume *volume)
{
    return *volume->status.capacity.text;
}

static const char *phase_of(const struct health *h, const struct jiva_volume *volume)
{
    if (!h->members && !is_made(volume))
        return "Pending";
    return h->serving && h->healthy == h->members && h->members == jiva_volume_factor(volume)
               ? "Ready"
               : "Syncing";
}

static void set_serving(json_t *conditions, const struct health *h,
                        const struct jiva_volume *volume, const struct clock *clock)
{
    struct kube_condition c = {.type = "Serving", .status = h->serving ? "True" : "False"};
    char text[200];
    if (h->serving) {
        c.reason = h->healthy == h->members ? "AllReplicas" : "SomeReplicas";
        snprintf(text, sizeof(text), "%u of %u replicas have all data", h->healthy, h->members);
    } else if (!h->members && is_made(volume)) {
        c.reason = "WaitsForReplicas";
        snprintf(text, sizeof(text),
                 "I/O waits: the target has been started and waits for its replicas");
    } else if (!h->members) {
        c.reason = "WaitsForReplicas";
        snprintf(text, sizeof(text), "The volume is made when %u replicas have come: %u are here",
                 jiva_volume_factor(volume), h->guests);
    } else {
        c.reason = "QuorumLost";
        snprintf(text, sizeof(text),
                 "I/O waits: %u of %u replicas are connected, and %u must have every write",
                 h->connected, h->members, h->needed);
    }
    c.message = text;
    kube_condition_set(conditions, &c, clock);
}

static void set_reachable(json_t *conditions, const char *why, const struct clock *clock)
{
    const struct kube_condition c = {
        .type = "TargetReachable",
        .status = why ? "False" : "True",
        .reason = why ? "NoAnswer" : "Answers",
        .message = why ? why : "The target answers",
    };
    kube_condition_set(conditions, &c, clock);
}

/* What the target does, whatever the object says: it may not have been started anew yet. */
static void set_authenticated(json_t *conditions, bool chap, const struct clock *clock)
{
    const struct kube_condition c = {
        .type = "Authenticated",
        .status = chap ? "True" : "False",
        .reason = chap ? "CHAP" : "Disabled",
        .message = chap ? "Initiators log in with CHAP"
                        : "Whoever reaches the portal can read and write the volume: its policy "
                          "says authentication None",
    };
    kube_condition_set(conditions, &c, clock);
}

static json_t *quantity_of(uint64_t bytes)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int((int64_t)bytes, QUANTITY_BINARY_SI);
    return json_string(quantity_format(&q, text));
}

static json_t *snapshots_of(const struct sidecar_shown *shown)
{
    json_t *list = json_array();
    for (size_t i = 0; i < shown->snapshots.len; i++)
        json_array_append_new(list, json_pack("{s:s,s:s}", "name", shown->snapshots.p[i].name,
                                              "created", shown->snapshots.p[i].created));
    return list;
}

static void write_shown(json_t *status, const struct jiva_volume *volume,
                        const struct sidecar_shown *shown, const struct health *h)
{
    json_object_set_new(status, "phase", json_string(phase_of(h, volume)));
    json_object_set_new(status, "status", json_string(h->serving ? "RW" : "Offline"));
    json_object_set_new(status, "replicaCount", json_integer(h->connected));
    json_object_set_new(status, "replicaStatus", replicas_of(volume, sidecar_shown_volume(shown)));
    json_object_set_new(status, "initiators", initiators_of(shown));
    json_object_set_new(status, "operation", json_string(shown->operation));
    if (h->members)
        json_object_set_new(status, "snapshots", snapshots_of(shown));
    /* The size is known, and is the volume's, once it has been served. */
    if (shown->ready)
        json_object_set_new(status, "capacity", quantity_of((uint64_t)shown->size));
}

static json_t *make_status(const json_t *volume, const struct sidecar_shown *shown, const char *why,
                           const struct clock *clock)
{
    _cleanup_(arena_done) struct arena arena = {0};
    const struct jiva_volume v = jiva_volume_of(volume, &arena);
    json_t *o = kube_status_copy(volume);
    json_t *conditions = json_array_at(o, "conditions");
    set_reachable(conditions, shown ? NULL : why, clock);
    if (shown) {
        struct health h = health_of(sidecar_shown_volume(shown));
        write_shown(o, &v, shown, &h);
        set_serving(conditions, &h, &v, clock);
        set_authenticated(conditions, shown->chap, clock);
    } else if (is_made(&v)) {
        json_object_set_new(o, "phase", json_string("Unknown"));
        json_object_set_new(o, "status", json_string("Offline"));
    }
    return o;
}

const struct sidecar_kind sidecar_jiva = {
    .version = "openebs.io/v1alpha1",
    .kind = "JivaVolume",
    .wanted = read_wanted,
    .status = make_status,
    .acknowledge = write_acknowledgement,
    .order = read_order,
    .answer = write_answer,
};
