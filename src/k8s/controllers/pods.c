#include "k8s/controllers/pods.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/selector.h"
#include "base/rfc3339.h"
#include "kube/condition.h"
#include "kube/object.h"

int64_t pods_integer(const json_t *object, const char *part, const char *key, int64_t otherwise)
{
    const json_t *value = json_at(object, part, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool pods_is_active(const json_t *pod)
{
    const char *phase = json_text(pod, "status", "phase");
    return !str_eq(phase, "Succeeded") && !str_eq(phase, "Failed") && !kube_deleting(pod);
}

bool pods_is_ready(const json_t *pod)
{
    return kube_condition_is_true(pod, "Ready");
}

const char *pods_node(const json_t *pod)
{
    return json_text(pod, "spec", "nodeName");
}

static int64_t time_of(const char *text)
{
    struct timespec t;
    return text && rfc3339_parse(text, &t, NULL) == 0 ? rfc3339_to_ns(t) : 0;
}

/* Since when it is ready; 0 when it is not, or that is not known. */
static int64_t ready_since(const json_t *pod)
{
    const json_t *ready = kube_condition_get(pod, "Ready");
    return pods_is_ready(pod) ? time_of(json_str(ready, "lastTransitionTime")) : 0;
}

bool pods_is_available(const json_t *pod, int64_t min_ready_seconds, struct kube_ages *ages,
                       int64_t *ret_wait_ns)
{
    if (ret_wait_ns)
        *ret_wait_ns = 0;
    if (!pods_is_ready(pod))
        return false;
    int64_t since = ready_since(pod);
    if (min_ready_seconds <= 0)
        return true;
    if (!since)
        return false;
    _cleanup_free_ char *key = mem_printf("ready %s", kube_uid(pod));
    int64_t left = since + min_ready_seconds * CLOCK_SECOND - kube_ages_now(ages, key, since);
    if (left > 0 && ret_wait_ns)
        *ret_wait_ns = left;
    return left <= 0;
}

/* What the order of deletion looks at, the most important first; less goes first. */
struct rank {
    json_t *pod;
    int64_t keys[8];
};

static int64_t phase_rank(const json_t *pod)
{
    const char *phase = json_text(pod, "status", "phase");
    return str_eq(phase, "Running") ? 2 : str_eq(phase, "Unknown") ? 1 : 0;
}

/* What its owner says that it is worth; 0. */
static int64_t deletion_cost(const json_t *pod)
{
    const char *text = kube_annotation(pod, "controller.kubernetes.io/pod-deletion-cost");
    return text ? strtol(text, NULL, 10) : 0;
}

static int64_t restarts(const json_t *pod)
{
    int64_t most = 0;
    size_t i;
    json_t *status;
    json_array_foreach((json_t *)json_at(pod, "status", "containerStatuses"), i, status) {
        int64_t n = json_integer_value(json_object_get(status, "restartCount"));
        most = n > most ? n : most;
    }
    return most;
}

/* How many of them are on its node. */
static int64_t neighbours(const json_t *pods, const char *node)
{
    int64_t n = 0;
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)pods, i, pod)
        n += pods_is_active(pod) && str_eq(pods_node(pod), node);
    return n;
}

static int compare(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    for (size_t i = 0; i < ARRAY_SIZE(x->keys); i++) {
        if (x->keys[i] != y->keys[i])
            return x->keys[i] < y->keys[i] ? -1 : 1;
    }
    return strcmp(kube_name(x->pod), kube_name(y->pod));
}

void pods_sort_for_deletion(json_t *pods)
{
    size_t n = json_array_size(pods), i;
    json_t *pod;
    if (n < 2)
        return;
    _cleanup_free_ struct rank *ranks = mem_realloc_array(NULL, n, sizeof(*ranks));
    json_array_foreach(pods, i, pod) {
        bool ready = pods_is_ready(pod);
        ranks[i] =
            (struct rank){json_incref(pod),
                          {*pods_node(pod) ? 1 : 0, phase_rank(pod), ready, deletion_cost(pod),
                           -neighbours(pods, pods_node(pod)), -ready_since(pod), -restarts(pod),
                           -time_of(json_text(pod, "metadata", "creationTimestamp"))}};
    }
    qsort(ranks, n, sizeof(*ranks), compare);
    json_array_clear(pods);
    for (i = 0; i < n; i++)
        json_array_append_new(pods, ranks[i].pod);
}

json_t *pods_from_template(const json_t *owner, const json_t *template, const char *name)
{
    static const char *const shared[] = {"labels", "annotations", "finalizers", NULL};
    json_t *metadata =
        json_pack("{s:s,s:s,s:[o]}", "name", name, "namespace", kube_namespace(owner),
                  "ownerReferences", kube_owner_reference(owner));
    for (const char *const *key = shared; *key; key++) {
        json_t *value = json_deep_copy(json_at(template, "metadata", *key));
        if (value)
            json_object_set_new(metadata, *key, value);
    }
    json_t *spec = json_deep_copy(json_object_get(template, "spec"));
    return json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "Pod", "metadata", metadata,
                     "spec", spec ? spec : json_object());
}

/* FNV-1a. */
bool pods_selected(const json_t *selector, const json_t *labels)
{
    struct api_selector s = {0};
    bool selected = json_object_size(selector) && api_selector_from_json(selector, &s, NULL) == 0 &&
                    api_selector_matches(&s, labels);
    api_selector_done(&s);
    return selected;
}

