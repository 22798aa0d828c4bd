/*
 * What the files of the manager share.
 */
#pragma once

#include <stdatomic.h>

#include "base/vec.h"
#include "http/server.h"
#include "kube/manager.h"
#include "metrics/metrics.h"

struct manager_check {
    const char *name;
    int (*run)(void *context, struct err *e);
    void *context;
    bool alive; /* asked by /healthz and /livez too */
};

struct manager_informer {
    struct kube_informer *informer;
    char *key; /* what was asked for */
};

struct manager_stop {
    void (*fn)(void *context);
    void *context;
};

struct kube_manager {
    char *name, *health_address;
    int health_port;
    const struct clock *clock;
    struct kube_ages *ages;
    struct metrics *metrics;
    struct kube_client *client, *leader_client; /* elections do not wait for other requests */
    struct kube_leader *leader;                 /* NULL: it acts without asking */
    struct kube_recorder *recorder;
    struct http_server *health;
    VEC(struct manager_informer) informers;
    VEC(struct kube_controller *) controllers;
    VEC(struct manager_check) checks;
    VEC(struct manager_stop) stops, ends;
    int wake; /* an eventfd: elected or lost */
    _Atomic bool elected, lost;
    int stopped; /* an eventfd: the controllers have */
    bool controllers_run;
};

/* manager_health.c */
int manager_health_start(struct kube_manager *m, struct err *e);
