/*
 * The threads behind zpool_workers_submit().
 *
 * `under_way` and `waiting` are the loop's thread's alone, the queue has a lock, and the ring takes
 * results back. No more are under way than the ring has room for, so a worker never waits for the loop.
 */
#include <pthread.h>

#include "base/list.h"
#include "base/ring.h"
#include "base/thread.h"
#include "zpool/volume.h"

enum { THREADS_MAX = 64, DEPTH_MAX = 65536 };

struct zpool_workers {
    struct ring *ring; /* owned: of struct zpool_io */
    unsigned depth, under_way;
    struct list_link waiting;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct list_link queue; /* under lock */
    bool stop;              /* under lock */
    unsigned n_threads;
    pthread_t threads[THREADS_MAX];
};

static void *work(void *context)
{
    struct zpool_workers *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (list_empty(&w->queue) && !w->stop)
            pthread_cond_wait(&w->work, &w->lock);
        struct list_link *l = list_take(&w->queue);
        if (!l)
            break;
        pthread_mutex_unlock(&w->lock);
        struct zpool_io *io = container_of(l, struct zpool_io, link);
        io->error = zpool_io_run(io);
        ring_push(w->ring, io);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void zpool_workers_free(struct zpool_workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i], NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->work);
    ring_free(w->ring);
    free(w);
}

struct zpool_workers *zpool_workers_new(unsigned threads, unsigned depth, struct err *e)
{
    if (threads == 0 || threads > THREADS_MAX || depth == 0 || depth > DEPTH_MAX) {
        err_set(e, ERR_INVALID_ARGUMENT, "BadWorkers",
                "%u threads and %u I/Os at a time: 1 to %d and 1 to %d can be", threads, depth,
                THREADS_MAX, DEPTH_MAX);
        return NULL;
    }
    struct ring *ring = ring_new(depth, e);
    if (!ring)
        return NULL;
    struct zpool_workers *w = NEW(struct zpool_workers);
    w->ring = ring;
    w->depth = depth;
    list_init(&w->waiting);
    list_init(&w->queue);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    for (; w->n_threads < threads; w->n_threads++) {
        if (thread_start(&w->threads[w->n_threads], "zvol", work, w, e) < 0) {
            zpool_workers_free(w);
            return NULL;
        }
    }
    ring_arm(ring);
    return w;
}

static void start(struct zpool_workers *w, struct zpool_io *io)
{
    w->under_way++;
    pthread_mutex_lock(&w->lock);
    list_push(&w->queue, &io->link);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_signal(&w->work);
}

void zpool_workers_submit(struct zpool_workers *w, struct zpool_io *io)
{
    if (w->under_way < w->depth)
        start(w, io);
    else
        list_push(&w->waiting, &io->link);
}

int zpool_workers_fd(const struct zpool_workers *w)
{
    return ring_fd(w->ring);
}

unsigned zpool_workers_reap(struct zpool_workers *w)
{
    unsigned n = 0;
    ring_disarm(w->ring);
    do {
        struct zpool_io *io;
        while ((io = ring_pop(w->ring))) {
            w->under_way--;
            struct list_link *next = list_take(&w->waiting);
            if (next)
                start(w, container_of(next, struct zpool_io, link));
            io->done(io);
            n++;
        }
    } while (!ring_arm(w->ring));
    return n;
}
