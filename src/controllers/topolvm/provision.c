/*
 * Claims become LogicalVolumes, and LogicalVolumes that are made become PersistentVolumes.
 *
 *     claim, no LogicalVolume      a node is chosen (by the scheduler, or the one with most room), room
 *                                  is promised by creating the LogicalVolume "pvc-UID" there
 *     it is not made yet           wait for the node
 *     the node had no room         it is deleted, and another node is tried when it is gone
 *     it is made                   PersistentVolume; then the mark on the LogicalVolume goes
 *     claim gone, mark still there nobody will ever want it: it is deleted
 *
 * The mark (TOPOLVM_CLAIM) is made with the LogicalVolume and goes once a PersistentVolume stands for
 * it: without a mark nothing is deleted here. A claim for which there is no room says why, and is
 * looked at again when a node, a volume or a class changes.
 */
#include "controllers/topolvm/topolvm.h"
#include "kube/condition.h"

#define SELECTED    "volume.kubernetes.io/selected-node"
#define PROVISIONER "volume.kubernetes.io/storage-provisioner"
#define PROVISIONED "Provisioned"
/* What comes in a burst is looked at once. */
#define SOON        (CLOCK_SECOND / 20)

/* What the claim says of itself while it waits. */

static int say(struct topolvm *t, json_t **claim, const char *reason, enum err_code code,
               const char *message, struct err *e)
{
    _cleanup_free_ char *text = mem_printf("%s: %s", err_code_name(code), message);
    const struct kube_condition waits = {
        .type = PROVISIONED, .status = "False", .reason = reason, .message = text};
    int said = kube_condition_write(t->client, &t->claims_r, claim, &waits, t->clock, e);
    if (said > 0)
        kube_event_warning(t->recorder, *claim, "ProvisioningFailed", "%s", text);
    return said < 0 ? -1 : 0;
}

/* It has a volume and waits for nothing. */
static int say_done(struct topolvm *t, json_t **claim, struct err *e)
{
    if (!kube_condition_get(*claim, PROVISIONED))
        return 0;
    json_auto_t *status = json_deep_copy(json_object_get(*claim, "status"));
    kube_condition_remove(json_object_get(status, "conditions"), PROVISIONED);
    return kube_status_write(t->client, &t->claims_r, claim, status, e);
}

/* Something that only a change of the claim or its class can mend; NULL when there is nothing. */
static const char *impossible(const json_t *claim)
{
    const json_t *spec = json_object_get(claim, "spec");
    size_t i;
    json_t *mode;
    json_array_foreach(json_object_get(spec, "accessModes"), i, mode) {
        if (!str_starts_with(json_string_value(mode), "ReadWriteOnce"))
            return "a local volume can be used on one node only: ask for ReadWriteOnce or "
                   "ReadWriteOncePod";
    }
    if (json_object_get(spec, "selector"))
        return "a volume that is made for the claim cannot be selected: leave out spec.selector";
    if (json_object_get(spec, "dataSource") || json_object_get(spec, "dataSourceRef"))
        return "copies of other volumes cannot be made: leave out spec.dataSource";
    return NULL;
}

/* The scheduler is to choose again. */
static int unselect(struct topolvm *t, const json_t *claim, struct err *e)
{
    json_auto_t *patch = json_pack("{s:{s:s,s:{s:n}}}", "metadata", "resourceVersion",
                                   kube_version(claim), "annotations", SELECTED);
    json_auto_t *now = kube_patch(t->client, &t->claims_r, kube_namespace(claim), kube_name(claim),
                                  KUBE_MERGE_PATCH, patch, NULL, e);
    return now ? 0 : -1;
}

static int place(struct topolvm *t, json_t **claim, const json_t *class, const char *only,
                 const char *name, struct err *e)
{
    _cleanup_(str_done) struct str why = {0};
    const char *wrong = impossible(*claim);
    if (wrong)
        return say(t, claim, "InvalidClaim", ERR_INVALID_ARGUMENT, wrong, e);
    int found = topolvm_place(t, *claim, class, only, name, &why, e);
    if (found)
        return found > 0 ? 0 : -1;
    if (say(t, claim, "ResourceExhausted", ERR_RESOURCE_EXHAUSTED, str_get(&why), e) < 0)
        return -1;
    return only ? unselect(t, *claim, e) : 0;
}

/* What became of it. */

static int unmark(struct topolvm *t, const json_t *lv, struct err *e)
{
    if (!lv || !kube_annotation(lv, TOPOLVM_CLAIM))
        return 0;
    json_auto_t *patch = json_pack("{s:{s:s,s:{s:n}}}", "metadata", "resourceVersion",
                                   kube_version(lv), "annotations", TOPOLVM_CLAIM);
    json_auto_t *now = kube_patch(t->client, kube_groups_of(&t->ledger->lvs, lv), NULL,
                                  kube_name(lv), KUBE_MERGE_PATCH, patch, NULL, e);
    return now ? 0 : -1;
}

