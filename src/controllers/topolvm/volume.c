/*
 * What a PersistentVolume of ours looks like.
 */
#include "controllers/topolvm/topolvm.h"

#define NODE_LABEL     "topology." TOPOLVM_GROUP "/node"
#define HOSTNAME_LABEL "kubernetes.io/hostname"

json_t *topolvm_topology(const json_t *node)
{
    static const char *const labels[] = {NODE_LABEL, "topology." TOPOLVM_LEGACY "/node",
                                         HOSTNAME_LABEL};
    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        const char *value = kube_label(node, labels[i]);
        if (value)
            return json_pack("{s:s}", labels[i], value);
    }
    return json_pack("{s:s}", HOSTNAME_LABEL, kube_name(node));
}

/* The one node that has it. */
static json_t *affinity_of(const json_t *node)
{
    json_auto_t *topology = topolvm_topology(node);
    const char *label;
    json_t *value, *expressions = json_array();
    json_object_foreach(topology, label, value)
        json_array_append_new(expressions, json_pack("{s:s,s:s,s:[O]}", "key", label, "operator",
                                                     "In", "values", value));
    return json_pack("{s:{s:[{s:o}]}}", "required", "nodeSelectorTerms", "matchExpressions",
                     expressions);
}

static json_t *csi_of(const json_t *claim, const json_t *class, const json_t *lv)
{
    const json_t *parameters = json_object_get(class, "parameters");
    const char *fs = json_str(parameters, "csi.storage.k8s.io/fstype");
    const char *mode = json_str(json_object_get(claim, "spec"), "volumeMode");
    json_t *csi = json_pack("{s:s,s:O}", "driver", json_str(class, "provisioner"), "volumeHandle",
                            json_at(lv, "status", "volumeID"));
    if (!mode || !str_eq(mode, "Block"))
        json_object_set_new(csi, "fsType", json_string(fs && *fs ? fs : "ext4"));
    return csi;
}

json_t *topolvm_make_volume(const json_t *claim, const json_t *class, const json_t *lv,
                            const json_t *node)
{
    const json_t *wanted = json_object_get(claim, "spec");
    const json_t *options = json_object_get(class, "mountOptions");
    const char *mode = json_str(wanted, "volumeMode"), *policy = json_str(class, "reclaimPolicy");
    if (!policy)
        policy = "Delete";
    json_t *volume = json_pack(
        "{s:s,s:s,s:{s:O,s:{s:s}},s:{s:{s:O},s:O,s:s,s:s,s:s,s:o,s:o}}", "apiVersion", "v1", "kind",
        "PersistentVolume", "metadata", "name", json_at(lv, "spec", "name"), "annotations",
        "pv.kubernetes.io/provisioned-by", json_str(class, "provisioner"), "spec", "capacity",
        "storage", json_at(lv, "status", "currentSize"), "accessModes",
        json_object_get(wanted, "accessModes"), "persistentVolumeReclaimPolicy", policy,
        "storageClassName", kube_name(class), "volumeMode", mode ? mode : "Filesystem",
        "nodeAffinity", affinity_of(node), "csi", csi_of(claim, class, lv));
    json_t *spec = json_object_get(volume, "spec");
    json_object_set_new(spec, "claimRef",
                        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "apiVersion", "v1", "kind",
                                  "PersistentVolumeClaim", "namespace", kube_namespace(claim),
                                  "name", kube_name(claim), "uid", kube_uid(claim),
                                  "resourceVersion", kube_version(claim)));
    if (json_array_size(options))
        json_object_set(spec, "mountOptions", (json_t *)(uintptr_t)options);
    if (str_eq(policy, "Delete"))
        json_object_set_new(json_object_get(volume, "metadata"), "finalizers",
                            json_pack("[s]", TOPOLVM_VOLUME_FINALIZER));
    return volume;
}
