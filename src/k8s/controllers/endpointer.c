/*
 * Endpoints and EndpointSlices of services, kept as the pods are.
 *
 * In an embedded cluster nothing forwards from the address of a service to its pods: on one machine
 * the program behind a service listens on that address itself. These objects are for those who
 * resolve addresses.
 */
#include "k8s/controllers/embedded.h"
#include "k8s/controllers/endpoints.h"
#include "k8s/controllers/pods.h"

struct endpointer {
    struct kube_client *client;
    struct kube_resource endpoints_r, slices_r;
    struct kube_informer *services, *pods, *endpoints, *slices;
};

/* The pods that a service selects, in the order of their names. */
static json_t *selected(struct endpointer *p, const json_t *service)
{
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    json_t *list = json_array();
    kube_informer_list(p->pods, kube_namespace(service), &all);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *pod = kube_object_json(all.p[i]);
        if (!endpoints_select(service, pod))
            continue;
        size_t at = json_array_size(list);
        while (at && strcmp(kube_name(json_array_get(list, at - 1)), kube_name(pod)) > 0)
            at--;
        json_array_insert(list, at, pod);
    }
    return list;
}

/* Whether everything that is wanted is there as it is wanted. */
static bool is_as(const json_t *is, const json_t *wanted)
{
    static const char *const skipped[] = {"apiVersion", "kind", "metadata", NULL};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)wanted, key, value) {
        const json_t *own = json_object_get(is, key);
        bool empty = json_is_array(value) && !json_array_size(value) && !own;
        if (!str_in(key, skipped) && !empty && !json_equal(own, value))
            return false;
    }
    return json_equal(json_at(is, "metadata", "labels"), json_at(wanted, "metadata", "labels")) ||
           (!json_object_size(json_at(wanted, "metadata", "labels")) &&
            !json_object_size(json_at(is, "metadata", "labels")));
}

/* Makes an object what it should be; `is` is what the cache has, or NULL. */
static int ensure(struct endpointer *p, const struct kube_resource *r, const json_t *is,
                  json_t *wanted, struct err *e)
{
    if (is && is_as(is, wanted))
        return 0;
    struct err why = {0};
    if (is) {
        json_t *metadata = json_object_get(wanted, "metadata");
        json_object_set_new(metadata, "resourceVersion", json_string(kube_version(is)));
        json_auto_t *now = kube_update(p->client, r, wanted, NULL, e);
        return now ? 0 : -1;
    }
    json_auto_t *made = kube_create(p->client, r, wanted, NULL, &why);
    if (made)
        return 0;
    if (why.code == ERR_ALREADY_EXISTS) /* the cache will have it in a moment */
        return err_set(e, ERR_ABORTED, "NotYetSeen", "%s is there already", kube_name(wanted));
    *e = why;
    return -1;
}

static int ensure_slices(struct endpointer *p, const json_t *service, const json_t *pods,
                         struct err *e)
{
    json_auto_t *wanted = endpoints_slices(service, pods), *names = json_object();
    _cleanup_(kube_objects_done) struct kube_objects own = {0};
    size_t i;
    json_t *slice;
    json_array_foreach(wanted, i, slice) {
        json_auto_t *is =
            kube_informer_json(p->slices, kube_namespace(service), kube_name(slice), NULL);
        json_object_set_new(names, kube_name(slice), json_true());
        if (ensure(p, &p->slices_r, is, slice, e) < 0)
            return -1;
    }
    kube_informer_find(p->slices, "owner", kube_uid(service), &own);
    for (i = 0; i < own.len; i++) {
        const struct kube_delete options = {.uid = own.p[i]->uid, .grace_seconds = -1};
        if (!json_object_get(names, own.p[i]->name) &&
            kube_delete(p->client, &p->slices_r, own.p[i]->ns, own.p[i]->name, &options, e) < 0)
            return -1;
    }
    return 0;
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct endpointer *p = context;
    (void)ret;
    json_auto_t *service = kube_informer_json(p->services, ns, name, NULL);
    if (!service || !endpoints_concern(service))
        return 0; /* what belonged to it goes with it */
    json_auto_t *pods = selected(p, service);
    json_auto_t *wanted = endpoints_object(service, pods);
    json_auto_t *is = kube_informer_json(p->endpoints, ns, name, NULL);
    if (ensure(p, &p->endpoints_r, is, wanted, e) < 0)
        return -1;
    return ensure_slices(p, service, pods, e);
}

/* The services that select a pod. */
static void map_pod(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct endpointer *p = context;
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    json_auto_t *pod = kube_object_json(object);
    kube_informer_list(p->services, object->ns, &all);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *service = kube_object_json(all.p[i]);
        if (endpoints_select(service, pod))
            kube_controller_add(c, all.p[i]->ns, all.p[i]->name);
    }
}

static void map_slice(struct kube_controller *c, const struct kube_object *slice, void *context)
{
    (void)context;
    kube_map_owner(c, slice, "Service");
}

int embedded_endpoints(struct kube_manager *m, struct err *e)
{
    struct endpointer *p = NEW(struct endpointer);
    kube_manager_on_stop(m, free, p);
    p->client = kube_manager_client(m);
    p->endpoints_r = kube_resource("v1", "Endpoints");
    p->slices_r = kube_resource("discovery.k8s.io/v1", "EndpointSlice");
    p->services = kube_manager_informer(m, kube_resource("v1", "Service"), NULL, NULL, NULL);
    p->pods = kube_manager_informer(m, kube_resource("v1", "Pod"), NULL, NULL, NULL);
    p->endpoints = kube_manager_informer(m, p->endpoints_r, NULL, NULL, NULL);
    p->slices = kube_manager_informer(m, p->slices_r, NULL, NULL, NULL);
    pods_add_owner_index(p->slices);
    const struct kube_controller_options o = {
        .name = "endpoints", .workers = 2, .reconcile = reconcile, .context = p};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = p->services});
    kube_controller_watch(c, (struct kube_source){.informer = p->endpoints});
    kube_controller_watch(c, (struct kube_source){.informer = p->slices, .map = map_slice});
    kube_controller_watch(c,
                          (struct kube_source){.informer = p->pods, .map = map_pod, .context = p});
    return 0;
}
