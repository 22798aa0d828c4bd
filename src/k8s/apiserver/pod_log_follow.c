/*
 * Followed logs. Inotify says which files were written to; once a second every stream is woken all
 * the same, to notice that its container has ended.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/list.h"
#include "k8s/apiserver/pod_log.h"

enum { EVERY_MS = 1000 };

struct pod_log_watch {
    struct list_link link;
    struct http_stream *stream; /* a reference */
    int wd;                     /* several may share one; -1: none could be had */
};

struct pod_log_follow {
    pthread_t thread;
    int inotify, stop; /* descriptors */
    pthread_mutex_t lock;
    struct list_link watches;
};

static void wake(struct pod_log_follow *f, int wd)
{
    pthread_mutex_lock(&f->lock);
    list_for_each(&f->watches, w, struct pod_log_watch, link) {
        if (wd < 0 || w->wd == wd)
            http_stream_wake(w->stream);
    }
    pthread_mutex_unlock(&f->lock);
}

static void read_events(struct pod_log_follow *f)
{
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(f->inotify, buf, sizeof(buf));
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const void *)(buf + at);
        wake(f, event->wd);
        at += (ssize_t)sizeof(*event) + (ssize_t)event->len;
    }
}

static void *run(void *context)
{
    struct pod_log_follow *f = context;
    struct pollfd fds[] = {{.fd = f->stop, .events = POLLIN}, {.fd = f->inotify, .events = POLLIN}};
    for (;;) {
        int n = poll(fds, ARRAY_SIZE(fds), EVERY_MS);
        if (n > 0 && fds[0].revents)
            return NULL;
        if (n > 0 && fds[1].revents)
            read_events(f);
        else
            wake(f, -1);
    }
}

struct pod_log_follow *pod_log_follow_new(void)
{
    struct pod_log_follow *f = NEW(struct pod_log_follow);
    pthread_mutex_init(&f->lock, NULL);
    list_init(&f->watches);
    f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* without it there is still the second */
    f->stop = eventfd(0, EFD_CLOEXEC);
    if (f->stop < 0 || pthread_create(&f->thread, NULL, run, f) != 0)
        abort(); /* like running out of memory */
    return f;
}

void pod_log_follow_free(struct pod_log_follow *f)
{
    if (!f)
        return;
    eventfd_write(f->stop, 1);
    pthread_join(f->thread, NULL);
    close(f->stop);
    if (f->inotify >= 0)
        close(f->inotify);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

struct pod_log_watch *pod_log_watch(struct pod_log_follow *f, int fd, struct http_stream *stream)
{
    struct pod_log_watch *w = NEW(struct pod_log_watch);
    char path[64]; /* the file that is open, whatever its name is by now */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    w->stream = http_stream_ref(stream);
    pthread_mutex_lock(&f->lock);
    w->wd = f->inotify >= 0 ? inotify_add_watch(f->inotify, path, IN_MODIFY) : -1;
    list_push(&f->watches, &w->link);
    pthread_mutex_unlock(&f->lock);
    return w;
}

void pod_log_unwatch(struct pod_log_follow *f, struct pod_log_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&f->lock);
    list_unlink(&w->link);
    bool shared = w->wd < 0;
    list_for_each(&f->watches, other, struct pod_log_watch, link)
        shared |= other->wd == w->wd;
    if (!shared)
        inotify_rm_watch(f->inotify, w->wd);
    pthread_mutex_unlock(&f->lock);
    http_stream_unref(w->stream);
    free(w);
}
