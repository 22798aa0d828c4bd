#include "k8s/controllers/binder.h"
#include "k8s/controllers/pods.h"
#include "k8s/controllers/schedule_impl.h"

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_str(object, key);
    return text ? text : otherwise;
}

bool binder_is_for(const json_t *volume, const json_t *claim)
{
    const json_t *of = json_at(volume, "spec", "claimRef");
    const char *uid = text_of(of, "uid", "");
    return of && str_eq(text_of(of, "namespace", ""), kube_namespace(claim)) &&
           str_eq(text_of(of, "name", ""), kube_name(claim)) &&
           (!*uid || str_eq(uid, kube_uid(claim)));
}

static bool has_modes(const json_t *volume, const json_t *claim)
{
    size_t i, j;
    json_t *wanted, *mode;
    json_array_foreach((json_t *)json_at(claim, "spec", "accessModes"), i, wanted) {
        bool found = false;
        json_array_foreach((json_t *)json_at(volume, "spec", "accessModes"), j, mode)
            found |= json_equal(mode, wanted);
        if (!found)
            return false;
    }
    return true;
}

/* Whether the claim could have the volume: class, mode, access modes, size, labels; and it is free. */
static bool fits(const json_t *volume, const json_t *claim)
{
    const json_t *has = json_object_get(volume, "spec"), *wants = json_object_get(claim, "spec");
    const json_t *selector = json_object_get(wants, "selector");
    return !json_object_get(has, "claimRef") && !kube_deleting(volume) &&
           str_eq(text_of(has, "storageClassName", ""), text_of(wants, "storageClassName", "")) &&
           str_eq(text_of(has, "volumeMode", "Filesystem"),
                  text_of(wants, "volumeMode", "Filesystem")) &&
           has_modes(volume, claim) &&
           schedule_amount(json_at(has, "capacity", "storage")) >=
               schedule_amount(json_at(wants, "resources", "requests", "storage")) &&
           (!selector || pods_selected(selector, json_at(volume, "metadata", "labels")));
}

const json_t *binder_best(const json_t *volumes, const json_t *claim)
{
    const json_t *best = NULL;
    size_t i;
    json_t *volume;
    json_array_foreach((json_t *)volumes, i, volume) {
        if (fits(volume, claim) &&
            (!best || schedule_amount(json_at(volume, "spec", "capacity", "storage")) <
                          schedule_amount(json_at(best, "spec", "capacity", "storage"))))
            best = volume;
    }
    return best;
}