static int make_volume(struct topolvm *t, const json_t *claim, const json_t *class,
                       const json_t *lv, struct err *e)
{
    const char *name = logical_volume_of(lv).spec.node_name;
    json_auto_t *node = kube_informer_json(t->ledger->nodes, NULL, name, e);
    if (!node)
        return -1;
    json_auto_t *volume = topolvm_make_volume(claim, class, lv, node);
    struct err why = {0};
    json_auto_t *made = kube_create(t->client, &t->volumes_r, volume, NULL, &why);
    if (!made && why.code != ERR_ALREADY_EXISTS) {
        *e = why;
        return -1;
    }
    if (made)
        kube_event_normal(t->recorder, claim, "ProvisioningSucceeded",
                          "Successfully provisioned volume %s", kube_name(made));
    return unmark(t, lv, e);
}

static int delete_lv(struct topolvm *t, const json_t *lv, struct err *e)
{
    if (kube_deleting(lv))
        return 0;
    const struct kube_delete o = {
        .uid = kube_uid(lv), .resource_version = kube_version(lv), .grace_seconds = -1};
    return kube_delete(t->client, kube_groups_of(&t->ledger->lvs, lv), NULL, kube_name(lv), &o, e);
}

/* The node could not make it. */
static int failed(struct topolvm *t, json_t **claim, const json_t *class, const json_t *lv,
                  struct kube_result *ret, struct err *e)
{
    struct logical_volume v = logical_volume_of(lv);
    enum err_code code = (enum err_code)v.status.code;
    _cleanup_free_ char *text = mem_printf("node %s: %s", v.spec.node_name,
                                           *v.status.message ? v.status.message : "no reason");
    if (say(t, claim, code == ERR_RESOURCE_EXHAUSTED ? "ResourceExhausted" : "NodeFailed", code,
            text, e) < 0)
        return -1;
    if (code == ERR_NOT_FOUND &&
        *v.status.volume_id) /* it was there and is lost: nothing was ever on it */
        return delete_lv(t, lv, e);
    if (code != ERR_RESOURCE_EXHAUSTED)
        return err_is_infeasible(code) ? 0 : topolvm_ledger_retry(t->ledger, lv, &ret->again_ns, e);
    topolvm_ledger_refused(t->ledger, &v);
    if (str_eq(json_text(class, "volumeBindingMode"), "WaitForFirstConsumer") &&
        kube_annotation(*claim, SELECTED) && unselect(t, *claim, e) < 0)
        return -1;
    return delete_lv(t, lv, e);
}

static int follow(struct topolvm *t, json_t **claim, const json_t *class, const json_t *lv,
                  struct kube_result *ret, struct err *e)
{
    struct logical_volume v = logical_volume_of(lv);
    if (kube_deleting(lv))
        return 0; /* another is made when it is gone */
    if (v.status.code)
        return failed(t, claim, class, lv, ret, e);
    if (*v.status.volume_id && v.status.current_size > 0)
        return make_volume(t, *claim, class, lv, e);
    const char *name = v.spec.node_name;
    json_auto_t *node = kube_informer_json(t->ledger->nodes, NULL, name, NULL);
    if (node && kube_condition_is_true(node, "Ready"))
        return 0;
    _cleanup_free_ char *text =
        mem_printf("node %s is %s; if it will not be back, run: orlop node forget %s", name,
                   node ? "silent" : "gone", name);
    return say(t, claim, "NodeUnavailable", ERR_UNAVAILABLE, text, e);
}

/* Volumes that were made for a claim of that name which is no more. `uid`: of the one that is. */
static int abandon(struct topolvm *t, const char *ns, const char *name, const char *uid,
                   struct err *e)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", ns, name);
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_groups_find(&t->ledger->lvs, "claim", key, &found);
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *lv = kube_object_json(found.p[i]);
        const char *mark = kube_annotation(lv, TOPOLVM_CLAIM);
        if (!mark || (uid && str_eq(mark + strlen(key) + 1, uid)))
            continue;
        struct err why = {0};
        json_auto_t *volume = kube_get(t->client, &t->volumes_r, NULL, kube_name(lv), &why);
        if (!volume && why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
        if (volume ? unmark(t, lv, e) : delete_lv(t, lv, e))
            return -1;
    }
    return 0;
}

