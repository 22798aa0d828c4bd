#include "http/pool.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/mem.h"

enum {
    STACK_BYTES = 1 << 20, /* only what is touched is used */
    IDLE_SECONDS = 10,
};

struct job {
    struct job *next;
    void (*fn)(void *);
    void *context;
};

struct http_pool {
    unsigned most;
    pthread_mutex_t lock;
    pthread_cond_t work, empty; /* there is some, or the pool stops; threads became 0 */
    struct job *jobs, **jobs_end;
    unsigned threads, idle;
    bool called; /* an idle thread was woken and has not come yet */
    bool stopping;
};

struct http_pool *http_pool_new(unsigned most_threads)
{
    struct http_pool *p = NEW(struct http_pool);
    p->most = most_threads;
    p->jobs_end = &p->jobs;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->work, &attr);
    pthread_cond_init(&p->empty, &attr);
    pthread_condattr_destroy(&attr);
    return p;
}

static void *serve(void *context);

/* Waits for work, with the lock; false when there was none for a while. */
static bool await_work(struct http_pool *p)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    int timed_out = 0;
    p->idle++;
    while (!p->jobs && !p->stopping && !timed_out) {
        timed_out = pthread_cond_timedwait(&p->work, &p->lock, &until);
        p->called = false; /* also when others were faster and this one sleeps on */
    }
    p->idle--;
    return p->jobs != NULL;
}

/* With the lock. */
static bool add_thread(struct http_pool *p)
{
    sigset_t all, was;
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &was);
    bool made = pthread_create(&thread, &attr, serve, p) == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    pthread_attr_destroy(&attr);
    p->threads += made;
    return made;
}

/*
 * There is work that nobody has taken: one more thread is to come, and will look after the rest.
 * So a burst of short jobs is not met by as many threads. With the lock; false without a thread.
 */
static bool call_thread(struct http_pool *p)
{
    if (p->called)
        return true;
    if (!p->idle)
        return p->threads == p->most || add_thread(p) || p->threads > 0;
    p->called = true;
    pthread_cond_signal(&p->work);
    return true;
}

static void *serve(void *context)
{
    struct http_pool *p = context;
    pthread_mutex_lock(&p->lock);
    while (p->jobs || await_work(p)) {
        struct job *job = p->jobs;
        p->jobs = job->next;
        if (!p->jobs)
            p->jobs_end = &p->jobs;
        else
            call_thread(p);
        pthread_mutex_unlock(&p->lock);
        job->fn(job->context);
        free(job);
        pthread_mutex_lock(&p->lock);
    }
    if (--p->threads == 0)
        pthread_cond_broadcast(&p->empty);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

bool http_pool_run(struct http_pool *p, void (*fn)(void *context), void *context)
{
    struct job *job = NEW(struct job);
    job->fn = fn;
    job->context = context;
    pthread_mutex_lock(&p->lock);
    bool served = !p->stopping && call_thread(p);
    if (served) {
        *p->jobs_end = job;
        p->jobs_end = &job->next;
    }
    pthread_mutex_unlock(&p->lock);
    if (!served)
        free(job);
    return served; /* NOLINT(clang-analyzer-unix.Malloc): the queue has the job */
}

void http_pool_stop(struct http_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    while (p->threads)
        pthread_cond_wait(&p->empty, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void http_pool_free(struct http_pool *p)
{
    if (!p)
        return;
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->empty);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
