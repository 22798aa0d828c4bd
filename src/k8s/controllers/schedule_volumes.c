/*
 * Volumes: a pod runs where its volumes are, or can be made.
 */
#include "k8s/controllers/pods.h"
#include "k8s/controllers/schedule_impl.h"
#include "kube/object.h"

#define SELECTED "volume.kubernetes.io/selected-node"

static const char *class_name(const json_t *entry)
{
    return kube_name(json_object_get(entry, "class"));
}

/* What the pod's claims without a volume ask for of the same class. */
static __int128 wanted_of(const json_t *claims, const json_t *entry)
{
    __int128 sum = 0;
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)claims, i, it) {
        if (!json_object_get(it, "volume") && str_eq(class_name(it), class_name(entry)))
            sum +=
                schedule_amount(json_at(it, "claim", "spec", "resources", "requests", "storage"));
    }
    return sum;
}

/* Whether the driver says that there is room on the node; NULL: it says nothing of room. */
static bool has_room(const json_t *capacities, __int128 wanted, const json_t *node)
{
    size_t i;
    json_t *capacity;
    json_array_foreach((json_t *)capacities, i, capacity) {
        const json_t *most = json_object_get(capacity, "maximumVolumeSize");
        if (pods_selected(json_object_get(capacity, "nodeTopology"),
                          json_at(node, "metadata", "labels")) &&
            wanted <= schedule_amount(most ? most : json_object_get(capacity, "capacity")))
            return true;
    }
    return !capacities;
}

void schedule_filter_volumes(const json_t *claims, const json_t *node, struct schedule_reasons *r)
{
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)claims, i, entry) {
        const json_t *claim = json_object_get(entry, "claim");
        const json_t *volume = json_object_get(entry, "volume");
        const json_t *required = json_at(volume, "spec", "nodeAffinity", "required");
        const char *selected = kube_annotation(claim, SELECTED);
        if (volume) {
            if (!required || schedule_selector_matches(required, node))
                continue;
            schedule_add_reason(r, "node(s) had volume node affinity conflict");
        } else if ((selected && !str_eq(selected, kube_name(node))) ||
                   !kube_class_allows(json_object_get(entry, "class"), node)) {
            schedule_add_reason(r, "node(s) didn't find available persistent volumes to bind");
        } else if (!selected && /* else it was promised to this claim, and so is room no more */
                   !has_room(json_object_get(entry, "capacities"), wanted_of(claims, entry),
                             node)) {
            schedule_add_reason(r, "node(s) did not have enough free storage");
        } else {
            continue;
        }
        return;
    }
}
