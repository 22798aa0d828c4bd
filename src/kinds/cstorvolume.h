/*
 * CStorVolume as a struct, and the names that target, replicas and controllers know it by. Texts live as
 * long as the JSON; of NULL, all is absent.
 */
#pragma once

#include "api/decode.h"
#include "kinds/kinds.h"

/* Who the volume is: its data knows that name. Its uid, unless somebody brought one. */
#define API_CSTOR_ID           "orlop.io/volume-id"
/* On a volume: the node near which a replica is to be, where a pool is there. */
#define API_CSTOR_NODE         "orlop.io/preferred-node"
/* On a volume and its replicas: no two replicas with the same value share a pool; at all, or if that can be. */
#define API_CSTOR_APART        "openebs.io/replica-anti-affinity"
#define API_CSTOR_RATHER_APART "openebs.io/preferred-replica-anti-affinity"
/* On a replica: the volume; the pool's uid and node. */
#define API_CSTOR_OF_VOLUME    "cstorvolume.openebs.io/name"
#define API_CSTOR_POOL_UID     "cstorpoolinstance.openebs.io/uid"
#define API_CSTOR_POOL_NODE    "cstorpoolinstance.openebs.io/hostname"
#define API_CSTOR_FINALIZER    "cstorvolumereplica.openebs.io/finalizer"
/* On a pool: what is on it is to go to other pools. */
#define API_CSTOR_EVACUATE     "orlop.io/evacuate"

enum {
    API_CSTOR_NAME_MAX = 56, /* with "-target", a label's value */
    API_CSTOR_REPLICAS = 7,  /* at most: a view has 8 members, one of which may be on its way in */
};

struct cstor_pool_choice {
    const char *name;
};

struct cstor_replica_status {
    const char *id, *mode; /* id: the GUID of its data set, a decimal number */
};

struct cstor_volume {
    const json_t *json; /* borrowed */
    struct {
        struct api_amount capacity;
        const char *target_ip, *target_port, *portal, *iqn, *authentication;
        int64_t factor, consistency, desired;
        const json_t *known;             /* a map: replica id -> GUID of its data set */
        API_ITEMS(const char *) leaving; /* replica ids */
        API_ITEMS(struct cstor_pool_choice) pools;
        const json_t *policy; /* cstor_policy_of(); NULL: none */
        struct {
            const char *name;
            struct api_amount capacity;
        } order;
    } spec;
    struct {
        const char *phase, *updated;
        struct api_amount capacity;
        const json_t *known, *growth;
        API_ITEMS(struct cstor_replica_status) replicas;
        API_ITEMS(const char *) removed; /* replica ids */
        struct {
            const char *name, *message;
        } resize;
    } status;
};
/* Its lists are in the arena; without one they cannot be read (api_decode()). */
struct cstor_volume cstor_volume_of(const json_t *json, struct arena *arena);
/* How many replicas it is to have. */
unsigned cstor_volume_factor(const struct cstor_volume *v);
