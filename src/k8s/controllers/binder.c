/*
 * The binder: claims and volumes find each other.
 *
 *     claim    Pending ──> Bound ──(its volume is gone)──> Lost
 *     volume   Available ──> Bound ──(its claim is gone)──> Released
 *
 * Binding is four writes, each of which names the version that it was decided on and is left out when
 * it is done already: the volume names the claim, says Bound, the claim names the volume, says Bound.
 * The first decides: a volume that names a claim is nobody else's, though we be killed right after it.
 *
 * A claim that finds no volume and has a class with a provisioner is given to that: an annotation says
 * to whom. Of a class that waits for the first consumer only volumes are bound that name the claim,
 * which is how provisioners make them; the scheduler chooses the node.
 */
#include "k8s/controllers/binder.h"

#include "k8s/controllers/embedded.h"
#include "k8s/controllers/pods.h"
#include "kube/condition.h"

#define SELECTED     "volume.kubernetes.io/selected-node"
#define PROVISIONER  "volume.kubernetes.io/storage-provisioner"
#define PROVISIONER1 "volume.beta.kubernetes.io/storage-provisioner"
#define COMPLETED    "pv.kubernetes.io/bind-completed"
#define BY_US        "pv.kubernetes.io/bound-by-controller"

struct binder {
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource claims_r, volumes_r, classes_r;
    struct kube_informer *claims, *volumes, *classes;
};

static const char *phase_of(const json_t *object)
{
    return json_text(object, "status", "phase");
}

static int write_phase(struct binder *b, const struct kube_resource *r, json_t **object,
                       const char *phase, struct err *e)
{
    json_auto_t *status = kube_status_copy(*object);
    json_object_set_new(status, "phase", json_string(phase));
    return kube_status_write(b->client, r, object, status, e);
}

static int patch(struct binder *b, const struct kube_resource *r, json_t **object, json_t *change,
                 struct err *e)
{
    json_auto_t *own = change;
    const char *ns = kube_namespace(*object);
    json_t *metadata = json_object_at(own, "metadata");
    json_object_set_new(metadata, "resourceVersion", json_string(kube_version(*object)));
    json_t *now = kube_patch(b->client, r, *ns ? ns : NULL, kube_name(*object), KUBE_MERGE_PATCH,
                             own, NULL, e);
    if (!now)
        return -1;
    json_decref(*object);
    *object = now;
    return 0;
}

/* Binding. */

static int take_volume(struct binder *b, json_t **volume, const json_t *claim, struct err *e)
{
    const char *uid = json_str(json_at(*volume, "spec", "claimRef"), "uid");
    if (!(uid && str_eq(uid, kube_uid(claim))) &&
        patch(b, &b->volumes_r, volume,
              json_pack("{s:{s:{s:s}},s:{s:{s:s,s:s,s:s,s:s,s:s,s:s}}}", "metadata", "annotations",
                        BY_US, "yes", "spec", "claimRef", "apiVersion", "v1", "kind",
                        "PersistentVolumeClaim", "namespace", kube_namespace(claim), "name",
                        kube_name(claim), "uid", kube_uid(claim), "resourceVersion",
                        kube_version(claim)),
              e) < 0)
        return -1;
    return str_eq(phase_of(*volume), "Bound") ? 0
                                              : write_phase(b, &b->volumes_r, volume, "Bound", e);
}

static int take_claim(struct binder *b, json_t **claim, const json_t *volume, struct err *e)
{
    const char *has = json_str(json_object_get(*claim, "spec"), "volumeName");
    if ((!has || !*has || !kube_annotation(*claim, COMPLETED)) &&
        patch(b, &b->claims_r, claim,
              json_pack("{s:{s:{s:s,s:s}},s:{s:s}}", "metadata", "annotations", COMPLETED, "yes",
                        BY_US, "yes", "spec", "volumeName", kube_name(volume)),
              e) < 0)
        return -1;
    if (str_eq(phase_of(*claim), "Bound"))
        return 0;
    json_auto_t *status = kube_status_copy(*claim);
    json_object_set_new(status, "phase", json_string("Bound"));
    json_object_set(status, "accessModes",
                    (json_t *)(uintptr_t)json_at(volume, "spec", "accessModes"));
    json_object_set(status, "capacity", (json_t *)(uintptr_t)json_at(volume, "spec", "capacity"));
    return kube_status_write(b->client, &b->claims_r, claim, status, e);
}

static int bind(struct binder *b, json_t **claim, const json_t *of_cache, struct err *e)
{
    json_t *volume = json_deep_copy(of_cache);
    int status = take_volume(b, &volume, *claim, e);
    if (status == 0)
        status = take_claim(b, claim, volume, e);
    json_decref(volume);
    return status;
}

/* Claims. */

/* It waits; why is told when it begins to. */
static int pend(struct binder *b, json_t **claim, const char *reason, const char *message,
                struct err *e)
{
    if (*phase_of(*claim))
        return 0;
    if (reason)
        kube_event_normal(b->recorder, *claim, reason, "%s", message);
    return write_phase(b, &b->claims_r, claim, "Pending", e);
}

