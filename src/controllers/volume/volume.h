/*
 * Replicated volumes, the part that keeps no data: what a volume and its resize become. What
 * differs between engines is in struct volume_engine; they are in jiva/ and cstor/.
 *
 *     volume ─┬─> Secret NAME-key       target and replicas know each other by it       children.c,
 *             ├─> Secret NAME-chap      initiators and target prove who they are        values.c
 *             ├─> Service               the portal; where replicas dial                 and YAML
 *             ├─> target Deployment     target + orlop-sidecar, with rights on this
 *             │     (account, Role)     volume alone: it fills the volume's status
 *             └─> replicas              the engine's: a Deployment, one pod a node: who replicas.c
 *                                       gets which node, how many; lost nodes           rehome.c
 *                                       or an object for each chosen pool               cstor/
 *     volume deleted ──> target, replicas, data if that was said, the rest              remove.c
 *     resize ──lock──order──> orlop-sidecar grows ──> spec.capacity ──unlock            resize.c
 *
 * Invariants:
 * - A child is what the volume's spec says: it is made when it is not there and mended when it
 *   differs. What others add beside stays (kube/child.h).
 * - A volume's identity is an annotation, its uid unless somebody brought one; data of another
 *   identity is never touched, and a volume that brought its identity is never made anew.
 * - A replica's folder belongs to a node, and an annotation lists those that have one. A replica's
 *   pod is let to the scheduler only when it is decided where it may go: to a node of the list that
 *   has no pod, or, when all of them have, to a new one.
 * - A folder is erased when its replica was removed from a volume that has all its others, or
 *   with the volume if that was said. By a pod on that node, which looks whose folder it is first.
 */
#pragma once

#include <pthread.h>

#include "api/decode.h"
#include "base/crash.h"
#include "base/map.h"
#include "base/str.h"
#include "kube/child.h"
#include "kube/condition.h"
#include "kube/groups.h"
#include "kube/manager.h"
#include "kube/template.h"

#define VOLUME_LABEL     "openebs.io/persistent-volume"
#define VOLUME_COMPONENT "openebs.io/component"
#define VOLUME_ENGINE    "openebs.io/cas-type"
/* The reason of an error: there are too few places for the replicas. */
#define VOLUME_NO_ROOM   "NotEnoughPools"

enum { VOLUME_ISCSI_PORT = 3260, VOLUME_MEMBERS = 8 }; /* the other ports are in the templates */

/* What the program was told; before the setup. */
struct volume_settings {
    const char *dir;          /* on the nodes: below it are the folders of replicas */
    const char *image_prefix; /* in front of orlop-target and the like */
    int64_t rehome_ns;        /* how long a node is silent before its replicas go elsewhere */
    unsigned rehome_most;     /* volumes that are being re-homed at a time */
};
extern struct volume_settings volume_settings;

/* What a volume's object says, as the controllers read it. Texts and JSON are the object's. */
struct volume_view {
    unsigned factor;              /* replicas that are wanted */
    uint64_t size, has;           /* spec.capacity; what was read back from the target */
    const char *capacity, *phase; /* as the object has them */
    bool made;                    /* it has had a size */
    bool serving;                 /* it takes writes */
    bool ready;                   /* and all replicas that are wanted have all data */
    bool snapshotting;            /* the target is at a snapshot, or was told to be */
    bool authenticated;           /* initiators must prove who they are */
    bool monitored;               /* the target serves metrics */
    bool rehomes;                 /* a replica of a lost node goes elsewhere */
    const char *portal, *pv;      /* "" */
    const json_t *node_selector;  /* where replicas may run; NULL: everywhere */
    const char *order;            /* the size that the target is told to grow to; "" */
    uint64_t ordered;             /* the same in bytes */
    /* The resize whose order the target has taken, and why it has failed; "". */
    const char *growth, *growth_failure;
    struct volume_member {
        const char *id, *address, *state;
        bool healthy, offline;
    } member[VOLUME_MEMBERS];
    unsigned members, healthy;
};

struct volume_work;
struct volume_controller;
struct kube_controller;

/* What a volume is while nobody beside its target says how it is. */
enum volume_state {
    VOLUME_SAID,     /* somebody does: the status stays as it is */
    VOLUME_STARTING, /* it was never made */
    VOLUME_UNKNOWN,  /* it was, and no target is there */
    VOLUME_ENDING,
};

/* The uids of the Secrets and of the account, so that pods are made anew with them. */
struct volume_uids {
    const char *key, *chap, *account; /* chap: "" without it */
};

/* What is particular to an engine. */
struct volume_engine {
    const char *name; /* the label VOLUME_ENGINE of all children */
    const char *version, *kind, *singular, *plural, *group;
    const char *controller; /* its name in logs */
    const char *finalizer;
    /*
     * Annotations: who the volume is, whether its data goes with it, nodes that have a replica each
     * and those whose folders are to be erased; and the gate of its replicas' pods.
     */
    const char *id, *reclaim, *nodes, *stale, *gate;
    const char *target_suffix, *service_suffix;       /* of the names of its children */
    const char *target_component, *replica_component; /* the label VOLUME_COMPONENT of pods */
    const struct kube_template *service, *target;

