/*
 * JivaVolumes and JivaVolumeResizes as structs, and what they share. Texts live as long as the JSON; of NULL, all
 * is absent.
 */
#pragma once

#include "api/decode.h"
#include "api/kind.h"

/* On a JivaVolume: "true" allows resizing; the name of the resize that holds the lock. */
#define API_JIVA_RESIZE_ENABLED "resize.jiva.openebs.io/enabled"
#define API_JIVA_RESIZE_LOCK    "resize.jiva.openebs.io/name"
/* Who the volume is: its data knows that name. Its uid, unless somebody brought one. */
#define API_JIVA_ID             "jiva.openebs.io/volume-id"
/* The nodes that have a replica each, and those whose folders are to be erased; separated by commas. */
#define API_JIVA_NODES          "jiva.openebs.io/nodes"
#define API_JIVA_STALE          "jiva.openebs.io/stale-nodes"
/* "Delete": data goes with the object. */
#define API_JIVA_RECLAIM        "jiva.openebs.io/reclaim-policy"
/* Label of a JivaVolumeResize: the volume that it is about. */
#define API_JIVA_NAME           "jiva.openebs.io/name"

enum {
    API_JIVA_NAME_MAX = 58, /* with "-ctrl", a label's value */
    API_JIVA_REPLICAS = 7,  /* at most: a view has 8 members, one of which may be on its way in */
};

/* What the policy says of the pods of the target, or of the replicas. */
struct jiva_part {
    const json_t *resources, *tolerations, *affinity, *node_selector;
    const char *priority_class;
    /* Of the target alone. */
    const json_t *side_resources;
    const char *authentication; /* "CHAP" or "None" */
    bool unmonitored;
    int64_t factor;
};

enum { JIVA_NOT_SAID = -1 };
struct jiva_replica {
    const char *id, *address, *mode, *state;
    int64_t percent, seconds_left, lag; /* of a rebuild; JIVA_NOT_SAID without one */
};
/* As an element of status.replicaStatus; new. */
json_t *jiva_replica_json(const struct jiva_replica *replica);

struct jiva_initiator {
    const char *name, *address;
};

struct jiva_snapshot {
    const char *name, *created;
};

struct jiva_volume {
    const json_t *json; /* borrowed */
    struct {
        struct api_amount capacity;
        int64_t lun;
        const char *pv;
        struct {
            const char *iqn, *ip;
            int64_t port;
        } iscsi; /* the published form of iscsi */
        struct {
            const char *replica_class, *service_account, *priority_class;
            bool buffered; /* replicas use the page cache */
            bool rehomes;  /* a replica of a lost node goes elsewhere */
            struct jiva_part target, replica;
        } policy;
        int64_t desired_factor; /* 0: what the policy says; jiva_volume_factor() */
        struct {
            const char *name; /* of the resize; "": nothing is ordered */
            struct api_amount capacity;
        } resize;
        struct {
            int64_t generation; /* 0: nothing is ordered */
            const char *command, *name;
        } snapshot;
    } spec;
    struct {
        const char *iqn, *portal;
    } iscsi;
    struct {
        const char *phase, *status;
        int64_t replica_count;
        API_ITEMS(struct jiva_replica) replicas;
        struct api_amount capacity; /* without a text the volume has never been served */
        API_ITEMS(struct jiva_initiator) initiators;
        API_ITEMS(struct jiva_snapshot) snapshots;
        const char *operation;
        struct {
            const char *name, *message; /* "": it has taken no order; it has not failed */
        } resize;
        struct {
            int64_t generation;
            const char *phase, *message;
        } snapshot;
    } status;
};
/* Its lists are in the arena; without one they cannot be read (api_decode()). */
struct jiva_volume jiva_volume_of(const json_t *json, struct arena *arena);
/* How many replicas it is to have. */
unsigned jiva_volume_factor(const struct jiva_volume *volume);
/* Whether initiators must prove who they are. */
bool jiva_volume_is_authenticated(const struct jiva_volume *volume);

/* A replica, and the size that it has; "" of one that is away. */
struct jiva_progress {
    const char *address, *state;
    struct api_amount capacity;
};

struct jiva_resize {
    const json_t *json; /* borrowed */
    struct {
        struct api_amount capacity;
    } spec;
    struct {
        const char *phase, *reason, *message, *start_time, *completion_time;
        struct api_amount from;
        API_ITEMS(struct jiva_progress) replicas;
    } status;
};
/* As jiva_volume_of(). */
struct jiva_resize jiva_resize_of(const json_t *json, struct arena *arena);
/* Whether its phase is final. */
bool jiva_resize_is_over(const struct jiva_resize *resize);

/* A bare number in spec.capacity counts GiB. */
void api_jiva_capacity(json_t *object, struct api_report *report);
/*
 * jivaform.c: how to reach the volume, from what either form says, the iSCSI name at least; and the same as
 * spec.iscsiSpec has it. New references.
 */
json_t *api_jiva_iscsi(const json_t *volume);
json_t *api_jiva_iscsi_published(const json_t *iscsi);
