#include "k8s/controllers/scheduler_claims.h"

#include "k8s/controllers/pods.h"

#define SELECTED "volume.kubernetes.io/selected-node"

void scheduler_claims_init(struct scheduler_claims *c, struct kube_manager *m)
{
    c->client = kube_manager_client(m);
    c->claims_r = kube_resource("v1", "PersistentVolumeClaim");
    c->claims = kube_manager_informer(m, c->claims_r, NULL, NULL, NULL);
    c->volumes =
        kube_manager_informer(m, kube_resource("v1", "PersistentVolume"), NULL, NULL, NULL);
    c->classes = kube_manager_informer(m, kube_resource("storage.k8s.io/v1", "StorageClass"), NULL,
                                       NULL, NULL);
    c->drivers =
        kube_manager_informer(m, kube_resource("storage.k8s.io/v1", "CSIDriver"), NULL, NULL, NULL);
    c->capacities = kube_manager_informer(
        m, kube_resource("storage.k8s.io/v1", "CSIStorageCapacity"), NULL, NULL, NULL);
}

/* What the driver of a class says of room for it; NULL when it says nothing. */
static json_t *capacities_of(struct scheduler_claims *c, const json_t *class)
{
    const char *provisioner = json_str(class, "provisioner");
    json_auto_t *driver =
        provisioner ? kube_informer_json(c->drivers, NULL, provisioner, NULL) : NULL;
    if (!json_is_true(json_at(driver, "spec", "storageCapacity")))
        return NULL;
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    json_t *list = json_array();
    kube_informer_list(c->capacities, NULL, &all);
    for (size_t i = 0; i < all.len; i++) {
        json_auto_t *capacity = kube_object_json(all.p[i]);
        const char *name = json_str(capacity, "storageClassName");
        if (name && str_eq(name, kube_name(class)))
            json_array_append(list, capacity);
    }
    return list;
}

/* An entry for one claim; NULL with what stands in the way. */
static json_t *entry_of(struct scheduler_claims *c, const char *ns, const char *name,
                        struct str *ret_why)
{
    json_auto_t *claim = kube_informer_json(c->claims, ns, name, NULL);
    if (!claim || kube_deleting(claim)) {
        str_appendf(ret_why, "persistentvolumeclaim \"%s\" %s", name,
                    claim ? "is being deleted" : "not found");
        return NULL;
    }
    const json_t *spec = json_object_get(claim, "spec");
    const char *bound = json_str(spec, "volumeName"), *of = json_str(spec, "storageClassName");
    json_t *entry = json_pack("{s:O}", "claim", claim);
    if (bound && *bound) {
        json_t *volume = kube_informer_json(c->volumes, NULL, bound, NULL);
        if (volume) {
            json_object_set_new(entry, "volume", volume);
            return entry;
        }
        str_appendf(ret_why, "persistentvolume \"%s\" not found", bound);
        json_decref(entry);
        return NULL;
    }
    json_auto_t *class = of && *of ? kube_informer_json(c->classes, NULL, of, NULL) : NULL;
    const char *mode = json_str(class, "volumeBindingMode");
    if (!mode || !str_eq(mode, "WaitForFirstConsumer")) {
        str_append(ret_why, "pod has unbound immediate PersistentVolumeClaims");
        json_decref(entry);
        return NULL;
    }
    json_object_set(entry, "class", class);
    json_t *capacities = capacities_of(c, class);
    if (capacities)
        json_object_set_new(entry, "capacities", capacities);
    return entry;
}

json_t *scheduler_claims_of(struct scheduler_claims *c, const json_t *pod, struct str *ret_why)
{
    json_auto_t *list = json_array();
    size_t i;
    json_t *volume;
    json_array_foreach((json_t *)json_at(pod, "spec", "volumes"), i, volume) {
        const char *name = json_str(json_object_get(volume, "persistentVolumeClaim"), "claimName");
        const char *own = json_str(volume, "name");
        _cleanup_free_ char *ephemeral = json_object_get(volume, "ephemeral") && own
                                             ? mem_printf("%s-%s", kube_name(pod), own)
                                             : NULL;
        if (!name)
            name = ephemeral;
        json_t *entry = name ? entry_of(c, kube_namespace(pod), name, ret_why) : NULL;
        if (name && !entry)
            return NULL;
        if (entry)
            json_array_append_new(list, entry);
    }
    return json_incref(list);
}

int scheduler_claims_select(struct scheduler_claims *c, const json_t *claims, const char *node,
                            struct err *e)
{
    int bound = 1;
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)claims, i, entry) {
        const json_t *claim = json_object_get(entry, "claim");
        if (json_object_get(entry, "volume"))
            continue;
        bound = 0;
        const char *selected = kube_annotation(claim, SELECTED);
        if (selected && str_eq(selected, node))
            continue;
        json_auto_t *patch = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "resourceVersion",
                                       kube_version(claim), "annotations", SELECTED, node);
        json_auto_t *now = kube_patch(c->client, &c->claims_r, kube_namespace(claim),
                                      kube_name(claim), KUBE_MERGE_PATCH, patch, NULL, e);
        if (!now)
            return -1;
    }
    return bound;
}
