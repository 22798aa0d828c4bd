/*
 * Services, where there is no kube-proxy: connections to a Service's address are forwarded to its ready
 * endpoints, on the machine that runs everything.
 *
 * Only addresses of loopback are served: they mean this machine. Of several nodes on it the first that
 * listens serves an address, and the others try again, in case it ends. A Service with the annotation
 * orlop.io/forward: "false" is left to whoever backs it, who listens at its address itself: that
 * spares its connections the way through here.
 */
#include "k8s/kubelet/services.h"

#include <arpa/inet.h>

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "k8s/kubelet/forward.h"
#include "kube/controller.h"

static const int64_t AGAIN_NS = 10 * CLOCK_SECOND;

/* What a Service is listened to at. */
struct served {
    VEC(struct sockaddr_in) from;
};

struct services {
    struct node_forward *forward;
    struct kube_informer *services, *slices;
    struct map served; /* "namespace/name" -> struct served; the one worker's own */
};

static void by_service(const json_t *slice, struct kube_index_values *out)
{
    const char *name = kube_label(slice, "kubernetes.io/service-name");
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(slice), name ? name : "");
    kube_index_add(out, key);
}

static const struct kube_index index_by_service = {"service", by_service};

static bool is_served(const json_t *service)
{
    struct in_addr address;
    const char *ip = json_str(json_object_get(service, "spec"), "clusterIP");
    const char *forward = kube_annotation(service, "orlop.io/forward");
    return ip && inet_pton(AF_INET, ip, &address) == 1 && ntohl(address.s_addr) >> 24 == 127 &&
           !(forward && str_eq(forward, "false"));
}

static bool is_ready(const json_t *endpoint)
{
    const json_t *ready = json_at(endpoint, "conditions", "ready");
    return !ready || json_is_true(ready);
}

/* The port of that name in a slice; 0. */
static uint16_t port_in(const json_t *slice, const char *name)
{
    size_t i;
    json_t *port;
    json_array_foreach(json_object_get(slice, "ports"), i, port) {
        if (str_eq(json_text(port, "name"), name))
            return (uint16_t)json_integer_value(json_object_get(port, "port"));
    }
    return 0;
}

/* Where a port of the Service leads; how many. */
static size_t backends(struct services *s, const char *key, const char *port_name,
                       struct sockaddr_in to[FORWARD_BACKENDS])
{
    struct kube_objects found = {0};
    size_t n = 0;
    kube_informer_find(s->slices, index_by_service.name, key, &found);
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *slice = kube_object_json(found.p[i]);
        uint16_t port = port_in(slice, port_name);
        size_t k;
        json_t *endpoint;
        json_array_foreach(json_object_get(slice, "endpoints"), k, endpoint) {
            const char *ip =
                json_string_value(json_array_get(json_object_get(endpoint, "addresses"), 0));
            struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
            if (port && n < FORWARD_BACKENDS && is_ready(endpoint) && ip &&
                inet_pton(AF_INET, ip, &at.sin_addr) == 1)
                to[n++] = at;
        }
    }
    kube_objects_done(&found);
    return n;
}

static bool contains(const struct served *served, const struct sockaddr_in *at)
{
    vec_for_each(&served->from, it) {
        if (it->sin_port == at->sin_port && it->sin_addr.s_addr == at->sin_addr.s_addr)
            return true;
    }
    return false;
}

/* Listens at one port; -1 when somebody else does, or nobody can. */
static int serve_port(struct services *s, const char *key, const json_t *service,
                      const json_t *port, struct served *now, struct err *e)
{
    struct sockaddr_in to[FORWARD_BACKENDS], from = {.sin_family = AF_INET};
    const char *protocol = json_str(port, "protocol"), *name = json_str(port, "name");
    if (protocol && !str_eq(protocol, "TCP"))
        return 0;
    from.sin_port = htons((uint16_t)json_integer_value(json_object_get(port, "port")));
    inet_pton(AF_INET, json_str(json_object_get(service, "spec"), "clusterIP"), &from.sin_addr);
    size_t n = backends(s, key, name ? name : "", to);
    if (node_forward_set(s->forward, &from, to, n, e) < 0)
        return -1;
    if (n)
        vec_push(&now->from, from);
    return 0;
}

/* What is not listened to any more. */
static void leave(struct services *s, const struct served *before, const struct served *now)
{
    vec_for_each(&before->from, it) {
        if (!contains(now, it))
            node_forward_set(s->forward, it, NULL, 0, NULL);
    }
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct services *s = context;
    _cleanup_free_ char *key = mem_printf("%s/%s", ns, name);
    json_auto_t *service = kube_informer_json(s->services, ns, name, NULL);
    struct served *now = NEW(struct served), *before;
    size_t i;
    json_t *port;
    if (service && is_served(service)) {
        json_array_foreach(json_at(service, "spec", "ports"), i, port) {
            if (serve_port(s, key, service, port, now, e) == 0)
                continue;
            if (e->code != ERR_ALREADY_EXISTS)
                log_warn("an address cannot be served", LOG_S("service", key), LOG_ERR(e));
            ret->again_ns = AGAIN_NS;
        }
    }
    before = now->from.len ? map_set(&s->served, key, now) : map_remove(&s->served, key);
    if (before) {
        leave(s, before, now);
        vec_done(&before->from);
        free(before);
    }
    if (!now->from.len) {
        vec_done(&now->from);
        free(now);
    }
    return 0;
}

static void map_slice(struct kube_controller *c, const struct kube_object *slice, void *context)
{
    (void)context;
    json_auto_t *object = kube_object_json(slice);
    const char *name = kube_label(object, "kubernetes.io/service-name");
    if (name)
        kube_controller_add(c, slice->ns, name);
}

static void services_free(void *context)
{
    struct services *s = context;
    node_forward_free(s->forward);
    map_for_each(&s->served, it) {
        struct served *served = it->value;
        vec_done(&served->from);
        free(served);
    }
    map_done(&s->served);
    free(s);
}

int node_services_setup(struct kube_manager *m, struct err *e)
{
    struct services *s = NEW(struct services);
    kube_manager_on_stop(m, services_free, s);
    if (node_forward_new(&s->forward, e) < 0)
        return -1;
    s->services = kube_manager_informer(m, kube_resource("v1", "Service"), NULL, NULL, NULL);
    s->slices = kube_manager_informer(m, kube_resource("discovery.k8s.io/v1", "EndpointSlice"),
                                      NULL, NULL, NULL);
    kube_informer_add_index(s->slices, &index_by_service);
    struct kube_controller_options o = {.name = "services", .reconcile = reconcile, .context = s};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = s->services});
    kube_controller_watch(c, (struct kube_source){.informer = s->slices, .map = map_slice});
    return 0;
}
