/*
 * A claim that asks for more (KEP-1790).
 *
 *     request > capacity of the PersistentVolume
 *        └─> ControllerResizeInProgress: allocatedResources is what is being asked for
 *               ├─ no room ────────────────> ControllerResizeInfeasible (OUT_OF_RANGE, with figures)
 *               └─ spec.size of the LogicalVolume, promised under the ledger's lock
 *                     ├─ node refuses ─────> ControllerResizeInfeasible, and the promise is withdrawn
 *                     ├─ node fails ───────> ControllerResizeError; it is asked again after a while
 *                     └─ currentSize says so ─> capacity of the PersistentVolume, then
 *                           Block ──────────> capacity of the claim
 *                           Filesystem ─────> NodeResizePending: the file system is the node's to grow
 *
 * While something is in progress its size stands, whatever is asked for meanwhile. What is infeasible
 * waits until less is asked for, or until its node has more room. A code of the LogicalVolume speaks of
 * the last time that the node was asked: so it is wiped before the node is asked again.
 */
#include "controllers/topolvm/growth.h"

/* The steps. */

static int begin(struct growth *g, struct err *e)
{
    const struct kube_condition resizing = {.type = "Resizing", .status = "True"};
    if (growth_write(g, GROWTH_IN_PROGRESS, g->wanted_text, NULL, &resizing, e) < 0)
        return -1;
    kube_event_normal(g->t->recorder, g->claim, "Resizing", "the volume %s is to grow to %s",
                      kube_name(g->volume), json_string_value(g->wanted_text));
    return 0;
}

/* The volume is large enough; the claim says so, or what is left to do. */
static int finish(struct growth *g, struct err *e)
{
    const json_t *has = json_at(g->volume, "spec", "capacity", GROWTH_STORAGE);
    const json_t *said = json_at(g->claim, "status", "capacity", GROWTH_STORAGE);
    const char *mode = json_str(json_object_get(g->volume, "spec"), "volumeMode");
    const char *progress = growth_progress(g->claim);
    bool controller = str_starts_with(progress, "Controller");
    bool smaller = api_quantity_int(said) < api_quantity_int(has);
    if (!smaller && !controller)
        return 0;
    if (!smaller || (mode && str_eq(mode, "Block"))) {
        if (growth_write(g, NULL, NULL, has, NULL, e) < 0)
            return -1;
        kube_event_normal(g->t->recorder, g->claim, "VolumeResizeSuccessful",
                          "Resize volume succeeded");
        return 0;
    }
    if (*progress && !controller)
        return 0; /* the node is at it */
    const struct kube_condition pending = {
        .type = "FileSystemResizePending",
        .status = "True",
        .message = "Waiting for user to (re-)start a pod to finish file system resize of volume on "
                   "node.",
    };
    if (growth_write(g, GROWTH_PENDING, NULL, NULL, &pending, e) < 0)
        return -1;
    kube_event_normal(g->t->recorder, g->claim, "FileSystemResizeRequired",
                      "Require file system resize of volume on node");
    return 0;
}

static int write_capacity(struct growth *g, struct err *e)
{
    json_auto_t *patch =
        json_pack("{s:{s:s},s:{s:{s:O}}}", "metadata", "resourceVersion", kube_version(g->volume),
                  "spec", "capacity", GROWTH_STORAGE, json_at(g->lv, "status", "currentSize"));
    json_t *now = kube_patch(g->t->client, &g->t->volumes_r, NULL, kube_name(g->volume),
                             KUBE_MERGE_PATCH, patch, NULL, e);
    if (!now)
        return -1;
    json_decref(g->volume);
    g->volume = now;
    return 0;
}

/* It was asked for and is not there yet. */
static int wait_for_node(struct growth *g, struct err *e)
{
    enum err_code code = (enum err_code)g->v.status.code;
    if (!code)
        return 0;
    if (code == ERR_INVALID_ARGUMENT || code == ERR_NOT_FOUND || code == ERR_OUT_OF_RANGE)
        return growth_withdraw(g, code, e);
    if (growth_failed(g, GROWTH_IN_PROGRESS, code, g->v.status.message, e) < 0)
        return -1;
    return topolvm_ledger_retry(g->t->ledger, g->lv, &g->result->again_ns, e);
}

static int ask_node(struct growth *g, struct err *e)
{
    _cleanup_(str_done) struct str why = {0};
    topolvm_ledger_lock(g->t->ledger);
    int asked = growth_promise(g, &why, e);
    topolvm_ledger_unlock(g->t->ledger);
    return asked ? (asked > 0 ? 0 : -1)
                 : growth_failed(g, GROWTH_INFEASIBLE, ERR_OUT_OF_RANGE, str_get(&why), e);
}

/* Whether something that had no room could have it now. */
static bool has_room_now(struct growth *g)
{
    const char *reason = json_str(kube_condition_get(g->claim, "ControllerResizeError"), "reason");
    const char *name = g->v.spec.node_name;
    json_auto_t *node = kube_informer_json(g->t->ledger->nodes, NULL, name, NULL);
    int64_t room = 0;
    if (!node || !reason || !str_eq(reason, "OutOfRange"))
        return false;
    topolvm_ledger_lock(g->t->ledger);
    bool known = topolvm_ledger_room(g->t->ledger, name, node, g->v.spec.class_name, &room);
    topolvm_ledger_unlock(g->t->ledger);
    return known && room >= topolvm_round(g->wanted) - g->v.status.current_size;
}

