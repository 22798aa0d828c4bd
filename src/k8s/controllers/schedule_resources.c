/*
 * Resources: what pods ask for against what a node has to give.
 */
#include "k8s/controllers/schedule_impl.h"

__int128 schedule_amount(const json_t *value)
{
    struct quantity q;
    if (json_is_integer(value))
        return (__int128)json_integer_value(value) * 1000000000;
    const char *text = json_string_value(value);
    return text && quantity_parse(text, &q, NULL) == 0 ? q.nano : 0;
}

/* Of one container; what is limited and not asked for is asked for. */
static __int128 of_container(const json_t *container, const char *resource)
{
    const json_t *request = json_at(container, "resources", "requests", resource);
    return schedule_amount(request ? request : json_at(container, "resources", "limits", resource));
}

/* What a pod asks for of a resource, in nano-units. */
static __int128 asked(const json_t *pod, const char *resource)
{
    __int128 sum = 0, most = 0;
    size_t i;
    json_t *container;
    json_array_foreach((json_t *)json_at(pod, "spec", "containers"), i, container)
        sum += of_container(container, resource);
    json_array_foreach((json_t *)json_at(pod, "spec", "initContainers"), i, container) {
        __int128 one = of_container(container, resource);
        most = one > most ? one : most;
    }
    return (sum > most ? sum : most) + schedule_amount(json_at(pod, "spec", "overhead", resource));
}

static __int128 used(const struct schedule_node *node, const char *resource)
{
    __int128 sum = 0;
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)node->pods, i, pod)
        sum += asked(pod, resource);
    return sum;
}

/* Names of the resources that a pod asks for, as keys. */
static json_t *asked_for(const json_t *pod)
{
    static const char *const lists[] = {"containers", "initContainers", NULL};
    json_t *names = json_object(), *container, *value;
    const char *key;
    size_t i;
    for (const char *const *list = lists; *list; list++) {
        json_array_foreach((json_t *)json_at(pod, "spec", *list), i, container) {
            json_object_foreach((json_t *)json_at(container, "resources", "requests"), key, value)
                json_object_set_new(names, key, json_true());
            json_object_foreach((json_t *)json_at(container, "resources", "limits"), key, value)
                json_object_set_new(names, key, json_true());
        }
    }
    return names;
}

static const json_t *allocatable_of(const json_t *node)
{
    const json_t *allocatable = json_at(node, "status", "allocatable");
    return allocatable ? allocatable : json_at(node, "status", "capacity");
}

void schedule_filter_resources(const json_t *pod, const struct schedule_node *node,
                               struct schedule_reasons *r)
{
    const json_t *allocatable = allocatable_of(node->node), *most;
    const char *key;
    json_t *value;
    if (!json_object_size(allocatable))
        return; /* a node that does not say what it has takes everything */
    most = json_object_get(allocatable, "pods");
    if (most && (__int128)(json_array_size(node->pods) + 1) * 1000000000 > schedule_amount(most))
        schedule_add_reason(r, "Too many pods");
    json_auto_t *names = asked_for(pod);
    json_object_foreach(names, key, value) {
        __int128 wanted = asked(pod, key);
        if (wanted > 0 &&
            wanted + used(node, key) > schedule_amount(json_object_get(allocatable, key)))
            schedule_add_reason(r, "Insufficient %.60s", key);
    }
}

int64_t schedule_score_room(const json_t *pod, const struct schedule_node *node)
{
    static const char *const names[] = {"cpu", "memory"};
    const json_t *allocatable = allocatable_of(node->node);
    int64_t score = 0;
    for (size_t i = 0; i < 2; i++) {
        __int128 has = schedule_amount(json_object_get(allocatable, names[i]));
        __int128 left = has - used(node, names[i]) - asked(pod, names[i]);
        if (has > 0 && left > 0)
            score += (int64_t)(left / (has / 100 + 1)) / 2;
    }
    return score;
}
