/*
 * The life of a shim.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "k8s/shim/shim.h"

struct run {
    const struct shim_spec *spec;
    char *status_path;
    struct shim_status status;
    struct shim_log log;
    int output, failure, signals; /* descriptors */
};

static int64_t now(void)
{
    return clock_real_ns(clock_system());
}

static int record(const struct run *r, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    shim_status_format(&r->status, &text);
    return file_replace(r->status_path, str_get(&text), text.len, 0640, e);
}

/* The lock, and the number: from here on nobody else runs this instance. */
static int claim(const struct run *r, struct err *e)
{
    _cleanup_free_ char *path = shim_lock_path(r->spec->folder);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return err_errno(e, errno, "%s", path);
    /* The shim before us has recorded its end and may not be quite gone. */
    int held = -1;
    for (int tries = 0; tries < 50 && (held = fcntl(fd, F_SETLK, &lock)) < 0; tries++)
        usleep(10 * 1000);
    if (held < 0)
        return err_set(e, ERR_ALREADY_EXISTS, "AlreadyRuns", "another instance is at work");
    /* The descriptor stays open, and the lock held, for as long as we live. */
    fd = open(r->status_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0)
        return err_errno(e, errno, "%s", r->status_path);
    int synced = fsync(fd);
    close(fd);
    return synced < 0 ? err_errno(e, errno, "%s", r->status_path) : 0;
}

static int become_user(const struct shim_spec *s)
{
    gid_t groups[64];
    size_t n = 0;
    vec_for_each(&s->groups, it) {
        if (n < ARRAY_SIZE(groups))
            groups[n++] = (gid_t)*it;
    }
    if ((s->uid >= 0 || n) && setgroups(n, groups) < 0)
        return -1;
    if (s->gid >= 0 && setgid((gid_t)s->gid) < 0)
        return -1;
    return s->uid >= 0 ? setuid((uid_t)s->uid) : 0;
}

static int join_cgroup(const char *folder, struct err *e)
{
    if (!folder)
        return 0;
    _cleanup_free_ char *path = mem_printf("%s/cgroup.procs", folder);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool joined = fd >= 0 && write(fd, "0", 1) == 1;
    int errnum = errno;
    if (fd >= 0)
        close(fd);
    return joined ? 0 : err_errno(e, errnum, "%s", path);
}

/* What the container's process does before it is the program. */
static _Noreturn void child(const struct run *r, int output, int failure)
{
    const struct shim_spec *s = r->spec;
    struct err e = {0};
    sigset_t none;
    setsid();
    for (int signum = 1; signum < NSIG; signum++)
        signal(signum, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int in = open("/dev/null", O_RDONLY);
    if (dup2(in, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        err_errno(&e, errno, "cannot set up the output");
    else if (in > 2)
        close(in);
    const char *cwd = s->cwd ? s->cwd : "/";
    if (!e.code && join_cgroup(s->cgroup, &e) == 0 && shim_mount(s, &e) == 0) {
        if (chdir(cwd) < 0)
            err_errno(&e, errno, "cannot work in %s", cwd);
        else if (become_user(s) < 0)
            err_errno(&e, errno, "cannot run as user %lld", (long long)s->uid);
        else {
            shim_exec(s->argv.p, s->env.p);
            err_errno(&e, errno, "cannot run %s", s->argv.p[0]);
        }
    }
    size_t n = strlen(e.msg);
    while (write(failure, e.msg, n) < 0 && errno == EINTR)
        ;
    _exit(128);
}

/* Starts the program, or says in the status why it cannot be. */
static int start(struct run *r, struct err *e)
{
    int output[2], failure[2];
    if (pipe2(output, O_CLOEXEC) < 0 || pipe2(failure, O_CLOEXEC) < 0)
        return err_errno(e, errno, "cannot make a pipe");
    r->status.started = now();
    r->status.pid = fork();
    if (r->status.pid == 0)
        child(r, output[1], failure[1]);
    if (r->status.pid < 0)
        return err_errno(e, errno, "cannot fork");
    close(output[1]);
    close(failure[1]);
    r->output = output[0];
    fcntl(r->output, F_SETFL, O_NONBLOCK);
    r->status.begun = true;
    r->status.ticks = shim_ticks(r->status.pid);
    ssize_t n;
    do
        n = read(failure[0], r->status.error, sizeof(r->status.error) - 1);
    while (n < 0 && errno == EINTR);
    close(failure[0]);
    r->status.error[n > 0 ? n : 0] = '\0';
    return record(r, e);
}

static void drain(struct run *r)
{
    char buf[16 * 1024];
    ssize_t n;
    for (int reads = 0; reads < 64 && r->output >= 0; reads++) {
        n = read(r->output, buf, sizeof(buf));
        if (n > 0) {
            shim_log_write(&r->log, buf, (size_t)n, now());
        } else if (n == 0) {
            close(r->output);
            r->output = -1;
        } else if (errno != EINTR) {
            return;
        }
    }
}

/* Kills all children: what the program started and what of that became ours. */
static void kill_children(void)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        char path[300], text[512];
        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        int fd = entry->d_name[0] < '0' || entry->d_name[0] > '9'
                     ? -1
                     : open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = '\0';
        char *behind = strrchr(text, ')'); /* " S PPID" */
        if (behind && strlen(behind) > 4 && strtol(behind + 4, NULL, 10) == getpid())
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    }
    if (proc)
        closedir(proc);
}

/* Whether any child is left. Notes how the program ended. */
static bool reap(struct run *r)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != r->status.pid || r->status.finished)
            continue;
        r->status.finished = now();
        r->status.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        r->status.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    return pid == 0;
}

static void watch(struct run *r)
{
    bool left = true;
    while (left) {
        struct pollfd fds[] = {{r->signals, POLLIN, 0}, {r->output, POLLIN, 0}};
        /* Those that die leave children that must be killed in turn. */
        poll(fds, ARRAY_SIZE(fds), r->status.finished ? 20 : -1);
        struct signalfd_siginfo info;
        while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
            if (info.ssi_signo == SIGTERM && !r->status.finished)
                kill(r->status.pid, SIGTERM);
        }
        drain(r);
        left = reap(r);
        if (left && r->status.finished)
            kill_children();
    }
    drain(r);
    shim_log_close(&r->log, now());
}

static int set_up(struct run *r, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_errno(e, errno, "cannot set up a shim");
    if (claim(r, e) < 0)
        return -1;
    shim_log_open(&r->log, r->spec);
    return start(r, e);
}

int shim_run(const struct shim_spec *s, int report)
{
    static struct run r;
    struct err e = {0};
    r = (struct run){.spec = s, .output = -1, .signals = -1};
    r.status_path = shim_status_path(s->folder, s->number);
    bool started = set_up(&r, &e) == 0;
    if (!started)
        (void)!write(report, e.msg, strlen(e.msg));
    close(report);
    if (r.status.pid > 0) {
        if (!started) /* it runs and nobody could be told: it must not go on */
            kill(r.status.pid, SIGKILL);
        watch(&r);
        r.status.ended = true;
        /* A disk that is full may have room again: the end must not be lost. */
        while (record(&r, &e) < 0)
            sleep(1);
    }
    free(r.status_path);
    return started ? 0 : 1;
}
