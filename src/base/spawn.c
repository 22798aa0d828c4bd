/*
 *     parent                                child
 *     ------                                -----
 *     memfd or /dev/null  ----------------> 0    all of the input is there before the child is
 *     pipe  <------------------------------ 1
 *     pipe  <------------------------------ 2
 *     pipe  <------------------------------ 3    close-on-exec: errno, when exec fails
 *
 * The parent waits in one poll() for output and for the end of the child, which a pidfd reports.
 * Between fork and exec the child calls only what is safe in a program with threads: everything that
 * needs memory is prepared before.
 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { DEFAULT_LIMIT = 1 << 20, GRACE_MS = 1000 };

const char *const spawn_env[] = {"PATH=" DEFAULT_PATH, "LC_ALL=C.UTF-8", NULL};

struct run {
    const struct spawn *spec;
    size_t limit;
    int in, out[2], err[2], exec[2]; /* owned; -1 when closed; the child's ends are [1] */
    VEC(char *) paths;               /* owned; where the program may be, ends with NULL */
    pid_t pid;
    int pidfd; /* owned */
    struct spawn_result result;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void run_done(struct run *r)
{
    int *fds[] = {&r->in,     &r->out[0],  &r->out[1],  &r->err[0],
                  &r->err[1], &r->exec[0], &r->exec[1], &r->pidfd};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close_fd(fds[i]);
    vec_for_each(&r->paths, it)
        free(*it);
    vec_done(&r->paths);
    spawn_result_done(&r->result);
}

void spawn_result_done(struct spawn_result *r)
{
    str_done(&r->out);
    str_done(&r->err);
}

/* The files to try, in order. */
static void find_paths(struct run *r)
{
    const char *name = r->spec->argv[0];
    const char *const *env = r->spec->env ? r->spec->env : spawn_env;
    if (strchr(name, '/')) {
        vec_push(&r->paths, mem_strdup(name));
    } else {
        const char *dirs = DEFAULT_PATH;
        for (; *env; env++) {
            if (str_starts_with(*env, "PATH="))
                dirs = *env + strlen("PATH=");
        }
        /* An empty folder in PATH means the current one to a shell; here it means none. */
        while (*(dirs += strspn(dirs, ":"))) {
            size_t n = strcspn(dirs, ":");
            vec_push(&r->paths, mem_printf("%.*s/%s", (int)n, dirs, name));
            dirs += n;
        }
    }
    vec_push(&r->paths, NULL);
}

/* Moves fd above 2, so that the child can put its own on 0 to 2 in any order. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int errnum = errno;
    close(fd);
    errno = errnum;
    return moved;
}

static int open_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) < 0) {
        fds[0] = fds[1] = -1;
        return -1;
    }
    fds[0] = above_standard(fds[0]);
    fds[1] = above_standard(fds[1]);
    /* Only our end does not block; the two ends are separate files. */
    return fds[0] < 0 || fds[1] < 0 ? -1 : fcntl(fds[0], F_SETFL, O_NONBLOCK);
}

/*
 * A file in memory rather than a pipe: nobody has to feed it while the program runs, and one that
 * does not read its input does not end us with SIGPIPE.
 */
static int open_input(const char *input, size_t size)
{
    if (!input)
        return above_standard(open("/dev/null", O_RDONLY | O_CLOEXEC));
    int fd = above_standard(memfd_create("stdin", MFD_CLOEXEC));
    while (fd >= 0 && size > 0) {
        ssize_t n = write(fd, input, size);
        if (n < 0 && errno != EINTR) {
            close_fd(&fd);
        } else if (n > 0) {
            input += n;
            size -= (size_t)n;
        }
    }
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) < 0)
        close_fd(&fd);
    return fd;
}

