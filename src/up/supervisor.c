#include "up/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/vec.h"
#include "kube/config.h"
#include "up/child.h"
#include "up/cluster.h"
#include "up/programs.h"

enum { TICK_MS = 200, NODE_GRACE = 20, GRACE = 10 }; /* seconds */

struct up {
    const struct up_options *o;
    struct up_child *children; /* the API server, the controllers, then nodes */
    size_t n;
    struct up_cluster *cluster;
    enum up_cluster_stage stage;
    char *url;
    int signal_fd;
    unsigned stops; /* how often it was told to end */
    bool failed;
    int64_t begun;
    struct err *e;
};

static int64_t now(void)
{
    return clock_mono_ns(clock_system());
}

static const char *state_word(enum up_child_state state)
{
    static const char *const words[] = {
        [UP_STOPPED] = "stopped",
        [UP_RUNNING] = "running",
        [UP_WAITING] = "restarting",
        [UP_ENDING] = "stopping",
    };
    return words[state];
}

/* For `orlop status`; a file that cannot be written is no reason to stop. */
static void write_state(struct up *u)
{
    json_auto_t *programs = json_array();
    for (size_t i = 0; i < u->n; i++) {
        const struct up_child *c = &u->children[i];
        char since[RFC3339_MAX];
        rfc3339_format(rfc3339_from_ns(c->started_at), RFC3339_SECONDS, since);
        json_array_append_new(programs, json_pack("{s:s,s:s,s:i,s:i,s:s,s:s,s:s}", "name", c->name,
                                                  "state", state_word(c->state), "pid", (int)c->pid,
                                                  "restarts", (int)c->restarts, "since", since,
                                                  "ended", c->ended, "log", c->log_path));
    }
    json_auto_t *state =
        json_pack("{s:i,s:s,s:b,s:i,s:O}", "pid", (int)getpid(), "url", u->url ? u->url : "",
                  "ready", u->stage == UP_READY, "nodes", (int)u->o->nodes, "programs", programs);
    struct err e = {0};
    if (up_place_write(u->o->place, state, &e) < 0)
        log_warn("the state cannot be written", LOG_ERR(&e));
}

static int start_all(struct up *u, size_t first, struct err *e)
{
    for (size_t i = first; i < u->n; i++) {
        if (up_child_start(&u->children[i], e) < 0)
            return -1;
    }
    write_state(u);
    return 0;
}

/* The API server has said where it is. */
static int begin_cluster(struct up *u, struct err *e)
{
    _cleanup_free_ char *kubeconfig = up_place_path(u->o->place, "apiserver/admin.kubeconfig");
    struct kube_config config = {0};
    up_programs_stay(&u->children[0], str_get(&u->children[0].line));
    if (kube_config_load(kubeconfig, NULL, &config, e) < 0)
        return -1;
    u->url = TAKE_PTR(config.server); /* how it is reached from here, wherever it listens */
    kube_config_done(&config);
    _cleanup_free_ char *link = up_place_path(u->o->place, "kubeconfig");
    unlink(link);
    if (symlink("apiserver/admin.kubeconfig", link) < 0)
        return err_errno(e, errno, "%s", link);
    struct up_cluster_options o = {
        .kubeconfig = kubeconfig,
        .ns = UP_NAMESPACE,
        .nodes = u->o->nodes,
        .disks = u->o->disks,
    };
    return up_cluster_start(&o, &u->cluster, e);
}

static void announce(struct up *u)
{
    _cleanup_(str_done) struct str text = {0};
    char what[300];
    up_cluster_describe(u->cluster, what, sizeof(what));
    str_appendf(&text, "Orlop is ready after %.1f s: %u node%s, %u block device%s.\n",
                (double)(now() - u->begun) / (double)CLOCK_SECOND, u->o->nodes,
                u->o->nodes == 1 ? "" : "s", u->o->nodes * u->o->disks,
                u->o->nodes * u->o->disks == 1 ? "" : "s");
    str_appendf(&text, "  API     %s\n  data    %s\n\n", u->url, u->o->place->folder);
    str_appendf(&text, "  export KUBECONFIG=%s/kubeconfig\n  kubectl get nodes,blockdevices -A\n",
                u->o->place->folder);
    if (u->o->ready_fd < 0) {
        printf("%s\nCtrl-C ends it; what is in the data folder stays.\n", text.p);
        fflush(stdout);
        return;
    }
    dprintf(u->o->ready_fd, "%c%s", UP_IS_READY, text.p);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup3(null, u->o->ready_fd, O_CLOEXEC); /* whoever started this goes */
    close(null);
}

static int advance(struct up *u, struct err *e)
{
    if (!u->url && u->children[0].said && begin_cluster(u, e) < 0)
        return -1;
    enum up_cluster_stage stage = u->cluster ? up_cluster_stage(u->cluster) : UP_PREPARING;
    if (stage == u->stage || u->stops)
        return 0;
    if (u->stage == UP_PREPARING) { /* it may be further already */
        if (up_programs_add(u->o, u->url, up_cluster_token(u->cluster), &u->children, &u->n, e) <
                0 ||
            start_all(u, 1, e) < 0)
            return -1;
    }
    u->stage = stage;
    if (stage == UP_READY)
        announce(u);
    write_state(u);
    return 0;
}

