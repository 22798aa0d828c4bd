/*
 * What the rules of CStorPoolCluster that look at other objects share. Private to cspc_*.c.
 *
 *     cspc_among.c     which pools are new, go on, move or go; nodes
 *     cspc_use.c       what lives on a pool
 *     cspc_device.c    a device that a pool gets
 *     cspc_replace.c   a device that takes the place of another, and its claim
 *
 * Every message ends with the name of its rule in brackets, which docs/guides/admission.md explains.
 */
#pragma once

#include "api/among.h"
#include "kinds/kinds.h"
#include "kinds/pool_names.h"

/* One look at each collection, for one check. */
struct api_cspc_view {
    const struct api_among *a;
    const char *ns, *name;
    json_t *nodes, *claims, *clusters;
    struct map claim_of;    /* device -> its BlockDeviceClaim */
    struct map cluster_of;  /* device -> another CStorPoolCluster that has it */
    struct map place_of;    /* device -> where it was before: api_cspc_place */
    const json_t **node_of; /* by pool: its node; NULL: none, or several */
};

/* A place in spec.pools, as a pointer that is not NULL. */
static inline void *api_cspc_place(size_t pool, size_t group)
{
    return (void *)((uintptr_t)(pool + 1) << 32 | (uintptr_t)group);
}

static inline size_t api_cspc_place_pool(const void *place)
{
    return (size_t)((uintptr_t)place >> 32) - 1;
}

static inline size_t api_cspc_place_group(const void *place)
{
    return (size_t)((uintptr_t)place & UINT32_MAX);
}

/* Texts of an object; "" for what is not there. */
const char *api_cspc_label(const json_t *object, const char *key);
const char *api_cspc_annotation(const json_t *object, const char *key);
const char *api_cspc_object_name(const json_t *object);

/* A BlockDevice, NULL when there is none. */
int api_cspc_block_device(const struct api_cspc_view *v, const char *name, json_t **ret_bd,
                          struct err *e);
/* The rules for a device that is new in a pool, which is to be on that node. */
int api_cspc_check_device(const struct api_cspc_view *v, const json_t *device, const json_t *node,
                          const struct api_path *at, struct err *e);
/* Those for a device of a pool that moves to that node; *ret_fine: nothing was wrong. */
int api_cspc_check_moved(const struct api_cspc_view *v, const char *device, const json_t *node,
                         const struct api_path *at, bool *ret_fine, struct err *e);
/* Those for a group that goes on: what takes whose place there. */
int api_cspc_check_replaced(const struct api_cspc_view *v, const json_t *old, const json_t *group,
                            const struct api_path *at, struct err *e);
/* A pool that was at that place of spec.pools and is gone: nothing may live on its instance. */
int api_cspc_check_gone(const struct api_cspc_view *v, const json_t *instances, size_t index,
                        const json_t *pool, const struct api_path *at, struct err *e);
int api_cspc_check_deletion(const struct api_among *a, struct err *e);