/* What the child does between fork and exec. */
static _Noreturn void child(const struct run *r)
{
    setpgid(0, 0);
    /*
     * By the kernel's own call: libc keeps two signals to itself, and a parent that ignored those
     * would hand that on. A zeroed action is the default.
     */
    static const unsigned long dfl[4];
    for (int signum = 1; signum < NSIG; signum++)
        syscall(SYS_rt_sigaction, signum, dfl, NULL, (size_t)8);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    int report = STDERR_FILENO + 1, errnum;
    if (dup2(r->in, STDIN_FILENO) < 0 || dup2(r->out[1], STDOUT_FILENO) < 0 ||
        dup2(r->err[1], STDERR_FILENO) < 0 ||
        (r->exec[1] != report && dup3(r->exec[1], report, O_CLOEXEC) < 0) ||
        close_range((unsigned)report + 1, ~0U, 0) < 0) {
        errnum = errno;
        report = r->exec[1];
    } else {
        /* A file that is not there gives way to the next; one that may not run is remembered. */
        errnum = ENOENT;
        for (char **path = r->paths.p; *path; path++) {
            execve(*path, (char *const *)r->spec->argv,
                   (char *const *)(r->spec->env ? r->spec->env : spawn_env));
            if (errno != ENOENT && errno != ENOTDIR && (errnum == ENOENT || errno != EACCES))
                errnum = errno;
        }
    }
    while (write(report, &errnum, sizeof(errnum)) < 0 && errno == EINTR)
        ;
    _exit(127);
}

/* Forks with all signals blocked: no handler of ours may run in the child. */
static int start(struct run *r, struct err *e)
{
    const char *name = r->spec->argv[0];
    r->in = open_input(r->spec->input, r->spec->input_size);
    if (r->in < 0 || open_pipe(r->out) < 0 || open_pipe(r->err) < 0 || open_pipe(r->exec) < 0)
        return err_errno(e, errno, "cannot run %s", name);
    find_paths(r);

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r->pid = fork();
    if (r->pid == 0)
        child(r);
    int errnum = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r->pid < 0)
        return err_errno(e, errnum, "cannot run %s", name);

    setpgid(r->pid, r->pid); /* whoever comes first; the group exists before anybody is killed */
    close_fd(&r->in);
    close_fd(&r->out[1]);
    close_fd(&r->err[1]);
    close_fd(&r->exec[1]);
    return 0;
}

static void *reap(void *arg)
{
    while (waitpid((pid_t)(intptr_t)arg, NULL, 0) < 0 && errno == EINTR)
        ;
    return NULL;
}

/*
 * Ends the child and everything in its group. A process that hangs in the kernel, on a device that
 * does not answer, dies only when the kernel lets go of it: a thread waits for that, not the caller.
 */
static void kill_group(struct run *r)
{
    kill(-r->pid, SIGKILL);
    kill(r->pid, SIGKILL); /* in case it moved to another group */
    struct pollfd ended = {.fd = r->pidfd, .events = POLLIN};
    int n;
    do
        n = r->pidfd < 0 ? 1 : poll(&ended, 1, GRACE_MS);
    while (n < 0 && errno == EINTR);
    pthread_t thread;
    if (n != 0 || pthread_create(&thread, NULL, reap, (void *)(intptr_t)r->pid) != 0)
        reap((void *)(intptr_t)r->pid);
    else
        pthread_detach(thread);
}

/*
 * Reads what is there, at least as much as a pipe holds but not for ever: a program that never stops
 * writing must still meet its deadline. False when stdout is over the limit.
 */
static bool drain(struct run *r, int *fd, struct str *s)
{
    for (int reads = 0; reads < 256; reads++) {
        char buf[16 * 1024];
        ssize_t n = read(*fd, buf, sizeof(buf));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0) {
            close_fd(fd);
            return true;
        }
        size_t room = r->limit - s->len;
        str_append_n(s, buf, (size_t)n < room ? (size_t)n : room);
        if ((size_t)n <= room)
            continue;
        if (s == &r->result.out)
            return false;
        r->result.err_cut = true;
    }
    return true;
}

static bool drain_both(struct run *r)
{
    return (r->out[0] < 0 || drain(r, &r->out[0], &r->result.out)) &&
           (r->err[0] < 0 || drain(r, &r->err[0], &r->result.err));
}

