/*
 * What the files of the pod runner share beside pod.h and pod_content.h.
 *
 *     pod_state.c     the folder of state; pod_stop.c: stopping by it alone
 *     pod_check.c     one try of a probe; pod_probe.c: all probes and hooks, on a few threads
 *     pod_watch.c     when shims end
 *     pod_cgroup.c    limits; pod_address.c: addresses
 *     pods.c          set-up; pod_reconcile.c: the reconciler, which observes and acts by pod_act.c
 *     pod_start.c     from a description to a shim; pod_source.c: what that takes from the API
 */
#pragma once

#include <pthread.h>

#include "base/map.h"
#include "k8s/kubelet/pod.h"
#include "k8s/kubelet/pod_content.h"
#include "k8s/kubelet/pods.h"

/* pod_state.c: the folder of state. */

char *pod_state_folder(const char *data_dir, const char *uid); /* uid NULL: the one above all */
char *pod_log_folder(const char *data_dir, const char *ns, const char *pod);
char *pod_container_folder(const char *state, const char *container);

/* What is remembered of a pod: enough to stop it, and to say the same of it as before. */
struct pod_memory {
    json_t *pod;        /* as it was when it was taken on; owned */
    char ip[16];        /* "" */
    int64_t start_time; /* ns since 1970 */
};
void pod_memory_done(struct pod_memory *m);
int pod_memory_read(const char *state, struct pod_memory *ret_memory, struct err *e);
int pod_memory_write(const char *state, const struct pod_memory *m, struct err *e);
/* Uids of all that are remembered; the caller's. */
struct pod_names {
    VEC(char *) p;
};
void pod_names_done(struct pod_names *n);
int pod_state_list(const char *folder, struct pod_names *ret_names, struct err *e);

/*
 * Looks at the instances of a container in its folder. What they say goes into facts: the instance,
 * and the one before it. A shim that was killed leaves no end: its processes are killed, and
 * "ContainerStatusUnknown" is the reason. *ret_pid is the program's while it runs.
 */
struct shim_status;
int pod_look(const char *folder, const char *mark, const struct clock *clock,
             struct pod_facts *facts, pid_t *ret_pid, struct err *e);
/* Whether the program could not be run, and why. */
bool pod_run_error(const char *folder, int number, char ret_why[256]);
/* Of the newest instance; -1: there is none. */
int pod_last_number(const char *folder);
/* Sends a signal to the program while its shim is at work; false: it is not there. */
bool pod_signal(const char *folder, int number, int signum);

/* pod_check.c: one try of a probe or a hook. */

struct pod_action {
    enum pod_means means;
    const json_t *json;      /* the probe's or handler's; its owner outlives this */
    const json_t *container; /* for named ports */
    const char *host;        /* where it is asked unless it names another host */
    const char *shim;        /* the program */
    pid_t pid;               /* of the container */
};
/* NULL when it can be done here, else why not. */
const char *pod_action_problem(enum pod_means means, const json_t *json);
int pod_action_run(const struct pod_action *a, int64_t timeout_ns, struct err *e);

/* pod_probe.c: probes of all containers and hooks, on as few threads as are busy at once. */

struct pod_probe_count {
    unsigned good, bad; /* in a row */
    enum pod_verdict verdict;
};
/* Whether the verdict is another now. */
bool pod_probe_note(const struct pod_probe *p, struct pod_probe_count *n, bool ok);

struct pod_prober;
struct pod_prober_options {
    /* The verdict changed, or a hook is done. */
    void (*changed)(void *context, const char *ns, const char *name);
    void *context;
    struct kube_recorder *recorder;
    const char *shim;
};
struct pod_prober *pod_prober_new(const struct pod_prober_options *o);
/* Waits for what is under way: no longer than its time-out. */
void pod_prober_free(struct pod_prober *p);
struct pod_subject {
    const struct pod_spec *spec;
    const struct pod_container *container;
    int number;
    pid_t pid;
    const char *host;
};
/* What the probe says now; it begins if this is the first that is asked of the instance. */
enum pod_verdict pod_prober_ask(struct pod_prober *p, const struct pod_subject *s,
                                enum pod_check check);
/* Whether the hook is done; it begins if this is the first that is asked. */
bool pod_prober_hook(struct pod_prober *p, const struct pod_subject *s, int64_t timeout_ns);
/* All of the pod's container; NULL: of all. */
void pod_prober_forget(struct pod_prober *p, const char *uid, const char *container);
/* ObjectReference to a container of the pod, for events. */
json_t *pod_reference(const struct pod_spec *spec, const struct pod_container *c);

