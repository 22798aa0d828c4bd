/*
 * BlockDeviceClaims get their devices.
 *
 *     1  choose: every node comes to the same device, and its node goes on
 *     2  look at the device itself: is it free?
 *     3  BlockDevice: claimRef, finalizer               decides: the write carries the version read
 *     4  its status: Claimed                            what has a claimRef is not free, whatever that says
 *     5  a label, on a device without identity
 *     6  claim: blockDeviceName, finalizer              decides between nodes
 *     7  its status: Bound                              told only now
 *
 * Whoever is killed in between finds a device with this claim's uid and goes on at 4. Two nodes that
 * chose differently both get to 6, where the version of the claim decides; the other device is then
 * given back (devices.c).
 */
#include "base/log.h"
#include "base/str.h"
#include "kinds/blockdevice.h"
#include "node/claim_match.h"
#include "node/impl.h"
#include "node/label.h"

static const int64_t AGAIN_NS = 5 * CLOCK_SECOND;

static void add_finalizer(json_t *object, const char *finalizer)
{
    if (!kube_finalizer_has(object, finalizer))
        json_array_append_new(json_array_at(json_object_get(object, "metadata"), "finalizers"),
                              json_string(finalizer));
}

/* The phase, and why, in the status of a claim of the caller's own. */
static void set_phase(struct node *n, json_t *claim, const char *phase, const char *reason,
                      const char *message)
{
    json_t *status = json_object_at(claim, "status");
    json_object_set_new(status, "phase", json_string(phase));
    struct kube_condition c = {.type = "Bound",
                               .status = str_eq(phase, "Bound") ? "True" : "False",
                               .reason = reason,
                               .message = message,
                               .generation = kube_generation(claim)};
    kube_condition_set(json_array_at(status, "conditions"), &c, n->clock);
}

static int say(struct node *n, json_t **claim, const char *phase, const struct node_match *match,
               struct err *e)
{
    json_auto_t *wanted = json_deep_copy(*claim);
    set_phase(n, wanted, phase, match->reason, match->message);
    bool news = !str_eq(phase, block_device_claim_of(*claim).status.phase);
    if (node_say(n, &n->claim_kind, claim, json_object_get(wanted, "status"), e) < 0)
        return -1;
    if (news)
        kube_event_warning(n->recorder, *claim, match->reason, "%s", match->message);
    return 0;
}

/* 4 */
static int say_claimed(struct node *n, const json_t *claim, json_t **device, struct err *e)
{
    json_auto_t *wanted = json_deep_copy(*device);
    json_t *status = json_object_at(wanted, "status");
    json_object_set_new(status, "claimState", json_string("Claimed"));
    _cleanup_free_ char *message = mem_printf("the claim %s has it", kube_name(claim));
    struct kube_condition taken = {
        .type = NODE_CLAIMABLE, .status = "False", .reason = "Claimed", .message = message};
    kube_condition_set(json_array_at(status, "conditions"), &taken, n->clock);
    return node_say(n, &n->device_kind, device, status, e);
}

/* 6 and 7 */
static int give(struct node *n, json_t **claim, const char *device, const char *message,
                struct err *e)
{
    json_auto_t *wanted = json_deep_copy(*claim);
    json_object_set_new(json_object_at(wanted, "spec"), "blockDeviceName", json_string(device));
    add_finalizer(wanted, API_CLAIM_FINALIZER);
    if (node_write(n, &n->claim_kind, claim, wanted, e) < 0)
        return -1;
    json_auto_t *bound = json_deep_copy(*claim);
    set_phase(n, bound, "Bound", "Bound", message);
    return node_say(n, &n->claim_kind, claim, json_object_get(bound, "status"), e);
}

/* 4 to 7 */
static int finish(struct node *n, json_t **claim, json_t **device, struct err *e)
{
    if (say_claimed(n, *claim, device, e) < 0)
        return -1;
    const char *name = kube_name(*device);
    const struct node_device *d = node_inventory_hold(&n->inventory, name);
    _cleanup_free_ char *path = d && d->scheme == NODE_BY_PATH ? mem_strdup(d->path) : NULL;
    bool here = d != NULL || node_device_is_manual(*device);
    node_inventory_release(&n->inventory);
    if (!here)
        return err_set(e, ERR_UNAVAILABLE, "Inactive", "the device %s is gone", name);
    /* Looked at once more, for it may be long since it was reserved: this writes on it. */
    _cleanup_free_ char *found = NULL;
    if (path && (node_inventory_check(&n->inventory, name, NODE_CHECK_FREE, &found, e) < 0 ||
                 node_label_write(found, name, e) < 0))
        return -1;
    if (path && node_inventory_refresh(&n->inventory, e) < 0)
        return -1;
    _cleanup_free_ char *message =
        mem_printf("%s of node %s", block_device_of(*device).spec.path, n->name.node);
    if (give(n, claim, name, message, e) < 0)
        return -1;
    kube_event_normal(n->recorder, *claim, "Bound", "%s", message);
    log_info("a device was claimed", LOG_S("device", name), LOG_S("claim", kube_name(*claim)));
    if (path)
        kube_controller_add(n->device_controller, n->name.ns, name);
    return 0;
}

/* 3 */
static int reserve(struct node *n, const json_t *claim, json_t **device, struct err *e)
{
    json_auto_t *wanted = json_deep_copy(*device);
    json_t *spec = json_object_at(wanted, "spec");
    json_object_set_new(spec, "claimRef",
                        json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion",
                                  n->claim_kind.api_version, "kind", n->claim_kind.kind,
                                  "namespace", kube_namespace(claim), "name", kube_name(claim),
                                  "uid", kube_uid(claim)));
    add_finalizer(wanted, API_DEVICE_FINALIZER);
    return node_write(n, &n->device_kind, device, wanted, e);
}