int64_t pods_int_or_percent(const json_t *value, int64_t n, bool up, int64_t otherwise)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (json_is_integer(value))
        return json_integer_value(value);
    int64_t number = text && *text ? strtoll(text, &end, 10) : -1;
    if (!end || number < 0 || number > INT32_MAX)
        return otherwise;
    if (str_eq(end, "%"))
        return (number * n + (up ? 99 : 0)) / 100;
    return *end ? otherwise : number;
}

/* Whose it is, in the index. */
static void owner_values(const json_t *object, struct kube_index_values *out)
{
    const char *uid = kube_controller_uid(object);
    _cleanup_free_ char *orphan = mem_printf("orphan/%s", kube_namespace(object));
    kube_index_add(out, *uid ? uid : orphan);
}

static void node_values(const json_t *pod, struct kube_index_values *out)
{
    if (*pods_node(pod))
        kube_index_add(out, pods_node(pod));
}

void pods_add_owner_index(struct kube_informer *objects)
{
    static const struct kube_index owner = {"owner", owner_values};
    kube_informer_add_index(objects, &owner);
}

void pods_add_indexes(struct kube_informer *pods)
{
    static const struct kube_index node = {"bound", node_values};
    kube_informer_add_index(pods, &node);
    pods_add_owner_index(pods);
}

json_t *pods_of(struct kube_informer *objects, const json_t *owner)
{
    const json_t *selector = json_at(owner, "spec", "selector");
    _cleanup_free_ char *orphan = mem_printf("orphan/%s", kube_namespace(owner));
    _cleanup_(kube_objects_done) struct kube_objects own = {0}, nobodys = {0};
    json_t *list = json_array();
    kube_informer_find(objects, "owner", kube_uid(owner), &own);
    for (size_t i = 0; i < own.len; i++)
        json_array_append_new(list, kube_object_json(own.p[i]));
    if (selector && !kube_deleting(owner))
        kube_informer_find(objects, "owner", orphan, &nobodys);
    for (size_t i = 0; i < nobodys.len; i++) {
        json_auto_t *object = kube_object_json(nobodys.p[i]);
        if (pods_selected(selector, json_at(object, "metadata", "labels")))
            json_array_append(list, object);
    }
    return list;
}

json_t *pods_read(struct kube_client *client, const struct kube_resource *resource,
                  const json_t *owner, struct err *e)
{
    json_auto_t *all = kube_list(client, resource, kube_namespace(owner), NULL, e);
    if (!all)
        return NULL;
    const json_t *selector = json_at(owner, "spec", "selector");
    json_t *list = json_array(), *object;
    size_t i;
    json_array_foreach(all, i, object) {
        const char *its = kube_controller_uid(object);
        if (str_eq(its, kube_uid(owner)) ||
            (!*its && pods_selected(selector, json_at(object, "metadata", "labels"))))
            json_array_append(list, object);
    }
    return list;
}

bool pods_is_observed(const json_t *owner)
{
    return pods_integer(owner, "status", "observedGeneration", 0) >= kube_generation(owner);
}

/* Writes the owners of an object, if it is still as it was looked at. */
static int write_owners(struct kube_client *client, const struct kube_resource *resource,
                        const json_t *object, json_t *owners, struct err *e)
{
    if (!json_array_size(owners)) {
        json_decref(owners);
        owners = json_null();
    }
    json_auto_t *patch =
        json_pack("{s:{s:s,s:s,s:o}}", "metadata", "uid", kube_uid(object), "resourceVersion",
                  kube_version(object), "ownerReferences", owners);
    json_auto_t *now = kube_patch(client, resource, kube_namespace(object), kube_name(object),
                                  KUBE_MERGE_PATCH, patch, NULL, e);
    return now ? 0 : -1;
}

static json_t *owners_without(const json_t *object, const char *uid)
{
    json_t *owners = json_array(), *reference;
    size_t i;
    json_array_foreach((json_t *)json_at(object, "metadata", "ownerReferences"), i, reference) {
        const char *own = json_str(reference, "uid");
        if (!own || !str_eq(own, uid))
            json_array_append(owners, reference);
    }
    return owners;
}

int pods_claim(struct kube_client *client, const struct kube_resource *resource,
               const json_t *owner, json_t *objects, struct err *e)
{
    const json_t *selector = json_at(owner, "spec", "selector");
    size_t i;
    json_t *object;
    for (i = 0; i < json_array_size(objects);) {
        object = json_array_get(objects, i);
        bool own = str_eq(kube_controller_uid(object), kube_uid(owner));
        bool selected = pods_selected(selector, json_at(object, "metadata", "labels"));
        bool keep = own == selected ? own : !kube_deleting(object);
        struct err why = {0};
        if (own != selected && !kube_deleting(object) && !kube_deleting(owner)) {
            json_t *owners = owners_without(object, kube_uid(owner));
            if (selected)
                json_array_append_new(owners, kube_owner_reference(owner));
            if (write_owners(client, resource, object, owners, &why) < 0 &&
                why.code != ERR_NOT_FOUND) {
                if (e)
                    *e = why;
                return -1;
            }
            keep = selected && !why.code;
        }
        if (keep)
            i++;
        else
            json_array_remove(objects, i);
    }
    return 0;
}
