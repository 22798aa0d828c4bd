/*
 * The reconciler of pods: one name at a time, whatever pods have had it.
 *
 * A pod is known by its uid. When one is gone and another of its name is there, the first is stopped
 * and cleared away before the second begins: they would share the folder of logs.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "k8s/kubelet/pod_impl.h"
#include "k8s/shim/shim.h"
#include "kube/condition.h"
#include "kube/object.h"

enum { ROUNDS = 4 };

void pod_run_free(struct pod_run *r)
{
    pod_spec_done(&r->spec);
    pod_memory_done(&r->memory);
    pod_tokens_done(r);
    vec_done(&r->facts);
    vec_done(&r->watched);
    free(r->folder);
    free(r->key);
    free(r);
}

int pod_run_new(struct pods *p, json_t *pod, struct pod_run **ret_run, struct err *e)
{
    struct pod_run *r = NEW(struct pod_run);
    if (pod_spec_parse(pod, &r->spec, e) < 0) {
        free(r);
        return -1;
    }
    r->all = p;
    r->key = mem_printf("%s/%s", r->spec.ns, r->spec.name);
    r->folder = pod_state_folder(p->options.data_dir, r->spec.uid);
    r->renew_ns = INT64_MAX;
    for (size_t i = 0; i < r->spec.containers.len; i++) {
        vec_push(&r->facts, (struct pod_facts){.number = -1});
        vec_push(&r->watched, -1);
    }
    *ret_run = r;
    return 0;
}

/* A pod that is not known yet: an address, and a memory of it before anything is done. */
static int take_on(struct pods *p, json_t *pod, struct pod_run **ret_run, struct err *e)
{
    struct pod_run *r;
    if (pod_run_new(p, pod, &r, e) < 0)
        return -1;
    bool own = !json_is_true(json_at(pod, "spec", "hostNetwork"));
    int status = 0;
    r->memory.pod = json_incref(pod);
    r->memory.start_time = clock_real_ns(p->clock);
    pthread_mutex_lock(&p->lock);
    if (p->addresses.count && own)
        status = pod_addresses_get(&p->addresses, r->memory.ip, e);
    pthread_mutex_unlock(&p->lock);
    if (status < 0 || pod_memory_write(r->folder, &r->memory, e) < 0) {
        pthread_mutex_lock(&p->lock);
        pod_addresses_put(&p->addresses, r->memory.ip);
        pthread_mutex_unlock(&p->lock);
        pod_run_free(r);
        return -1;
    }
    pthread_mutex_lock(&p->lock);
    map_set(&p->runs, r->spec.uid, r);
    pthread_mutex_unlock(&p->lock);
    *ret_run = r;
    return 0;
}

/* Nothing of it runs any more: nothing of it stays. */
static int clear_away(struct pod_run *r, struct err *e)
{
    struct pods *p = r->all;
    _cleanup_free_ char *logs = pod_log_folder(p->options.data_dir, r->spec.ns, r->spec.name);
    pod_prober_forget(p->prober, r->spec.uid, NULL);
    _cleanup_free_ char *mark = mem_printf("%s/", r->spec.uid);
    shim_signal_marked(mark, true, SIGKILL); /* hooks and probes that are still at it */
    pod_volumes_release(&r->spec, &p->options);
    if (file_remove_tree(logs, e) < 0 || file_remove_tree(r->folder, e) < 0)
        return -1;
    char *above = strrchr(logs, '/');
    *above = '\0';
    rmdir(logs); /* the namespace's, when it was the last */
    pthread_mutex_lock(&p->lock);
    pod_addresses_put(&p->addresses, r->memory.ip);
    map_remove(&p->runs, r->spec.uid);
    pthread_mutex_unlock(&p->lock);
    pod_run_free(r);
    return 0;
}

