/*
 * What the parts of lvs.h share.
 */
#pragma once

#include <pthread.h>

#include "base/map.h"
#include "base/str.h"
#include "kinds/logicalvolume.h"
#include "kube/groups.h"
#include "lvm/class.h"
#include "lvm/lvm.h"
#include "node/impl.h"
#include "node/lvs.h"
#include "node/vg_disks.h"

#define LV_OWNER "orlop.io/owner" /* the tag: orlop.io/owner=GROUP/NAME */

/* Room that was given since the last report began. */
struct lv_given {
    char *of; /* "vg/pool", or "vg/": classes may share it */
    uint64_t bytes, change;
};

/* Immutable; lv_classes.c counts the references. */
struct lv_classes {
    _Atomic unsigned refs;
    struct lvm_classes set;
};

struct node_lvs {
    struct node *n;
    struct lvm *lvm;
    struct node_vg_disks disks;
    struct kube_groups lvs;
    struct kube_controller *volumes; /* keys are uids */
    struct kube_controller *keeper;  /* LV_AUDIT, LV_ANNOUNCE, LV_CLASSES; one worker */
    struct str classes_text;         /* of the file, as it is in force; the keeper's */
    char *classes_problem; /* what was last said to be wrong with it; NULL; the keeper's */

    pthread_mutex_t change; /* one change at a time, and what is decided with it */

    pthread_mutex_t lock; /* of all below; taken after the other */
    pthread_cond_t news;
    struct lvm_view *view;
    struct lv_classes *classes;
    struct err broken; /* why there is no LVM here, and nothing is to be done; code 0: there is */
    uint64_t changes, seen; /* how many were made; how many the view has */
    uint64_t freed;         /* the last that gave room back */
    int64_t seen_at;        /* when the report began */
    int64_t oldest;         /* when the first that it has not was made */
    unsigned queued;        /* who wait to change something */
    bool looking;
    VEC(struct lv_given) given;
    struct map judged;  /* uid -> for which spec and annotation it was said that it cannot be */
    struct map orphans; /* "vg/lv" -> struct lv_orphan */
    struct map
        pools; /* "vg/lv" of a thin pool -> how many levels it had passed; the audit's alone */
    struct metrics_family *resize_failures;
};

struct lv_orphan {
    char *vg, *lv, *owner;
    uint64_t size;
    int64_t since; /* when it was first seen, monotonic */
    bool said, seen;
};

#define LV_AUDIT    "audit"
#define LV_ANNOUNCE "announce"
#define LV_CLASSES  "classes"

/* lv_view.c */

/* A reference to the last report. */
struct lvm_view *lv_view(struct node_lvs *s);
/*
 * A report that began after this call, shared with others who ask: a reference. While others wait to
 * change something, it waits for them so long: LV_PATIENCE, or 0 during a change.
 */
int lv_look(struct node_lvs *s, int64_t patience_ns, struct lvm_view **ret_view, struct err *e);
#define LV_PATIENCE (CLOCK_SECOND / 10)
/*
 * Whether the last report is so young, and nothing was given or freed since, that "no room" can be said
 * of it. (What was given while it was made may be in it: then it counts twice.)
 */
bool lv_view_is_news(struct node_lvs *s);
/* Around a change: begin waits for its turn; end says what was given of which class; NULL: freed. */
void lv_change_begin(struct node_lvs *s);
void lv_change_end(struct node_lvs *s, const struct lvm_class *class, uint64_t bytes);
/* What a class has left, changes that are not in the report taken off. During a change. */
void lv_room(struct node_lvs *s, const struct lvm_view *v, const struct lvm_class *c,
             struct lvm_room *ret);

/* lv_change.c: each is one lvm command, and leaves to others to look. */

struct lv_wish {
    const char *uid, *class, *options, *source; /* "" */
    char *tag;
    bool read_only;
    uint64_t size;
};
int lv_make(struct node_lvs *s, const struct lv_wish *w, const struct lvm_lv *origin,
            struct err *e);
int lv_grow(struct node_lvs *s, const struct lvm_lv *lv, uint64_t size, struct err *e);
int lv_tag(struct node_lvs *s, const struct lvm_lv *lv, const char *tag, struct err *e);
/* Wipes it first. */
int lv_remove(struct node_lvs *s, const struct lvm_view *v, const struct lvm_lv *lv, struct err *e);
/* The volume with that name, in whichever group; NULL. */
const struct lvm_lv *lv_find(const struct lvm_view *v, const char *name);

/* lv_work.c */

struct lv_work {
    struct node_lvs *s;
    json_t *object;                   /* a tree of our own */
    const struct kube_resource *kind; /* of the group that it is of */
    const char *uid;
};
/* The finalizer of ours that it has, of whichever group; NULL. */
const char *lv_finalizer(const json_t *object);
int lv_finalizer_add(struct lv_work *w, struct err *e);
int lv_finalizer_remove(struct lv_work *w, struct err *e);
/* Whether it was said, of what is wanted now, that it cannot be. */
bool lv_was_judged(struct lv_work *w);
void lv_judge(struct lv_work *w, bool infeasible);
/*
 * Says what went wrong, and hands the error on: the queue tries again what may pass. What is
 * infeasible is remembered instead, and that is 0.
 */
int lv_fail(struct lv_work *w, const struct err *why, struct err *e);
/* The volume is there: what it is called and how large it is, as LVM says. */
int lv_tell(struct lv_work *w, const struct lvm_lv *lv, struct err *e);
/* The object with that uid, or that name, in whichever group: a tree of the caller's own; NULL. */
json_t *lv_object(struct node_lvs *s, const char *index, const char *value);
#define LV_BY_UID    "uid"
#define LV_BY_NAME   "name"
#define LV_BY_VOLUME "volume" /* status.volumeID */
/* The group that the object is of: "topolvm.io". */
const char *lv_group(const struct lv_work *w);

/* lv_reconcile.c */
int lv_reconcile(void *context, const char *ns, const char *uid, struct kube_result *ret,
                 struct err *e);

/* lv_audit.c */
int lv_audit(struct node_lvs *s, struct err *e);
void lv_orphans_done(struct node_lvs *s);

/* lv_classes.c */

/* A reference to those in force. */
struct lv_classes *lv_classes(struct node_lvs *s);
void lv_classes_unref(struct lv_classes *c);
DEFINE_CLEANUP(struct lv_classes *, lv_classes_unref)
/* At the start: a file that is wrong is an error. */
int lv_classes_load(struct node_lvs *s, struct err *e);
/* Later: it is said to be wrong, and the classes stay. */
int lv_classes_look(struct node_lvs *s, struct err *e);
/* What was said of volumes is forgotten, and each of the node's is looked at. */
void lv_look_at_all(struct node_lvs *s);
/* Makes devices of all volumes in the groups of the classes. */
void lv_classes_activate(struct node_lvs *s, const struct lvm_classes *set,
                         const struct lvm_view *v);

/* lv_pools.c */
void lv_pools_warn(struct node_lvs *s, const struct lvm_view *v);

/* lv_announce.c */
int lv_announce(struct node_lvs *s, struct err *e);
void lv_map_node(struct kube_controller *c, const struct kube_object *object, void *context);
/* For informers that are only to be known. */
void lv_map_nothing(struct kube_controller *c, const struct kube_object *object, void *context);
void lv_metrics_setup(struct node_lvs *s);

/* lvs.c */
int node_lvs_setup(struct node *n, struct err *e);
struct err lv_broken(struct node_lvs *s);
