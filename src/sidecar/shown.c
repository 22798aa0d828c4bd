#include "sidecar/shown.h"

static const struct {
    const char *word;
    bool rebuilding;
} states[SIDECAR_STATES] = {
    [SIDECAR_DEGRADED] = {"Degraded", false},
    [SIDECAR_OFFLINE] = {"Offline", false},
    [SIDECAR_HEALTHY] = {"Healthy", false},
    [SIDECAR_REBUILDING] = {"Rebuilding", true},
    [SIDECAR_NEW_DEGRADED] = {"NewReplicaDegraded", false},
    [SIDECAR_RECONSTRUCTING] = {"ReconstructingNewReplica", true},
};

const char *sidecar_state_word(enum sidecar_state state)
{
    return states[state].word;
}

bool sidecar_state_is_rebuilding(enum sidecar_state state)
{
    return states[state].rebuilding;
}

/* A word of a later target counts as one that has not all data. */
static enum sidecar_state parse_state(const char *word)
{
    for (enum sidecar_state s = 0; s < SIDECAR_STATES; s++) {
        if (str_eq(states[s].word, word))
            return s;
    }
    return SIDECAR_DEGRADED;
}

#define R struct sidecar_replica
static const struct api_field replica[] = {
    {"replicaId", API_STRING, API_TEXT(R, id)},
    {"address", API_STRING, API_TEXT(R, address)},
    {"mode", API_STRING, API_TEXT(R, word)},
    {"voter", API_BOOL, API_TRUTH(R, voter)},
    {"rebuildPercent", API_INT, API_NUMBER_AT(R, percent)},
    {"rebuildSecondsLeft", API_INT, API_NUMBER_AT(R, seconds_left)},
    {"lag", API_INT, API_NUMBER_AT(R, lag)},
    {"checkpointedIOSeq", API_STRING, API_TEXT(R, checkpointed)},
    {"inflightRead", API_STRING, API_TEXT(R, reads)},
    {"inflightWrite", API_STRING, API_TEXT(R, writes)},
    {"inflightSync", API_STRING, API_TEXT(R, syncs)},
    {"quorum", API_STRING, API_TEXT(R, quorum)},
    {"upTime", API_INT, API_NUMBER_AT(R, up_time)},
    {0},
};

static const struct api_field guest[] = {
    {"replicaId", API_STRING, API_TEXT(struct sidecar_guest, id)},
    {0},
};

#define V struct sidecar_volume
static const struct api_field volume[] = {
    {"serving", API_BOOL, API_TRUTH(V, serving)},
    {"consistencyFactor", API_INT, API_NUMBER_AT(V, needed)},
    {"replicationFactor", API_INT, API_NUMBER_AT(V, voters)},
    {"replicaStatus", API_OBJECT, API_LIST, .fields = replica, API_ARRAY(V, replicas)},
    {"guests", API_OBJECT, API_LIST, .fields = guest, API_ARRAY(V, guests)},
    {0},
};

static const struct api_field session[] = {
    {"initiator", API_STRING, API_TEXT(struct sidecar_session, initiator)},
    {"address", API_STRING, API_TEXT(struct sidecar_session, address)},
    {"discovery", API_BOOL, API_TRUTH(struct sidecar_session, discovery)},
    {0},
};

static const struct api_field snapshot[] = {
    {"name", API_STRING, API_TEXT(struct sidecar_snapshot, name)},
    {"created", API_STRING, API_TEXT(struct sidecar_snapshot, created)},
    {0},
};

#define S struct sidecar_shown
static const struct api_field fields[] = {
    {"ready", API_BOOL, API_TRUTH(S, ready)},
    {"chap", API_BOOL, API_TRUTH(S, chap)},
    {"size", API_INT, API_NUMBER_AT(S, size)},
    {"operation", API_STRING, API_TEXT(S, operation)},
    {"volumeStatus", API_OBJECT, API_LIST, .fields = volume, API_ARRAY(S, volumes)},
    {"sessions", API_OBJECT, API_LIST, .fields = session, API_ARRAY(S, sessions)},
    {"snapshots", API_OBJECT, API_LIST, .fields = snapshot, API_ARRAY(S, snapshots)},
    {0},
};

void sidecar_shown_read(json_t *json, struct sidecar_shown *ret)
{
    *ret = (struct sidecar_shown){.json = json};
    api_decode(fields, json, ret, &ret->arena);
    for (size_t v = 0; v < ret->volumes.len; v++) {
        struct sidecar_volume *it = &ret->volumes.p[v];
        for (size_t i = 0; i < it->replicas.len; i++)
            it->replicas.p[i].state = parse_state(it->replicas.p[i].word);
    }
}

void sidecar_shown_done(struct sidecar_shown *s)
{
    arena_done(&s->arena);
    json_decref(s->json);
}

const struct sidecar_volume *sidecar_shown_volume(const struct sidecar_shown *s)
{
    return s->volumes.len ? s->volumes.p : NULL;
}

bool sidecar_is_busy(const struct sidecar_shown *s)
{
    return *s->operation;
}

bool sidecar_has_snapshot(const struct sidecar_shown *s, const char *name)
{
    for (size_t i = 0; i < s->snapshots.len; i++) {
        if (str_eq(s->snapshots.p[i].name, name))
            return true;
    }
    return false;
}
