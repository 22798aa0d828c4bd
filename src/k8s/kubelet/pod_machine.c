/*
 * What to do next with a pod. It looks at everything each time and remembers nothing, so it does not
 * matter what was missed, or who looked before.
 *
 *     init containers in order --> main containers --> all ended and none to be started again
 *       each until it succeeds      together              Succeeded or Failed: sidecars stop
 *       sidecars until started
 *
 *     to stop one:  hook, if it has one --> TERM --> KILL when patience ends
 *
 * An end with a restart to come waits: not at all the first time, then longer each time in a row.
 */
#include "k8s/kubelet/pod.h"

/* What a hook leaves to the program that it came before, at least. */
static const int64_t after_hook_ns = 2 * CLOCK_SECOND;

bool pod_is_started(const struct pod_container *c, const struct pod_facts *f)
{
    return f->running == POD_RUNNING &&
           (c->probes[POD_STARTUP].means == POD_NO_PROBE || f->verdicts[POD_STARTUP] == POD_GOOD);
}

bool pod_is_ready(const struct pod_container *c, const struct pod_facts *f)
{
    if (c->role == POD_INIT)
        return f->running == POD_ENDED && f->end.exit_code == 0;
    return pod_is_started(c, f) && !f->stop_ns &&
           (c->probes[POD_READINESS].means == POD_NO_PROBE ||
            f->verdicts[POD_READINESS] == POD_GOOD);
}

int64_t pod_backoff(unsigned streak, int64_t first_ns, int64_t most_ns)
{
    if (streak < 2)
        return 0;
    int64_t ns = first_ns;
    for (unsigned i = 2; i < streak && ns < most_ns; i++)
        ns *= 2;
    return ns < most_ns ? ns : most_ns;
}

static bool restarts(const struct pod_spec *s, const struct pod_container *c,
                     const struct pod_facts *f)
{
    if (c->role == POD_SIDECAR)
        return true;
    if (c->role == POD_INIT)
        return f->end.exit_code != 0 && s->policy != POD_NEVER;
    return s->policy == POD_ALWAYS || (s->policy == POD_ON_FAILURE && f->end.exit_code != 0);
}

static void wake(struct pod_plan *p, int64_t ns)
{
    if (ns < p->wake_ns)
        p->wake_ns = ns;
}

/* It should run: starts it, or says when. */
static void want(const struct pod_situation *s, size_t i, struct pod_plan *p)
{
    const struct pod_facts *f = &s->facts[i];
    if (f->running == POD_RUNNING)
        return;
    int64_t at = s->now_ns;
    if (f->running == POD_ENDED) {
        int64_t wait = pod_backoff(f->streak, s->backoff_ns, s->backoff_max_ns);
        at = f->ended_ns + wait;
        p->backoffs.p[i] = at > s->now_ns ? wait : 0;
    }
    if (f->blocked && f->retry_ns > at)
        at = f->retry_ns;
    if (at <= s->now_ns)
        p->verbs.p[i] = POD_START;
    else
        wake(p, at);
}

/* It should not run: the next step to that. */
static void unwant(const struct pod_situation *s, size_t i, int64_t by_ns, struct pod_plan *p)
{
    const struct pod_facts *f = &s->facts[i];
    if (f->running != POD_RUNNING || f->killed)
        return;
    bool hooked = f->hook == POD_HOOK_RUNS && s->now_ns < by_ns;
    if (f->term_ns && f->hook == POD_HOOK_DONE && by_ns < f->term_ns + after_hook_ns)
        by_ns = f->term_ns + after_hook_ns;
    if (!f->stop_ns && s->spec->containers.p[i].pre_stop && s->now_ns < by_ns)
        p->verbs.p[i] = POD_HOOK;
    else if (s->now_ns >= by_ns && (f->term_ns || f->hook != POD_HOOK_DONE))
        p->verbs.p[i] = POD_KILL;
    else if (!f->term_ns && !hooked)
        p->verbs.p[i] = POD_TERM;
    if (p->verbs.p[i] != POD_KILL)
        wake(p, by_ns);
}

/* Probes that have failed: it is stopped, and then restarted as any that ended. */
static bool is_unhealthy(const struct pod_facts *f, enum pod_check *ret_check)
{
    *ret_check = f->verdicts[POD_STARTUP] == POD_BAD ? POD_STARTUP : POD_LIVENESS;
    return f->verdicts[*ret_check] == POD_BAD;
}

static void keep(const struct pod_situation *s, size_t i, struct pod_plan *p)
{
    const struct pod_facts *f = &s->facts[i];
    const struct pod_container *c = &s->spec->containers.p[i];
    enum pod_check check;
    if (f->running == POD_RUNNING && (f->stop_ns || is_unhealthy(f, &check))) {
        is_unhealthy(f, &check);
        int64_t grace = c->probes[check].grace_ns;
        int64_t since = f->stop_ns ? f->stop_ns : s->now_ns;
        unwant(s, i, since + (grace < 0 ? s->spec->grace_ns : grace), p);
    } else {
        want(s, i, p);
    }
}

