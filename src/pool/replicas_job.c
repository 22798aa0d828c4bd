/*
 * Jobs: what changes the pool is done by the thread that may, one after the other.
 *
 *     loop ── submit ──> queue ── serve: fn() ──> loop: ended()
 *     a thread that may wait ── run_sync ──> queue ── serve: fn() ──> it goes on
 */
#include <sched.h>

#include "pool/replicas_impl.h"

static void job_ended(struct io_message *message)
{
    struct replica_job *job = container_of(message, struct replica_job, message);
    job->ended(job);
}

void replicas_submit(struct pool_replicas *all, struct replica_job *job)
{
    job->all = all;
    job->done = false;
    job->message.fn = job_ended;
    pthread_mutex_lock(&all->lock);
    list_init(&job->link);
    list_push(&all->jobs, &job->link);
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    all->wake(all->wake_context);
}

static void end_job(struct pool_replicas *all, struct replica_job *job)
{
    if (job->ended) {
        while (!io_loop_post(all->loop, &job->message))
            sched_yield(); /* the loop is busy with those before */
        return;
    }
    pthread_mutex_lock(&all->lock);
    job->done = true;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

void pool_replicas_serve(struct pool_replicas *all)
{
    for (;;) {
        pthread_mutex_lock(&all->lock);
        struct list_link *l = list_take(&all->jobs);
        pthread_mutex_unlock(&all->lock);
        if (!l)
            return;
        struct replica_job *job = container_of(l, struct replica_job, link);
        job->fn(job);
        end_job(all, job);
    }
}

struct sync_job {
    struct replica_job job;
    int (*fn)(void *context);
    void *argument;
    int result;
};

static void run_sync(struct replica_job *job)
{
    struct sync_job *s = container_of(job, struct sync_job, job);
    s->result = s->fn(s->argument);
}

int replicas_run_sync(void *context, int (*fn)(void *context), void *argument)
{
    struct pool_replicas *all = context;
    struct sync_job s = {.job = {.fn = run_sync}, .fn = fn, .argument = argument};
    replicas_submit(all, &s.job);
    pthread_mutex_lock(&all->lock);
    while (!s.job.done)
        pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
    return s.result;
}
