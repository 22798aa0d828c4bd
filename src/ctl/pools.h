/*
 * What the commands of pools and disks share. They read and write CStorPoolClusters, their instances
 * and BlockDevices, and nothing else.
 */
#pragma once

#include "ctl/ctl.h"
#include "kinds/blockdevice.h"
#include "kinds/pool.h"
#include "kinds/pool_names.h"

#define CTL_CLUSTER  "cstorpoolcluster.openebs.io"
#define CTL_INSTANCE "cstorpoolinstance.openebs.io"
#define CTL_DISK     "blockdevice.openebs.io"

#define CTL_NAMESPACE_OPTION                                                                       \
    {                                                                                              \
        "namespace", 'n', "NAME", CLI_STRING, CTL_AT(ns),                                          \
            .doc = "Namespace of the pools and disks. Without it: the context's, or openebs "      \
                   "where that "                                                                   \
                   "is default."                                                                   \
    }

#define CTL_ALL_NAMESPACES_OPTION                                                                  \
    {                                                                                              \
        "all-namespaces", 'A', NULL, CLI_SWITCH, CTL_AT(all_namespaces),                           \
            .doc = "Show those of all namespaces."                                                 \
    }

#define CTL_NODE_OPTION(text)                                                                      \
    {                                                                                              \
        "node", 'N', "NODE", CLI_STRING, CTL_AT(node), .doc = text                                 \
    }

#define CTL_DISK_DOC                                                                               \
    "A DISK is the name of a BlockDevice, the beginning of a name if it is unambiguous, or the "   \
    "path that the disk has on its node now (/dev/sdb, or sdb)."

/*
 * pool_objects.c: clusters and instances of either group, by the kind's table. What is not there is
 * NOT_FOUND; labels may be NULL.
 */
json_t *ctl_cstor_get(struct kube_client *client, const struct api_kind *kind, const char *ns,
                      const char *name, struct err *e);
json_t *ctl_cstor_list(struct kube_client *client, const struct api_kind *kind, const char *ns,
                       const char *labels, struct err *e);
json_t *ctl_cstor_update(struct kube_client *client, const struct api_kind *kind,
                         const json_t *object, const struct kube_write *w, struct err *e);
json_t *ctl_cstor_create(struct kube_client *client, const struct api_kind *kind,
                         const json_t *object, struct err *e);

struct kube_resource ctl_disks(void);
/* Where they are: --namespace, else the context's, else openebs. NULL: everywhere. */
const char *ctl_namespace(const struct cli_args *args, struct kube_client *client);

/* The instances of a cluster; NULL with an error. */
json_t *ctl_instances_of(struct kube_client *client, const char *ns, const char *cluster,
                         struct err *e);
/* The instance that a pool of a cluster has become; NULL: none. Borrowed. */
const json_t *ctl_instance_of(const json_t *instances, const json_t *pool);
/* The pool of spec.pools[] that is on a node, which is given by name or by its object (or NULL). */
json_t *ctl_pool_on(const json_t *cluster, const char *name, const json_t *node);
/* The node of a pool as people call it. */
const char *ctl_node_of(const json_t *instance, const json_t *pool);
/* The cluster that has a device; NULL. Borrowed. */
const json_t *ctl_cluster_with(const json_t *clusters, const char *device);

/*
 * The BlockDevice that people mean: its name, the beginning of it, or its path. node NULL: on any.
 * Borrowed from the list; NULL with an error that says what there is.
 */
const json_t *ctl_disk_find(const json_t *disks, const char *node, const char *text, struct err *e);
const char *ctl_disk_node(const json_t *disk);

/* A size as people read it, from a quantity, ZFS's own words or a number; returns buf. */
enum { CTL_BYTES_MAX = 32 };
const char *ctl_bytes(const json_t *value, char buf[CTL_BYTES_MAX]);
const char *ctl_size(int64_t bytes, char buf[CTL_BYTES_MAX]); /* "" for none */
/* How much of total is used; -1: not known. */
int ctl_percent(const json_t *used, const json_t *total);

/* pool_groups.c: puts the groups of the command line into a cluster. nodes, disks: NULL in a dry run. */
int ctl_add_groups(const struct cli_args *args, json_t *cluster, const json_t *nodes,
                   const json_t *disks, struct err *e);

/* A change of a cluster that is being made. */
struct ctl_pool_change {
    const struct cli_args *args;
    struct kube_client *client; /* NULL of a dry run without an API */
    const char *ns, *name;
    const char *node; /* whose pool is to go; NULL: all */
};

/* pool_change.c: what the commands that change something begin and end with. */
int ctl_pool_begin(const struct cli_args *args, struct ctl_pool_change *c);
int ctl_pool_end(struct ctl_pool_change *c, int status, const struct err *e);
json_t *ctl_pool_cluster(const struct ctl_pool_change *c, struct err *e);
/* The pool of spec.pools[] that is on a node, which may be gone. Borrowed. */
json_t *ctl_pool_of_node(struct ctl_pool_change *c, const json_t *cluster, const char *name,
                         struct err *e);
/* Edits the cluster, anew when somebody else was faster, and says what became of it. */
typedef int ctl_edit_fn(struct ctl_pool_change *c, json_t *cluster, struct err *e);
int ctl_pool_edit(struct ctl_pool_change *c, ctl_edit_fn *fn, const char *done, struct err *e);
/* With --wait, for that. */
int ctl_pool_wait(struct ctl_pool_change *c, ctl_done_fn *is_done, struct err *e);

/* pool_wait.c: for ctl_wait(); context is the change. */
int ctl_pool_is_converged(void *context, struct str *ret_progress, struct err *e);
int ctl_pool_is_gone(void *context, struct str *ret_progress, struct err *e);
