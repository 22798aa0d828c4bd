/*
 * What a target shows, as a struct: the answer of its control socket, decoded once.
 */
#pragma once

#include "api/decode.h"
#include "json/json.h"

/* How a replica is. */
enum sidecar_state {
    SIDECAR_DEGRADED,       /* it is there, and misses writes */
    SIDECAR_OFFLINE,        /* it is not there */
    SIDECAR_HEALTHY,        /* it has all data */
    SIDECAR_REBUILDING,     /* it misses writes, and they are being copied */
    SIDECAR_NEW_DEGRADED,   /* it never had all data */
    SIDECAR_RECONSTRUCTING, /* it never had all data, and that is being copied */
    SIDECAR_STATES,
};
/* The word for it, as the target and the API have it. */
const char *sidecar_state_word(enum sidecar_state state);
bool sidecar_state_is_rebuilding(enum sidecar_state state);

struct sidecar_replica {
    const char *id, *address; /* address: "" of one that is not there */
    const char *word;
    enum sidecar_state state; /* of the word */
    bool voter;
    int64_t percent, seconds_left, lag; /* of a rebuild; lag: writes that it has not answered */
    /* As CStorVolume's status has them, in its words. */
    const char *checkpointed, *reads, *writes, *syncs, *quorum;
    int64_t up_time; /* seconds */
};

struct sidecar_guest {
    const char *id;
};

struct sidecar_session {
    const char *initiator, *address;
    bool discovery;
};

struct sidecar_snapshot {
    const char *name, *created;
};

/* Of a volume with replicas. */
struct sidecar_volume {
    bool serving;
    int64_t needed; /* replicas that must have every write */
    int64_t voters; /* replicas that count */
    API_ITEMS(struct sidecar_replica) replicas;
    API_ITEMS(struct sidecar_guest) guests; /* who is there and is no member */
};

struct sidecar_shown {
    json_t *json; /* owned, as are the rest's texts and lists */
    struct arena arena;
    bool ready; /* the size is known */
    bool chap;
    int64_t size;
    const char *operation; /* what it is at beside I/O, as status.operation has it; "" */
    API_ITEMS(struct sidecar_volume) volumes; /* one, or none */
    API_ITEMS(struct sidecar_session) sessions;
    API_ITEMS(struct sidecar_snapshot) snapshots;
};

/* Takes over the JSON. */
void sidecar_shown_read(json_t *json, struct sidecar_shown *ret);
void sidecar_shown_done(struct sidecar_shown *s);
/* NULL before there is one. */
const struct sidecar_volume *sidecar_shown_volume(const struct sidecar_shown *s);
bool sidecar_is_busy(const struct sidecar_shown *s);
bool sidecar_has_snapshot(const struct sidecar_shown *s, const char *name);
