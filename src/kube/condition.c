#include "kube/condition.h"

#include "base/rfc3339.h"
#include "base/str.h"
#include "json/patch.h"

/* True when it is another value now. */
static bool set(json_t *object, const char *key, json_t *value)
{
    bool differs = !json_equal(json_object_get(object, key), value);
    json_object_set_new(object, key, value);
    return differs;
}

bool kube_condition_set(json_t *conditions, const struct kube_condition *condition,
                        const struct clock *clock)
{
    json_t *it = json_find(conditions, "type", condition->type);
    if (!it) {
        it = json_pack("{s:s}", "type", condition->type);
        json_array_append_new(conditions, it);
    }
    bool moved = set(it, "status", json_string(condition->status));
    bool differs = moved;
    if (condition->generation)
        differs |= set(it, "observedGeneration", json_integer(condition->generation));
    if (moved) {
        char now[RFC3339_MAX];
        rfc3339_format(rfc3339_from_ns(clock_real_ns(clock ? clock : clock_system())),
                       RFC3339_SECONDS, now);
        json_object_set_new(it, "lastTransitionTime", json_string(now));
    }
    differs |= set(it, "reason", json_string(condition->reason ? condition->reason : ""));
    differs |= set(it, "message", json_string(condition->message ? condition->message : ""));
    return differs;
}

bool kube_condition_remove(json_t *conditions, const char *type)
{
    size_t n = json_array_size(conditions);
    for (size_t i = n; i-- > 0;) {
        const char *found = json_str(json_array_get(conditions, i), "type");
        if (found && str_eq(found, type))
            json_array_remove(conditions, i);
    }
    return json_array_size(conditions) < n;
}

const json_t *kube_condition_get(const json_t *object, const char *type)
{
    return json_find(json_at(object, "status", "conditions"), "type", type);
}

bool kube_condition_is_true(const json_t *object, const char *type)
{
    const json_t *it = kube_condition_get(object, type);
    const char *status = it ? json_str(it, "status") : NULL;
    return status && str_eq(status, "True");
}

json_t *kube_status_copy(const json_t *object)
{
    const json_t *status = json_object_get(object, "status");
    return json_is_object(status) ? json_deep_copy(status) : json_object();
}

int kube_status_write(struct kube_client *c, const struct kube_resource *r, json_t **object,
                      const json_t *status, struct err *e)
{
    json_auto_t *nothing = json_object();
    const json_t *was = json_object_get(*object, "status");
    json_auto_t *diff = json_merge_diff(was ? was : nothing, status);
    if (json_is_object(diff) && !json_object_size(diff))
        return 0;
    json_auto_t *patch = json_pack("{s:{s:s},s:O}", "metadata", "resourceVersion",
                                   kube_version(*object), "status", diff);
    const char *ns = kube_namespace(*object);
    json_t *now = kube_patch(c, r, *ns ? ns : NULL, kube_name(*object), KUBE_MERGE_PATCH, patch,
                             &(struct kube_write){.subresource = "status"}, e);
    if (!now)
        return -1;
    json_decref(*object);
    *object = now;
    return 0;
}

int kube_condition_write(struct kube_client *c, const struct kube_resource *r, json_t **object,
                         const struct kube_condition *condition, const struct clock *clock,
                         struct err *e)
{
    json_auto_t *status = kube_status_copy(*object);
    json_t *conditions = json_array_at(status, "conditions");
    if (!kube_condition_set(conditions, condition, clock))
        return 0;
    return kube_status_write(c, r, object, status, e) < 0 ? -1 : 1;
}
