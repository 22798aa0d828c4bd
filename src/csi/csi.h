/*
 * The CSI driver: RPCs as plain functions from message to message.
 *
 *     socket ─> grpc ─┐                        ┌─> engine: jiva, ...    the volume's object in the API
 *                     ├─> csi_create_volume() ─┤
 *     controllers ────┘    checks, guard       └─> guard                one operation at a time
 *
 * Invariants:
 * - A driver has no state of its own: what there is stands in the API, or is on the node.
 * - Operations on one volume do not overlap: the second is ABORTED, and its caller tries again.
 * - A code that callers take for final (all but ABORTED, CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE) leaves nothing
 *   running and nothing behind. A call may be made again at any time, and goes on where the one before ended.
 * - Secrets are in no log, error or event.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "csi/csi.pb-c.h"
#include "grpc/grpc.h"
#include "kube/client.h"

#define CSI_GIB ((int64_t)1 << 30)

struct csi_engine;

/* What a process shares. */
struct csi {
    struct kube_client *client;
    const struct clock *clock;
    const char *ns;   /* of volumes that have one */
    const char *node; /* where this runs; NULL: controller alone */
    bool controller;
    atomic_bool ready; /* the API was reached lately */
    pthread_mutex_t lock;
    struct map busy; /* keys of operations under way; with the lock */
};

/* One name by which the driver is known. */
struct csi_driver {
    struct csi *csi;
    const char *name;
    const struct csi_engine *engine;
};

struct csi_call {
    const struct csi_driver *driver;
    struct arena *arena; /* answers are in it */
    int64_t deadline;    /* monotonic; INT64_MAX: none */
    bool (*cancelled)(const void *context);
    const void *context;
};

/* What a volume is. Texts are in the call's arena. */
struct csi_volume {
    const char *id;
    int64_t size;
    const char *source_snapshot, *source_volume; /* NULL: none */
    const char *topology_key, *node;             /* where it can be used; NULL: everywhere */
    const char *const *published;                /* nodes; ends with NULL */
    const char *problem; /* what is wrong with it, for people; NULL: nothing */
    const char *problem_reason;
    Csi__V1__VolumeHealthErrorType health;
};

struct csi_wish {
    const char *name;    /* as the caller has it */
    int64_t size, limit; /* limit 0: none */
    const Csi__V1__CreateVolumeRequest *request;
};

struct csi_engine {
    const char *const *names; /* of drivers; ends with NULL */
    const char *topology;     /* the key that says where a volume can be; NULL: it is everywhere */
    int64_t default_size, granule;
    bool attaches; /* has ControllerPublishVolume */
    /*
     * All return when it is so, or with why not; a call that takes longer than its caller waits is
     * ABORTED or DEADLINE_EXCEEDED and can be made again. `find` is NOT_FOUND where there is none;
     * `remove` succeeds there.
     */
    int (*create)(struct csi_call *c, const struct csi_wish *wish, struct csi_volume *ret,
                  struct err *e);
    int (*remove)(struct csi_call *c, const char *id, struct err *e);
    int (*find)(struct csi_call *c, const char *id, struct csi_volume *ret, struct err *e);
    /* All of them, in the order of their ids; an array in the arena. */
    int (*list)(struct csi_call *c, struct csi_volume **ret, size_t *ret_n, struct err *e);
    int (*grow)(struct csi_call *c, const char *id, int64_t size, struct csi_volume *ret,
                struct err *e);
};

extern const struct csi_engine csi_jiva; /* jiva.c */
/* The engine of a driver's name; NULL. */
const struct csi_engine *csi_engine_find(const char *driver);

void csi_init(struct csi *s);
void csi_done(struct csi *s);

/* guard.c: begins an operation, or ABORTED. */
int csi_begin(struct csi *s, const char *key, struct err *e);
void csi_end(struct csi *s, const char *key);

/*
 * common.c
 */
/* The name of the object for a volume: the caller's where it can be one, else made from it. */
const char *csi_object_name(struct csi_call *c, const char *name);
/* Waits a moment before the state is looked at again: -1, DEADLINE_EXCEEDED, when there is no time left. */
int csi_pause(struct csi_call *c, unsigned turn, const char *what, struct err *e);
/* The size to make, from a range; 0 where none is given. OUT_OF_RANGE where no size fits. */
int csi_pick_size(const Csi__V1__CapacityRange *range, int64_t fallback, int64_t granule,
                  int64_t *ret_size, struct err *e);
/* Whether a volume can be used so; INVALID_ARGUMENT with why not. */
int csi_check_capability(const Csi__V1__VolumeCapability *capability, struct err *e);
int csi_check_capabilities(Csi__V1__VolumeCapability *const *list, size_t n, struct err *e);
Csi__V1__Volume *csi_volume_message(struct csi_call *c, const struct csi_volume *v);
char *csi_text(const char *text); /* for a message's member, which is not const */

/* The RPCs, named as in CSI. */
#define CSI_RPCS(X)                                                                                \
    X(Identity, GetPluginInfo, get_plugin_info)                                                    \
    X(Identity, GetPluginCapabilities, get_plugin_capabilities)                                    \
    X(Identity, Probe, probe)                                                                      \
    X(Controller, CreateVolume, create_volume)                                                     \
    X(Controller, DeleteVolume, delete_volume)                                                     \
    X(Controller, ValidateVolumeCapabilities, validate_volume_capabilities)                        \
    X(Controller, ListVolumes, list_volumes)                                                       \
    X(Controller, ControllerGetCapabilities, controller_get_capabilities)                          \
    X(Controller, ControllerExpandVolume, controller_expand_volume)                                \
    X(Controller, ControllerGetVolume, controller_get_volume)                                      \
    X(Controller, ControllerListVolumeHealth, controller_list_volume_health)                       \
    X(Controller, ControllerGetVolumeHealth, controller_get_volume_health)
#define CSI_RPC_DECLARE(service, type, name)                                                       \
    int csi_##name(struct csi_call *c, const Csi__V1__##type##Request *q,                          \
                   Csi__V1__##type##Response *r, struct err *e);
CSI_RPCS(CSI_RPC_DECLARE)

/* methods.c: the same for a socket; its context is a struct csi_driver. */
extern const struct grpc_method csi_methods[];
