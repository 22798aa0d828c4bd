/*
 * Probes and hooks.
 *
 * Jobs wait in one list, each with its time. A thread takes the first that is due and works on it;
 * if by that no thread is left to wait for the next one, another is made, up to a limit. So there
 * are as many threads as tries go on at once, and one for time.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/thread.h"
#include "k8s/kubelet/pod_impl.h"
#include "kube/event.h"
#include "kube/object.h"

enum { THREADS_MOST = 16 };

static const int HOOK = POD_CHECKS; /* the kind of a job that is no probe */

struct job {
    struct list_link link;
    json_t *pod; /* owned: keeps what the rest points to */
    json_t *about;
    char *id, *host;
    const char *ns, *name;
    int kind; /* enum pod_check, or HOOK */
    struct pod_probe probe;
    struct pod_action action;
    struct pod_probe_count count;
    int64_t due_ns;
    bool busy, done, dropped;
};

struct pod_prober {
    struct pod_prober_options options;
    char *shim;
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    struct list_link jobs;
    unsigned threads, waiting;
    bool stop;
};

bool pod_probe_note(const struct pod_probe *p, struct pod_probe_count *n, bool ok)
{
    enum pod_verdict before = n->verdict;
    n->good = ok ? n->good + 1 : 0;
    n->bad = ok ? 0 : n->bad + 1;
    if (n->good >= p->successes && ok)
        n->verdict = POD_GOOD;
    else if (n->bad >= p->failures && !ok)
        n->verdict = POD_BAD;
    return n->verdict != before;
}

static int64_t now(void)
{
    return clock_mono_ns(clock_system());
}

static void job_free(struct job *j)
{
    json_decref(j->pod);
    json_decref(j->about);
    free(j->id);
    free(j->host);
    free(j);
}

json_t *pod_reference(const struct pod_spec *spec, const struct pod_container *c)
{
    json_t *about = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "apiVersion", "v1", "kind", "Pod",
                              "namespace", spec->ns, "name", spec->name, "uid", spec->uid,
                              "resourceVersion", kube_version(spec->pod));
    if (c)
        json_object_set_new(about, "fieldPath",
                            json_sprintf("spec.%s{%s}",
                                         c->role == POD_MAIN ? "containers" : "initContainers",
                                         c->name));
    return about;
}

static void tell(const struct pod_prober *p, const struct job *j, const struct err *e)
{
    static const char *const names[] = {"Startup", "Liveness", "Readiness"};
    if (j->kind == HOOK)
        kube_event_warning(p->options.recorder, j->about, "FailedPreStopHook",
                           "PreStopHook failed: %s", e->msg);
    else
        kube_event_warning(p->options.recorder, j->about, "Unhealthy", "%s probe failed: %s",
                           names[j->kind], e->msg);
}

/* The job that is due first; NULL: none waits. */
static struct job *first(struct pod_prober *p)
{
    struct job *found = NULL;
    list_for_each(&p->jobs, j, struct job, link) {
        if (!j->busy && !j->done && (!found || j->due_ns < found->due_ns))
            found = j;
    }
    return found;
}

/* Takes a result in; whether anybody should know. */
static bool note(struct job *j, bool ok)
{
    if (j->kind == HOOK) {
        j->done = true;
        return true;
    }
    j->due_ns = now() + j->probe.period_ns;
    bool changed = pod_probe_note(&j->probe, &j->count, ok);
    /* A container that has started does so only once; one that failed is on its way out. */
    j->done = (j->kind == POD_STARTUP && j->count.verdict != POD_UNDECIDED) ||
              (j->kind == POD_LIVENESS && j->count.verdict == POD_BAD);
    return changed;
}

static void work(struct pod_prober *p, struct job *j)
{
    struct err e = {0};
    j->busy = true; /* nobody frees it while it is */
    pthread_mutex_unlock(&p->lock);
    bool ok = pod_action_run(&j->action, j->probe.timeout_ns, &e) == 0;
    pthread_mutex_lock(&p->lock);
    bool dropped = j->dropped, changed = note(j, ok);
    pthread_mutex_unlock(&p->lock);
    if (!ok && !dropped)
        tell(p, j, &e);
    if (changed && !dropped)
        p->options.changed(p->options.context, j->ns, j->name);
    pthread_mutex_lock(&p->lock);
    j->busy = false;
    if (j->dropped) {
        list_unlink(&j->link);
        job_free(j);
    }
}

static void *run(void *context);

static void add_thread(struct pod_prober *p)
{
    pthread_t thread;
    if (p->threads < THREADS_MOST && thread_start(&thread, "pods-probe", run, p, NULL) == 0) {
        pthread_detach(thread); /* pod_prober_free() waits for the count */
        p->threads++;
        p->waiting++; /* it will, unless it finds work at once */
    }
}

