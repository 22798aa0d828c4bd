/*
 * A Pod as the runner sees it: what is wanted, what is there, what to do next, what to say. All of it
 * without I/O.
 *
 *     pod_spec.c      what a Pod wants, out of its JSON
 *     pod_machine.c   what to do next: a function of what is wanted and what is there
 *     pod_status.c    what to say of it in the Pod's status
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "json/json.h"

/* pod_spec.c */

enum pod_role { POD_INIT, POD_SIDECAR, POD_MAIN };
enum pod_policy { POD_ALWAYS, POD_ON_FAILURE, POD_NEVER };
enum pod_check { POD_STARTUP, POD_LIVENESS, POD_READINESS, POD_CHECKS };
enum pod_means { POD_NO_PROBE, POD_EXEC, POD_HTTP, POD_TCP, POD_GRPC };

struct pod_probe {
    enum pod_means means;
    const json_t *json;                                  /* of the Pod */
    int64_t initial_ns, period_ns, timeout_ns, grace_ns; /* grace < 0: the Pod's */
    unsigned successes, failures;
};

struct pod_container {
    const char *name, *image; /* of the Pod */
    const json_t *json;
    enum pod_role role;
    struct pod_probe probes[POD_CHECKS];
    const json_t *pre_stop; /* NULL: none */
};

struct pod_spec {
    json_t *pod; /* owned */
    const char *ns, *name, *uid;
    enum pod_policy policy;
    int64_t grace_ns, deadline_ns;        /* deadline < 0: none */
    bool host_process;                    /* it asks for commands of the host */
    VEC(struct pod_container) containers; /* init first, in their order */
};

/* Takes a reference. INVALID_ARGUMENT for what the API would not have let in. */
int pod_spec_parse(json_t *pod, struct pod_spec *ret_spec, struct err *e);
void pod_spec_done(struct pod_spec *s);
const char *pod_qos_class(const json_t *pod);
/* A number or the name of a port of the container; 0 when it has none. */
unsigned pod_port(const json_t *container, const json_t *port);

/* pod_machine.c */

enum pod_verdict { POD_UNDECIDED, POD_GOOD, POD_BAD };
enum pod_running { POD_NOT_RUN, POD_RUNNING, POD_ENDED };

struct pod_end {
    int exit_code; /* 128 + signal where one ended it */
    int signal;
    int64_t started, finished; /* ns since 1970 */
    const char *reason;        /* literals: Completed, Error, OOMKilled, ... */
    char message[512];
};

/* What is there of a container. Times without another word are of the monotonic clock. */
struct pod_facts {
    enum pod_running running;
    int number;          /* of the instance; -1: there was none */
    int64_t started;     /* ns since 1970, while it runs */
    struct pod_end end;  /* when it has ended */
    struct pod_end last; /* of the instance before; has_last */
    bool has_last;
    int64_t ended_ns; /* when it ended */
    unsigned streak;  /* ends after short runs, one after the other, this one included */
    enum pod_verdict verdicts[POD_CHECKS];
    /* How far stopping it has come. 0: not. */
    int64_t stop_ns, term_ns;
    enum { POD_HOOK_NONE, POD_HOOK_RUNS, POD_HOOK_DONE } hook;
    bool killed;
    /* Why it cannot be started, as a state of waiting; reason NULL: nothing is known against it. */
    const char *blocked; /* a literal */
    char why[700];
    int64_t retry_ns; /* when to try again */
};

struct pod_situation {
    const struct pod_spec *spec;
    const struct pod_facts *facts; /* one per container */
    int64_t now_ns;
    bool gone;           /* it is being deleted, or is no more: everything is to stop */
    int64_t stop_by_ns;  /* then: when patience ends */
    int64_t deadline_ns; /* activeDeadlineSeconds end then; INT64_MAX */
    const char *verdict; /* phase that was final when last said: "Succeeded", "Failed"; NULL */
    int64_t backoff_ns, backoff_max_ns;
};

enum pod_phase { POD_PENDING, POD_PHASE_RUNNING, POD_SUCCEEDED, POD_FAILED };
enum pod_verb { POD_KEEP, POD_START, POD_HOOK, POD_TERM, POD_KILL };

struct pod_plan {
    VEC(enum pod_verb) verbs; /* one per container */
    VEC(int64_t) backoffs;    /* how long each waits before it is started again; 0: it does not */
    int64_t wake_ns;          /* look again then; INT64_MAX: when something happens */
    enum pod_phase phase;
    bool initialized;
    bool past_deadline;
    bool over; /* nothing runs, and nothing will */
};

void pod_decide(const struct pod_situation *s, struct pod_plan *ret_plan);
void pod_plan_done(struct pod_plan *p);
bool pod_is_started(const struct pod_container *c, const struct pod_facts *f);
bool pod_is_ready(const struct pod_container *c, const struct pod_facts *f);
/* Before the restart after that many ends in a row: none, the first, twice that, ... */
int64_t pod_backoff(unsigned streak, int64_t first_ns, int64_t most_ns);

/* Where a pod is. */
struct pod_place {
    const char *node, *host_ip, *pod_ip;
    const char *api_host, *api_port; /* of the API, as its clients in a Pod are told */
};

/* pod_status.c */

struct pod_report {
    const struct pod_spec *spec;
    const struct pod_facts *facts;
    const struct pod_plan *plan;
    const struct pod_place *place;
    int64_t start_time;         /* ns since 1970 */
    const char *limits_message; /* why its limits are not kept; NULL: they are, or it has none */
    const struct clock *clock;
};

/* The status that the Pod should have: what it had, with what we have to say. */
json_t *pod_status_make(const struct pod_report *r);
