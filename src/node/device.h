/*
 * The block devices of a machine, as one look at it finds them.
 *
 *     sysfs ----------> facts --> filters --> probe --> identity --> obstacle
 *     mountinfo, swaps ---^       (no object    (blkid)   (name of     (why nobody
 *     sparse files -------^        at all)                 the object)  may have it)
 *
 * A scan reads and never writes. Its strings live in its arena. The path is a hint: what a device is
 * called follows from its identity, so a disk that comes back under another path is the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "node/probe.h"

enum { NODE_OBJECT_MAX = 64 }; /* of the name of a BlockDevice */

/* Where the machine is looked at; another place in tests. */
struct node_places {
    const char *sys, *proc, *dev; /* "/sys", "/proc", "/dev" */
};
extern const struct node_places node_places_machine;

/* What the BlockDevice is called in details.deviceType; these are NDM's words. */
enum node_device_type {
    NODE_DISK,
    NODE_PARTITION,
    NODE_SPARSE,
    NODE_LOOP,
    NODE_LVM,
    NODE_CRYPT,
    NODE_DM,
    NODE_MPATH,
};
const char *node_device_type_name(enum node_device_type type);

/* What the identity was made from, from the best to the worst. */
enum node_scheme {
    NODE_BY_WWN,
    NODE_BY_SERIAL,
    NODE_BY_MAPPER,
    NODE_BY_FILE, /* of a loop device or a sparse one */
    NODE_BY_PARTITION,
    NODE_BY_LABEL, /* that we wrote when it was claimed */
    NODE_BY_TABLE,
    NODE_BY_PATH, /* nothing is known of it: only where it is */
};
const char *node_scheme_name(enum node_scheme scheme);

enum node_link { NODE_LINK_ID, NODE_LINK_PATH, NODE_LINK_UUID, NODE_LINK_PARTUUID, NODE_LINKS };
extern const char *const node_link_names[NODE_LINKS]; /* "by-id", ... */

struct node_device {
    const char *name; /* the kernel's: "sda1" */
    const char *path, *sysfs;
    const char *number;   /* "8:1" */
    const char *sequence; /* the kernel's count of disks: never the same for two; "" */
    enum node_device_type type;
    uint64_t size; /* in bytes */
    unsigned logical_sector, physical_sector, hardware_sector;
    bool read_only, removable, rotational, rotation_known;
    const char *vendor, *model, *serial, *firmware, *wwn; /* "" */
    const char *parent;                                   /* name of a partition's disk; NULL */
    unsigned partition;                                   /* its number */
    unsigned partitions;                                  /* how many a disk has */
    VEC(const char *) links[NODE_LINKS];                  /* paths, sorted */
    const char *mounted, *holders;                        /* NULL: not at all */
    bool swap, os;
    struct node_probe probe; /* of what was read from it */

    enum node_scheme scheme;
    const char *identity;         /* text that is the device's own */
    char object[NODE_OBJECT_MAX]; /* name of the BlockDevice */
    const char *obstacle;         /* CamelCase, a literal; NULL: it may be claimed */
    const char *why;              /* for people; never NULL */
};

struct node_scan {
    struct arena arena;
    VEC(struct node_device) devices; /* those with an object; sorted by name */
};
void node_scan_done(struct node_scan *s);
/* Borrowed; NULL. */
const struct node_device *node_scan_find(const struct node_scan *s, const char *object);

/* Patterns of shells; a list that is empty is no condition. */
struct node_filter {
    VEC(const char *) include_paths, exclude_paths; /* against the path and all links */
    VEC(const char *) include_vendors, exclude_vendors;
};
/* Of what nobody means by a disk: loop devices, memory, CDs, and what stands on other disks. */
#define NODE_EXCLUDED_PATHS                                                                        \
    "/dev/loop*,/dev/ram*,/dev/zram*,/dev/sr*,/dev/fd*,/dev/dm-*,/dev/md*,/dev/rbd*,/dev/zd*,"     \
    "/dev/nbd*"
void node_filter_done(struct node_filter *f);
bool node_filter_passes(const struct node_filter *f, const struct node_device *d,
                        const char *parent_path);

struct node_scan_options {
    const struct node_places *places;
    const struct node_filter *filter;
    const char *node;   /* its name: part of identities that are no better than local */
    const char *sparse; /* folder of sparse files; NULL: none */
    bool sparse_only;   /* no real disks */
    struct node_prober *prober;
    /* Whether that BlockDevice stands for a device with our label: so nobody else, who is only known
     * by the same path, gets its name. NULL: none does. */
    bool (*labelled)(void *context, const char *object);
    /* The BlockDevice of a device whose label was overwritten by whoever claimed it, if there are
     * other proofs; NULL. The answer lives in the arena. */
    const char *(*remember)(void *context, const struct node_device *d, struct arena *a);
    void *context;
};
int node_scan(const struct node_scan_options *o, struct node_scan *ret_scan, struct err *e);

/* The steps, for the files of this part. */

/* Finds all devices with their facts, also those that get no object. */
int device_list(struct node_scan *s, const struct node_places *p, struct err *e);
/* Who uses them. */
void device_uses(struct node_scan *s, const struct node_places *p);
/* Sparse files, as devices. */
int device_list_sparse(struct node_scan *s, const char *folder, const struct node_places *p,
                       struct err *e);
/* After the probe; parent is NULL for what is no partition. */
void device_identify(struct node_device *d, const struct node_device *parent, const char *node,
                     struct arena *a);
/* The object's name for an identity; turn 0 but for a path whose name another device has. */
void device_name(struct node_device *d, unsigned turn);
