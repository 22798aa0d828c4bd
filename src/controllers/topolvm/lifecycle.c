/*
 * topolvm-controller: LogicalVolumes whose node does not come back.
 *
 * Only a node removes a volume, and its finalizer goes with it. A volume that is to go and whose node
 * is silent or gone waits, and says so once; nobody asks again and again. It waits until the node is
 * back, or until somebody who knows better says `orlop node forget`: that writes who said so, and when,
 * on each volume (TOPOLVM_FORGOTTEN), and then the finalizer is taken off here when the volume is
 * deleted. A node that is back after all does what it always does, unless it was forgotten by force.
 */
#include "controllers/controllers.h"
#include "controllers/topolvm/capacity.h"
#include "kube/condition.h"
#include "kube/groups.h"

struct lifecycle {
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_groups lvs;
    struct kube_informer *nodes;
};

static const char *node_of(const json_t *lv)
{
    return logical_volume_of(lv).spec.node_name;
}

static bool is_held(const json_t *lv)
{
    return kube_finalizer_has(lv, TOPOLVM_GROUP "/logicalvolume") ||
           kube_finalizer_has(lv, TOPOLVM_LEGACY "/logicalvolume");
}

static int let_go(struct lifecycle *l, json_t **lv, const json_t *forgotten, struct err *e)
{
    const char *by = json_str(forgotten, "by"), *at = json_str(forgotten, "at");
    const struct kube_resource *r = kube_groups_of(&l->lvs, *lv);
    if (kube_finalizer_remove(l->client, r, lv, TOPOLVM_GROUP "/logicalvolume", e) < 0 ||
        kube_finalizer_remove(l->client, r, lv, TOPOLVM_LEGACY "/logicalvolume", e) < 0)
        return -1;
    kube_event_warning(
        l->recorder, *lv, "NodeForgotten",
        "Nobody waits for node %s any more: it was forgotten by %s at %s. What it has "
        "of the volume is still there",
        node_of(*lv), by ? by : "somebody", at ? at : "some time");
    return 0;
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct lifecycle *l = context;
    (void)ns;
    (void)ret;
    json_t *lv = kube_groups_json(&l->lvs, NULL, name);
    int status = 0;
    if (lv && kube_deleting(lv) && is_held(lv)) {
        json_auto_t *node = kube_informer_json(l->nodes, NULL, node_of(lv), NULL);
        const char *text = kube_annotation(lv, TOPOLVM_FORGOTTEN);
        json_auto_t *forgotten = text ? json_parse(text, strlen(text), NULL, NULL) : NULL;
        bool lives = node && kube_condition_is_true(node, "Ready");
        if (forgotten && (!lives || json_is_true(json_object_get(forgotten, "force"))))
            status = let_go(l, &lv, forgotten, e);
        else if (!lives)
            kube_event_warning(
                l->recorder, lv, "NodeUnavailable",
                "To be removed, it waits for node %s, which is %s; if it will not be "
                "back, run: orlop node forget %s",
                node_of(lv), node ? "not ready" : "gone", node_of(lv));
    }
    json_decref(lv);
    return status;
}

static void node_values(const json_t *lv, struct kube_index_values *out)
{
    if (kube_deleting(lv))
        kube_index_add(out, node_of(lv));
}

static void map_node(struct kube_controller *c, const struct kube_object *node, void *context)
{
    struct lifecycle *l = context;
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_groups_find(&l->lvs, "going", node->name, &found);
    for (size_t i = 0; i < found.len; i++)
        kube_controller_add(c, NULL, found.p[i]->name);
}

static bool readiness_changed(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *after = now ? kube_object_json(now) : NULL;
    return !before != !after ||
           kube_condition_is_true(before, "Ready") != kube_condition_is_true(after, "Ready");
}

static bool concerns(const struct kube_object *old, const struct kube_object *now)
{
    (void)old;
    return now && now->deleting;
}

int controllers_topolvm(struct kube_manager *m, struct err *e)
{
    static const struct kube_index going = {"going", node_values};
    struct lifecycle *l = NEW(struct lifecycle);
    kube_manager_on_stop(m, free, l);
    l->client = kube_manager_client(m);
    l->recorder = kube_manager_recorder(m);
    kube_groups_init(&l->lvs, m, TOPOLVM_LEGACY "/v1", TOPOLVM_GROUP "/v1", "LogicalVolume");
    l->nodes = kube_manager_informer(m, kube_resource("v1", "Node"), NULL, NULL, NULL);
    kube_groups_add_index(&l->lvs, &going);
    const struct kube_controller_options o = {
        .name = "topolvm-controller", .reconcile = reconcile, .context = l};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_groups_watch(&l->lvs, c, (struct kube_source){.predicate = concerns});
    kube_controller_watch(c, (struct kube_source){.informer = l->nodes,
                                                  .predicate = readiness_changed,
                                                  .map = map_node,
                                                  .context = l});
    return 0;
}
