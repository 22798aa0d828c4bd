/*
 * Sets the pod runner up: what it owns, and the pods that somebody before us took on.
 */
#include "k8s/kubelet/pods.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "k8s/kubelet/pod_impl.h"

enum { WORKERS = 4 };

static const int64_t exit_grace_ns = 10 * CLOCK_SECOND;

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
        pod_run_free(it->value);
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
        if (pod_memory_read(state, &memory, &why) < 0 || pod_run_new(p, memory.pod, &r, &why) < 0) {
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
        .name = "pods", .workers = WORKERS, .reconcile = pod_reconcile, .context = p};
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
