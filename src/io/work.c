/*
 * Threads that do what blocks: for the epoll back end all work on files, for io_uring what it cannot.
 * They start when there is work and stay. Results return through the loop's ring, which has room for
 * them, since no more are under way at a time than it holds; the rest waits here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sched.h>
#include <unistd.h>

#include "base/thread.h"
#include "io/impl.h"

enum { THREADS = 4 };

struct io_workers {
    struct io_loop *loop;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct list_link queue; /* under lock, as are the next */
    unsigned idle, threads;
    bool stop;
    pthread_t ids[THREADS];
};

int64_t io_request_run(const struct io_request *r)
{
    int64_t n = -1;
    switch (r->op) {
    case IO_READ:
        n = preadv2(r->fd, r->iov, (int)r->iovs, (off_t)r->offset, r->flags);
        break;
    case IO_WRITE:
        n = pwritev2(r->fd, r->iov, (int)r->iovs, (off_t)r->offset, r->flags);
        break;
    case IO_SYNC:
        n = fdatasync(r->fd);
        break;
    case IO_PUNCH:
        n = fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)r->offset,
                      (off_t)r->length);
        break;
    case IO_ZERO:
        n = fallocate(r->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, (off_t)r->offset,
                      (off_t)r->length);
        break;
    case IO_CALL:
        return r->call(r->context);
    }
    return n < 0 ? -errno : n;
}

static void finish(struct io_message *message)
{
    struct io_request *r = container_of(message, struct io_request, message);
    r->done(r, r->result);
}

static void *work(void *context)
{
    struct io_workers *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        w->idle++;
        while (list_empty(&w->queue) && !w->stop)
            pthread_cond_wait(&w->work, &w->lock);
        w->idle--;
        struct list_link *l = list_take(&w->queue);
        if (!l)
            break;
        pthread_mutex_unlock(&w->lock);
        struct io_request *r = container_of(l, struct io_request, link);
        r->result = io_request_run(r);
        r->message.fn = finish;
        while (!io_loop_post(w->loop, &r->message))
            sched_yield(); /* the loop is busy with those before */
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct io_workers *io_workers_new(struct io_loop *loop)
{
    struct io_workers *w = NEW(struct io_workers);
    w->loop = loop;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    list_init(&w->queue);
    return w;
}

void io_workers_submit(struct io_workers *w, struct io_request *r)
{
    pthread_mutex_lock(&w->lock);
    list_push(&w->queue, &r->link);
    bool start = w->idle == 0 && w->threads < THREADS;
    if (start && thread_start(&w->ids[w->threads], "io-work", work, w, NULL) == 0)
        w->threads++;
    else
        pthread_cond_signal(&w->work);
    bool none = w->threads == 0;
    pthread_mutex_unlock(&w->lock);
    if (none) { /* no thread can be had: better slow than never */
        list_unlink(&r->link);
        r->result = io_request_run(r);
        r->message.fn = finish;
        if (!io_loop_post(w->loop, &r->message))
            finish(&r->message);
    }
}

void io_workers_free(struct io_workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->threads; i++)
        pthread_join(w->ids[i], NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->work);
    free(w);
}
