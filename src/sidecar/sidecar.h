/*
 * orlop-sidecar: beside a volume's target, the program that speaks with Kubernetes.
 *
 *     API ── the volume's object ──> wanted ──┐
 *      ^                                      ├─> one step ──> control socket ──> target
 *      └───── status <── what it shows <──────┘
 *
 * The target knows nothing of objects; this knows nothing of data. It watches one object, its
 * volume's, and asks the target again and again how things are.
 *
 * Invariants:
 * - The status says what the target showed, or that it does not answer; nothing is remembered.
 * - One thing at a time is asked of the target, and only while it is at nothing else.
 * - A volume is made only if its object says that it never was, and was born here.
 * - An order is a field of the object's spec, and begins when it was acknowledged in the status, by
 *   a write that names the version in which the order was read. So whoever withdraws an order knows
 *   whether it was taken.
 *
 * What is particular to a kind is behind struct sidecar_kind.
 */
#pragma once

#include "base/err.h"
#include "json/json.h"
#include "kube/manager.h"
#include "sidecar/shown.h"

enum { SIDECAR_LEAVING = 16 };

/* What the object asks for. Texts are the object's. */
struct sidecar_wanted {
    bool create; /* it was never made */
    uint64_t size;
    unsigned replicas, consistency; /* consistency: 0: more than half */
    /*
     * Replicas are known by name, and who is to go is said; the target lets go of nobody else. The
     * name is the first half of a replica's id, so that one whose data was lost has the same.
     */
    bool named;
    uint64_t leaving[SIDECAR_LEAVING];
    unsigned leaving_n;
    /* An order to grow; NULL: none. */
    const char *resize, *capacity;
    uint64_t grow_to;
    /* What is acknowledged; NULL: nothing. */
    const char *taken, *failed;
};

/* What is asked about snapshots. Texts are the object's. */
enum sidecar_command { SIDECAR_CREATE, SIDECAR_DELETE, SIDECAR_REVERT, SIDECAR_COMMANDS };
enum sidecar_phase { SIDECAR_NEW, SIDECAR_RUNNING, SIDECAR_ENDED };
struct sidecar_order {
    int64_t generation;           /* which order; 0: there is none */
    enum sidecar_command command; /* SIDECAR_COMMANDS: none that is known */
    const char *name;
    enum sidecar_phase phase; /* what was acknowledged of it */
};

struct sidecar_kind {
    const char *version, *kind;
    void (*wanted)(const json_t *volume, struct sidecar_wanted *ret);
    /* The status as it should be: what it was, with what is shown. shown NULL: no answer, `why`. */
    json_t *(*status)(const json_t *volume, const struct sidecar_shown *shown, const char *why,
                      const struct clock *clock);
    /* Whether a phase is good news, in the event of its change; NULL: there are no such events. */
    bool (*tells_phase)(const char *phase);
    /* The status of a target that ends; NULL: it is left as it is. */
    json_t *(*last_status)(const json_t *volume, const struct clock *clock);
    /* NULL: the kind has no orders about snapshots. */
    void (*order)(const json_t *volume, struct sidecar_order *ret);
    /* Writes into a status how far the order is: "Running", "Done" or "Failed". */
    void (*answer)(json_t *status, int64_t generation, const char *phase, const char *message);
    /* Writes an acknowledgement into a status: NULL takes it out. */
    void (*acknowledge)(json_t *status, const struct sidecar_wanted *wanted, const char *failure);
};

extern const struct sidecar_kind sidecar_jiva;  /* jiva.c */
extern const struct sidecar_kind sidecar_cstor; /* cstor.c */
/* By its name; NULL. */
const struct sidecar_kind *sidecar_kind_find(const char *name);

struct sidecar_options {
    const struct sidecar_kind *kind;
    const struct kube_config *config;
    const char *ns, *name;
    const char *control; /* the target's socket */
};

int sidecar_run(const struct sidecar_options *o, int stop_fd, struct err *e);

/*
 * target.c: one request; the answer, or NULL: UNAVAILABLE, DEADLINE_EXCEEDED, or what it refuses.
 */
json_t *sidecar_ask(const char *control, json_t *request, int64_t timeout_ns, struct err *e);

/* snapshots.c: follows an order about snapshots. 1 when it is at one, so that nothing else is. */
struct sidecar;
int sidecar_follow_order(struct sidecar *m, json_t **volume, const struct sidecar_shown *shown,
                         struct err *e);
/* run.c: between two crash points; nothing when the object has this status. */
struct sidecar {
    const struct sidecar_options *o;
    const struct clock *clock;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource r;
    struct kube_informer *volumes;
};
int sidecar_write_status(struct sidecar *m, json_t **volume, const json_t *status, const char *what,
                         struct err *e);

/*
 * members.c: what to ask of the target next so that it has the replicas it should; NULL: nothing.
 */
json_t *sidecar_next_request(const struct sidecar_shown *shown,
                             const struct sidecar_wanted *wanted);
/*
 * The two numbers of a replica that is known by name: which replica it is, and which data set. False
 * when it is no such id.
 */
bool sidecar_split_id(const char *id, uint64_t *ret_name, uint64_t *ret_data);
bool sidecar_is_leaving(const struct sidecar_wanted *wanted, uint64_t name);
/* cstor.c: the phase by the rule of the published controller. */
struct sidecar_health {
    unsigned members, healthy, degraded, connected, needed, voters;
    bool serving;
};
const char *sidecar_cstor_phase(const struct sidecar_health *h, bool made);