/* The newest description; the containers of a pod never change. */
static int update_spec(struct pod_run *r, json_t *pod, struct err *e)
{
    struct pod_spec fresh;
    if (pod_spec_parse(pod, &fresh, e) < 0)
        return -1;
    if (fresh.containers.len != r->spec.containers.len) {
        pod_spec_done(&fresh);
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "the pod has other containers now");
    }
    pod_spec_done(&r->spec);
    r->spec = fresh;
    return 0;
}

/*
 * When patience with a pod that is to go ends. It begins when we see it: the times of the API are of
 * another machine's clock. A later deletion may shorten it.
 */
static int64_t stop_by(const struct pod_run *r, const json_t *pod)
{
    const json_t *grace = json_at(pod, "metadata", "deletionGracePeriodSeconds");
    int64_t seconds = json_is_integer(grace) ? json_integer_value(grace) : -1;
    if (seconds < 0 || seconds > INT32_MAX)
        return r->gone_ns + r->spec.grace_ns;
    return r->gone_ns + seconds * CLOCK_SECOND;
}

/* The wall clock is asked once: a deadline does not move when somebody sets it. */
static int64_t begun_of(struct pod_run *r, int64_t mono)
{
    int64_t age = clock_real_ns(r->all->clock) - r->memory.start_time;
    if (!r->has_begun)
        r->begun_ns = mono - (age > 0 ? age : 0);
    r->has_begun = true;
    return r->begun_ns;
}

static void decide(struct pod_run *r, const json_t *pod, struct pod_plan *ret_plan)
{
    struct pods *p = r->all;
    int64_t mono = clock_mono_ns(p->clock);
    const char *phase = json_str(json_object_get(pod, "status"), "phase");
    bool gone = !pod || kube_deleting(pod);
    if (gone && !r->gone_ns)
        r->gone_ns = mono;
    struct pod_situation s = {
        .spec = &r->spec,
        .facts = r->facts.p,
        .now_ns = mono,
        .gone = gone,
        .stop_by_ns = gone ? stop_by(r, pod) : 0,
        .deadline_ns = INT64_MAX,
        .verdict = phase && (str_eq(phase, "Succeeded") || str_eq(phase, "Failed")) ? phase : NULL,
        .backoff_ns = p->options.backoff_ns,
        .backoff_max_ns = p->options.backoff_max_ns,
    };
    if (r->spec.deadline_ns >= 0)
        s.deadline_ns = begun_of(r, mono) + r->spec.deadline_ns;
    pod_decide(&s, ret_plan);
}

static void tell_backoff(struct pod_run *r, const struct pod_plan *plan)
{
    for (size_t i = 0; i < r->spec.containers.len; i++) {
        const struct pod_container *c = &r->spec.containers.p[i];
        if (!plan->backoffs.p[i])
            continue;
        json_auto_t *about = pod_reference(&r->spec, c);
        kube_event_warning(r->all->recorder, about, "BackOff",
                           "Back-off restarting failed container %s in pod %s_%s(%s)", c->name,
                           r->spec.name, r->spec.ns, r->spec.uid);
    }
}

static int write_status(struct pod_run *r, const struct pod_plan *plan, struct err *e)
{
    struct pod_place place = pod_place_of(r);
    struct kube_resource pods = kube_resource("v1", "Pod");
    bool limits = *r->all->no_cgroup && pod_has_limits(r->spec.pod);
    struct pod_report report = {
        .spec = &r->spec,
        .facts = r->facts.p,
        .plan = plan,
        .place = &place,
        .start_time = r->memory.start_time,
        .limits_message = limits ? r->all->no_cgroup : NULL,
        .clock = r->all->clock,
    };
    json_auto_t *status = pod_status_make(&report);
    if (json_equal(status, json_object_get(r->spec.pod, "status")))
        return 0;
    tell_backoff(r, plan);
    json_auto_t *object = json_incref(r->spec.pod);
    return kube_status_write(r->all->client, &pods, &object, status, e);
}