/* Until the child has ended; its output up to then has been read. */
static int wait_for_end(struct run *r, struct err *e)
{
    const char *name = r->spec->argv[0];
    int64_t now = clock_mono_ns(clock_system());
    int64_t deadline = now + r->spec->timeout_ms * (CLOCK_SECOND / 1000);
    for (;;) {
        struct pollfd fds[] = {
            {r->pidfd, POLLIN, 0}, {r->out[0], POLLIN, 0}, {r->err[0], POLLIN, 0}};
        int64_t left_ms = (deadline - now + 999999) / 1000000;
        int n = left_ms > 0 ? poll(fds, ARRAY_SIZE(fds), (int)left_ms) : 0;
        if (n < 0 && errno != EINTR)
            return err_errno(e, errno, "cannot wait for %s", name);
        if (!drain_both(r))
            return err_set(e, ERR_RESOURCE_EXHAUSTED, "OutputTooLarge",
                           "%s wrote more than %zu bytes and was killed", name, r->limit);
        if (n > 0 && fds[0].revents)
            return 0;
        now = clock_mono_ns(clock_system());
        if (now >= deadline)
            return err_set(e, ERR_DEADLINE_EXCEEDED, "Timeout",
                           "%s did not finish within %d ms and was killed", name,
                           r->spec->timeout_ms);
    }
}

/* Why exec failed, or 0. The child has ended, so whatever it wanted to report is in the pipe. */
static int exec_errno(struct run *r)
{
    int errnum;
    ssize_t n;
    do
        n = read(r->exec[0], &errnum, sizeof(errnum));
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(errnum) ? errnum : 0;
}

static int finish(struct run *r, struct err *e)
{
    siginfo_t info = {0};
    int w;
    do
        w = waitid(P_PID, (id_t)r->pid, &info, WEXITED);
    while (w < 0 && errno == EINTR);
    if (w < 0)
        return err_errno(e, errno, "cannot learn how %s ended", r->spec->argv[0]);
    bool exited = info.si_code == CLD_EXITED;
    r->result.status = exited ? info.si_status : -1;
    r->result.signal = exited ? 0 : info.si_status;
    int errnum = exec_errno(r);
    return errnum ? err_errno(e, errnum, "cannot run %s", r->spec->argv[0]) : 0;
}

int spawn_run(const struct spawn *s, struct spawn_result *ret, struct err *e)
{
    if (!s->argv || !s->argv[0] || s->argv[0][0] == '\0' || s->timeout_ms <= 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                       "a program to run needs a name and a deadline");
    _cleanup_(run_done) struct run r = {
        .spec = s,
        .limit = s->limit ? s->limit : DEFAULT_LIMIT,
        .in = -1,
        .out = {-1, -1},
        .err = {-1, -1},
        .exec = {-1, -1},
        .pidfd = -1,
    };
    if (start(&r, e) < 0)
        return -1;
    r.pidfd = pidfd_open(r.pid, 0);
    if (r.pidfd < 0 ? err_errno(e, errno, "cannot watch %s", s->argv[0]) : wait_for_end(&r, e)) {
        kill_group(&r);
        return -1;
    }
    if (finish(&r, e) < 0)
        return -1;
    str_append_n(&r.result.out, "", 0);
    str_append_n(&r.result.err, "", 0);
    *ret = r.result;
    r.result = (struct spawn_result){0};
    return 0;
}

int spawn_check(const struct spawn *s, const struct spawn_result *r, struct err *e)
{
    if (r->status == 0)
        return 0;
    char how[64];
    if (r->signal)
        snprintf(how, sizeof(how), "was ended by signal %d", r->signal);
    else
        snprintf(how, sizeof(how), "exited with status %d", r->status);

    const char *text = str_get(&r->err);
    size_t n = str_cut(text, 500);
    bool cut = text[n] != '\0';
    /* Messages end with a newline, which has no place in the middle of ours. */
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    return err_set(e, ERR_INTERNAL, "CommandFailed", "%s %s%s%.*s%s", s->argv[0], how,
                   n ? ": " : "", (int)n, text, cut ? "..." : "");
}
