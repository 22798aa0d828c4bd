/*
 * JivaVolume: what its object asks for, and what its status says.
 */
#include "kinds/jiva.h"

#include "base/quantity.h"
#include "kube/condition.h"
#include "sidecar/sidecar.h"

enum { BLOCK = 4096 };

/* Whole blocks of a quantity, in bytes; 0 when it is none. */
static uint64_t bytes_of(const char *text)
{
    return (api_jiva_bytes(text) + BLOCK - 1) / BLOCK * BLOCK;
}

static void wanted(const json_t *volume, struct sidecar_wanted *ret)
{
    const char *id = kube_annotation(volume, API_JIVA_ID);
    const json_t *taken = json_at(volume, "status", "resize");
    const json_t *order = json_at(volume, "spec", "resizeOrder");
    const char *by = json_str(order, "name"), *capacity = json_str(order, "capacity");
    const char *lock = kube_annotation(volume, API_JIVA_RESIZE_LOCK);
    *ret = (struct sidecar_wanted){
        .create = !json_at(volume, "status", "capacity") && id && str_eq(id, kube_uid(volume)),
        .size = bytes_of(json_str(json_object_get(volume, "spec"), "capacity")),
        .replicas = api_jiva_factor(volume),
        .taken = json_str(taken, "name"),
        .failed = json_str(taken, "message"),
    };
    /* Whoever ordered it must still hold the lock. */
    if (by && lock && str_eq(by, lock) && bytes_of(capacity)) {
        ret->resize = by;
        ret->capacity = capacity;
        ret->grow_to = bytes_of(capacity);
    }
}

static void acknowledge(json_t *status, const struct sidecar_wanted *w, const char *failure)
{
    if (!w)
        json_object_del(status, "resize");
    else
        json_object_set_new(status, "resize",
                            json_pack("{s:s,s:s,s:s}", "name", w->resize, "capacity", w->capacity,
                                      "message", failure ? failure : ""));
}

static void order(const json_t *volume, struct sidecar_order *ret)
{
    static const char *const words[SIDECAR_COMMANDS] = {"create", "delete", "revert"};
    const json_t *given = json_at(volume, "spec", "snapshotOrder"),
                 *said = json_at(volume, "status", "snapshotOrder");
    const char *command = json_str(given, "command"), *name = json_str(given, "name"),
               *phase = json_str(said, "phase");
    *ret = (struct sidecar_order){
        .generation = json_integer_value(json_object_get(given, "generation")),
        .name = name ? name : "",
    };
    while (ret->command < SIDECAR_COMMANDS && !(command && str_eq(words[ret->command], command)))
        ret->command++;
    if (json_integer_value(json_object_get(said, "generation")) == ret->generation && phase)
        ret->phase = str_eq(phase, "Running") ? SIDECAR_RUNNING : SIDECAR_ENDED;
}

static void answer(json_t *status, int64_t generation, const char *phase, const char *message)
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
static const char *last_address(const json_t *volume, const char *id)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)json_at(volume, "status", "replicaStatus"), i, it) {
        const char *known = json_str(it, "replicaId"), *address = json_str(it, "address");
        if (known && str_eq(known, id))
            return address ? address : "";
    }
    return "";
}

