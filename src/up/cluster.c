#include "up/cluster.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/openapi.h"
#include "base/clock.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "kinds/blockdevice.h"
#include "kube/client.h"
#include "kube/condition.h"
#include "up/token.h"

enum { POLL_MS = 50, TEXT_MAX = 300 };

struct up_cluster {
    struct up_cluster_options o;
    char *kubeconfig, *ns; /* owned */
    struct kube_client *client;
    pthread_t thread;
    int event_fd, stop_fd;
    char token[UP_TOKEN_MAX];
    json_t *before; /* the nodes' Leases as they were before the nodes were started */
    _Atomic enum up_cluster_stage stage;
    pthread_mutex_t lock;
    char text[TEXT_MAX];
};

static void reach(struct up_cluster *c, enum up_cluster_stage stage)
{
    c->stage = stage;
    if (eventfd_write(c->event_fd, 1) < 0)
        return; /* it is readable already */
}

static void say(struct up_cluster *c, const char *text)
{
    pthread_mutex_lock(&c->lock);
    snprintf(c->text, sizeof(c->text), "%.*s", (int)str_cut(text, TEXT_MAX - 1), text);
    pthread_mutex_unlock(&c->lock);
}

const char *up_node_name(unsigned number, char buf[UP_NODE_NAME])
{
    snprintf(buf, UP_NODE_NAME, "node-%u", number);
    return buf;
}

/* Waits a moment; false when it is to stop. */
static bool pause_a_moment(struct up_cluster *c)
{
    struct pollfd p = {.fd = c->stop_fd, .events = POLLIN};
    return poll(&p, 1, POLL_MS) == 0;
}

static int make_namespace(struct up_cluster *c, struct err *e)
{
    struct kube_resource namespaces = kube_resource("v1", "Namespace");
    json_auto_t *object = json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind", "Namespace",
                                    "metadata", "name", c->ns);
    json_auto_t *made = kube_create(c->client, &namespaces, object, NULL, e);
    return made || e->code == ERR_ALREADY_EXISTS ? 0 : -1;
}

/* The definitions of our kinds, for those who look for them; the server has the kinds built in. */
static int make_definitions(struct up_cluster *c, struct err *e)
{
    struct kube_resource definitions =
        kube_resource("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    for (const struct api_kind *const *kind = api_kinds; *kind; kind++) {
        if ((*kind)->flags & API_BUILTIN)
            continue;
        const char *before = NULL; /* versions of a group stand together */
        for (const struct api_group_version *gv = (*kind)->versions; gv->group; gv++) {
            if (before && str_eq(before, gv->group))
                continue;
            before = gv->group;
            json_auto_t *definition = api_crd(*kind, gv->group);
            struct kube_write force = {.force = true};
            json_auto_t *made = kube_patch(c->client, &definitions, NULL, kube_name(definition),
                                           KUBE_APPLY, definition, &force, e);
            if (!made)
                return -1;
        }
    }
    return 0;
}

static int prepare(struct up_cluster *c, struct err *e)
{
    if (!c->client) {
        struct kube_config config = {0};
        if (kube_config_load(c->kubeconfig, NULL, &config, e) < 0)
            return -1;
        struct kube_client_options o = {.config = &config, .field_manager = "orlop"};
        struct kube_client *client = kube_client_new(&o, e);
        kube_config_done(&config);
        if (!client)
            return -1;
        pthread_mutex_lock(&c->lock);
        c->client = client;
        pthread_mutex_unlock(&c->lock);
    }
    struct kube_resource leases = kube_resource("coordination.k8s.io/v1", "Lease");
    if (make_namespace(c, e) < 0 || make_definitions(c, e) < 0)
        return -1;
    if (!c->before)
        c->before = kube_list(c->client, &leases, "kube-node-lease", NULL, e);
    if (!c->before)
        return -1;
    return *c->token ? 0 : up_token_create(c->client, "orlop up", UP_TOKEN_SECONDS, c->token, e);
}

/* Whether the node is Ready and has said so since the start: what it said before may be over. */
static bool node_is_ready(const struct up_cluster *c, const json_t *nodes, const json_t *leases,
                          const char *name)
{
    const json_t *lease = kube_find(leases, name), *old = kube_find(c->before, name);
    return kube_condition_is_true(kube_find(nodes, name), "Ready") && lease &&
           (!old || !str_eq(kube_version(lease), kube_version(old)));
}

