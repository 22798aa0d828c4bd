/*
 * Health: /healthz, /livez and /readyz, each a list of checks.
 *
 *     ping        it answers
 *     store       the disk takes writes: the last transaction was good, or a trial one is now
 *     followers   what the server does of its own accord goes on
 *     startup     everything that is needed at the start is done        (ready only)
 *     shutdown    it is not stopping                                    (ready only)
 *
 * A server whose disk is full is alive (a restart mends nothing) and not ready.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct call;

struct apiserver_health {
    pthread_mutex_t lock;
    bool failing;   /* the last transaction; err says why */
    int64_t probed; /* when a trial was last made, monotonic */
    struct err err;
    bool started, stopping;
};

void apiserver_health_init(struct apiserver_health *h);
void apiserver_health_done(struct apiserver_health *h);
/* After each transaction; NULL: it is on disk. */
void apiserver_health_commit(struct apiserver_health *h, const struct err *error);
void apiserver_health_started(struct apiserver_health *h);
void apiserver_health_stopping(struct apiserver_health *h);

/* Answers. */
void call_health(struct call *c);