/* Init containers up to the first that is not through; whether all are. */
static bool step_init(const struct pod_situation *s, bool begun, struct pod_plan *p)
{
    for (size_t i = 0; i < s->spec->containers.len; i++) {
        const struct pod_container *c = &s->spec->containers.p[i];
        const struct pod_facts *f = &s->facts[i];
        if (c->role == POD_MAIN)
            break;
        if (c->role == POD_SIDECAR) {
            keep(s, i, p);
            if (!begun && !pod_is_started(c, f))
                return false;
        } else if (!begun && !(f->running == POD_ENDED && f->end.exit_code == 0)) {
            if (f->running != POD_ENDED || restarts(s->spec, c, f))
                keep(s, i, p);
            return false;
        }
    }
    return true;
}

struct counts {
    unsigned never, run, ended, failed, again; /* of main containers */
    bool begun;                                /* one has run, at some time */
    bool init_failed;                          /* for good */
    bool any_running;
};

static struct counts count(const struct pod_situation *s)
{
    struct counts n = {0};
    for (size_t i = 0; i < s->spec->containers.len; i++) {
        const struct pod_container *c = &s->spec->containers.p[i];
        const struct pod_facts *f = &s->facts[i];
        n.any_running |= f->running == POD_RUNNING;
        if (c->role == POD_INIT && f->running == POD_ENDED && f->end.exit_code != 0)
            n.init_failed |= !restarts(s->spec, c, f);
        if (c->role != POD_MAIN)
            continue;
        n.begun |= f->number >= 0;
        n.never += f->running == POD_NOT_RUN;
        n.run += f->running == POD_RUNNING;
        n.ended += f->running == POD_ENDED;
        n.failed += f->running == POD_ENDED && f->end.exit_code != 0;
        n.again += f->running == POD_ENDED && restarts(s->spec, c, f);
    }
    return n;
}

static enum pod_phase phase_of(const struct pod_situation *s, const struct counts *n,
                               const struct pod_plan *p)
{
    if (s->verdict)
        return str_eq(s->verdict, "Failed") ? POD_FAILED : POD_SUCCEEDED;
    if (n->init_failed)
        return POD_FAILED;
    if ((s->gone || p->past_deadline) && !n->any_running && !n->run)
        return n->failed || n->never || p->past_deadline ? POD_FAILED : POD_SUCCEEDED;
    if (!p->initialized || n->never)
        return POD_PENDING;
    if (n->run || n->again)
        return POD_PHASE_RUNNING;
    return n->failed ? POD_FAILED : POD_SUCCEEDED;
}

/* Everything is to stop: sidecars when the others have. */
static void step_down(const struct pod_situation *s, const struct counts *n, int64_t by_ns,
                      struct pod_plan *p)
{
    for (size_t i = 0; i < s->spec->containers.len; i++) {
        if (s->spec->containers.p[i].role != POD_SIDECAR || n->run == 0)
            unwant(s, i, by_ns, p);
    }
}

/* When patience ends that began with the first container that was told to stop. */
static int64_t grace_end(const struct pod_situation *s)
{
    int64_t since = s->now_ns;
    for (size_t i = 0; i < s->spec->containers.len; i++) {
        int64_t stop = s->facts[i].stop_ns;
        if (s->facts[i].running == POD_RUNNING && stop && stop < since)
            since = stop;
    }
    return since + s->spec->grace_ns;
}

void pod_decide(const struct pod_situation *s, struct pod_plan *ret_plan)
{
    struct pod_plan *p = ret_plan;
    *p = (struct pod_plan){.wake_ns = INT64_MAX};
    for (size_t i = 0; i < s->spec->containers.len; i++) {
        vec_push(&p->verbs, POD_KEEP);
        vec_push(&p->backoffs, 0);
    }
    struct counts n = count(s);
    p->past_deadline = !s->verdict && s->now_ns >= s->deadline_ns;
    /* Only asked for what it says: nothing may start before it is known that nothing has ended. */
    p->initialized = n.begun;
    enum pod_phase phase = phase_of(s, &n, p);
    bool down = s->gone || p->past_deadline || phase == POD_FAILED ||
                (phase == POD_SUCCEEDED && n.run == 0);
    if (down) {
        step_down(s, &n, s->gone ? s->stop_by_ns : grace_end(s), p);
    } else {
        wake(p, s->deadline_ns);
        p->initialized = step_init(s, n.begun, p) || n.begun;
        for (size_t i = 0; p->initialized && i < s->spec->containers.len; i++) {
            const struct pod_container *c = &s->spec->containers.p[i];
            const struct pod_facts *f = &s->facts[i];
            if (c->role == POD_MAIN && (f->running != POD_ENDED || restarts(s->spec, c, f)))
                keep(s, i, p);
        }
    }
    p->phase = phase_of(s, &n, p);
    /* A final phase means that nothing runs any more: others act on it. */
    if (n.any_running && !s->verdict && (p->phase == POD_FAILED || p->phase == POD_SUCCEEDED))
        p->phase = n.begun ? POD_PHASE_RUNNING : POD_PENDING;
    p->over = down && !n.any_running;
}

void pod_plan_done(struct pod_plan *p)
{
    vec_done(&p->verbs);
    vec_done(&p->backoffs);
}
