/*
 * What a program of controllers shares: one client, one informer per collection, one recorder, one
 * set of metrics, and one place that starts and stops them.
 *
 *     kube_manager_new -> controllers set themselves up -> kube_manager_run until told to stop
 *
 * Order of a start: health and metrics are served; informers list; with leader election the process
 * waits to be elected; controllers work when their informers are synced. Order of a stop: controllers
 * finish what they are at (a server that does not answer is waited for for some seconds), the lease is given back, events are written, the rest ends. When leadership
 * is lost, what is under way is cut off instead.
 *
 * Served are /healthz and /livez (is it alive), /readyz (are its caches filled, and what was added),
 * each check also by name (/readyz/informers) or all with ?verbose, and /metrics.
 */
#pragma once

#include "kube/ages.h"
#include "kube/controller.h"
#include "kube/event.h"
#include "kube/leader.h"

struct kube_manager;

struct kube_manager_options {
    const struct kube_config *config;
    const char *name;           /* "orlop-controller": field manager, component, default lease */
    const char *host;           /* of events; NULL: this machine */
    const char *health_address; /* numeric; NULL: loopback */
    int health_port;            /* < 0: not served; 0: any */
    bool elect;                 /* leader election */
    const char *lease_ns, *lease_name, *identity;
    int64_t lease_duration_ns; /* 0: 15 s */
    unsigned qps, burst;       /* of the client; 0: its own */
    const struct clock *clock; /* NULL: the machine's */
};

struct kube_manager *kube_manager_new(const struct kube_manager_options *o, struct err *e);
void kube_manager_free(struct kube_manager *m);
DEFINE_CLEANUP(struct kube_manager *, kube_manager_free)

struct kube_client *kube_manager_client(struct kube_manager *m);
struct kube_recorder *kube_manager_recorder(struct kube_manager *m);
struct metrics *kube_manager_metrics(struct kube_manager *m);
const struct clock *kube_manager_clock(struct kube_manager *m);
/* Of the stamps that its controllers look at; the manager's. */
struct kube_ages *kube_manager_ages(struct kube_manager *m);

/* The informer of that collection, the same for all who ask with the same words; the manager's. */
struct kube_informer *kube_manager_informer(struct kube_manager *m, struct kube_resource resource,
                                            const char *ns, const char *labels, const char *fields);
/* A controller that the manager owns; name, reconcile, context and workers of o count. */
struct kube_controller *kube_manager_controller(struct kube_manager *m,
                                                const struct kube_controller_options *o,
                                                struct err *e);
/* Something that is called by kube_manager_free() when all has stopped, to free a controller's own. */
void kube_manager_on_stop(struct kube_manager *m, void (*fn)(void *context), void *context);
/*
 * Something that is called when the controllers have stopped and the server can still be asked: what the process has
 * to say of its end. A server that does not answer is cut off after some seconds.
 */
void kube_manager_before_end(struct kube_manager *m, void (*fn)(void *context), void *context);
/* What readyz says too: 0, or -1 with why not. name is a literal. */
void kube_manager_add_check(struct kube_manager *m, const char *name,
                            int (*check)(void *context, struct err *e), void *context);

/* Until stop_fd is readable; 0 then, and -1 when leadership was lost or a start failed. */
int kube_manager_run(struct kube_manager *m, int stop_fd, struct err *e);
