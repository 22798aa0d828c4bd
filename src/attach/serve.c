/*
 * The supervisor. It touches no data and allocates nothing once it runs, so there is little that can end it.
 */
#include "attach/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/control.h"
#include "attach/worker.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

enum { WORKER_END_MS = 5000, RESTART_MS = 1000 };

struct supervisor {
    const struct attach_serve_options *o;
    struct attach_shared *shared;
    int lock, fuse, listener, stop;
    bool mounted;
    pid_t worker;
    int pidfd;
};

/* A lock that ends with the process; the library reads in its file whom to signal. */
static int take_lock(struct supervisor *s, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s.lock", s->o->control);
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return err_errno(e, errno, "%s", path);
    if (file_lock(s->lock, false) < 0)
        return err_set(e, ERR_ALREADY_EXISTS, "AlreadyServed",
                       "%s: another process serves this volume here", path);
    char text[32];
    int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(s->lock, 0) < 0 || pwrite(s->lock, text, (size_t)n, 0) != n)
        return err_errno(e, errno, "%s", path);
    return 0;
}

/* What a predecessor left there is dead, for the lock is ours. */
static int mount_file(struct supervisor *s, struct err *e)
{
    const char *place = s->o->mount;
    while (umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        log_warn("detached a mount that a predecessor left", LOG_S("mount", place));
    if (file_make_dirs(place, 0700, e) < 0)
        return -1;
    s->fuse = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (s->fuse < 0)
        return err_errno(e, errno, "/dev/fuse: the kernel needs FUSE (modprobe fuse)");
    char options[128];
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", s->fuse);
    if (mount("orlop-attach", place, "fuse.orlop-attach",
              MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, options) < 0)
        return err_errno(e, errno, "cannot mount FUSE on %s", place);
    s->mounted = true;
    return 0;
}

static int start_worker(struct supervisor *s, struct err *e)
{
    pid_t supervisor = getpid();
    s->worker = fork();
    if (s->worker < 0)
        return err_errno(e, errno, "fork");
    if (s->worker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != supervisor)
            _exit(1);
        struct attach_worker w = {.o = s->o,
                                  .shared = s->shared,
                                  .fuse = s->fuse,
                                  .listener = s->listener,
                                  .supervisor = supervisor};
        exit(attach_work(&w)); /* not _exit(): a sanitizer then looks for what was not freed */
    }
    s->pidfd = pidfd_open(s->worker, 0);
    return s->pidfd < 0 ? err_errno(e, errno, "pidfd_open") : 0;
}

/* True when it has ended; *ret_status is as of wait(). */
static bool await_worker(struct supervisor *s, int ms, int *ret_status)
{
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
    int64_t until = clock_mono_ns(clock_system()) + (int64_t)ms * 1000000;
    while (poll(&p, 1, ms) < 0 && errno == EINTR && clock_mono_ns(clock_system()) < until)
        ;
    if (!(p.revents & POLLIN) || waitpid(s->worker, ret_status, 0) < 0)
        return false;
    close(s->pidfd);
    s->pidfd = -1;
    s->worker = 0;
    return true;
}

static bool stopped(struct supervisor *s, int ms)
{
    struct pollfd p = {.fd = s->stop, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

/* 1: go on; 0: the end, in order; -1: the end, with a reason. */
static int after(struct supervisor *s, int status, bool soon, struct err *e)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status)) {
        *e = s->shared->error;
        return -1;
    }
    s->shared->restarts++;
    log_error("the worker was killed; another takes its place", LOG_I("signal", WTERMSIG(status)));
    if (soon && stopped(s, RESTART_MS))
        return 0;
    return start_worker(s, e) < 0 ? -1 : 1;
}

static int supervise(struct supervisor *s, void (*ready)(void *context), void *context,
                     struct err *e)
{
    int64_t started = clock_mono_ns(clock_system());
    bool told = false;
    if (start_worker(s, e) < 0)
        return -1;
    for (;;) {
        struct pollfd p[] = {{.fd = s->stop, .events = POLLIN},
                             {.fd = s->pidfd, .events = POLLIN},
                             {.fd = told ? -1 : s->shared->ready_fd, .events = POLLIN}};
        if (poll(p, 3, -1) < 0 && errno != EINTR)
            return err_errno(e, errno, "poll");
        if (p[2].revents) {
            told = true;
            ready(context);
        }
        if (p[0].revents)
            return 0;
        int status;
        if (!(p[1].revents & POLLIN) || !await_worker(s, 0, &status))
            continue;
        int64_t now = clock_mono_ns(clock_system());
        int next = after(s, status, now - started < CLOCK_SECOND, e);
        if (next <= 0)
            return next;
        started = now;
    }
}

/* While the worker still serves, the mount can go without harm; if it is in use, I/O has to fail first. */
static void end(struct supervisor *s)
{
    int status;
    if (s->mounted && umount2(s->o->mount, UMOUNT_NOFOLLOW) == 0)
        s->mounted = false;
    if (s->worker > 0) {
        kill(s->worker, SIGTERM);
        if (!await_worker(s, WORKER_END_MS, &status)) {
            log_warn("the worker does not end; it is killed");
            kill(s->worker, SIGKILL);
            waitpid(s->worker, &status, 0);
        }
    }
    if (s->mounted && umount2(s->o->mount, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
        log_warn("cannot unmount", LOG_S("mount", s->o->mount), LOG_S("why", strerror(errno)));
    if (s->fuse >= 0)
        close(s->fuse);
    if (s->listener >= 0) {
        close(s->listener);
        unlink(s->o->control);
    }
    if (s->lock >= 0)
        close(s->lock);
}

/*
 * Memory that this process asks for must not wait for a write to the volume that it serves, and it should
 * be the last to go when there is none: both are tried, for they need rights.
 */
static void become_writer(void)
{
    prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "-999", 4) < 0)
        log_debug("oom_score_adj cannot be set");
    if (fd >= 0)
        close(fd);
}

int attach_serve(const struct attach_serve_options *o, void (*ready)(void *context), void *context,
                 struct err *e)
{
    struct supervisor s = {.o = o, .lock = -1, .fuse = -1, .listener = -1, .stop = -1, .pidfd = -1};
    s.shared =
        mmap(NULL, sizeof(*s.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.shared == MAP_FAILED)
        return err_errno(e, errno, "mmap");
    become_writer();
    int result = -1;
    if (stop_catch(&s.stop, e) == 0 && attach_shared_init(s.shared, e) == 0 &&
        take_lock(&s, e) == 0 && attach_control_listen(o->control, &s.listener, e) == 0 &&
        mount_file(&s, e) == 0)
        result = supervise(&s, ready, context, e);
    end(&s);
    munmap(s.shared, sizeof(*s.shared));
    return result;
}
