/*
 * `orlop attach serve`: the process behind one attached volume.
 *
 *     kernel                         supervisor (the process that others know)
 *     ------                           owns: the mount, /dev/fuse, the control socket, the lock
 *     /dev/loopN                         | fork
 *        | file of the mount             v
 *     FUSE <------ /dev/fuse ------> worker: file.c <--> session.c <-- iSCSI --> target
 *
 * The worker does all the work, in one thread. When it is killed, another one takes its place: the kernel
 * sends again what was not answered (Linux 6.9), the session is logged in again, and whoever uses the
 * device notices only the pause. When the supervisor ends, whatever the cause, the worker ends too and the
 * kernel fails what waits.
 *
 * SIGTERM ends it: if nobody uses the mount it is unmounted first; otherwise what waits gets EIO, and the
 * mount is detached. Neither can hang.
 */
#pragma once

#include "attach/session.h"

struct attach_serve_options {
    struct attach_session_options session;
    const char *mount, *control;
    int64_t login_within_ns; /* for the first login only */
};

/* How it ended is in *e: -1. ready() is called once I/O can begin. */
int attach_serve(const struct attach_serve_options *o, void (*ready)(void *context), void *context,
                 struct err *e);
