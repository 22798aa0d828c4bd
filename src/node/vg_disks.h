/*
 * A volume group on disks of its own, to try things out: sparse files behind loop devices.
 *
 *     DATA/vg/INDEX-UUID.img <── /dev/loopN ──> DATA/lvm/dev/disk-INDEX      all that the node's LVM sees
 *
 * A loop device goes when the last who has it open closes it (the kernel's "autoclear"), and the agent
 * has it open: so it goes with the agent, also by kill -9, except while a volume on it is in use. One
 * that is still there is taken up again.
 */
#pragma once

#include "base/vec.h"
#include "lvm/lvm.h"
#include "node/sparse.h"

#define NODE_VG "orlop"

struct node_vg_disks {
    VEC(int) fds;
    size_t count;
};

/* Makes what is missing: files, loop devices, the group; lets it grow with the files. */
int node_vg_disks_start(struct node_vg_disks *d, struct lvm *l, const char *data_dir,
                        const char *device_dir, const struct node_sparse *want, struct err *e);
/* Ends the devices of volumes that nobody uses, so that the loop devices can go. */
void node_vg_disks_stop(struct node_vg_disks *d, struct lvm *l);
void node_vg_disks_done(struct node_vg_disks *d);