    void (*view)(const json_t *volume, struct volume_view *ret);
    /* Writes the state into a status; not VOLUME_SAID. */
    void (*tell_state)(const json_t *volume, enum volume_state state, json_t *status,
                       const struct clock *clock);
    /* Collections of its own, and what of them concerns which volume; NULL: none. */
    void (*follow)(struct volume_controller *v, struct kube_manager *m);
    void (*watch)(struct volume_controller *v, struct kube_controller *c);
    /* Before anything is made of the volume: whether it can be; NULL: always. */
    int (*check)(struct volume_work *w, struct err *e);
    /* What the object is to say of itself, as a patch; empty when it does. */
    json_t *(*identity)(const json_t *volume);
    json_t *(*portal)(const json_t *volume, const char *portal); /* a patch that writes it */
    /* What the target's template names beside the common values. */
    void (*target_values)(const json_t *volume, json_t *values);
    /* Conditions about what nobody does; NULL: none. */
    int (*tell_policy)(struct volume_work *w, struct err *e);

    /* Replicas: they are there, and as many as there are to be; they are where they should be. */
    int (*apply_replicas)(struct volume_work *w, const char *address,
                          const struct volume_uids *uids, struct err *e);
    int (*place_replicas)(struct volume_work *w, struct err *e);
    /* At the volume's end: 1 when none is left, 0 while it waits, which it has said. */
    int (*end_replicas)(struct volume_work *w, struct err *e);
    int (*erase_data)(struct volume_work *w, struct err *e); /* NULL: it goes with replicas */
    /* Whether the volume is giving up a replica of a lost place. */
    bool (*is_rehoming)(const json_t *volume);
    /* A pod that erases the volume's folder on a node, for those that have folders. */
    json_t *(*eraser)(const json_t *volume, const char *node, struct err *e);

    /* Growth by an object of its own; NULL: the engine grows by its spec. */
    const struct volume_resize_names {
        const char *kind, *controller, *finalizer;
        const char *about;          /* label: the volume's name */
        const char *enabled, *lock; /* annotations of the volume */
        /* A patch that orders growth on behalf of a resize; NULL: that withdraws it. */
        json_t *(*order)(const char *resize, const char *capacity);
    } * resize;
};

/* jiva/engine.c */
extern const struct volume_engine volume_jiva;
json_t *volume_jiva_replicas(const json_t *volume, const char *address, const char *key,
                             unsigned replicas, struct err *e);

/* cstor/engine.c */
extern const struct volume_engine volume_cstor;

struct volume_controller {
    const struct volume_engine *engine;
    const struct clock *clock;
    struct kube_ages *ages;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource volumes_r, resizes_r, pods_r;
    struct kube_informer *volumes, *resizes, *pods, *nodes, *pvs, *quotas;
    struct kube_children secrets, accounts, roles, bindings, services, deployments;
    struct kube_groups pools;      /* of engines that have them: CStorPoolInstances */
    struct kube_children replicas; /* the same: CStorVolumeReplicas */
    json_t *recent;                /* replicas that the cache may not have yet; with the lock */
    pthread_mutex_t lock;
    struct map rehoming; /* volumes that are re-homed, by key; with the lock */
    struct map promised; /* sizes that volumes may grow to, by uid; with the lock */
};

/* A volume that is worked on. */
struct volume_work {
    struct volume_controller *c;
    json_t *volume; /* owned; what the server has, after each write */
    const char *ns, *name;
    struct kube_result *result;
    struct err later; /* what keeps it from being as wanted, and keeps nothing else; code 0 */
};

/* What the volume says now. */
struct volume_view volume_look(const struct volume_work *w);
/* Says when to look again, if nobody said sooner. */
void volume_again(struct volume_work *w, int64_t ns);

/* common.c: writes, each with the version it was decided on, between two crash points. */
int volume_patch(struct volume_work *w, json_t *patch, const char *what, struct err *e);
/* Annotations of the volume, an object; null takes one off. */
int volume_annotate(struct volume_work *w, const char *what, json_t *annotations, struct err *e);
/* Puts a finalizer on the object, or takes it off; nothing is written when it is so. */
int volume_hold(struct volume_controller *v, const struct kube_resource *r, json_t **object,
                const char *finalizer, bool hold, struct err *e);
int volume_write_status(struct volume_controller *v, const struct kube_resource *r, json_t **object,
                        const json_t *status, struct err *e);
/* Says what state it is in, and one condition. */
int volume_say(struct volume_work *w, enum volume_state state,
               const struct kube_condition *condition, struct err *e);
int volume_delete(struct volume_controller *v, const struct kube_resource *r, const json_t *object,
                  bool now, struct err *e);
