/*
 * BlockDevices follow devices: a scan fills the inventory, and each BlockDevice of this node is made
 * to say what the inventory knows.
 *
 *              claims.c                     the claim is deleted       wiped
 *     Unclaimed --------> Claimed ---------------------> Released ------------> Unclaimed
 *         ^                  |  the claim took another device
 *         '------------------'
 *
 * An object is never deleted here: a device that is gone is Inactive, and its claim, if it has one, is
 * told so by that.
 */
#include "base/crash.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "kinds/blockdevice.h"
#include "metrics/metrics.h"
#include "node/claim_match.h"
#include "node/impl.h"
#include "node/label.h"
#include "node/wipe.h"

static const int64_t BUSY_NS = 30 * CLOCK_SECOND, SILENT_NS = 300 * CLOCK_SECOND;

void node_devices_all(struct node *n, struct node_objects *ret)
{
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(n->devices, n->name.ns, &all);
    for (size_t i = 0; i < all.len; i++)
        vec_push(ret, kube_object_json(all.p[i]));
}

void node_objects_done(struct node_objects *l)
{
    vec_for_each(l, it)
        json_decref(*it);
    vec_done(l);
}

/* Claims */

/* The claim that the device is given to; NULL when it is gone, or another of its name. */
static int claim_of(struct node *n, const json_t *object, json_t **ret_claim, struct err *e)
{
    const struct api_reference ref = block_device_of(object).spec.claim;
    *ret_claim = NULL;
    json_t *claim = kube_informer_json(n->claims, ref.ns, ref.name, NULL);
    if (!claim || !str_eq(kube_uid(claim), ref.uid)) {
        /* The cache may be late, and what follows from the answer is a wipe. */
        json_decref(claim);
        struct err why = {0};
        claim = kube_get(n->client, &n->claim_kind, *ref.ns ? ref.ns : n->name.ns, ref.name, &why);
        if (!claim && why.code != ERR_NOT_FOUND) {
            if (e)
                *e = why;
            return -1;
        }
    }
    if (claim && !str_eq(kube_uid(claim), ref.uid)) {
        json_decref(claim);
        claim = NULL;
    }
    *ret_claim = claim;
    return 0;
}

/* Others may still use the device while they hold the claim back. */
static bool is_over(const json_t *claim)
{
    const json_t *finalizers = json_at(claim, "metadata", "finalizers");
    return kube_deleting(claim) &&
           (json_array_size(finalizers) == 0 ||
            (json_array_size(finalizers) == 1 && kube_finalizer_has(claim, API_CLAIM_FINALIZER)));
}

static int set_claim_state(struct node *n, json_t **object, const char *state, struct err *e)
{
    json_auto_t *status = kube_status_copy(*object);
    json_object_set_new(status, "claimState", json_string(state));
    return node_say(n, &n->device_kind, object, status, e);
}

/*
 * The device is free again, or was reserved and not given: nobody has it any more. claimRef goes last: while it
 * is there nobody is given the device, and whoever finds it does all of this again.
 */
static int unclaim(struct node *n, json_t **object, struct err *e)
{
    if (set_claim_state(n, object, "Unclaimed", e) < 0)
        return -1;
    json_auto_t *wanted = json_deep_copy(*object);
    json_t *finalizers = json_object_get(json_object_get(wanted, "metadata"), "finalizers");
    size_t i;
    json_t *it;
    json_array_foreach(finalizers, i, it) {
        if (str_eq(json_string_value(it), API_DEVICE_FINALIZER))
            json_array_remove(finalizers, i--);
    }
    json_object_del(json_object_get(json_object_get(wanted, "metadata"), "annotations"),
                    API_POOL_FORGOTTEN);
    json_object_del(json_object_get(wanted, "spec"), "claimRef");
    return node_write(n, &n->device_kind, object, wanted, e);
}

static int set_released(struct node *n, json_t **object, struct err *e)
{
    if (set_claim_state(n, object, "Released", e) < 0)
        return -1;
    kube_event_normal(n->recorder, *object, "Released", "the claim %s is gone",
                      block_device_of(*object).spec.claim.name);
    return 0;
}

/*
 * The cache may be late, and a wipe cannot be taken back: what the server says now counts. Nobody but
 * this worker makes a released device Unclaimed, so it stays as it is until we are done.
 */