static int grow(struct growth *g, struct err *e)
{
    const char *progress = growth_progress(g->claim);
    const json_t *allocated = json_at(g->claim, "status", "allocatedResources", GROWTH_STORAGE);
    bool begun = str_eq(progress, GROWTH_IN_PROGRESS) && api_quantity_int(allocated) > 0;
    if (begun && api_quantity_int(allocated) >
                     api_quantity_int(json_at(g->volume, "spec", "capacity", GROWTH_STORAGE))) {
        g->wanted = api_quantity_int(allocated); /* what is under way is not changed on its way */
        g->wanted_text = (json_t *)(uintptr_t)allocated;
    }
    json_auto_t *text = json_incref(g->wanted_text); /* writes replace what it is part of */
    g->wanted_text = text;
    if (!g->lv)
        return growth_failed(g, GROWTH_INFEASIBLE, ERR_NOT_FOUND, "its LogicalVolume is gone", e);
    if (g->v.status.current_size >= g->wanted)
        return write_capacity(g, e) < 0 ? -1 : finish(g, e);
    if (str_eq(progress, GROWTH_INFEASIBLE) && api_quantity_int(allocated) == g->wanted &&
        !has_room_now(g))
        return 0;
    if (!begun && begin(g, e) < 0)
        return -1;
    if (g->v.spec.size == g->wanted && begun)
        return wait_for_node(g, e);
    return ask_node(g, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct topolvm *t = context;
    _cleanup_(growth_done) struct growth g = {.t = t, .result = ret};
    g.claim = kube_informer_json(t->claims, ns, name, NULL);
    const char *phase = json_str(json_object_get(g.claim, "status"), "phase");
    const char *of = json_str(json_object_get(g.claim, "spec"), "volumeName");
    if (!phase || !str_eq(phase, "Bound") || !of || kube_deleting(g.claim))
        return 0;
    g.volume = kube_informer_json(t->volumes, NULL, of, NULL);
    if (!topolvm_is_ours(json_str(json_at(g.volume, "spec", "csi"), "driver")))
        return 0;
    growth_take(&g, topolvm_ledger_volume(t->ledger, g.volume));
    g.wanted_text =
        (json_t *)(uintptr_t)json_at(g.claim, "spec", "resources", "requests", GROWTH_STORAGE);
    g.wanted = api_quantity_int(g.wanted_text);
    return g.wanted > api_quantity_int(json_at(g.volume, "spec", "capacity", GROWTH_STORAGE))
               ? grow(&g, e)
               : finish(&g, e);
}

/* What wakes claims. */

static void add_claim_of(struct kube_controller *c, const json_t *volume)
{
    const json_t *claim = json_at(volume, "spec", "claimRef");
    const char *ns = json_str(claim, "namespace"), *name = json_str(claim, "name");
    if (ns && name)
        kube_controller_add(c, ns, name);
}

static void map_volume(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *volume = kube_object_json(object);
    add_claim_of(c, volume);
}

static void handle_values(const json_t *volume, struct kube_index_values *out)
{
    const json_t *csi = json_at(volume, "spec", "csi");
    const char *handle = json_str(csi, "volumeHandle");
    if (handle && topolvm_is_ours(json_str(csi, "driver")))
        kube_index_add(out, handle);
}

static void map_lv(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct topolvm *t = context;
    json_auto_t *lv = kube_object_json(object);
    struct logical_volume v = logical_volume_of(lv);
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    if (*v.status.volume_id)
        kube_informer_find(t->volumes, "handle", v.status.volume_id, &found);
    if (!found.len) {
        struct kube_object *volume = kube_informer_get(t->volumes, NULL, v.spec.name);
        if (volume)
            map_volume(c, volume, t);
        kube_object_unref(volume);
    }
    for (size_t i = 0; i < found.len; i++)
        map_volume(c, found.p[i], t);
}

static void infeasible_values(const json_t *claim, struct kube_index_values *out)
{
    if (str_eq(growth_progress(claim), GROWTH_INFEASIBLE))
        kube_index_add(out, "yes");
}

static void map_infeasible(struct kube_controller *c, const struct kube_object *node, void *context)
{
    struct topolvm *t = context;
    (void)node;
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(t->claims, "infeasible", "yes", &found);
    for (size_t i = 0; i < found.len; i++)
        kube_controller_add(c, found.p[i]->ns, found.p[i]->name);
}

static bool annotations_changed(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *after = now ? kube_object_json(now) : NULL;
    return after && !json_equal(json_at(before, "metadata", "annotations"),
                                json_at(after, "metadata", "annotations"));
}

int topolvm_setup_resize(struct topolvm *t, struct kube_manager *m, struct err *e)
{
    static const struct kube_index handle = {"handle", handle_values},
                                   infeasible = {"infeasible", infeasible_values};
    kube_informer_add_index(t->volumes, &handle);
    kube_informer_add_index(t->claims, &infeasible);
    const struct kube_controller_options o = {
        .name = "topolvm-resizer", .workers = 1, .reconcile = reconcile, .context = t};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    const struct kube_source sources[] = {
        {.informer = t->claims},
        {.informer = t->volumes, .map = map_volume},
        {.informer = t->ledger->nodes,
         .predicate = annotations_changed,
         .map = map_infeasible,
         .context = t},
    };
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        kube_controller_watch(c, sources[i]);
    kube_groups_watch(&t->ledger->lvs, c, (struct kube_source){.map = map_lv, .context = t});
    return 0;
}