static int give_to_provisioner(struct binder *b, json_t **claim, const char *provisioner,
                               struct err *e)
{
    const char *said = kube_annotation(*claim, PROVISIONER);
    if (said && str_eq(said, provisioner))
        return pend(b, claim, NULL, NULL, e);
    if (patch(b, &b->claims_r, claim,
              json_pack("{s:{s:{s:s,s:s}}}", "metadata", "annotations", PROVISIONER, provisioner,
                        PROVISIONER1, provisioner),
              e) < 0)
        return -1;
    kube_event_normal(b->recorder, *claim, "ExternalProvisioning",
                      "Waiting for a volume to be created either by the external provisioner '%s' "
                      "or manually by the system administrator. If volume creation is delayed, "
                      "please verify that the provisioner is running and correctly registered.",
                      provisioner);
    return pend(b, claim, NULL, NULL, e);
}

/* A claim that names its volume. */
static int hold(struct binder *b, json_t **claim, const char *name, struct err *e)
{
    bool completed = kube_annotation(*claim, COMPLETED);
    json_auto_t *volume = kube_informer_json(b->volumes, NULL, name, NULL);
    if (volume && (!json_at(volume, "spec", "claimRef") || binder_is_for(volume, *claim)))
        return bind(b, claim, volume, e);
    if (!completed)
        return pend(b, claim, volume ? "FailedBinding" : NULL,
                    "volume already bound to another "
                    "claim",
                    e);
    if (!volume) { /* what the cache has not, the server may */
        json_auto_t *live = kube_get(b->client, &b->volumes_r, NULL, name, e);
        if (live || !e || e->code != ERR_NOT_FOUND)
            return live ? 0 : -1;
    }
    if (str_eq(phase_of(*claim), "Lost"))
        return 0;
    kube_event_warning(b->recorder, *claim, "ClaimLost",
                       "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    return write_phase(b, &b->claims_r, claim, "Lost", e);
}

/* The volume that names the claim; else, unless it waits for a consumer, the best of the free ones. */
static json_t *find(struct binder *b, const json_t *claim, bool waits)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(claim), kube_name(claim));
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(b->volumes, "claim", key, &found);
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *volume = kube_object_json(found.p[i]);
        if (binder_is_for(volume, claim))
            return json_incref(volume);
    }
    if (waits)
        return NULL;
    _cleanup_(kube_objects_done) struct kube_objects unclaimed = {0};
    json_auto_t *list = json_array();
    kube_informer_find(b->volumes, "claim", "", &unclaimed);
    for (size_t i = 0; i < unclaimed.len; i++)
        json_array_append_new(list, kube_object_json(unclaimed.p[i]));
    return json_incref((json_t *)(uintptr_t)binder_best(list, claim));
}

/* The class of a claim, or NULL. What the cache has not, the server may: a class and its first claim often
 * come together. */
static int find_class(struct binder *b, const char *name, json_t **ret_class, struct err *e)
{
    struct err why = {0};
    *ret_class = kube_informer_json(b->classes, NULL, name, NULL);
    if (!*ret_class)
        *ret_class = kube_get(b->client, &b->classes_r, NULL, name, &why);
    if (*ret_class || why.code == ERR_NOT_FOUND)
        return 0;
    *e = why;
    return -1;
}

static int seek(struct binder *b, json_t **claim, struct err *e)
{
    const char *of = json_str(json_object_get(*claim, "spec"), "storageClassName");
    json_auto_t *class = NULL;
    if (of && *of && find_class(b, of, &class, e) < 0)
        return -1;
    const char *mode = json_str(class, "volumeBindingMode"),
               *provisioner = json_str(class, "provisioner");
    bool waits = mode && str_eq(mode, "WaitForFirstConsumer");
    json_auto_t *volume = find(b, *claim, waits);
    if (volume)
        return bind(b, claim, volume, e);
    if (waits && !kube_annotation(*claim, SELECTED))
        return pend(b, claim, "WaitForFirstConsumer",
                    "waiting for first consumer to be created before binding", e);
    if (provisioner && !str_eq(provisioner, "kubernetes.io/no-provisioner"))
        return give_to_provisioner(b, claim, provisioner, e);
    if (of && *of && !class) {
        _cleanup_free_ char *text = mem_printf("storageclass.storage.k8s.io \"%s\" not found", of);
        return pend(b, claim, "ProvisioningFailed", text, e);
    }
    return pend(b, claim, "FailedBinding",
                "no persistent volumes available for this claim and no storage class is set", e);
}

static int reconcile_claim(void *context, const char *ns, const char *name, struct kube_result *ret,
                           struct err *e)
{
    struct binder *b = context;
    (void)ret;
    json_t *claim = kube_informer_json(b->claims, ns, name, NULL);
    const char *has = json_str(json_object_get(claim, "spec"), "volumeName");
    int status = 0;
    if (claim && has && *has)
        status = hold(b, &claim, has, e);
    else if (claim && !kube_deleting(claim))
        status = seek(b, &claim, e);
    json_decref(claim);
    return status;
}

/* Volumes. */

