/*
 * The LogicalVolumes of a node, on LVM.
 *
 *     LogicalVolumes ──uid──> reconcile ──> change: one lvm command ──> look: one report for many
 *      (two API groups)          │                                         │
 *          ^                     └── finalizer, status <── what was read ──┘
 *          │                                                               │
 *     audit: both ways, every few minutes and after changes <──────────────┤
 *     Node: room of each device class, orphans <───────────────────────────┘
 *
 * Invariants:
 * - A volume is called by the uid of its object and tagged with its owner from the moment it exists. So
 *   there is never a second one, and one that nobody owns can be told from one that is not ours.
 * - It is made after the object has our finalizer and gone before the finalizer is.
 * - volumeID and currentSize are written after they were read from LVM, by a report that began after
 *   the change.
 * - A volume that was there once (volumeID) and is not any more is never made again: it is lost, and
 *   the status says so.
 * - What cannot be done is said once (code, message, Event) and tried again when the spec or the
 *   annotation resize-requested-at changes.
 */
#pragma once

#include "kube/manager.h"
#include "node/sparse.h"

struct node;

struct node_lvs_options {
    const char *classes_file; /* NULL: the default class */
    struct node_sparse disks; /* a group "orlop" on loop devices of our own; count 0: none */
    bool reclaim_orphans;
    int64_t orphan_grace_ns; /* 0: ten minutes */
    int64_t audit_ns;        /* 0: five minutes */
};