static bool is_ours(const json_t *claim, const json_t *class)
{
    const char *provisioner = json_str(class, "provisioner");
    const char *asked = kube_annotation(claim, PROVISIONER);
    return topolvm_is_ours(provisioner) && asked && str_eq(asked, provisioner);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct topolvm *t = context;
    json_t *claim = kube_informer_json(t->claims, ns, name, NULL);
    const json_t *spec = json_object_get(claim, "spec");
    const char *bound = json_str(spec, "volumeName"), *of = json_str(spec, "storageClassName");
    bool wanted = claim && (!kube_deleting(claim) || (bound && *bound));
    int status = abandon(t, ns, name, wanted ? kube_uid(claim) : NULL, e);
    json_auto_t *class =
        wanted && of && *of ? kube_informer_json(t->classes, NULL, of, NULL) : NULL;
    if (status == 0 && class && is_ours(claim, class)) {
        _cleanup_free_ char *own = mem_printf("pvc-%s", kube_uid(claim));
        json_auto_t *lv = kube_groups_json(&t->ledger->lvs, NULL, own);
        const char *mode = json_str(class, "volumeBindingMode");
        const char *only =
            mode && str_eq(mode, "WaitForFirstConsumer") ? kube_annotation(claim, SELECTED) : NULL;
        if (bound && *bound)
            status = unmark(t, lv, e) < 0 ? -1 : say_done(t, &claim, e);
        else if (lv)
            status = follow(t, &claim, class, lv, ret, e);
        else if (only || !mode || !str_eq(mode, "WaitForFirstConsumer"))
            status = place(t, &claim, class, only, own, e);
    }
    json_decref(claim);
    return status;
}

/* What wakes claims. */

static void waiting_values(const json_t *claim, struct kube_index_values *out)
{
    const char *bound = json_str(json_object_get(claim, "spec"), "volumeName");
    if (!(bound && *bound) && topolvm_is_ours(kube_annotation(claim, PROVISIONER)))
        kube_index_add(out, "yes");
}

/* "NAMESPACE/NAME" of the claim that the mark names. */
static void claim_values(const json_t *lv, struct kube_index_values *out)
{
    const char *mark = kube_annotation(lv, TOPOLVM_CLAIM);
    const char *uid = mark ? strrchr(mark, '/') : NULL;
    if (!uid)
        return;
    _cleanup_free_ char *key = mem_strndup(mark, (size_t)(uid - mark));
    kube_index_add(out, key);
}

static void map_waiting(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct topolvm *t = context;
    (void)object;
    _cleanup_(kube_objects_done) struct kube_objects claims = {0};
    kube_informer_find(t->claims, "waiting", "yes", &claims);
    for (size_t i = 0; i < claims.len; i++)
        kube_controller_add_after(c, claims.p[i]->ns, claims.p[i]->name, SOON);
}

static void map_marked(struct kube_controller *c, const struct kube_object *lv, void *context)
{
    (void)context;
    json_auto_t *object = kube_object_json(lv);
    const char *mark = kube_annotation(object, TOPOLVM_CLAIM);
    const char *slash = mark ? strchr(mark, '/') : NULL;
    const char *end = slash ? strchr(slash + 1, '/') : NULL;
    if (!end)
        return;
    _cleanup_free_ char *ns = mem_strndup(mark, (size_t)(slash - mark));
    _cleanup_free_ char *name = mem_strndup(slash + 1, (size_t)(end - slash - 1));
    kube_controller_add(c, ns, name);
}

/* What a node has for volumes. */
static bool node_changed(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *after = now ? kube_object_json(now) : NULL;
    return !before || !after ||
           !json_equal(json_at(before, "metadata", "annotations"),
                       json_at(after, "metadata", "annotations")) ||
           !json_equal(json_at(before, "metadata", "labels"),
                       json_at(after, "metadata", "labels")) ||
           kube_condition_is_true(before, "Ready") != kube_condition_is_true(after, "Ready");
}

static double count_waiting(void *context)
{
    struct topolvm *t = context;
    _cleanup_(kube_objects_done) struct kube_objects claims = {0};
    kube_informer_find(t->claims, "waiting", "yes", &claims);
    return (double)claims.len;
}

int topolvm_setup_provision(struct topolvm *t, struct kube_manager *m, struct err *e)
{
    static const struct kube_index waiting = {"waiting", waiting_values},
                                   marked = {"claim", claim_values};
    kube_informer_add_index(t->claims, &waiting);
    kube_groups_add_index(&t->ledger->lvs, &marked);
    metrics_ask(metrics_at(metrics_gauge(t->metrics, "orlop_topolvm_claims_waiting",
                                         "Claims that have no volume yet.", NULL),
                           NULL),
                count_waiting, t);
    const struct kube_controller_options o = {
        .name = "topolvm-provisioner", .workers = 1, .reconcile = reconcile, .context = t};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = t->claims});
    kube_groups_watch(&t->ledger->lvs, c, (struct kube_source){.map = map_marked});
    kube_groups_watch(&t->ledger->lvs, c, (struct kube_source){.map = map_waiting, .context = t});
    const struct kube_source wakes[] = {
        {.informer = t->ledger->nodes, .predicate = node_changed, .map = map_waiting, .context = t},
        {.informer = t->classes, .map = map_waiting, .context = t},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wakes); i++)
        kube_controller_watch(c, wakes[i]);
    return 0;
}