/* Whether the claim that a volume names is gone, or another of that name. */
static int claim_is_gone(struct binder *b, const json_t *of, bool *ret_gone, struct err *e)
{
    const char *ns = json_str(of, "namespace"), *name = json_str(of, "name"),
               *uid = json_str(of, "uid");
    json_auto_t *cached = kube_informer_json(b->claims, ns, name ? name : "", NULL);
    *ret_gone = false;
    if (!ns || !name || (cached && uid && str_eq(uid, kube_uid(cached))))
        return 0;
    struct err why = {0};
    json_auto_t *live = kube_get(b->client, &b->claims_r, ns, name, &why);
    if (!live && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    *ret_gone = !live || !uid || !str_eq(uid, kube_uid(live));
    return 0;
}

static int reconcile_volume(void *context, const char *ns, const char *name,
                            struct kube_result *ret, struct err *e)
{
    struct binder *b = context;
    (void)ns;
    (void)ret;
    json_t *volume = kube_informer_json(b->volumes, NULL, name, NULL);
    const json_t *of = json_at(volume, "spec", "claimRef");
    const char *uid = json_str(of, "uid");
    const char *phase = NULL;
    bool gone = false;
    int status = 0;
    if (volume && (!of || !uid || !*uid))
        phase = "Available";
    else if (volume && (status = claim_is_gone(b, of, &gone, e)) == 0 && gone)
        phase = "Released";
    if (phase && !str_eq(phase_of(volume), phase) && !str_eq(phase_of(volume), "Failed"))
        status = write_phase(b, &b->volumes_r, &volume, phase, e);
    json_decref(volume);
    return status;
}

/* What wakes whom. */

static void claim_values(const json_t *volume, struct kube_index_values *out)
{
    const json_t *of = json_at(volume, "spec", "claimRef");
    const char *ns = json_str(of, "namespace"), *name = json_str(of, "name");
    _cleanup_free_ char *key = of ? mem_printf("%s/%s", ns ? ns : "", name ? name : "") : NULL;
    kube_index_add(out, key ? key : "");
}

static void unbound_values(const json_t *claim, struct kube_index_values *out)
{
    const char *has = json_str(json_object_get(claim, "spec"), "volumeName");
    if (!has || !*has)
        kube_index_add(out, "yes");
}

static void map_unbound(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct binder *b = context;
    (void)object;
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(b->claims, "unbound", "yes", &found);
    for (size_t i = 0; i < found.len; i++)
        kube_controller_add(c, found.p[i]->ns, found.p[i]->name);
}

/* The claim of a volume; of one that is free, all that wait. */
static void map_volume(struct kube_controller *c, const struct kube_object *object, void *context)
{
    json_auto_t *volume = kube_object_json(object);
    const json_t *of = json_at(volume, "spec", "claimRef");
    const char *ns = json_str(of, "namespace"), *name = json_str(of, "name");
    if (ns && name)
        kube_controller_add(c, ns, name);
    else
        map_unbound(c, object, context);
}

/* The volumes that name a claim, and the one that it names. */
static void map_claim(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct binder *b = context;
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(b->volumes, "claim", object->key, &found);
    for (size_t i = 0; i < found.len; i++)
        kube_controller_add(c, NULL, found.p[i]->name);
}

int embedded_binder(struct kube_manager *m, struct err *e)
{
    static const struct kube_index by_claim = {"claim", claim_values},
                                   unbound = {"unbound", unbound_values};
    struct binder *b = NEW(struct binder);
    kube_manager_on_stop(m, free, b);
    b->client = kube_manager_client(m);
    b->recorder = kube_manager_recorder(m);
    b->claims_r = kube_resource("v1", "PersistentVolumeClaim");
    b->volumes_r = kube_resource("v1", "PersistentVolume");
    b->claims = kube_manager_informer(m, b->claims_r, NULL, NULL, NULL);
    b->volumes = kube_manager_informer(m, b->volumes_r, NULL, NULL, NULL);
    b->classes_r = kube_resource("storage.k8s.io/v1", "StorageClass");
    b->classes = kube_manager_informer(m, b->classes_r, NULL, NULL, NULL);
    kube_informer_add_index(b->volumes, &by_claim);
    kube_informer_add_index(b->claims, &unbound);
    const struct kube_controller_options claims = {
        .name = "persistentvolume-binder", .reconcile = reconcile_claim, .context = b};
    const struct kube_controller_options volumes = {
        .name = "persistentvolume-phase", .reconcile = reconcile_volume, .context = b};
    struct kube_controller *c = kube_manager_controller(m, &claims, e);
    struct kube_controller *v = c ? kube_manager_controller(m, &volumes, e) : NULL;
    if (!v)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = b->claims});
    kube_controller_watch(
        c, (struct kube_source){.informer = b->volumes, .map = map_volume, .context = b});
    kube_controller_watch(
        c, (struct kube_source){.informer = b->classes, .map = map_unbound, .context = b});
    kube_controller_watch(v, (struct kube_source){.informer = b->volumes});
    kube_controller_watch(
        v, (struct kube_source){.informer = b->claims, .map = map_claim, .context = b});
    return 0;
}