/* Stops children first to last - 1; true once none of them runs. */
static bool stop_some(struct up *u, size_t first, size_t last, int64_t grace_seconds)
{
    bool stopped = true;
    for (size_t i = first; i < last; i++) {
        up_child_stop(&u->children[i], u->stops > 1 ? 0 : grace_seconds * CLOCK_SECOND);
        stopped &= u->children[i].state == UP_STOPPED;
    }
    return stopped || u->stops > 1;
}

/* Nodes first, which have Pods to end; the API server last, which they need for that. */
static void stop_next(struct up *u)
{
    if (u->n > 2 && !stop_some(u, 2, u->n, NODE_GRACE))
        return;
    if (u->n > 1 && !stop_some(u, 1, 2, GRACE))
        return;
    if (u->n > 0)
        stop_some(u, 0, 1, GRACE);
}

static bool all_stopped(const struct up *u)
{
    for (size_t i = 0; i < u->n; i++) {
        if (u->children[i].state != UP_STOPPED)
            return false;
    }
    return true;
}

static void say_what_happened(const struct up_child *c, const struct err *e)
{
    if (c->state == UP_WAITING)
        log_warn("a program has ended and is started again", LOG_S("name", c->name),
                 LOG_S("ended", c->ended), LOG_S("log", c->log_path));
    else if (e->code)
        log_error("a program cannot be started again", LOG_S("name", c->name), LOG_ERR(e));
}

static void check_children(struct up *u)
{
    bool changed = false;
    for (size_t i = 0; i < u->n; i++) {
        struct err e = {0};
        struct up_child *c = &u->children[i];
        up_child_read(c);
        if (!up_child_check(c, now(), &e))
            continue;
        changed = true;
        say_what_happened(c, &e);
        if (i == 0 && !u->url && c->state == UP_WAITING) { /* it never came up */
            err_set(u->e, ERR_UNAVAILABLE, "StartFailed",
                    "the API server has ended at its start (%s); see %s", c->ended, c->log_path);
            u->failed = true;
            u->stops++;
        }
    }
    if (changed)
        write_state(u);
}

/* Sleeps until something may have happened. */
static void await(struct up *u)
{
    VEC(struct pollfd) fds = {0};
    vec_push(&fds, (struct pollfd){.fd = u->signal_fd, .events = POLLIN});
    if (u->cluster)
        vec_push(&fds, (struct pollfd){.fd = up_cluster_fd(u->cluster), .events = POLLIN});
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < u->n; i++) {
        const struct up_child *c = &u->children[i];
        vec_push(&fds, (struct pollfd){.fd = c->pidfd, .events = POLLIN});
        vec_push(&fds, (struct pollfd){.fd = c->log_fd, .events = POLLIN});
        vec_push(&fds, (struct pollfd){.fd = c->said ? -1 : c->said_fd, .events = POLLIN});
        if ((c->state == UP_WAITING || c->state == UP_ENDING) && c->due_ns < due)
            due = c->due_ns;
    }
    int64_t left = due == INT64_MAX ? -1 : (due - now()) / 1000000 + 1;
    poll(fds.p, fds.len, due == INT64_MAX ? -1 : left < 0 ? 0 : (int)left);
    vec_done(&fds);
    struct signalfd_siginfo info;
    while (read(u->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        u->stops++;
}

static int open_signals(struct up *u, struct err *e)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    u->signal_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    return u->signal_fd < 0 ? err_errno(e, errno, "signals") : 0;
}

static int prepare(struct up *u, struct err *e)
{
    _cleanup_free_ char *logs = up_place_path(u->o->place, "logs");
    _cleanup_free_ char *nodes = up_place_path(u->o->place, "nodes");
    if (file_make_dirs(logs, 0700, e) < 0 || file_make_dirs(nodes, 0700, e) < 0 ||
        open_signals(u, e) < 0)
        return -1;
    up_programs_clean(u->o);
    up_programs_server(u->o, &u->children, &u->n);
    return start_all(u, 0, e);
}

int up_run(const struct up_options *o, struct err *e)
{
    struct up u = {.o = o, .signal_fd = -1, .begun = now(), .e = e};
    if (prepare(&u, e) < 0) {
        u.failed = true;
        u.stops++;
    }
    while (!u.stops || !all_stopped(&u)) {
        if (!u.stops && advance(&u, e) < 0) {
            u.failed = true;
            u.stops++;
        }
        if (u.stops)
            stop_next(&u);
        if (!all_stopped(&u))
            await(&u);
        check_children(&u);
    }
    up_cluster_stop(u.cluster);
    up_programs_clean(o);
    write_state(&u);
    for (size_t i = 0; i < u.n; i++)
        up_child_done(&u.children[i]);
    free(u.children);
    free(u.url);
    if (u.signal_fd >= 0)
        close(u.signal_fd);
    return u.failed ? -1 : 0;
}
