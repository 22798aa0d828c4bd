/*
 * `orlop up`: starts the API server, the controllers and the virtual nodes as programs of their own,
 * keeps them running, and ends them in the reverse order.
 *
 *     API server says where it is ──> namespace, token ──> controllers and nodes ──> ready
 *
 * One thread with poll() does it all, but for what has to ask the API (cluster.h). When it is told to
 * end, or killed, nothing stays behind: nodes end their Pods, and every program has a group that is
 * killed when it does not end in time.
 */
#pragma once

#include "up/place.h"

struct up_options {
    struct up_place *place; /* locked */
    const char *libexec;    /* folder of the programs */
    const char *address;    /* to listen on, numeric */
    unsigned port;
    unsigned nodes;
    const char *sparse_disks;              /* "3x10Gi"; NULL: none */
    unsigned disks;                        /* how many that is */
    const char *vg_disks;                  /* the same, for volume groups */
    const char *lost_after, *rehome_after; /* for the controllers; NULL: as usual */
    int ready_fd; /* gets UP_IS_READY and what there is to say then; -1: standard output */
};

enum { UP_IS_READY = '+' };

/* Until a signal ends it; -1 when it could not start. */
int up_run(const struct up_options *o, struct err *e);
