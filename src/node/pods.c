/*
 * The reconciler of pods: one name at a time, whatever pods have had it.
 *
 * A pod is known by its uid. When one is gone and another of its name is there, the first is stopped
 * and cleared away before the second begins: they would share the folder of logs.
 */
#include "node/pods.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "kube/condition.h"
#include "kube/object.h"
#include "node/pod_impl.h"
#include "shim/shim.h"

enum { WORKERS = 4, ROUNDS = 4 };

static const int64_t exit_grace_ns = 10 * CLOCK_SECOND;

static void run_free(struct pod_run *r)
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

static int run_new(struct pods *p, json_t *pod, struct pod_run **ret_run, struct err *e)
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
    if (run_new(p, pod, &r, e) < 0)
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
        run_free(r);
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
    run_free(r);
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

/* When patience with a pod that is to go ends, by the monotonic clock. */
static int64_t stop_by(const struct pod_run *r, const json_t *pod)
{
    int64_t mono = clock_mono_ns(r->all->clock), real = clock_real_ns(r->all->clock);
    const char *text = json_str(json_object_get(pod, "metadata"), "deletionTimestamp");
    struct timespec t;
    if (!text || rfc3339_parse(text, &t, NULL) < 0)
        return r->gone_ns + r->spec.grace_ns;
    int64_t left = rfc3339_to_ns(t) - real;
    int64_t most = r->spec.grace_ns > 0 ? r->spec.grace_ns : 0;
    const json_t *grace = json_at(pod, "metadata", "deletionGracePeriodSeconds");
    if (json_is_integer(grace) && json_integer_value(grace) < INT32_MAX)
        most = json_integer_value(grace) * CLOCK_SECOND;
    int64_t by = mono + (left < 0 ? 0 : left);
    return by < r->gone_ns + most ? by : r->gone_ns + most;
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
        s.deadline_ns = mono + r->memory.start_time + r->spec.deadline_ns - clock_real_ns(p->clock);
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

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
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

static void poke(void *context, const char *ns, const char *name)
{
    struct pods *p = context;
    kube_controller_add(p->controller, ns, name);
}

static void free_options(struct node_pods_options *o)
{
    free((char *)o->node);
    free((char *)o->address);
    free((char *)o->pod_cidr);
    free((char *)o->data_dir);
    free((char *)o->libexec);
    free((char *)o->cgroup);
}

static void pods_free(struct pods *p)
{
    pod_prober_free(p->prober);
    pod_watch_free(p->watch);
    map_for_each(&p->runs, it)
        run_free(it->value);
    map_done(&p->runs);
    pod_addresses_done(&p->addresses);
    pthread_mutex_destroy(&p->lock);
    free(p->shim);
    free(p->api_host);
    free(p->api_port);
    free(p->cgroup);
    free_options(&p->options);
    free(p);
}

static void at_stop(void *context)
{
    struct pods *p = context;
    struct err e = {0};
    if (p->options.stop_on_exit && node_pods_stop_all(p->options.data_dir, exit_grace_ns, &e) < 0)
        log_error("cannot stop all containers", LOG_ERR(&e));
    pods_free(p);
}

static void copy_options(struct node_pods_options *to, const struct node_pods_options *o)
{
    *to = *o;
    to->node = mem_strdup(o->node);
    to->address = mem_strdup(o->address);
    to->pod_cidr = o->pod_cidr ? mem_strdup(o->pod_cidr) : NULL;
    to->data_dir = mem_strdup(o->data_dir);
    to->libexec = mem_strdup(o->libexec);
    to->cgroup = o->cgroup ? mem_strdup(o->cgroup) : NULL;
    if (to->backoff_ns <= 0)
        to->backoff_ns = 10 * CLOCK_SECOND;
    if (to->backoff_max_ns <= 0)
        to->backoff_max_ns = 300 * CLOCK_SECOND;
    if (to->backoff_reset_ns <= 0)
        to->backoff_reset_ns = 600 * CLOCK_SECOND;
    if (to->refresh_ns <= 0)
        to->refresh_ns = 60 * CLOCK_SECOND;
}

/* Host and port of https://host:port, as a Pod is told them. */
static void split_server(struct pods *p, const char *url)
{
    const char *at = strstr(url, "://");
    at = at ? at + 3 : url;
    size_t n = strcspn(at, "/");
    _cleanup_free_ char *host = mem_strndup(at, n);
    char *colon = strrchr(host, ':');
    bool has_port = colon && !strchr(colon, ']');
    p->api_port = mem_strdup(has_port ? colon + 1 : str_starts_with(url, "http:") ? "80" : "443");
    if (has_port)
        *colon = '\0';
    size_t len = strlen(host);
    bool v6 = *host == '[' && len > 2;
    p->api_host = mem_strndup(v6 ? host + 1 : host, v6 ? len - 2 : len);
}

/* Pods that somebody before us took on: whether they are wanted is seen when the API is. */
static int adopt(struct pods *p, struct err *e)
{
    _cleanup_free_ char *folder = pod_state_folder(p->options.data_dir, NULL);
    _cleanup_(pod_names_done) struct pod_names uids = {0};
    if (file_make_dirs(folder, 0700, e) < 0 || pod_state_list(folder, &uids, e) < 0)
        return -1;
    vec_for_each(&uids.p, it) {
        _cleanup_free_ char *state = pod_state_folder(p->options.data_dir, *it);
        struct pod_memory memory = {0};
        struct pod_run *r;
        struct err why = {0};
        if (pod_memory_read(state, &memory, &why) < 0 || run_new(p, memory.pod, &r, &why) < 0) {
            /* It was taken on and nothing was started, or nobody can know what. */
            log_warn("clearing away a pod that is not known", LOG_S("uid", *it), LOG_ERR(&why));
            pod_memory_done(&memory);
            node_pods_stop_one(p->options.data_dir, *it);
            file_remove_tree(state, NULL);
            continue;
        }
        r->memory = memory;
        pod_addresses_take(&p->addresses, memory.ip);
        map_set(&p->runs, r->spec.uid, r);
        poke(p, r->spec.ns, r->spec.name);
    }
    return 0;
}

int node_pods_setup(struct kube_manager *m, const struct node_pods_options *o, struct err *e)
{
    struct pods *p = NEW(struct pods);
    copy_options(&p->options, o);
    pthread_mutex_init(&p->lock, NULL);
    p->client = kube_manager_client(m);
    p->recorder = kube_manager_recorder(m);
    p->clock = kube_manager_clock(m);
    p->shim = mem_printf("%s/orlop-shim", o->libexec);
    split_server(p, kube_client_server(p->client));
    struct err none = {0};
    p->cgroup = pod_cgroup_base(o->cgroup, &none);
    if (!p->cgroup)
        snprintf(p->no_cgroup, sizeof(p->no_cgroup),
                 "limits of containers are not enforced on this node: %.200s", none.msg);
    struct kube_controller_options options = {
        .name = "pods", .workers = WORKERS, .reconcile = reconcile, .context = p};
    struct pod_prober_options prober = {poke, p, p->recorder, p->shim};
    _cleanup_free_ char *ours = mem_printf("spec.nodeName=%s", o->node);
    if (access(p->shim, X_OK) < 0) {
        pods_free(p);
        return err_set(e, ERR_NOT_FOUND, "NotFound",
                       "%s/orlop-shim is missing, and containers are run by it", o->libexec);
    }
    p->prober = pod_prober_new(&prober);
    p->watch = pod_watch_new(poke, p, e);
    p->controller = p->watch ? kube_manager_controller(m, &options, e) : NULL;
    if (!p->controller || pod_addresses_init(&p->addresses, o->pod_cidr, e) < 0 ||
        adopt(p, e) < 0) {
        pods_free(p);
        return -1;
    }
    p->informer = kube_manager_informer(m, kube_resource("v1", "Pod"), NULL, NULL, ours);
    kube_controller_watch(p->controller, (struct kube_source){.informer = p->informer});
    kube_manager_on_stop(m, at_stop, p);
    return 0;
}
