/*
 * Shims are not our children: we may be younger than they are. A descriptor of the process becomes
 * readable when it ends, whosever child it is.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/thread.h"
#include "k8s/kubelet/pod_impl.h"
#include "k8s/shim/shim.h"

struct entry {
    struct list_link link;
    int fd;
    pid_t pid;
    char *ns, *name;
};

struct pod_watch {
    pthread_t thread;
    int epoll, stop;
    pthread_mutex_t lock;
    struct list_link entries;
    void (*ended)(void *context, const char *ns, const char *name);
    void *context;
};

static void entry_free(struct entry *x)
{
    close(x->fd);
    free(x->ns);
    free(x->name);
    free(x);
}

static void *run(void *context)
{
    struct pod_watch *w = context;
    for (;;) {
        struct epoll_event events[16];
        int n = epoll_wait(w->epoll, events, ARRAY_SIZE(events), -1);
        for (int i = 0; i < n; i++) {
            struct entry *x = events[i].data.ptr;
            if (!x)
                return NULL;
            pthread_mutex_lock(&w->lock);
            list_unlink(&x->link);
            pthread_mutex_unlock(&w->lock);
            waitpid(x->pid, NULL, WNOHANG); /* where it has become our child by being an orphan */
            w->ended(w->context, x->ns, x->name);
            entry_free(x);
        }
    }
}

struct pod_watch *pod_watch_new(void (*ended)(void *context, const char *ns, const char *name),
                                void *context, struct err *e)
{
    struct pod_watch *w = NEW(struct pod_watch);
    struct epoll_event stop = {.events = EPOLLIN};
    list_init(&w->entries);
    pthread_mutex_init(&w->lock, NULL);
    w->ended = ended;
    w->context = context;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->stop = eventfd(0, EFD_CLOEXEC);
    if (w->epoll < 0 || w->stop < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->stop, &stop) < 0)
        err_errno(e, errno, "cannot watch containers");
    else if (thread_start(&w->thread, "pods-watch", run, w, e) == 0)
        return w;
    close(w->epoll);
    close(w->stop);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

void pod_watch_free(struct pod_watch *w)
{
    if (!w)
        return;
    eventfd_write(w->stop, 1);
    pthread_join(w->thread, NULL);
    list_for_each_safe(&w->entries, x, struct entry, link)
        entry_free(x);
    close(w->epoll);
    close(w->stop);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void pod_watch_add(struct pod_watch *w, const char *ns, const char *name, const char *folder)
{
    pid_t pid = shim_owner(folder);
    int fd = pid > 0 ? pidfd_open(pid, 0) : -1;
    /* It was alive after the descriptor was made, so the descriptor is its. */
    if (fd < 0 || shim_owner(folder) != pid) {
        if (fd >= 0)
            close(fd);
        w->ended(w->context, ns, name);
        return;
    }
    struct entry *x = NEW(struct entry);
    *x = (struct entry){.fd = fd, .pid = pid, .ns = mem_strdup(ns), .name = mem_strdup(name)};
    pthread_mutex_lock(&w->lock);
    list_push(&w->entries, &x->link);
    pthread_mutex_unlock(&w->lock);
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = x};
    if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return;
    pthread_mutex_lock(&w->lock);
    list_unlink(&x->link);
    pthread_mutex_unlock(&w->lock);
    entry_free(x);
}
