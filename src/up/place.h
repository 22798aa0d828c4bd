/*
 * The folder that a system on one machine lives in, and who has it.
 *
 *     DIR/kubeconfig          of the administrator, mode 0600
 *     DIR/apiserver/          the API server's store, keys and certificates
 *     DIR/nodes/NAME/         what a node keeps: its identity, sparse disks, its Pods and their logs
 *     DIR/logs/NAME.log       what each program says, and NAME.log.1 before that
 *     DIR/up.lock             locked by the `orlop up` that runs
 *     DIR/up.json             what it started, for `orlop status`
 *
 * The lock is a flock() and goes with the process, however it ends: so a folder is never taken for
 * in use when it is not, and two cannot have it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

struct up_place {
    char *folder; /* absolute */
    int lock_fd;  /* -1: not ours */
};

/* folder NULL: $ORLOP_DATA, for root /var/lib/orlop, else $XDG_DATA_HOME/orlop or its default. */
int up_place_open(const char *folder, struct up_place *ret_place, struct err *e);
void up_place_done(struct up_place *p);
/* To be freed: DIR/NAME. */
char *up_place_path(const struct up_place *p, const char *name);

/* Makes the folder and takes it: FAILED_PRECONDITION, with who has it, when somebody else does. */
int up_place_lock(struct up_place *p, struct err *e);
/* Whether an `orlop up` has it. */
bool up_place_in_use(const struct up_place *p);

/* up.json, for others to read. */
int up_place_write(const struct up_place *p, const json_t *state, struct err *e);
/* NOT_FOUND where there never was one. */
json_t *up_place_read(const struct up_place *p, struct err *e);
