/*
 * What a new system needs in its API before its programs start, and whether it is ready: done by a
 * thread of its own, because it waits for answers while the keeper keeps the programs running.
 *
 *     PREPARING ──> PREPARED: namespace, definitions, token are there ──> READY: all nodes are
 *
 * Everything is done with the administrator's kubeconfig, which the API server writes before it says
 * where it listens. What is there already is left as it is.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

enum up_cluster_stage { UP_PREPARING, UP_PREPARED, UP_READY };

enum { UP_NODE_NAME = 32 };
/* What the n-th virtual node is called, from 1. */
const char *up_node_name(unsigned number, char buf[UP_NODE_NAME]);

struct up_cluster;

struct up_cluster_options {
    const char *kubeconfig;
    const char *ns; /* of the block devices */
    unsigned nodes; /* that are to be ready */
    unsigned disks; /* on each */
};

int up_cluster_start(const struct up_cluster_options *o, struct up_cluster **ret_cluster,
                     struct err *e);
void up_cluster_stop(struct up_cluster *c); /* NULL is ignored */
DEFINE_CLEANUP(struct up_cluster *, up_cluster_stop)

/* Readable when the stage may have changed; up_cluster_stage() makes it quiet again. */
int up_cluster_fd(const struct up_cluster *c);
enum up_cluster_stage up_cluster_stage(struct up_cluster *c);
/* From PREPARED on: what nodes join with. */
const char *up_cluster_token(const struct up_cluster *c);
/* What it waits for or what went wrong last, for people: "2 of 3 nodes are ready". */
void up_cluster_describe(struct up_cluster *c, char *buf, size_t size);