static void wait_until(struct pod_prober *p, int64_t ns)
{
    if (ns == INT64_MAX) {
        pthread_cond_wait(&p->wake, &p->lock);
        return;
    }
    struct timespec t = {.tv_sec = ns / CLOCK_SECOND, .tv_nsec = ns % CLOCK_SECOND};
    pthread_cond_timedwait(&p->wake, &p->lock, &t);
}

static void *run(void *context)
{
    struct pod_prober *p = context;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct job *j = first(p);
        if (!j || j->due_ns > now()) {
            wait_until(p, j ? j->due_ns : INT64_MAX);
            continue;
        }
        p->waiting--;
        if (p->waiting == 0)
            add_thread(p);
        work(p, j);
        p->waiting++;
    }
    p->waiting--;
    p->threads--;
    pthread_cond_broadcast(&p->idle);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct pod_prober *pod_prober_new(const struct pod_prober_options *o)
{
    struct pod_prober *p = NEW(struct pod_prober);
    pthread_condattr_t attr;
    p->options = *o;
    p->shim = mem_strdup(o->shim);
    list_init(&p->jobs);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &attr);
    pthread_cond_init(&p->idle, NULL);
    pthread_condattr_destroy(&attr);
    return p;
}

void pod_prober_free(struct pod_prober *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    while (p->threads)
        pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
    list_for_each_safe(&p->jobs, j, struct job, link)
        job_free(j);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->idle);
    pthread_mutex_destroy(&p->lock);
    free(p->shim);
    free(p);
}

static enum pod_means means_of(const json_t *json)
{
    return json_object_get(json, "exec")        ? POD_EXEC
           : json_object_get(json, "httpGet")   ? POD_HTTP
           : json_object_get(json, "tcpSocket") ? POD_TCP
                                                : POD_NO_PROBE;
}

/* The job with this id, new if there is none. With the lock. */
static struct job *ask(struct pod_prober *p, const struct pod_subject *s, int kind,
                       const struct pod_probe *probe)
{
    char id[512];
    snprintf(id, sizeof(id), "%s/%s/%d/%d", s->spec->uid, s->container->name, s->number, kind);
    list_for_each(&p->jobs, it, struct job, link) {
        if (!it->dropped && str_eq(it->id, id))
            return it;
    }
    struct job *j = NEW(struct job);
    j->pod = json_incref(s->spec->pod);
    j->about = pod_reference(s->spec, s->container);
    j->ns = s->spec->ns;
    j->name = s->spec->name;
    j->id = mem_strdup(id);
    j->host = mem_strdup(s->host);
    j->kind = kind;
    j->probe = *probe;
    j->action = (struct pod_action){.means = probe->means,
                                    .json = probe->json,
                                    .container = s->container->json,
                                    .host = j->host,
                                    .shim = p->shim,
                                    .pid = s->pid};
    j->due_ns = now() + probe->initial_ns;
    list_push(&p->jobs, &j->link);
    if (p->threads == 0)
        add_thread(p);
    pthread_cond_signal(&p->wake);
    return j;
}

enum pod_verdict pod_prober_ask(struct pod_prober *p, const struct pod_subject *s,
                                enum pod_check check)
{
    pthread_mutex_lock(&p->lock);
    struct job *j = ask(p, s, (int)check, &s->container->probes[check]);
    enum pod_verdict verdict = j->count.verdict;
    pthread_mutex_unlock(&p->lock);
    return verdict;
}

bool pod_prober_hook(struct pod_prober *p, const struct pod_subject *s, int64_t timeout_ns)
{
    const json_t *json = s->container->pre_stop;
    const json_t *sleep = json_at(json, "sleep", "seconds");
    struct pod_probe probe = {.means = means_of(json), .json = json, .timeout_ns = timeout_ns};
    if (probe.timeout_ns < CLOCK_SECOND / 10)
        probe.timeout_ns = CLOCK_SECOND / 10;
    pthread_mutex_lock(&p->lock);
    struct job *j = ask(p, s, HOOK, &probe);
    bool done = j->done;
    if (json_is_integer(sleep)) {
        j->done = true; /* it is no work: the caller looks at the time */
        done = now() >= j->due_ns + json_integer_value(sleep) * CLOCK_SECOND;
    }
    pthread_mutex_unlock(&p->lock);
    return done;
}

void pod_prober_forget(struct pod_prober *p, const char *uid, const char *container)
{
    _cleanup_free_ char *prefix =
        container ? mem_printf("%s/%s/", uid, container) : mem_printf("%s/", uid);
    pthread_mutex_lock(&p->lock);
    list_for_each_safe(&p->jobs, j, struct job, link) {
        if (!str_starts_with(j->id, prefix))
            continue;
        j->dropped = true;
        if (!j->busy) {
            list_unlink(&j->link);
            job_free(j);
        }
    }
    pthread_mutex_unlock(&p->lock);
}
