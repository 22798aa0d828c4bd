/*
 * The worker of `orlop attach serve`: one thread that moves requests between FUSE and iSCSI.
 */
#pragma once

#include <sys/types.h>

#include "attach/file.h"
#include "attach/serve.h"

/* What outlives a worker, in shared memory. */
struct attach_shared {
    struct attach_greeting greeting;
    struct err error; /* of a worker that exits with a status that is not 0 */
    uint64_t size;    /* of the volume, as it was known last; 0: not yet */
    uint32_t block_size;
    unsigned restarts;
    int ready_fd; /* an eventfd that is readable once I/O can begin */
};

int attach_shared_init(struct attach_shared *shared, struct err *e);

struct attach_worker {
    const struct attach_serve_options *o;
    struct attach_shared *shared;
    int fuse, listener;
    pid_t supervisor;
};

/* Works until SIGTERM or until the mount is gone; the exit status. */
int attach_work(const struct attach_worker *w);