static void again(const struct pod_run *r, const struct pod_plan *plan, struct kube_result *ret)
{
    int64_t mono = clock_mono_ns(r->all->clock), real = clock_real_ns(r->all->clock);
    int64_t wake = plan->wake_ns;
    if (r->volumes_up && !plan->over) {
        if (r->refresh_ns < wake)
            wake = r->refresh_ns;
        if (r->renew_ns != INT64_MAX && mono + r->renew_ns - real < wake)
            wake = mono + r->renew_ns - real;
    }
    if (wake != INT64_MAX)
        ret->again_ns = wake > mono ? wake - mono : 1;
}

/* Steps until there is nothing to do now. 1: it is over and may be cleared away. */
static int step(struct pod_run *r, const json_t *pod, struct kube_result *ret, struct err *e)
{
    struct pod_plan plan = {0};
    int status = 0;
    bool acted = true;
    for (int round = 0; acted && round < ROUNDS; round++) {
        pod_plan_done(&plan);
        if ((status = pod_observe(r, e)) < 0)
            break;
        decide(r, pod, &plan);
        acted = pod_act(r, &plan);
    }
    if (status == 0 && !plan.over)
        pod_refresh(r);
    if (status == 0)
        again(r, &plan, ret);
    if (acted && status == 0)
        ret->again_ns = CLOCK_SECOND / 100; /* there was more than these rounds could take */
    if (status == 0 && pod)
        status = write_status(r, &plan, e);
    bool over = plan.over;
    pod_plan_done(&plan);
    return status < 0 ? -1 : over;
}

/* A pod that was taken on under this name and is not `uid`; NULL: none. */
static struct pod_run *find_other(struct pods *p, const char *ns, const char *name, const char *uid)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", ns, name);
    struct pod_run *found = NULL;
    pthread_mutex_lock(&p->lock);
    map_for_each(&p->runs, it) {
        struct pod_run *r = it->value;
        if (!str_eq(it->key, uid) && str_eq(r->key, key))
            found = r;
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

static int reconcile_present(struct pods *p, json_t *pod, struct kube_result *ret, struct err *e)
{
    struct kube_resource pods = kube_resource("v1", "Pod");
    pthread_mutex_lock(&p->lock);
    struct pod_run *r = map_get(&p->runs, kube_uid(pod));
    pthread_mutex_unlock(&p->lock);
    const char *phase = json_str(json_object_get(pod, "status"), "phase");
    bool ended = phase && (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"));
    if (!r && !kube_deleting(pod)) {
        if (ended)
            return 0;
        if (take_on(p, pod, &r, e) < 0)
            return -1;
    }
    if (r && update_spec(r, pod, e) < 0)
        return -1;
    int over = r ? step(r, pod, ret, e) : 1;
    if (over <= 0 || !kube_deleting(pod))
        return over < 0 ? -1 : 0;
    if (r && clear_away(r, e) < 0)
        return -1;
    ret->again_ns = 0;
    struct kube_delete options = {.uid = kube_uid(pod), .grace_seconds = 0};
    int status = kube_delete(p->client, &pods, kube_namespace(pod), kube_name(pod), &options, e);
    /* Another has its name already: this one is as gone as can be. */
    return status < 0 && e->code == ERR_ABORTED ? 0 : status;
}

int pod_reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                  struct err *e)
{
    struct pods *p = context;
    _cleanup_(kube_object_unrefp) struct kube_object *object =
        kube_informer_get(p->informer, ns, name);
    struct pod_run *other;
    while ((other = find_other(p, ns, name, object ? object->uid : ""))) {
        int over = step(other, NULL, ret, e);
        if (over <= 0)
            return over;
        if (clear_away(other, e) < 0)
            return -1;
        ret->again_ns = 0;
    }
    if (!object)
        return 0;
    json_auto_t *pod = kube_object_json(object);
    return pod ? reconcile_present(p, pod, ret, e) : 0;
}
