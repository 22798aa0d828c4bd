#include "up/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { LOG_MAX = 10 << 20, LINE_MAX_BYTES = 4096, BLOCK = 16 << 10 };

#define DELAY_FIRST (CLOCK_SECOND / 10)
#define DELAY_MOST  (30 * CLOCK_SECOND)
#define STEADY      (60 * CLOCK_SECOND) /* it has run well for so long */

static int64_t now(void)
{
    return clock_mono_ns(clock_system());
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void up_child_init(struct up_child *c, const char *name, const char *const *argv,
                   const char *log_path)
{
    size_t n = 0;
    while (argv[n])
        n++;
    *c = (struct up_child){
        .name = mem_strdup(name),
        .argv = mem_zalloc((n + 1) * sizeof(*c->argv)),
        .log_path = mem_strdup(log_path),
        .pidfd = -1,
        .log_fd = -1,
        .said_fd = -1,
        .file_fd = -1,
    };
    for (size_t i = 0; i < n; i++)
        c->argv[i] = mem_strdup(argv[i]);
}

void up_child_done(struct up_child *c)
{
    close_fd(&c->pidfd);
    close_fd(&c->log_fd);
    close_fd(&c->said_fd);
    close_fd(&c->file_fd);
    for (char **word = c->argv; *word; word++)
        free(*word);
    free(c->argv);
    free(c->name);
    free(c->log_path);
    str_done(&c->line);
}

/* Opens the log at its end; one that is long becomes the one before. */
static int open_log(struct up_child *c, struct err *e)
{
    struct stat st;
    close_fd(&c->file_fd);
    if (stat(c->log_path, &st) == 0 && st.st_size >= LOG_MAX) {
        _cleanup_free_ char *older = mem_printf("%s.1", c->log_path);
        rename(c->log_path, older);
        st.st_size = 0;
    }
    c->file_fd = open(c->log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (c->file_fd < 0)
        return err_errno(e, errno, "%s", c->log_path);
    c->log_size = fstat(c->file_fd, &st) == 0 ? (size_t)st.st_size : 0;
    return 0;
}

/* In the child: only what is safe between fork and exec. */
static void become(char *const *argv, int out, int err, pid_t keeper)
{
    sigset_t none;
    sigemptyset(&none);
    for (int signum = 1; signum < NSIG; signum++)
        signal(signum, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != keeper) /* it has died already */
        _exit(125);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(argv[0], argv);
    static const char failed[] = "cannot be started\n";
    if (write(STDERR_FILENO, failed, sizeof(failed) - 1) < 0)
        _exit(126);
    _exit(127);
}

static int start(struct up_child *c, int said[2], int log[2], struct err *e)
{
    pid_t keeper = getpid();
    c->pid = fork();
    if (c->pid < 0)
        return err_errno(e, errno, "cannot start %s", c->argv[0]);
    if (c->pid == 0)
        become(c->argv, c->wants_line ? said[1] : log[1], log[1], keeper);
    setpgid(c->pid, c->pid); /* whoever is first */
    c->pidfd = pidfd_open(c->pid, 0);
    if (c->pidfd < 0) {
        int errnum = errno;
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        return err_errno(e, errnum, "cannot watch %s", c->argv[0]);
    }
    return 0;
}

int up_child_start(struct up_child *c, struct err *e)
{
    int said[2] = {-1, -1}, log[2] = {-1, -1};
    if (access(c->argv[0], X_OK) < 0)
        return err_errno(e, errno, "%s", c->argv[0]);
    if (open_log(c, e) < 0)
        return -1;
    close_fd(&c->log_fd); /* of the one before, read to its end */
    close_fd(&c->said_fd);
    int status = 0;
    if (pipe2(log, O_CLOEXEC) < 0 || (c->wants_line && pipe2(said, O_CLOEXEC) < 0))
        status = err_errno(e, errno, "cannot start %s", c->argv[0]);
    else
        status = start(c, said, log, e);
    close_fd(&said[1]);
    close_fd(&log[1]);
    if (status < 0) {
        close_fd(&said[0]);
        close_fd(&log[0]);
        return -1;
    }
    fcntl(log[0], F_SETFL, O_NONBLOCK);
    if (said[0] >= 0)
        fcntl(said[0], F_SETFL, O_NONBLOCK);
    c->log_fd = log[0];
    c->said_fd = said[0];
    str_clear(&c->line);
    c->said = false;
    c->state = UP_RUNNING;
    c->started_ns = now();
    c->started_at = clock_real_ns(clock_system());
    return 0;
}

void up_child_stop(struct up_child *c, int64_t grace_ns)
{
    if (c->state == UP_RUNNING) {
        kill(c->pid, grace_ns > 0 ? SIGTERM : SIGKILL);
        c->state = UP_ENDING;
        c->due_ns = now() + grace_ns;
    } else if (c->state == UP_ENDING) {
        int64_t sooner = now() + grace_ns;
        c->due_ns = sooner < c->due_ns ? sooner : c->due_ns;
    } else {
        c->state = UP_STOPPED;
    }
}

static void take_log(struct up_child *c, const char *bytes, size_t n)
{
    if (c->log_size >= LOG_MAX && open_log(c, NULL) < 0)
        return; /* a log that cannot be written is no reason to stop */
    ssize_t written = c->file_fd >= 0 ? write(c->file_fd, bytes, n) : 0;
    if (written > 0)
        c->log_size += (size_t)written;
}

static void take_line(struct up_child *c, const char *bytes, size_t n)
{
    const char *end = memchr(bytes, '\n', n);
    size_t size = end ? (size_t)(end - bytes) : n;
    if (c->said || c->line.len + size > LINE_MAX_BYTES)
        return;
    str_append_n(&c->line, bytes, size);
    c->said = end;
}

void up_child_read(struct up_child *c)
{
    char block[BLOCK];
    ssize_t n;
    while (c->log_fd >= 0 && (n = read(c->log_fd, block, sizeof(block))) > 0)
        take_log(c, block, (size_t)n);
    while (c->said_fd >= 0 && (n = read(c->said_fd, block, sizeof(block))) > 0)
        take_line(c, block, (size_t)n);
}

/* It has ended: notes how. */
static void note_end(struct up_child *c, const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        snprintf(c->ended, sizeof(c->ended), "exit status %d", info->si_status);
    else
        snprintf(c->ended, sizeof(c->ended), "signal %d, %s", info->si_status,
                 sigabbrev_np(info->si_status) ? sigabbrev_np(info->si_status) : "?");
    up_child_read(c);
    kill(-c->pid, SIGKILL); /* what it left in its group */
    close_fd(&c->pidfd);
    close_fd(&c->log_fd);
    close_fd(&c->said_fd);
    c->pid = 0;
}

bool up_child_check(struct up_child *c, int64_t now_ns, struct err *e)
{
    siginfo_t info = {0};
    if (c->pidfd >= 0 && waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG) == 0 &&
        info.si_pid) {
        bool wanted = c->state == UP_ENDING;
        note_end(c, &info);
        c->state = wanted ? UP_STOPPED : UP_WAITING;
        bool steady = now_ns - c->started_ns >= STEADY;
        c->due_ns = now_ns + (steady ? 0 : c->delay_ns);
        c->delay_ns = steady || !c->delay_ns ? DELAY_FIRST : 2 * c->delay_ns;
        c->delay_ns = c->delay_ns < DELAY_MOST ? c->delay_ns : DELAY_MOST;
        return true;
    }
    if (c->state == UP_ENDING && now_ns >= c->due_ns) {
        kill(-c->pid, SIGKILL);
        c->due_ns = INT64_MAX;
    }
    if (c->state != UP_WAITING || now_ns < c->due_ns)
        return false;
    c->restarts++;
    if (up_child_start(c, e) < 0) {
        c->due_ns = now_ns + DELAY_MOST;
        snprintf(c->ended, sizeof(c->ended), "it cannot be started");
    }
    return true;
}
