#include "k8s/apiserver/follow.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/apiserver/serviceaccounts.h"

enum { EVENTS_AT_ONCE = 500, GATHER_US = 1000 };

/* In the order in which they are called. */
static const struct apiserver_follower *const followers[] = {
    &watch_follower, &apiserver_follow_definitions, &apiserver_rbac_aggregation,
    &gc_follower,    &namespaces_follower,          &protection_follower,
    &quota_follower, &event_ttl_follower,           &apiserver_serviceaccounts,
    &csr_follower,   &cluster_info_follower,        NULL,
};

struct apiserver_follow {
    struct apiserver *server;
    pthread_t thread;
    uint64_t revision; /* up to which all followers know everything; the thread's own */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool pending, stopping;
    int64_t finished; /* when the last round was, monotonic */
};

static void resync(struct apiserver_follow *f)
{
    f->revision = apiserver_store_revision(f->server->registry.store);
    for (const struct apiserver_follower *const *it = followers; *it; it++)
        (*it)->resync(f->server);
}

static bool stopping(struct apiserver_follow *f)
{
    pthread_mutex_lock(&f->lock);
    bool stop = f->stopping;
    pthread_mutex_unlock(&f->lock);
    return stop;
}

/* Everything that came since. */
static void catch_up(struct apiserver_follow *f)
{
    for (bool more = true; more && !stopping(f);) {
        struct apiserver_events events;
        uint64_t before = f->revision;
        if (apiserver_store_events(f->server->registry.store, NULL, before, EVENTS_AT_ONCE, &events,
                                   NULL) < 0) {
            resync(f);
        } else {
            vec_for_each(&events.events, event) {
                for (const struct apiserver_follower *const *it = followers; *it; it++)
                    (*it)->changed(f->server, event);
            }
            f->revision = events.revision;
        }
        apiserver_events_done(&events);
        more = f->revision != before;
    }
    for (const struct apiserver_follower *const *it = followers; *it; it++) {
        if ((*it)->tick)
            (*it)->tick(f->server);
    }
}

static void *run(void *context)
{
    struct apiserver_follow *f = context;
    while (!stopping(f)) {
        catch_up(f);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        pthread_mutex_lock(&f->lock);
        f->finished = clock_mono_ns(clock_system());
        int timed_out = 0;
        while (!f->pending && !f->stopping && !timed_out)
            timed_out = pthread_cond_timedwait(&f->woken, &f->lock, &until);
        bool woken = f->pending && !f->stopping;
        f->pending = false;
        pthread_mutex_unlock(&f->lock);
        if (woken)
            usleep(GATHER_US); /* writers come in groups: one wake for several of them */
    }
    return NULL;
}

void apiserver_follow_start(struct apiserver *a)
{
    struct apiserver_follow *f = NEW(struct apiserver_follow);
    f->server = a;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->woken, &attr);
    pthread_condattr_destroy(&attr);
    f->finished = clock_mono_ns(clock_system());
    resync(f);
    a->follow = f; /* before the thread writes, and wakes itself by that */
    if (pthread_create(&f->thread, NULL, run, f) != 0)
        abort(); /* like running out of memory */
}

void apiserver_follow_wake(struct apiserver_follow *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->pending = true;
    pthread_cond_signal(&f->woken);
    pthread_mutex_unlock(&f->lock);
}

int64_t apiserver_follow_behind_ns(struct apiserver_follow *f)
{
    if (!f)
        return 0;
    pthread_mutex_lock(&f->lock);
    int64_t finished = f->finished;
    pthread_mutex_unlock(&f->lock);
    return clock_mono_ns(clock_system()) - finished;
}

void apiserver_follow_stop(struct apiserver_follow *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_cond_signal(&f->woken);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    for (const struct apiserver_follower *const *it = followers; *it; it++) {
        if ((*it)->stop)
            (*it)->stop(f->server);
    }
    pthread_cond_destroy(&f->woken);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