/* pod_watch.c: tells when a process that is nobody's child of ours has ended. */

struct pod_watch;
struct pod_watch *pod_watch_new(void (*ended)(void *context, const char *ns, const char *name),
                                void *context, struct err *e);
void pod_watch_free(struct pod_watch *w);
/* Once for each; the shim of the folder, if there is one at work. */
void pod_watch_add(struct pod_watch *w, const char *ns, const char *name, const char *folder);

/* pod_cgroup.c: limits. */

/* The folder that containers' groups are made in, or NULL with why there is none. */
char *pod_cgroup_base(const char *given, struct err *e);
/* A group for the container with its limits; NULL when that failed. */
char *pod_cgroup_make(const char *base, const char *id, const json_t *container, struct err *e);
char *pod_cgroup_path(const char *base, const char *id);
/* Whether the kernel killed something in it for want of memory. */
bool pod_cgroup_oom(const char *folder);
void pod_cgroup_remove(const char *folder);
bool pod_has_limits(const json_t *pod);

/* pod_address.c: addresses of pods. */

struct pod_addresses {
    uint32_t first, count; /* host byte order; 0: none are given out */
    uint32_t next;
    struct map used; /* "127.10.3.2" */
};
int pod_addresses_init(struct pod_addresses *a, const char *cidr, struct err *e);
void pod_addresses_done(struct pod_addresses *a);
void pod_addresses_take(struct pod_addresses *a, const char *ip);
int pod_addresses_get(struct pod_addresses *a, char ret_ip[16], struct err *e);
void pod_addresses_put(struct pod_addresses *a, const char *ip);

/* The reconciler. */

struct pod_token {
    char *audience, *token;
    int64_t seconds, expires;
    int64_t renew_ns; /* monotonic: it is to be had again, whatever the wall clock says */
};

/* A pod that was taken on. Only the worker that reconciles its name touches it. */
struct pod_run {
    struct pods *all;
    char *key;            /* "namespace/name"; never changes, so others may read it */
    struct pod_spec spec; /* as the API has it, or had it last */
    char *folder;         /* of its state */
    struct pod_memory memory;
    VEC(struct pod_facts) facts; /* one per container */
    VEC(int) watched;            /* the instance that is watched, one per container */
    VEC(struct pod_token) tokens;
    bool volumes_up;
    int64_t renew_ns;   /* since 1970: a token is to be had again */
    int64_t refresh_ns; /* monotonic: volumes are to be looked at again */
    int64_t gone_ns;    /* monotonic: since when it is no more; 0 */
    bool has_begun;     /* `begun_ns` is known */
    int64_t begun_ns;   /* monotonic: when it was taken on, as far as memory.start_time says */
};

struct pods {
    struct node_pods_options options; /* its texts are owned */
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_controller *controller;
    struct kube_informer *informer;
    const struct clock *clock;
    struct pod_prober *prober;
    struct pod_watch *watch;
    char *shim, *api_host, *api_port;
    char *cgroup;        /* NULL: none, and why */
    char no_cgroup[300]; /* "" */
    pthread_mutex_t lock;
    struct map runs; /* uid -> struct pod_run; with the lock */
    struct pod_addresses addresses;
};

int pod_run_new(struct pods *p, json_t *pod, struct pod_run **ret_run, struct err *e);
void pod_run_free(struct pod_run *r);
int pod_reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                  struct err *e);

struct pod_place pod_place_of(const struct pod_run *r);
struct pod_source pod_source_of(struct pod_run *r);
void pod_tokens_done(struct pod_run *r);

/* Looks at all containers: what has ended, what probes say. */
int pod_observe(struct pod_run *r, struct err *e);
/* Does what the plan says; whether that was anything. */
bool pod_act(struct pod_run *r, const struct pod_plan *plan);
/* Starts the next instance, or notes in the facts why it cannot be. */
void pod_start(struct pod_run *r, size_t i);
/* Brings volumes up to date when it is time. */
void pod_refresh(struct pod_run *r);
/* The mark of a container's processes, without the number of the instance. */
char *pod_mark(const struct pod_run *r, size_t i);

/* pod_stop.c: kills the containers of one pod. */
void node_pods_stop_one(const char *data_dir, const char *uid);