static json_t *replica_of(const json_t *volume, const struct sidecar_replica *r)
{
    json_t *o = json_pack("{s:s,s:s,s:s,s:s}", "replicaId", r->id, "address",
                          *r->address ? r->address : last_address(volume, r->id), "mode",
                          mode_of(r->state), "state", sidecar_state_word(r->state));
    if (!sidecar_state_is_rebuilding(r->state))
        return o;
    json_object_set_new(o, "rebuildPercent", json_integer(r->percent));
    json_object_set_new(o, "secondsLeft", json_integer(r->seconds_left));
    json_object_set_new(o, "lag", json_integer(r->lag));
    return o;
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
 * A target that has just been started does not know the replicas before enough of them have come: they
 * are still who they were, and none is in sync.
 */
static json_t *replicas_of(const json_t *volume, const struct sidecar_volume *v)
{
    const json_t *before = json_at(volume, "status", "replicaStatus");
    json_t *list = json_array(), *it;
    size_t i;
    for (i = 0; v && i < v->replicas.len; i++)
        json_array_append_new(list, replica_of(volume, &v->replicas.p[i]));
    if (json_array_size(list))
        return list;
    json_array_foreach((json_t *)(uintptr_t)before, i, it) {
        json_t *replica = json_deep_copy(it);
        json_object_set_new(replica, "state", json_string(sidecar_state_word(SIDECAR_OFFLINE)));
        json_object_set_new(replica, "mode", json_string(mode_of(SIDECAR_OFFLINE)));
        json_array_append_new(list, replica);
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

static const char *phase_of(const struct health *h, unsigned factor, bool made)
{
    if (!h->members && !made)
        return "Pending";
    return h->serving && h->healthy == h->members && h->members == factor ? "Ready" : "Syncing";
}

static void set_serving(json_t *conditions, const struct health *h, unsigned factor, bool made,
                        const struct clock *clock)
{
    struct kube_condition c = {.type = "Serving", .status = h->serving ? "True" : "False"};
    char text[200];
    if (h->serving) {
        c.reason = h->healthy == h->members ? "AllReplicas" : "SomeReplicas";
        snprintf(text, sizeof(text), "%u of %u replicas have all data", h->healthy, h->members);
    } else if (!h->members && made) {
        c.reason = "WaitsForReplicas";
        snprintf(text, sizeof(text),
                 "I/O waits: the target has been started and waits for its replicas");
    } else if (!h->members) {
        c.reason = "WaitsForReplicas";
        snprintf(text, sizeof(text), "The volume is made when %u replicas have come: %u are here",
                 factor, h->guests);
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

static void show(json_t *status, const json_t *volume, const struct sidecar_shown *shown)
{
    const struct sidecar_volume *v = sidecar_shown_volume(shown);
    struct health h = health_of(v);
    bool made = json_at(volume, "status", "capacity");
    json_object_set_new(status, "phase", json_string(phase_of(&h, api_jiva_factor(volume), made)));
    json_object_set_new(status, "status", json_string(h.serving ? "RW" : "Offline"));
    json_object_set_new(status, "replicaCount", json_integer(h.connected));
    json_object_set_new(status, "replicaStatus", replicas_of(volume, v));
    json_object_set_new(status, "initiators", initiators_of(shown));
    json_object_set_new(status, "operation", json_string(shown->operation));
    if (h.members)
        json_object_set_new(status, "snapshots", snapshots_of(shown));
    /* The size is known, and is the volume's, once it has been served. */
    if (shown->ready)
        json_object_set_new(status, "capacity", quantity_of((uint64_t)shown->size));
}

static json_t *status(const json_t *volume, const struct sidecar_shown *shown, const char *why,
                      const struct clock *clock)
{
    json_t *o = json_deep_copy(json_object_get(volume, "status"));
    if (!json_is_object(o)) {
        json_decref(o);
        o = json_object();
    }
    json_t *conditions = json_object_get(o, "conditions");
    if (!json_is_array(conditions)) {
        conditions = json_array();
        json_object_set_new(o, "conditions", conditions);
    }
    set_reachable(conditions, shown ? NULL : why, clock);
    if (shown) {
        struct health h = health_of(sidecar_shown_volume(shown));
        show(o, volume, shown);
        set_serving(conditions, &h, api_jiva_factor(volume), json_at(volume, "status", "capacity"),
                    clock);
        set_authenticated(conditions, shown->chap, clock);
    } else if (json_object_get(o, "capacity")) {
        json_object_set_new(o, "phase", json_string("Unknown"));
        json_object_set_new(o, "status", json_string("Offline"));
    }
    return o;
}

const struct sidecar_kind sidecar_jiva = {
    .version = "openebs.io/v1alpha1",
    .kind = "JivaVolume",
    .wanted = wanted,
    .status = status,
    .acknowledge = acknowledge,
    .order = order,
    .answer = answer,
};