/* Devices that say how they are: their status comes after them. */
static unsigned count_devices(const json_t *devices)
{
    unsigned n = 0;
    size_t i;
    json_t *device;
    json_array_foreach((json_t *)(uintptr_t)devices, i, device)
        n += *block_device_of(device).status.state != '\0';
    return n;
}

static int check_ready(struct up_cluster *c, bool *ret_ready, struct err *e)
{
    struct kube_resource nodes = kube_resource("v1", "Node");
    struct kube_resource leases = kube_resource("coordination.k8s.io/v1", "Lease");
    struct kube_resource devices = kube_resource("openebs.io/v1alpha1", "BlockDevice");
    json_auto_t *node_list = kube_list(c->client, &nodes, NULL, NULL, e);
    json_auto_t *lease_list =
        node_list ? kube_list(c->client, &leases, "kube-node-lease", NULL, e) : NULL;
    json_auto_t *device_list = lease_list ? kube_list(c->client, &devices, c->ns, NULL, e) : NULL;
    if (!device_list)
        return -1;
    unsigned ready = 0, found = count_devices(device_list);
    for (unsigned i = 1; i <= c->o.nodes; i++) {
        char name[UP_NODE_NAME];
        ready += node_is_ready(c, node_list, lease_list, up_node_name(i, name));
    }
    char text[TEXT_MAX];
    snprintf(text, sizeof(text), "%u of %u nodes are ready, %u of %u block devices are there",
             ready, c->o.nodes, found, c->o.nodes * c->o.disks);
    say(c, text);
    *ret_ready = ready >= c->o.nodes && found >= c->o.nodes * c->o.disks;
    return 0;
}

static void *run(void *context)
{
    struct up_cluster *c = context;
    struct err e = {0};
    while (prepare(c, &e) < 0) {
        say(c, e.msg);
        if (!pause_a_moment(c))
            return NULL;
    }
    reach(c, UP_PREPARED);
    bool ready = false;
    do {
        if (check_ready(c, &ready, &e) < 0)
            say(c, e.msg);
    } while (!ready && pause_a_moment(c));
    if (ready)
        reach(c, UP_READY);
    return NULL;
}

int up_cluster_start(const struct up_cluster_options *o, struct up_cluster **ret_cluster,
                     struct err *e)
{
    struct up_cluster *c = NEW(struct up_cluster);
    c->o = *o;
    c->kubeconfig = mem_strdup(o->kubeconfig);
    c->ns = mem_strdup(o->ns);
    pthread_mutex_init(&c->lock, NULL);
    c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int errnum = c->event_fd < 0 || c->stop_fd < 0 ? errno : 0;
    if (!errnum)
        errnum = pthread_create(&c->thread, NULL, run, c);
    if (!errnum) {
        *ret_cluster = c;
        return 0;
    }
    c->thread = 0;
    up_cluster_stop(c);
    return err_errno(e, errnum, "cannot prepare the cluster");
}

void up_cluster_stop(struct up_cluster *c)
{
    if (!c)
        return;
    if (c->thread) {
        eventfd_write(c->stop_fd, 1);
        pthread_mutex_lock(&c->lock);
        if (c->client)
            kube_client_stop(c->client);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
    }
    kube_client_free(c->client);
    json_decref(c->before);
    if (c->event_fd >= 0)
        close(c->event_fd);
    if (c->stop_fd >= 0)
        close(c->stop_fd);
    pthread_mutex_destroy(&c->lock);
    free(c->kubeconfig);
    free(c->ns);
    free(c);
}

int up_cluster_fd(const struct up_cluster *c)
{
    return c->event_fd;
}

enum up_cluster_stage up_cluster_stage(struct up_cluster *c)
{
    eventfd_t n;
    if (eventfd_read(c->event_fd, &n) < 0)
        n = 0; /* nothing new */
    return c->stage;
}

const char *up_cluster_token(const struct up_cluster *c)
{
    return c->token;
}

void up_cluster_describe(struct up_cluster *c, char *buf, size_t size)
{
    pthread_mutex_lock(&c->lock);
    snprintf(buf, size, "%s", c->text);
    pthread_mutex_unlock(&c->lock);
}