static int confirm_released(struct node *n, json_t **object, struct err *e)
{
    json_t *now = kube_get(n->client, &n->device_kind, n->name.ns, kube_name(*object), e);
    if (!now)
        return -1;
    bool same = str_eq(kube_uid(now), kube_uid(*object)) &&
                str_eq(block_device_of(now).status.claim_state, "Released") &&
                node_device_is_claimed_by(now, block_device_of(*object).spec.claim.uid);
    json_decref(*object);
    *object = now;
    return same ? 0 : err_set(e, ERR_ABORTED, "Conflict", "it is not released any more");
}

/* Its pool was forgotten, not deleted: what is on it stays, and says whose it is. */
static int keep_data(struct node *n, json_t **object, struct err *e)
{
    if (unclaim(n, object, e) < 0)
        return -1;
    kube_event_normal(
        n->recorder, *object, "Kept",
        "its pool was forgotten while this node was away; what is on it was not wiped");
    return 0;
}

/* Makes a device that was released empty. Somebody who still uses it is waited for. */
static int clean(struct node *n, json_t **object, struct kube_result *ret, struct err *e)
{
    _cleanup_free_ char *path = NULL;
    struct err why = {0};
    if (node_device_is_manual(*object))
        return unclaim(n, object, e);
    if (confirm_released(n, object, e) < 0)
        return -1;
    if (kube_annotation(*object, API_POOL_FORGOTTEN))
        return keep_data(n, object, e);
    int status =
        node_inventory_check(&n->inventory, kube_name(*object), NODE_CHECK_UNUSED, &path, &why);
    if (status == 0)
        status = node_wipe_with(n->options.program, path, &why);
    if (status == 0 && node_object_is_labelled(*object)) /* whoever had it may have lost it */
        status = node_label_write(path, kube_name(*object), &why);
    if (status < 0) {
        kube_event_warning(n->recorder, *object, "CleanFailed", "%s", why.msg);
        log_warn("cannot clean a device", LOG_S("device", kube_name(*object)), LOG_ERR(&why));
        ret->again_ns = BUSY_NS;
        return 0;
    }
    if (node_inventory_refresh(&n->inventory, e) < 0 || unclaim(n, object, e) < 0)
        return -1;
    kube_event_normal(n->recorder, *object, "Cleaned", "%s is empty and can be claimed", path);
    return 0;
}

/* Released by other hands, without a word of who had it: that is no leave to wipe. */
static int adopt_released(struct node *n, json_t **object, struct kube_result *ret, struct err *e)
{
    _cleanup_free_ char *path = NULL;
    struct err why = {0};
    if (node_inventory_check(&n->inventory, kube_name(*object), NODE_CHECK_FREE, &path, &why) == 0)
        return unclaim(n, object, e);
    kube_event_warning(n->recorder, *object, "CleanFailed",
                       "it was released and no claim is named, so it is not wiped: %s", why.msg);
    ret->again_ns = BUSY_NS;
    return 0;
}

static int follow_claim(struct node *n, json_t **object, struct kube_result *ret, struct err *e)
{
    const bool released = str_eq(block_device_of(*object).status.claim_state, "Released");
    if (!node_device_has_claim(*object))
        return released ? adopt_released(n, object, ret, e) : 0;
    json_t *found;
    if (claim_of(n, *object, &found, e) < 0)
        return -1;
    json_auto_t *claim = found;
    if (!claim || is_over(claim)) {
        if (!released && set_released(n, object, e) < 0)
            return -1;
        return clean(n, object, ret, e);
    }
    const char *given = block_device_claim_of(claim).spec.device;
    if (*given && !str_eq(given, kube_name(*object)))
        return unclaim(n, object, e); /* it was never told of this one */
    return 0;
}

/* Objects */

/* Its status follows when the object is seen: until then it is not Active, and nobody is given it. */
static int create(struct node *n, const char *name, struct err *e)
{
    const struct node_device *d = node_inventory_hold(&n->inventory, name);
    json_auto_t *object = d ? node_object_new(d, &n->name, n->clock) : NULL;
    node_inventory_release(&n->inventory);
    if (!object)
        return 0;
    struct err why = {0};
    json_object_del(object, "status");
    crash_point("object");
    json_auto_t *made = kube_create(n->client, &n->device_kind, object, NULL, &why);
    crash_point("object");
    if (!made && why.code == ERR_ALREADY_EXISTS)
        return 0; /* the cache will say so, too */
    if (!made) {
        *e = why;
        return -1;
    }
    log_info("found a device", LOG_S("device", name),
             LOG_S("path", block_device_of(made).spec.path));
    return 0;
}

