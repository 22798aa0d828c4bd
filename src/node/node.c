/*
 * Setting the agent up, and the write that all its parts use.
 */
#include "node/node.h"

#include <stdlib.h>

#include "base/crash.h"
#include "base/str.h"
#include "json/patch.h"
#include "node/impl.h"
#include "node/lv_impl.h"

int node_say(struct node *n, const struct kube_resource *r, json_t **object, const json_t *status,
             struct err *e)
{
    if (!status || json_equal(json_object_get(*object, "status"), status))
        return 0;
    crash_point("status");
    int done = kube_status_write(n->client, r, object, status, e);
    crash_point("status");
    return done;
}

int node_write(struct node *n, const struct kube_resource *r, json_t **object, const json_t *wanted,
               struct err *e)
{
    json_auto_t *diff = json_merge_diff(*object, wanted);
    json_object_del(diff, "status");
    if (!json_object_size(diff))
        return node_say(n, r, object, json_object_get(wanted, "status"), e);
    json_t *metadata = json_object_at(diff, "metadata");
    json_object_set_new(metadata, "resourceVersion", json_string(kube_version(*object)));
    const char *ns = kube_namespace(*object);
    crash_point("object");
    json_t *now = kube_patch(n->client, r, *ns ? ns : NULL, kube_name(*object), KUBE_MERGE_PATCH,
                             diff, NULL, e);
    crash_point("object");
    if (!now)
        return -1;
    json_decref(*object);
    *object = now;
    return node_say(n, r, object, json_object_get(wanted, "status"), e);
}

int node_labels_parse(char *text, struct node_options *o, struct err *e)
{
    char *save = NULL;
    for (char *pair = strtok_r(text, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(pair, '=');
        if (!equals || equals == pair)
            return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write KEY=VALUE,..., not \"%s\"",
                           pair);
        *equals = '\0';
        vec_push(&o->labels, (struct node_label_pair){pair, equals + 1});
    }
    return 0;
}

static void node_free(void *context)
{
    struct node *n = context;
    node_uevents_stop(n);
    node_inventory_done(&n->inventory);
    vec_done(&n->options.labels);
    json_decref(n->lease);
    free(n->sparse_folder);
    free(n->host);
    free(n);
}

int node_setup(struct kube_manager *m, struct node_options *o, struct err *e)
{
    struct node *n = NEW(struct node);
    n->uevents = n->stop_fd = -1;
    n->manager = m;
    n->client = kube_manager_client(m);
    n->recorder = kube_manager_recorder(m);
    n->clock = kube_manager_clock(m);
    n->ages = kube_manager_ages(m);
    n->options = *o;
    if (!n->options.places)
        n->options.places = &node_places_machine;
    if (!n->options.address)
        n->options.address = "127.0.0.1";
    if (n->options.rescan_ns <= 0)
        n->options.rescan_ns = 60 * CLOCK_SECOND;
    if (n->options.lease_ns <= 0)
        n->options.lease_ns = 40 * CLOCK_SECOND;
    o->labels.p = NULL; /* ours now, as the filter is */
    o->labels.len = o->labels.cap = 0;
    n->inventory.filter = o->filter;
    o->filter = (struct node_filter){0};
    node_inventory_init(&n->inventory);
    kube_manager_on_stop(m, node_free, n);
    n->name = (struct node_name){.ns = o->ns, .node = o->name, .host = o->name};
    n->sparse_folder = mem_printf("%s/sparse", o->data_dir);
    n->device_kind = kube_resource("openebs.io/v1alpha1", "BlockDevice");
    n->claim_kind = kube_resource("openebs.io/v1alpha1", "BlockDeviceClaim");
    n->node_kind = kube_resource("v1", "Node");
    n->lease_kind = kube_resource("coordination.k8s.io/v1", "Lease");
    _cleanup_free_ char *fields = mem_printf("metadata.name=%s", o->name);
    n->nodes = kube_manager_informer(m, n->node_kind, NULL, NULL, fields);
    n->devices = kube_manager_informer(m, n->device_kind, o->ns, NULL, NULL);
    n->claims = kube_manager_informer(m, n->claim_kind, o->ns, NULL, NULL);
    if (node_heartbeat_setup(n, e) < 0 || node_devices_setup(n, e) < 0 ||
        node_claims_setup(n, e) < 0 || node_lvs_setup(n, e) < 0)
        return -1;
    return node_uevents_start(n, e);
}
