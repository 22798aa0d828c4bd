/*
 * blockdevice-lifecycle: what is known of the devices of a node whose agent is silent, which is
 * nothing. A BlockDevice says Active or Inactive only while its node is Ready; otherwise its state is
 * Unknown, and nobody is given it. The agent says Active again as soon as it is back.
 */
#include "base/str.h"
#include "controllers/controllers.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"

struct devicelife {
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource devices_r;
    struct kube_informer *devices, *nodes;
};

static void by_node(const json_t *device, struct kube_index_values *out)
{
    kube_index_add(out, block_device_of(device).spec.node_name);
}

static const struct kube_index index_by_node = {"node", by_node};

/* Why nothing is known of the node's devices; NULL when something is. */
static const char *why_unknown(struct devicelife *d, const char *node)
{
    json_auto_t *object = kube_informer_json(d->nodes, NULL, node, NULL);
    if (!object)
        return "there is no such node";
    /* Its agent has registered it and not yet said more, or says that something is wrong: it lives. */
    return str_eq(json_text(kube_condition_get(object, "Ready"), "status"), "Unknown")
               ? "its node is silent"
               : NULL;
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct devicelife *d = context;
    (void)ret;
    json_t *device = kube_informer_json(d->devices, ns, name, NULL);
    const struct block_device its = block_device_of(device);
    const char *why = *its.spec.node_name ? why_unknown(d, its.spec.node_name) : NULL;
    int status = 0;
    if (why && !str_eq(its.status.state, "Unknown")) {
        json_auto_t *wanted = kube_status_copy(device);
        json_object_set_new(wanted, "state", json_string("Unknown"));
        status = kube_status_write(d->client, &d->devices_r, &device, wanted, e);
        if (status == 0)
            kube_event_warning(d->recorder, device, "DeviceUnknown",
                               "Nothing is known of the device any more: %s", why);
    }
    json_decref(device);
    return status;
}

/* All devices of a node that changed. */
static void map_node(struct kube_controller *c, const struct kube_object *node, void *context)
{
    struct devicelife *d = context;
    struct kube_objects found = {0};
    kube_informer_find(d->devices, index_by_node.name, node->name, &found);
    for (size_t i = 0; i < found.len; i++)
        kube_controller_add(c, found.p[i]->ns, found.p[i]->name);
    kube_objects_done(&found);
}

int controllers_device_lifecycle(struct kube_manager *m, struct err *e)
{
    struct devicelife *d = NEW(struct devicelife);
    kube_manager_on_stop(m, free, d);
    d->client = kube_manager_client(m);
    d->recorder = kube_manager_recorder(m);
    d->devices_r = kube_resource("openebs.io/v1alpha1", "BlockDevice");
    d->devices = kube_manager_informer(m, d->devices_r, NULL, NULL, NULL);
    d->nodes = kube_manager_informer(m, kube_resource("v1", "Node"), NULL, NULL, NULL);
    kube_informer_add_index(d->devices, &index_by_node);
    struct kube_controller_options o = {
        .name = "blockdevice-lifecycle", .reconcile = reconcile, .context = d};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = d->devices});
    kube_controller_watch(
        c, (struct kube_source){.informer = d->nodes, .map = map_node, .context = d});
    return 0;
}