/* The device is not there: what is known of it stays. */
static int lost(struct node *n, json_t **object, struct err *e)
{
    if (!node_inventory_known(&n->inventory))
        return 0;
    bool was_active = !str_eq(block_device_of(*object).status.state, "Inactive");
    json_auto_t *wanted = node_object_gone(*object, n->clock);
    if (node_say(n, &n->device_kind, object, json_object_get(wanted, "status"), e) < 0)
        return -1;
    if (was_active)
        kube_event_warning(n->recorder, *object, "Inactive", "the device at %s is gone",
                           block_device_of(*object).spec.path);
    /* A claim does not wait for a device that may never come back; if it does, it is cleaned then. */
    json_t *claim = NULL;
    if (node_device_has_claim(*object) && claim_of(n, *object, &claim, e) < 0)
        return -1;
    bool held = claim && !is_over(claim);
    json_decref(claim);
    if (held)
        return 0;
    if (str_eq(block_device_of(*object).status.claim_state, "Claimed") &&
        set_released(n, object, e) < 0)
        return -1;
    /* Somebody wants to forget it. */
    return kube_deleting(*object)
               ? kube_finalizer_remove(n->client, &n->device_kind, object, API_DEVICE_FINALIZER, e)
               : 0;
}

/* Whether nothing was heard of a node for long enough, by our own watch: however wrong clocks may be. */
static bool is_silent(struct node *n, const char *node)
{
    struct err why = {0};
    json_auto_t *lease = kube_get(n->client, &n->lease_kind, "kube-node-lease", node, &why);
    struct timespec renewed;
    if (!lease)
        return why.code == ERR_NOT_FOUND;
    _cleanup_free_ char *key = mem_printf("lease %s", node);
    const char *text = json_str(json_object_get(lease, "spec"), "renewTime");
    return text && rfc3339_parse(text, &renewed, NULL) == 0 &&
           kube_ages_seen(n->ages, key, rfc3339_to_ns(renewed)) > SILENT_NS;
}

static bool is_here(const struct node *n, const json_t *device)
{
    return str_eq(block_device_of(device).spec.node_name, n->name.node);
}

/* Of another node that says the same of itself: a disk that was moved here, or one that both see. */
static bool may_take(struct node *n, const json_t *object)
{
    const struct block_device its = block_device_of(object);
    if (!*its.spec.node_name || str_eq(its.spec.node_name, n->name.node) ||
        !str_eq(its.status.state, "Active") || is_silent(n, its.spec.node_name))
        return true;
    kube_event_warning(n->recorder, object, "SeveralNodes",
                       "node %s has a device with the same identity; it is left alone there",
                       n->name.node);
    return false;
}

/* Made by hand: whoever did it says that it is there, and this node that it lives. */
static int keep_manual(struct node *n, json_t **object, struct kube_result *ret, struct err *e)
{
    json_auto_t *wanted = node_object_manual(*object);
    if (node_say(n, &n->device_kind, object, json_object_get(wanted, "status"), e) < 0)
        return -1;
    return follow_claim(n, object, ret, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct node *n = context;
    json_auto_t *object = kube_informer_json(n->devices, ns, name, NULL);
    if (!object)
        return create(n, name, e);
    if (node_device_is_manual(object))
        return is_here(n, object) ? keep_manual(n, &object, ret, e) : 0;
    const struct node_device *d = node_inventory_hold(&n->inventory, name);
    json_auto_t *wanted = d ? node_object_update(object, d, &n->name, n->clock) : NULL;
    node_inventory_release(&n->inventory);
    if (!wanted)
        return is_here(n, object) ? lost(n, &object, e) : 0;
    if (!may_take(n, object))
        return 0;
    if (node_write(n, &n->device_kind, &object, wanted, e) < 0)
        return -1;
    return follow_claim(n, &object, ret, e);
}

/* Scans */

static void enqueue_all(struct node *n)
{
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(n->devices, n->name.ns, &all);
    for (size_t i = 0; i < all.len; i++)
        kube_controller_add(n->device_controller, n->name.ns, all.p[i]->name);
    node_inventory_hold(&n->inventory, "");
    vec_for_each(&n->inventory.scan.devices, d)
        kube_controller_add(n->device_controller, n->name.ns, d->object);
    node_inventory_release(&n->inventory);
}

static int scan(void *context, const char *ns, const char *name, struct kube_result *ret,
                struct err *e)
{
    struct node *n = context;
    (void)ns;
    (void)name;
    ret->again_ns = n->options.rescan_ns;
    int status = n->options.sparse.count
                     ? node_sparse_make(n->sparse_folder, &n->options.sparse, e)
                     : 0; /* when that fails the others are looked at all the same */
    uint64_t missing = node_sparse_overcommitted(n->sparse_folder);
    if (missing && !n->warned)
        log_warn("sparse devices promise more than the disk has left",
                 LOG_S("folder", n->sparse_folder), LOG_U("missing", missing));
    n->warned = missing;
    bool first = !node_inventory_known(&n->inventory);
    if (node_inventory_refresh(&n->inventory, e) < 0)
        return -1;
    enqueue_all(n);
    if (first)
        node_claims_again(n);
    return status;
}

static bool is_labelled(void *context, const char *object)
{
    struct node *n = context;
    json_auto_t *found = kube_informer_json(n->devices, n->name.ns, object, NULL);
    return found && node_object_is_labelled(found);
}

/*
 * Proofs that a device without a label is one that had it: it is the disk that the last scan knew by its
 * label, for no two have the kernel's number; or it has the file system that was on that one.
 */
static const char *recall_device(void *context, const struct node_device *d, struct arena *a)
{
    struct node *n = context;
    const char *found = NULL;
    node_inventory_hold(&n->inventory, "");
    vec_for_each(&n->inventory.scan.devices, old) {
        if (old->scheme == NODE_BY_LABEL && *d->sequence && str_eq(old->sequence, d->sequence) &&
            str_eq(old->number, d->number))
            found = arena_strdup(a, old->object);
    }
    node_inventory_release(&n->inventory);
    _cleanup_(node_objects_done) struct node_objects all = {0};
    if (!found && d->probe.uuid[0])
        node_devices_all(n, &all);
    vec_for_each(&all, it) {
        const char *uuid = kube_annotation(*it, NODE_FSUUID_ANNOTATION);
        if (node_object_is_labelled(*it) && is_here(n, *it) && uuid && str_eq(uuid, d->probe.uuid))
            found = arena_strdup(a, kube_name(*it));
    }
    return found;
}

/* A claim that changed or is gone concerns its device. */
static void map_claim(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *claim = kube_object_json(object);
    const char *device = block_device_claim_of(claim).spec.device;
    if (*device)
        kube_controller_add(c, object->ns, device);
}

/* A scan is not about any object. */
static void map_nothing(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)c;
    (void)object;
    (void)context;
}