/* 2 */
static int look_at(struct node *n, const json_t *device, struct err *e)
{
    const char *path = block_device_of(device).spec.path;
    if (node_device_is_manual(device))
        return *path ? node_inventory_check_path(path, e) : 0;
    _cleanup_free_ char *found = NULL;
    return node_inventory_check(&n->inventory, kube_name(device), NODE_CHECK_FREE, &found, e);
}

/* 1 */
static int bind_claim(struct node *n, json_t **claim, const struct node_objects *all,
                      struct kube_result *ret, struct err *e)
{
    struct node_match match;
    const json_t *const *devices = (const json_t *const *)all->p;
    node_claim_match(*claim, devices, all->len, &match);
    if (!match.device) {
        const char *keeper = node_claim_keeper(*claim, devices, all->len);
        if (keeper && !str_eq(keeper, n->name.node))
            return 0;
        bool invalid = str_eq(match.reason, "InvalidCapacityRequest");
        return say(n, claim, invalid ? "Invalid Capacity Request" : "Pending", &match, e);
    }
    if (!str_eq(block_device_of(match.device).spec.node_name, n->name.node))
        return 0;
    json_auto_t *device = json_deep_copy(match.device);
    struct err why = {0};
    if (look_at(n, device, &why) < 0) {
        /* The BlockDevice does not know yet; when it does, another is chosen. */
        log_info("a device cannot be claimed", LOG_S("device", kube_name(device)), LOG_ERR(&why));
        kube_controller_add(n->device_controller, n->name.ns, kube_name(device));
        ret->again_ns = AGAIN_NS;
        return 0;
    }
    return reserve(n, *claim, &device, e) < 0 ? -1 : finish(n, claim, &device, e);
}

/* Without our finalizer it can go: its device has been released, or it never had one. */
static int let_go(struct node *n, json_t **claim, const struct node_objects *all, struct err *e)
{
    if (!kube_finalizer_has(*claim, API_CLAIM_FINALIZER))
        return 0;
    vec_for_each(all, it) {
        const struct block_device device = block_device_of(*it);
        if (!node_device_is_claimed_by(*it, kube_uid(*claim)) ||
            !str_eq(device.status.claim_state, "Claimed"))
            continue;
        if (str_eq(device.spec.node_name, n->name.node))
            kube_controller_add(n->device_controller, n->name.ns, kube_name(*it));
        return 0;
    }
    const char *keeper = node_claim_keeper(*claim, (const json_t *const *)all->p, all->len);
    if (keeper && !str_eq(keeper, n->name.node))
        return 0;
    return kube_finalizer_remove(n->client, &n->claim_kind, claim, API_CLAIM_FINALIZER, e);
}

static int step(struct node *n, const char *ns, const char *name, struct kube_result *ret,
                struct err *e)
{
    json_auto_t *claim = kube_informer_json(n->claims, ns, name, NULL);
    if (!claim)
        return 0; /* devices.c sees to its device */
    _cleanup_(node_objects_done) struct node_objects all = {0};
    node_devices_all(n, &all);
    if (kube_deleting(claim))
        return let_go(n, &claim, &all, e);
    if (block_device_claim_is_bound(claim))
        return 0;
    const char *given = block_device_claim_of(claim).spec.device;
    vec_for_each(&all, it) {
        if (node_device_is_claimed_by(*it, kube_uid(claim)) &&
            (!*given || str_eq(given, kube_name(*it))))
            return str_eq(block_device_of(*it).spec.node_name, n->name.node)
                       ? finish(n, &claim, it, e)
                       : 0;
    }
    return bind_claim(n, &claim, &all, ret, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct node *n = context;
    if (!node_inventory_known(&n->inventory))
        return 0; /* the first scan calls for all of them */
    struct err why = {0};
    if (step(n, ns, name, ret, &why) == 0 || why.code == ERR_NOT_FOUND)
        return 0; /* the second: it went meanwhile, which the informer will say */
    *e = why;
    return -1;
}

/* Those that wait, when a device has changed; and the one that has it. */
static void unbound(const json_t *claim, struct kube_index_values *out)
{
    if (!block_device_claim_is_bound(claim) || kube_deleting(claim))
        kube_index_add(out, "unbound");
}

void node_claims_again(struct node *n)
{
    _cleanup_(kube_objects_done) struct kube_objects waiting = {0};
    kube_informer_find(n->claims, "unbound", "unbound", &waiting);
    for (size_t i = 0; i < waiting.len; i++)
        kube_controller_add(n->claim_controller, waiting.p[i]->ns, waiting.p[i]->name);
}

static void map_device(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)c;
    (void)object;
    node_claims_again(context);
}

int node_claims_setup(struct node *n, struct err *e)
{
    static const struct kube_index index = {"unbound", unbound};
    if (kube_informer_add_index(n->claims, &index) < 0)
        return err_set(e, ERR_INTERNAL, "Index", "claims cannot be indexed");
    n->claim_controller = kube_manager_controller(
        n->manager,
        &(struct kube_controller_options){
            .name = "blockdeviceclaim", .reconcile = reconcile, .context = n},
        e);
    if (!n->claim_controller)
        return -1;
    kube_controller_watch(n->claim_controller, (struct kube_source){.informer = n->claims});
    kube_controller_watch(
        n->claim_controller,
        (struct kube_source){.informer = n->devices, .map = map_device, .context = n});
    return 0;
}
