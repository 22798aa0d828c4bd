/*
 * Jiva volumes, the part that keeps no data: what a JivaVolume and a JivaVolumeResize become.
 *
 *     JivaVolume ─┬─> Secret NAME-key       target and replicas know each other by it     children.c;
 *                 ├─> Secret NAME-chap      initiators and target prove who they are
 *                 ├─> Service NAME-svc      iscsi.targetPortal; where replicas dial       objects.c,
 *                 ├─> Deployment NAME-ctrl  target + orlop-volume, with rights on this    pods.c
 *                 │     (account, Role)     volume alone: it fills the volume's status
 *                 └─> Deployment NAME-rep   replicas, one a node: who gets which node,    replicas.c
 *                                           how many there are; lost nodes                rehome.c
 *     JivaVolume deleted ──> target, replicas, data if that was said, the rest            remove.c
 *     JivaVolumeResize ──lock──order──> orlop-volume grows ──> spec.capacity ──unlock     resize.c
 *
 * Invariants:
 * - A child is what the volume's spec says: it is made when it is not there and mended when it differs.
 *   What others add beside stays.
 * - A volume's identity is the annotation API_JIVA_ID, its uid unless somebody brought one; data
 *   of another identity is never touched, and a volume that brought its identity is never made anew.
 * - A replica's folder belongs to a node, and the annotation API_JIVA_NODES lists those that have one.
 *   A pod of NAME-rep is let to the scheduler only when it is decided where it may go: to a node of the
 *   list that has no pod, or, when all of them have, to a new one.
 * - A folder is erased when its replica was removed from a volume that has all its others, or
 *   with the volume if that was said. By a pod on that node, which looks whose folder it is first.
 */
#pragma once

#include <pthread.h>

#include "base/crash.h"
#include "base/map.h"
#include "base/str.h"
#include "kinds/jiva.h"
#include "kube/condition.h"
#include "kube/manager.h"

#define JIVA_VERSION          "openebs.io/v1alpha1"
#define JIVA_FINALIZER        "jiva.openebs.io/volume"
#define JIVA_RESIZE_FINALIZER "resize.jiva.openebs.io/cleanup"
#define JIVA_NODES            API_JIVA_NODES
#define JIVA_STALE            API_JIVA_STALE /* folders to be erased when the node is back */
#define JIVA_GATE             "jiva.openebs.io/placement"
#define JIVA_VOLUME_LABEL     "openebs.io/persistent-volume"
#define JIVA_COMPONENT        "openebs.io/component"

enum { JIVA_ISCSI_PORT = 3260, JIVA_REPLICA_PORT = 6060, JIVA_METRICS_PORT = 9500 };

/* What the program was told; before the setup. */
struct jiva_settings {
    const char *dir;          /* on the nodes: below it are the folders of replicas */
    const char *image_prefix; /* in front of orlop-target and the like */
    int64_t rehome_ns;        /* how long a node is silent before its replicas go elsewhere */
    unsigned rehome_most;     /* volumes that are being re-homed at a time */
};
extern struct jiva_settings jiva_settings;

struct jiva {
    const struct clock *clock;
    struct kube_ages *ages;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource volumes_r, resizes_r, pods_r;
    struct kube_informer *volumes, *resizes, *pods, *nodes, *pvs, *quotas;
    struct jiva_children {
        struct kube_resource r;
        struct kube_informer *informer;
    } secrets, accounts, roles, bindings, services, deployments;
    pthread_mutex_t lock;
    struct map rehoming; /* volumes that are re-homed, by key; with the lock */
    struct map promised; /* sizes that volumes may grow to, by uid; with the lock */
};

/* A volume that is worked on. */
struct jiva_work {
    struct jiva *j;
    json_t *volume; /* owned; what the server has, after each write */
    const char *ns, *name;
    struct kube_result *result;
};

/* Says when to look again, if nobody said sooner. */
void jiva_again(struct jiva_work *w, int64_t ns);

/* jiva.c: writes, each with the version it was decided on, between two crash points. */
int jiva_patch_volume(struct jiva_work *w, json_t *patch, const char *what, struct err *e);
/* Adds to a patch of the volume what makes it say, in both forms, how it is reached. */
void jiva_patch_iscsi(const json_t *volume, const json_t *iscsi, json_t *patch);
/* Annotations of the volume: pairs of key and value, NULL to take it off, ending with NULL. */
int jiva_annotate(struct jiva_work *w, const char *what, json_t *annotations, struct err *e);
/* Puts a finalizer on the object, or takes it off; nothing is written when it is so. */
int jiva_hold(struct jiva *j, const struct kube_resource *r, json_t **object, const char *finalizer,
              bool hold, struct err *e);
