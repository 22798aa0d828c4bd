/*
 * Device classes: the names under which a node offers its volume groups and thin pools, and how volumes
 * are made of them. The file is TopoLVM's lvmd.yaml:
 *
 *     device-classes:
 *     - name: ssd
 *       volume-group: vg1
 *       default: true
 *       spare-gb: 10               kept free; 10 when it is not said, as with TopoLVM
 *       stripe: 2
 *       stripe-size: "64"          lvm's --stripesize
 *       lvcreate-options: ["--type=raid1"]
 *     - name: thin
 *       volume-group: vg1
 *       type: thin
 *       thin-pool: {name: pool0, overprovision-ratio: 10.0}
 *     lvcreate-option-classes:
 *     - name: raid
 *       options: ["--type=raid1"]
 *
 * Without a file the group "orlop" is a class of that name, and the default.
 *
 * A volume names a class, or a volume group that stands behind one, or nothing: the default.
 */
#pragma once

#include "lvm/lvm.h"

struct lvm_class {
    char *name, *vg;
    char *pool;   /* NULL: thick */
    double ratio; /* of what a thin pool promises to what it has */
    uint64_t spare;
    unsigned stripes;
    char *stripe_size; /* NULL */
    char **options;    /* ends with NULL */
    bool is_default;
};

struct lvm_option_class {
    char *name, **options;
};

struct lvm_classes {
    VEC(struct lvm_class) classes;
    VEC(struct lvm_option_class) option_classes;
};

void lvm_classes_default(struct lvm_classes *ret);
/* From the text of a file, YAML or JSON. */
int lvm_classes_parse(const char *text, size_t size, struct lvm_classes *ret, struct err *e);
void lvm_classes_done(struct lvm_classes *c);
/* name "" or NULL: the default. NOT_FOUND, naming those that there are. */
int lvm_classes_find(const struct lvm_classes *c, const char *name,
                     const struct lvm_class **ret_class, struct err *e);
/* NULL, with NOT_FOUND. */
char *const *lvm_classes_options(const struct lvm_classes *c, const char *name, struct err *e);

struct lvm_room {
    bool there;          /* its group, and its pool, are */
    uint64_t size, free; /* free: what a new volume may have, spare space taken off */
    const struct lvm_vg *vg;
    const struct lvm_lv *pool; /* NULL: thick */
};
/* How much room the class has; NOT there leaves zeros. */
void lvm_class_room(const struct lvm_class *c, const struct lvm_view *v, struct lvm_room *ret);