static void collect(void *context, struct metrics_out *out)
{
    static const char *const labels[] = {"blockdevicename", "path", "hostname", "nodename", NULL};
    static const char *const states[] = {"Active", "Inactive"};
    struct node *n = context;
    _cleanup_(node_objects_done) struct node_objects all = {0};
    node_devices_all(n, &all);
    metrics_out_family(out, "node_block_device_state",
                       "State of BlockDevice (0,1,2) = {Active, Inactive, Unknown}.",
                       METRICS_GAUGE);
    vec_for_each(&all, it) {
        const struct block_device its = block_device_of(*it);
        const char *host = kube_label(*it, "kubernetes.io/hostname");
        if (!str_eq(its.spec.node_name, n->name.node))
            continue;
        int value = str_eq(its.status.state, states[0])   ? 0
                    : str_eq(its.status.state, states[1]) ? 1
                                                          : 2;
        metrics_out_value(
            out, labels,
            METRICS_VALUES(kube_name(*it), its.spec.path, host ? host : "", n->name.node), value);
    }
}

int node_devices_setup(struct node *n, struct err *e)
{
    n->inventory.options.places = n->options.places;
    n->inventory.options.node = n->name.node;
    n->inventory.options.sparse = n->sparse_folder;
    n->inventory.options.labelled = is_labelled;
    n->inventory.options.remember = recall_device;
    n->inventory.options.context = n;
    n->inventory.options.sparse_only = !n->options.discover;
    n->inventory.prober.program = n->options.program;
    n->device_controller =
        kube_manager_controller(n->manager,
                                &(struct kube_controller_options){
                                    .name = "blockdevice", .reconcile = reconcile, .context = n},
                                e);
    n->scan_controller = kube_manager_controller(
        n->manager,
        &(struct kube_controller_options){.name = "scan", .reconcile = scan, .context = n}, e);
    if (!n->device_controller || !n->scan_controller)
        return -1;
    kube_controller_watch(n->device_controller, (struct kube_source){.informer = n->devices});
    kube_controller_watch(n->device_controller,
                          (struct kube_source){.informer = n->claims, .map = map_claim});
    /* It begins when all objects are known, as names of devices without identity depend on them. */
    kube_controller_watch(n->scan_controller,
                          (struct kube_source){.informer = n->devices, .map = map_nothing});
    kube_controller_add(n->scan_controller, "", "scan");
    metrics_collect(kube_manager_metrics(n->manager), collect, n);
    return 0;
}