int jiva_write_status(struct jiva *j, const struct kube_resource *r, json_t **object,
                      const json_t *status, struct err *e);
/* Sets the phase and what else is in `more` (taken over; may be NULL), and one condition. */
int jiva_say(struct jiva_work *w, json_t *more, const struct kube_condition *condition,
             struct err *e);
int jiva_delete(struct jiva *j, const struct kube_resource *r, const json_t *object, bool now,
                struct err *e);
/* All pods of the volume that have this component, as an array. */
json_t *jiva_pods(struct jiva *j, const json_t *volume, const char *component);
bool jiva_node_is_ready(struct jiva *j, const char *node);
/* Names in an annotation of the volume, as an array. */
json_t *jiva_list(const json_t *volume, const char *annotation);
bool jiva_listed(const json_t *list, const char *name);
/* The annotation's value for a list; null when it is empty. */
json_t *jiva_list_text(const json_t *list);
/* The annotation's text; "". */
const char *jiva_annotation(const json_t *object, const char *key);
const char *jiva_id(const json_t *volume); /* "" before it has one */
/* Whether it can be a part of a path and an argument. */
bool jiva_id_is_sound(const json_t *volume);
/* Bytes of a quantity; 0 when it is none. */
uint64_t jiva_bytes(const json_t *quantity);
/* The text at a path of two; "". */
const char *jiva_text(const json_t *object, const char *part, const char *key);

/* objects.c, pods.c: what children look like; pure functions. */
json_t *jiva_secret(const json_t *volume, const char *key);
/* Whether initiators must prove who they are; what they need for that, and the target for its own proof. */
bool jiva_has_chap(const json_t *volume);
json_t *jiva_chap(const json_t *volume, const char *password, const char *target_password);
json_t *jiva_account(const json_t *volume);
json_t *jiva_role(const json_t *volume);
json_t *jiva_role_binding(const json_t *volume);
json_t *jiva_service(const json_t *volume);
/* The uids of the Secrets and of the account, so that pods are made anew with them. */
struct jiva_uids {
    const char *key, *chap, *account; /* chap: "" without it */
};
json_t *jiva_target_deployment(const json_t *volume, const char *address,
                               const struct jiva_uids *uids);
json_t *jiva_replica_deployment(const json_t *volume, const char *address, const char *key,
                                unsigned replicas);
/* A pod that erases the volume's folder on a node. */
json_t *jiva_eraser(const json_t *volume, const char *node);
/* Makes live what is wanted, member by member; false when it was so. */
bool jiva_impose(json_t *live, const json_t *wanted);

/* children.c: all of them are there, and as they have to be. */
int jiva_ensure_children(struct jiva_work *w, struct err *e);

/* replicas.c */
/* How many pods NAME-rep is to have, when it has `now`: it changes by one at a time. */
unsigned jiva_replica_count(const json_t *volume, unsigned now);
/* Before it has fewer: which pod goes. 1 when that is said. */
int jiva_choose_leaver(struct jiva_work *w, struct err *e);
int jiva_place_replicas(struct jiva_work *w, struct err *e);
/* The node that has the pod, or that it was told to go to; "". */
const char *jiva_node_of(const json_t *pod);
/* Whether one of the pods is there, and stays. */
bool jiva_has_pod(const json_t *pods, const char *node);
/* Lists of names, with one more or less. */
json_t *jiva_with(const json_t *list, const char *name);
json_t *jiva_without(const json_t *list, const char *name);
int jiva_write_lists(struct jiva_work *w, const json_t *nodes, const json_t *stale, struct err *e);

/* rehome.c */
/* How long the node has been silent; INT64_MAX: there is none; 0: it is ready. */
int64_t jiva_silence(struct jiva *j, const char *name);
/* It serves, and one of its replicas is away or has not all data. */
bool jiva_misses_replica(const json_t *volume);
/* Takes a node that is lost off the volume's list: whoever comes next goes elsewhere. */
int jiva_rehome(struct jiva_work *w, struct err *e);
/* Pods of nodes that were given up go without asking the node. */
int jiva_drop_pods(struct jiva_work *w, const json_t *pods, struct err *e);
int jiva_erase_stale(struct jiva_work *w, const json_t *pods, struct err *e);
/* Has the folder on a node erased; 1 when it is gone, 0 while it is under way. */
int jiva_erase(struct jiva_work *w, const char *node, struct err *e);

/* remove.c */
int jiva_remove(struct jiva_work *w, struct err *e);

/* resize.c */
int jiva_setup_resize(struct jiva *j, struct kube_manager *m, struct err *e);
/* volume.c */
int jiva_setup_volume(struct jiva *j, struct kube_manager *m, struct err *e);
