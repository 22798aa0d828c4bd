/*
 * Leader election on a Lease: of several processes, at most one acts.
 *
 * The leader writes its name and renews; the others watch the lease and take it when it has not
 * changed for its duration, by their own clock. A write carries the resourceVersion that was read, so
 * two cannot both succeed. The leader stops acting `renew_ns` after its last successful renewal was
 * *sent*, which is before anybody else can take over, whatever the delay: so there are never two. It
 * counts time with a clock that goes on while the process or the machine sleeps, and must be asked
 * right before acting. A leader that stops gives the lease back, and the next has it at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"

struct kube_leader;

struct kube_leader_options {
    struct kube_client *client; /* best one of its own: with deadlines well below renew_ns */
    const char *ns, *name;      /* of the Lease */
    const char *identity;       /* unique to this process: host_uuid; NULL: made up */
    int64_t lease_ns;           /* 0: 15 s; whole seconds, as others read it in the Lease */
    int64_t renew_ns;           /* less than that; 0: two thirds of it */
    int64_t retry_ns;           /* how often it is renewed, or tried; 0: two fifteenths */
    /* On the elector's thread. lost() is final: the process should end and be started again. */
    void (*elected)(void *context);
    void (*lost)(void *context);
    void *context;
    const struct clock *clock;
    struct metrics *metrics; /* leader_election_master_status; NULL */
};

struct kube_leader *kube_leader_new(const struct kube_leader_options *o, struct err *e);
int kube_leader_start(struct kube_leader *l, struct err *e);
/* Gives the lease back if it is ours. */
void kube_leader_stop(struct kube_leader *l);
void kube_leader_free(struct kube_leader *l);
DEFINE_CLEANUP(struct kube_leader *, kube_leader_free)
/* Now, by the clock. */
bool kube_leader_is(const struct kube_leader *l);
