/*
 * CStorVolumeConfig, which asks for a volume, and CStorVolumePolicy, settings that many share, as structs.
 */
#pragma once

#include "api/decode.h"
#include "kinds/kinds.h"

/* On a config: the name of the policy that is copied into it once. */
#define API_CVC_POLICY    "openebs.io/volume-policy"
#define API_CVC_FINALIZER "cvc.openebs.io/finalizer"
/* On a config: replicaPoolInfo, JSON, as the system wrote it. While it is the same, the system may choose others. */
#define API_CVC_CHOSEN    "orlop.io/chosen-pools"

struct cstor_pool_name {
    const char *name;
};

/* The settings of a volume, also CStorVolume.spec.policy. */
extern const struct api_field api_cstor_policy[];
struct cstor_policy {
    bool replica_affinity; /* one replica on the node that the volume is published to */
    int64_t block_size;    /* 0: the default */
    struct {
        const char *queue_depth;
        int64_t workers;
        bool monitored;
        const json_t *resources, *sidecar_resources, *tolerations, *affinity, *node_selector;
        const char *priority_class;
    } target;
    struct {
        const char *workers, *compression;
    } replica;
    API_ITEMS(struct cstor_pool_name) pools;
};

struct cstor_volume_config {
    const json_t *json; /* borrowed */
    struct {
        struct api_amount capacity; /* that is wanted now */
        const char *source;         /* "VOLUME@SNAPSHOT", or a volume; "" */
        int64_t replicas;
        const json_t *policy; /* NULL: none was taken over yet */
    } spec;
    const char *node; /* it is published to; "" */
    struct {
        const char *phase;
    } status;
};
struct cstor_volume_config cstor_volume_config_of(const json_t *json);
/* Its lists are in the arena. */
struct cstor_policy cstor_policy_of(const json_t *policy, struct arena *arena);
