/*
 * LVM through its commands: fixed argument lists, JSON reports, typed answers.
 *
 *     lvm_open ── a folder of our own: configuration, locks, backups; the kernel's abilities
 *     lvm_look ── one report of everything: groups, volumes, segments       an immutable view
 *     lvm_create, lvm_extend, lvm_remove, ...                               one command each
 *
 * Invariants:
 * - Nothing of the machine's LVM configuration is used, and where there is a device folder only what
 *   lies in it is seen: two nodes on a machine may have groups of the same name.
 * - That a command ended with 0 does not mean that it was done. A change says only that the command
 *   was accepted; what is so is in the view of a look that began after it.
 * - What is already so is success: a volume to create that is there, to remove that is gone, to grow
 *   that is as large.
 * - A command that has begun is not cut short when we are: lvm may have suspended a device. So lvm_open
 *   waits for commands that an earlier process has left. Only after two minutes one is given up, and killed.
 *
 * Without device-mapper in the kernel there are no devices of volumes; their metadata is kept all the
 * same (lvm's global/activation=0), and data.h reaches their bytes through the physical volumes.
 *
 * Errors: RESOURCE_EXHAUSTED (no room to create), OUT_OF_RANGE (no room to grow), NOT_FOUND
 * ("NoVolumeGroup", "NoLogicalVolume"), FAILED_PRECONDITION (this kernel cannot),
 * INVALID_ARGUMENT (lvm does not take these options), UNAVAILABLE (in use, a disk is missing),
 * DEADLINE_EXCEEDED, INTERNAL.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

struct lvm;

enum lvm_kernel { LVM_KERNEL_ASK, LVM_KERNEL_DM, LVM_KERNEL_NO_DM };

struct lvm_options {
    const char *folder;     /* of our own; it is made */
    const char *device_dir; /* all that is seen; NULL: /dev */
    enum lvm_kernel kernel;
};

int lvm_open(const struct lvm_options *o, struct lvm **ret_lvm, struct err *e);
void lvm_close(struct lvm *l);
DEFINE_CLEANUP(struct lvm *, lvm_close)
/* Whether volumes have devices. */
bool lvm_has_devices(const struct lvm *l);
/* To be freed: where the device of a volume is. */
char *lvm_device_path(const struct lvm *l, const char *vg, const char *lv);

/* What there is. All texts and arrays are the view's. */

struct lvm_vg {
    const char *name, *uuid;
    uint64_t size, free, extent;
    unsigned missing; /* disks that are not there: no change is possible */
};

struct lvm_pv {
    const char *vg, *name;
    uint64_t start, size; /* of its first extent; of all of them */
};

struct lvm_lv {
    const char *vg, *name, *uuid;
    const char *attr;          /* lvm's ten letters */
    const char *pool, *origin; /* "" */
    const char *tags;          /* with commas between them */
    uint64_t size;
    double data_percent, metadata_percent; /* of thin pools and volumes; < 0: not known */
};

struct lvm_seg {
    const char *vg, *lv, *type;
    uint64_t start, size;
    unsigned stripes;
    uint64_t stripe_size;
    const char *ranges; /* "/dev/x:0-24 /dev/y:0-24", extents */
};

struct lvm_view {
    _Atomic unsigned refs;
    struct arena arena;
    VEC(struct lvm_vg) vgs;
    VEC(struct lvm_pv) pvs;
    VEC(struct lvm_lv) lvs;
    VEC(struct lvm_seg) segs;
    struct map by_name; /* "vg/lv" -> 1 + its place in lvs */
};

int lvm_look(struct lvm *l, struct lvm_view **ret_view, struct err *e);
/* The same from the text of `lvm fullreport`. */
int lvm_view_parse(const char *text, size_t size, struct lvm_view **ret_view, struct err *e);
struct lvm_view *lvm_view_ref(struct lvm_view *v);
void lvm_view_unref(struct lvm_view *v);
DEFINE_CLEANUP(struct lvm_view *, lvm_view_unref)
const struct lvm_vg *lvm_view_vg(const struct lvm_view *v, const char *name); /* NULL */
const struct lvm_lv *lvm_view_lv(const struct lvm_view *v, const char *vg,
                                 const char *name); /* NULL */
/* What stands behind "KEY=" in the volume's tags, to be freed; NULL. */
char *lvm_lv_tag(const struct lvm_lv *lv, const char *key);
bool lvm_lv_is_thin(const struct lvm_lv *lv); /* a thin volume */
bool lvm_lv_is_thin_pool(const struct lvm_lv *lv);
bool lvm_lv_is_read_only(const struct lvm_lv *lv);

/* Changes. Sizes are bytes; lvm rounds up to whole extents. */

struct lvm_create {
    const char *vg, *name;
    uint64_t size;
    const char *pool;           /* of a thin volume; NULL */
    unsigned stripes;           /* 0, 1: none */
    const char *stripe_size;    /* "64k"; NULL: lvm's */
    const char *const *options; /* more words, ends with NULL; NULL */
    const char *tag;
};

int lvm_create(struct lvm *l, const struct lvm_create *c, struct err *e);
/* A thin snapshot; read_only, or a clone to be written to. */
int lvm_snapshot(struct lvm *l, const char *vg, const char *origin, const char *name,
                 bool read_only, const char *tag, struct err *e);
int lvm_extend(struct lvm *l, const char *vg, const char *name, uint64_t size, struct err *e);
int lvm_remove(struct lvm *l, const char *vg, const char *name, struct err *e);
int lvm_rename(struct lvm *l, const char *vg, const char *name, const char *to, struct err *e);
int lvm_tag(struct lvm *l, const char *vg, const char *name, const char *tag, struct err *e);
/* Makes devices of all volumes of the group, as after a boot. Nothing without device-mapper. */
int lvm_activate(struct lvm *l, const char *vg, struct err *e);
/* And ends them. */
int lvm_deactivate(struct lvm *l, const char *vg, struct err *e);
/* A group on these disks, which end with NULL; they lose what is on them. */
int lvm_vg_create(struct lvm *l, const char *vg, const char *const *disks, struct err *e);
int lvm_vg_extend(struct lvm *l, const char *vg, const char *disk, struct err *e);
/* The disk has grown. */
int lvm_pv_resize(struct lvm *l, const char *disk, struct err *e);