/* All pods of the volume that have this component, as an array. */
json_t *volume_pods(struct volume_controller *v, const json_t *volume, const char *component);
bool volume_node_is_ready(struct volume_controller *v, const char *node);
/* Names in an annotation of the volume, as an array. */
json_t *volume_list(const json_t *volume, const char *annotation);
bool volume_listed(const json_t *list, const char *name);
/* The annotation's value for a list; null when it is empty. */
json_t *volume_list_text(const json_t *list);
/* The annotation's text; "". */
const char *volume_annotation(const json_t *object, const char *key);
const char *volume_id(const struct volume_engine *x,
                      const json_t *volume); /* "" before it has one */
/* Whether it can be a part of a path and an argument. */
bool volume_id_is_sound(const struct volume_engine *x, const json_t *volume);
/* Bytes of a quantity; 0 for none, and for a bare number, of which admission makes GiB. */
uint64_t volume_amount(struct api_amount quantity);
uint64_t volume_bytes(const json_t *quantity);
/* The text at a path of two; "". */
const char *volume_text(const json_t *object, const char *part, const char *key);

/*
 * values.c: what children look like; functions of the volume alone. INTERNAL only for a template
 * that is wrong.
 */
/* What all templates may name. */
json_t *volume_values(const struct volume_engine *x, const json_t *volume);
void volume_set_text(json_t *values, const char *key, const char *text);
/* One that may be "", or missing: then the template leaves it out. */
void volume_set_some(json_t *values, const char *key, const char *text);
void volume_set_value(json_t *values, const char *key, const json_t *value);
enum volume_child { VOLUME_KEY, VOLUME_CHAP, VOLUME_ACCOUNT, VOLUME_ROLE, VOLUME_ROLE_BINDING };
json_t *volume_child(const struct volume_engine *x, const json_t *volume, enum volume_child which,
                     struct err *e);
/* With the address that it had before; NULL: any. */
json_t *volume_service(const struct volume_engine *x, const json_t *volume, const char *address,
                       struct err *e);
/* What initiators need to prove who they are, and the target for its own proof; its keys. */
json_t *volume_chap_data(const json_t *volume, const char *password, const char *target_password);
extern const char *const volume_chap_keys[];
json_t *volume_target(const struct volume_engine *x, const json_t *volume, const char *address,
                      const struct volume_uids *uids, struct err *e);

/* children.c: all of them are there, and as they have to be. */
int volume_ensure_children(struct volume_work *w, struct err *e);
/*
 * Makes the child what is wanted, which is taken over and may be NULL with an error set; *ret_live,
 * if given, is what there is then. `birth` as in kube/child.h.
 */
int volume_apply_child(struct volume_work *w, const struct kube_children *of, json_t *wanted,
                       const struct kube_birth *birth, json_t **ret_live, struct err *e);

/* replicas.c: replicas that are pods of a Deployment, one a node. */
/* How many pods there are to be, when there are `now`: it changes by one at a time. */
unsigned volume_replica_count(const struct volume_view *view, unsigned now);
/* Before there are fewer: which pod goes. 1 when that is said. */
int volume_choose_leaver(struct volume_work *w, struct err *e);
int volume_place_pods(struct volume_work *w, struct err *e);
/* The node that has the pod, or that it was told to go to; "". */
const char *volume_node_of(const json_t *pod);
/* Whether one of the pods is there, and stays. */
bool volume_has_pod(const json_t *pods, const char *node);
/* Lists of names, with one more or less. */
json_t *volume_with(const json_t *list, const char *name);
json_t *volume_without(const json_t *list, const char *name);
int volume_write_lists(struct volume_work *w, const json_t *nodes, const json_t *stale,
                       struct err *e);

/* rehome.c */
/* How long the node has been silent; INT64_MAX: there is none; 0: it is ready. */
int64_t volume_silence(struct volume_controller *v, const char *name);
/* It serves, and one of its replicas is away or has not all data. */
bool volume_misses_replica(const struct volume_view *view);
/* Whether it is one of the volumes that may be re-homed at a time. */
bool volume_take_place(struct volume_work *w);
/* Takes a node that is lost off the volume's list: whoever comes next goes elsewhere. */
int volume_rehome(struct volume_work *w, struct err *e);
/* Pods of nodes that were given up go without asking the node. */
int volume_drop_pods(struct volume_work *w, const json_t *pods, struct err *e);
int volume_erase_stale(struct volume_work *w, const json_t *pods, struct err *e);
/* Has the folder on a node erased; 1 when it is gone, 0 while it is under way. */
int volume_erase(struct volume_work *w, const char *node, struct err *e);

/* remove.c */
int volume_say_ending(struct volume_work *w, const char *reason, const char *message,
                      struct err *e);
int volume_remove(struct volume_work *w, struct err *e);
/*
 * Ends a Deployment of the volume and its pods, or says what that waits for; 1 when all are gone.
 */
int volume_end_part(struct volume_work *w, const char *suffix, const char *component,
                    const char *reason, const char *message, struct err *e);
/* Erases the folders on all nodes of the lists; 1 when none has one any more. */
int volume_erase_folders(struct volume_work *w, struct err *e);

/* reconcile.c, resize.c: the controllers of an engine. */
int volume_setup(struct volume_controller *v, struct kube_manager *m, struct err *e);
int volume_setup_resize(struct volume_controller *v, struct kube_manager *m, struct err *e);
