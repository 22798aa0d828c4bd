#include "k8s/apiserver/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ring.h"

enum { QUEUE_LINES = 8192, BATCH_BYTES = 64 << 10, COMPLAIN_SECONDS = 60, GATHER_US = 10000 };

struct apiserver_audit {
    enum apiserver_audit_level level;
    char *path; /* NULL: standard output */
    size_t max_bytes;
    unsigned backups;
    struct ring *queue;
    pthread_t writer;
    _Atomic uint64_t lines, dropped;

    /* The writer's own. */
    int fd;
    size_t size;
    uint64_t told; /* of the dropped */
    int64_t told_at;
};

/* What ends the writer. */
static char last[1];

static int open_file(struct apiserver_audit *a, struct err *e)
{
    if (!a->path) {
        a->fd = STDOUT_FILENO;
        return 0;
    }
    a->fd = open(a->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    struct stat st;
    if (a->fd < 0 || fstat(a->fd, &st) < 0)
        return err_errno(e, errno, "cannot write the audit log: %s", a->path);
    a->size = (size_t)st.st_size;
    return 0;
}

static void close_file(struct apiserver_audit *a)
{
    if (a->path && a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

/* audit.log becomes audit.log.1, that audit.log.2 and so on; the oldest goes. */
static void rotate(struct apiserver_audit *a)
{
    close_file(a);
    if (!a->backups)
        unlink(a->path);
    for (unsigned i = a->backups; i > 0; i--) {
        _cleanup_free_ char *to = mem_printf("%s.%u", a->path, i);
        _cleanup_free_ char *from =
            i > 1 ? mem_printf("%s.%u", a->path, i - 1) : mem_strdup(a->path);
        rename(from, to); /* those that are not there yet are not */
    }
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

static void write_batch(struct apiserver_audit *a, const struct str *batch, size_t lines)
{
    if (a->path && a->max_bytes && a->size && a->size + batch->len > a->max_bytes)
        rotate(a);
    struct err e = {0};
    if ((a->fd < 0 && open_file(a, &e) < 0) || !write_all(a->fd, batch->p, batch->len)) {
        a->dropped += lines;
        close_file(a); /* tried again with the next */
        return;
    }
    a->size += batch->len;
}

/* Not for each line that is lost. */
static void complain(struct apiserver_audit *a)
{
    uint64_t dropped = a->dropped;
    int64_t now = clock_mono_ns(clock_system());
    if (dropped == a->told || (a->told && now - a->told_at < COMPLAIN_SECONDS * CLOCK_SECOND))
        return;
    log_warn("lines of the audit log were lost", LOG_U("lines", dropped - a->told),
             LOG_S("path", a->path ? a->path : "-"));
    a->told = dropped;
    a->told_at = now;
}

/* Writes what is queued; false at the end. */
static bool drain(struct apiserver_audit *a, struct str *batch)
{
    size_t lines = 0;
    bool more = true;
    str_clear(batch);
    for (char *line; more && (line = ring_pop(a->queue));) {
        more = line != last;
        if (more) {
            str_append(batch, line);
            lines++;
            free(line);
        }
        if (batch->len >= BATCH_BYTES) {
            write_batch(a, batch, lines);
            str_clear(batch);
            lines = 0;
        }
    }
    if (lines)
        write_batch(a, batch, lines);
    complain(a);
    return more;
}

static void *run(void *context)
{
    struct apiserver_audit *a = context;
    struct str batch = {0};
    while (drain(a, &batch)) {
        if (!ring_arm(a->queue))
            continue;
        struct pollfd p = {.fd = ring_fd(a->queue), .events = POLLIN};
        poll(&p, 1, -1);
        ring_disarm(a->queue);
        usleep(GATHER_US); /* more will come: one wake, and one write, for all of it */
    }
    str_done(&batch);
    return NULL;
}

/* Signals are for the program's own threads. */
static int start_writer(struct apiserver_audit *a)
{
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int errnum = pthread_create(&a->writer, NULL, run, a);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return errnum;
}

static void audit_free(struct apiserver_audit *a)
{
    close_file(a);
    if (a->queue)
        ring_free(a->queue);
    free(a->path);
    free(a);
}

DEFINE_CLEANUP(struct apiserver_audit *, audit_free)

int apiserver_audit_open(const struct apiserver_audit_options *options,
                         struct apiserver_audit **ret_audit, struct err *e)
{
    _cleanup_(audit_freep) struct apiserver_audit *a = NEW(struct apiserver_audit);
    a->level = options->level;
    a->fd = -1;
    if (a->level != APISERVER_AUDIT_OFF) {
        a->path = str_eq(options->path, "-") ? NULL : mem_strdup(options->path);
        a->max_bytes = options->max_bytes;
        a->backups = options->backups;
        a->queue = ring_new(options->queue_lines ? options->queue_lines : QUEUE_LINES, e);
        if (!a->queue || open_file(a, e) < 0)
            return -1;
        int errnum = start_writer(a);
        if (errnum)
            return err_errno(e, errnum, "cannot start the writer of the audit log");
    }
    *ret_audit = TAKE_PTR(a);
    return 0;
}

void apiserver_audit_close(struct apiserver_audit *a)
{
    if (!a)
        return;
    if (a->queue) {
        while (!ring_push(a->queue, last))
            sched_yield(); /* the writer makes room */
        pthread_join(a->writer, NULL);
    }
    audit_free(a);
}

enum apiserver_audit_level apiserver_audit_level(const struct apiserver_audit *a)
{
    return a->level;
}

uint64_t apiserver_audit_lines(const struct apiserver_audit *a)
{
    return a->lines;
}

uint64_t apiserver_audit_dropped(const struct apiserver_audit *a)
{
    return a->dropped;
}

void apiserver_audit_line(struct apiserver_audit *a, struct str *line)
{
    char *text = str_take(line);
    bool on = a->level != APISERVER_AUDIT_OFF;
    a->lines += on;
    if (!on || !ring_push(a->queue, text)) {
        a->dropped += on;
        free(text);
    }
}
