/*
 * orlop-pool: the process that owns one CStorPoolInstance and its ZFS pool.
 *
 *     CStorPoolInstance ─┐                                     ┌─ zpool: the pool, its devices
 *     BlockDevices      ─┼─> reconcile ── wish ──> engine ─────┤
 *     their claims      ─┘       ^                 │ (thread)  └─ zvols: replicas of volumes (replicas.h)
 *                                └── view: status ─┘              ^
 *     CStorVolumeReplicas ──────────> cvr.h ── wishes, views ─────┘
 *
 * The API and the pool never wait for each other: what is wanted is handed over as a wish, what is so as
 * a view, and either side goes on when the other does not answer.
 *
 * Invariants:
 *   - Import is never create. A pool is made only when the object has no GUID of one, and no device that
 *     it names has anything on it; what a killed process left of making this very pool does not count.
 *   - Only devices that the object names, or named, are opened, and only those are added that a claim of
 *     this cluster has. What has another pool's label or anything else on it is left alone.
 *   - The GUID is in the object before anything is stored in the pool.
 *   - Nothing is remembered here that matters: the object and what is on the devices say where to go on.
 *     So the process may end at any moment, and libzpool may end it.
 *   - The pool is destroyed only when the object is deleted and, of a CStorPoolCluster's, its operator has
 *     said so. When the process ends it is exported.
 */
#pragma once

#include "kube/manager.h"

struct pool_options {
    const char *ns, *name; /* of the CStorPoolInstance */
    const char *node;      /* where this runs; NULL: where the object says that the pool is */
    const char *sparse;    /* the node's folder of sparse devices; NULL: it has none */
    uint64_t cache_bytes;  /* of memory for reads (ARC); 0: the engine's least */
    uint64_t dirty_bytes;  /* of memory for writes that are not on the devices yet; 0: as usual */
    bool direct;           /* devices past the page cache */
    int64_t scrub_ns;      /* how often the pool is scrubbed; 0: only when asked */
    int64_t tick_ns;       /* how often the pool is looked at; 0: 2 s */
    int64_t sign_ns;       /* how often the pool says on its devices that it is in use; 0: 1 s */
    int64_t write_ns;      /* how often numbers alone are written to the API; 0: 10 s */
};
