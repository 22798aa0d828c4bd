/*
 * What the files of the pod runner share.
 *
 *     pod_spec.c      what a Pod wants, out of its JSON
 *     pod_machine.c   what to do next: a function of what is wanted and what is there; no I/O
 *     pod_status.c    what to say of it in the Pod's status; no I/O
 *     pod_env.c       environment and arguments of a container
 *     pod_volume.c    volumes as folders; pod_payload.c: those that are files out of the API
 *     pod_probe.c     probes and hooks, on a few threads
 *     pod_state.c     the folder of state; pod_shim.c: shims
 *     pods.c          the reconciler; pod_act.c: it does what the machine said
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "json/json.h"
#include "node/pods.h"

#define POD_HOST_PROCESS "orlop.io/host-process"

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
/* The program that an image of ours stands for, as its file's name; NULL: it is not ours. */
const char *pod_image_program(const char *image);

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

/* pod_fields.c: facts about a pod as text, for variables and files. */

struct pod_place {
    const char *node, *host_ip, *pod_ip;
    const char *api_host, *api_port; /* of the API, as its clients in a Pod are told */
};

/* Appends what a path such as metadata.labels['app'] says of the pod. */
int pod_field(const json_t *pod, const struct pod_place *place, const char *path, struct str *out,
              struct err *e);
/* The same of a resourceFieldRef; container is the one that it is about when it names none. */
int pod_resource_field(const json_t *pod, const json_t *container, const json_t *ref,
                       struct str *out, struct err *e);

/* Where ConfigMaps, Secrets and tokens come from. */
struct pod_source {
    /* A new reference; NULL with NOT_FOUND. */
    json_t *(*get)(void *context, const char *kind, const char *ns, const char *name,
                   struct err *e);
    /* Appends a token of the pod's account; when it ends, in ns since 1970, is in *ret_expires. */
    int (*token)(void *context, const json_t *pod, const char *audience, int64_t seconds,
                 struct str *ret_token, int64_t *ret_expires, struct err *e);
    void *context;
};

/* The bytes of a key of a ConfigMap or Secret; NOT_FOUND when the object or the key is missing. */
int pod_source_key(const struct pod_source *s, const char *kind, const char *ns, const char *name,
                   const char *key, struct str *out, struct err *e);
/* The bytes of one entry of data or binaryData; false when it is none. */
bool pod_source_value(const char *kind, const char *member, const json_t *value, struct str *out);

/* pod_env.c */

struct pod_vars {
    VEC(char *) p; /* "NAME=value", each name once */
};
void pod_vars_done(struct pod_vars *v);
/* Borrowed; NULL. */
const char *pod_vars_get(const struct pod_vars *v, const char *name);
/* $(NAME) is replaced where there is such a variable; $$ is one $. */
char *pod_expand(const char *text, const struct pod_vars *v);
int pod_vars_make(const struct pod_spec *spec, const struct pod_container *c,
                  const struct pod_place *place, const struct pod_source *source,
                  struct pod_vars *ret_vars, struct err *e);

/* pod_payload.c: volumes that are files out of the API. */

struct pod_file {
    char *path; /* within the volume */
    struct str data;
    unsigned mode;
};
struct pod_files {
    VEC(struct pod_file) p;
    int64_t renew_ns; /* since 1970: a token should be had again then; INT64_MAX */
};
void pod_files_done(struct pod_files *f);
/* Whether it is such a volume; when it is, its files, or -1. */
bool pod_volume_is_payload(const json_t *volume);
int pod_payload(const struct pod_spec *spec, const json_t *volume, const struct pod_place *place,
                const struct pod_source *source, struct pod_files *ret_files, struct err *e);

/*
 * pod_files.c: makes the folder hold exactly these files. Whoever reads meanwhile sees all of the
 * old or all of the new: names lead through a symlink that is replaced. Nothing is written when
 * nothing differs.
 */
int pod_files_write(const char *folder, const struct pod_files *f, struct err *e);

/* pod_volume.c */

struct pod_paths {
    const char *folder;                      /* of the pod's state */
    const struct node_pods_options *options; /* claims */
};
/*
 * Makes all volumes of the pod, or brings those out of the API up to date. When to do that again for
 * a token's sake, since 1970, is in *ret_renew.
 */
int pod_volumes_set_up(const struct pod_spec *spec, const struct pod_paths *paths,
                       const struct pod_place *place, const struct pod_source *source,
                       int64_t *ret_renew, struct err *e);
/* Tells whoever made them for claims that the pod is gone. */
void pod_volumes_release(const struct pod_spec *spec, const struct node_pods_options *o);
struct pod_mount {
    char *source, *target;
    bool read_only;
};
struct pod_mounts {
    VEC(struct pod_mount) p;
};
void pod_mounts_done(struct pod_mounts *m);
/* What a container mounts; the volumes are set up. */
int pod_mounts_make(const struct pod_spec *spec, const struct pod_container *c,
                    const struct pod_paths *paths, const struct pod_vars *vars,
                    struct pod_mounts *ret_mounts, struct err *e);
/* Whether the account's token is given to the pod: as a kubeconfig, for which no mount is needed. */
bool pod_wants_access(const json_t *pod);
char *pod_access_path(const char *folder); /* of that kubeconfig */

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

/* pods.c, pod_act.c, pod_start.c, pod_source.c: the reconciler. */

struct pod_token {
    char *audience, *token;
    int64_t seconds, expires;
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
