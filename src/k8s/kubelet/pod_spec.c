/*
 * A Pod's JSON as what the runner needs of it. The API has checked and defaulted it; what is missing
 * all the same gets Kubernetes' defaults.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/quantity.h"
#include "k8s/kinds/kinds.h"
#include "k8s/kubelet/pod.h"
#include "kube/object.h"

enum { CONTAINERS_MOST = 100, SECONDS_MOST = 10 * 365 * 24 * 3600 };

static int64_t number(const json_t *object, const char *key, int64_t missing)
{
    const json_t *value = json_object_get(object, key);
    int64_t n = json_is_integer(value) ? json_integer_value(value) : missing;
    return n > SECONDS_MOST ? SECONDS_MOST : n;
}

static int64_t at_least(int64_t n, int64_t least)
{
    return n < least ? least : n;
}

static void parse_probe(const json_t *json, struct pod_probe *p)
{
    static const struct {
        const char *key;
        enum pod_means means;
    } means[] = {
        {"exec", POD_EXEC}, {"httpGet", POD_HTTP}, {"tcpSocket", POD_TCP}, {"grpc", POD_GRPC}};
    for (size_t i = 0; i < ARRAY_SIZE(means); i++) {
        if (json_object_get(json, means[i].key))
            p->means = means[i].means;
    }
    if (!p->means)
        return;
    p->json = json;
    p->initial_ns = at_least(number(json, "initialDelaySeconds", 0), 0) * CLOCK_SECOND;
    p->period_ns = at_least(number(json, "periodSeconds", 10), 1) * CLOCK_SECOND;
    p->timeout_ns = at_least(number(json, "timeoutSeconds", 1), 1) * CLOCK_SECOND;
    p->successes = (unsigned)at_least(number(json, "successThreshold", 1), 1);
    p->failures = (unsigned)at_least(number(json, "failureThreshold", 3), 1);
    int64_t grace = number(json, "terminationGracePeriodSeconds", -1);
    p->grace_ns = grace < 0 ? -1 : grace * CLOCK_SECOND;
}

static int add_containers(struct pod_spec *s, const char *list, bool init, struct err *e)
{
    size_t i;
    json_t *json;
    json_array_foreach(json_at(s->pod, "spec", list), i, json) {
        const char *restart = json_str(json, "restartPolicy");
        struct pod_container c = {
            .name = json_str(json, "name"),
            .image = json_str(json, "image"),
            .json = json,
            .role = !init                                  ? POD_MAIN
                    : restart && str_eq(restart, "Always") ? POD_SIDECAR
                                                           : POD_INIT,
            .pre_stop = json_at(json, "lifecycle", "preStop"),
        };
        if (!c.name || !*c.name || strchr(c.name, '/') || c.name[0] == '.' ||
            s->containers.len == CONTAINERS_MOST)
            return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                           "spec.%s[%zu] has no name that can be used, or is one too many", list,
                           i);
        if (!c.image)
            c.image = "";
        parse_probe(json_object_get(json, "startupProbe"), &c.probes[POD_STARTUP]);
        parse_probe(json_object_get(json, "livenessProbe"), &c.probes[POD_LIVENESS]);
        parse_probe(json_object_get(json, "readinessProbe"), &c.probes[POD_READINESS]);
        vec_push(&s->containers, c);
    }
    return 0;
}

static bool is_segment(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/');
}

int pod_spec_parse(json_t *pod, struct pod_spec *ret_spec, struct err *e)
{
    const json_t *spec = json_object_get(pod, "spec");
    const char *policy = json_str(spec, "restartPolicy");
    struct pod_spec s = {
        .pod = json_incref(pod),
        .ns = kube_namespace(pod),
        .name = kube_name(pod),
        .uid = kube_uid(pod),
        .policy = policy && str_eq(policy, "Never")       ? POD_NEVER
                  : policy && str_eq(policy, "OnFailure") ? POD_ON_FAILURE
                                                          : POD_ALWAYS,
        .grace_ns = at_least(number(spec, "terminationGracePeriodSeconds", 30), 0) * CLOCK_SECOND,
        .deadline_ns = number(spec, "activeDeadlineSeconds", -1) * CLOCK_SECOND,
        .host_process = api_pod_asks_for_host(pod),
    };
    int r = 0;
    if (!is_segment(s.ns) || !is_segment(s.name) || !is_segment(s.uid))
        r = err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "the pod has no name, namespace or uid");
    if (r < 0 || add_containers(&s, "initContainers", true, e) < 0 ||
        add_containers(&s, "containers", false, e) < 0) {
        pod_spec_done(&s);
        return -1;
    }
    *ret_spec = s;
    return 0;
}

void pod_spec_done(struct pod_spec *s)
{
    vec_done(&s->containers);
    json_decref(s->pod);
    *s = (struct pod_spec){0};
}

/* What one container says of a resource; 0 when it says nothing. */
static __int128 amount(const json_t *container, const char *list, const char *resource)
{
    const char *text = json_str(json_at(container, "resources", list), resource);
    struct quantity q;
    return text && quantity_parse(text, &q, NULL) == 0 ? q.nano : 0;
}

const char *pod_qos_class(const json_t *pod)
{
    static const char *const lists[] = {"initContainers", "containers"};
    static const char *const resources[] = {"cpu", "memory"};
    bool any = false, guaranteed = true;
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        size_t i;
        json_t *container;
        json_array_foreach(json_at(pod, "spec", lists[l]), i, container) {
            for (size_t r = 0; r < ARRAY_SIZE(resources); r++) {
                __int128 limit = amount(container, "limits", resources[r]);
                __int128 request = amount(container, "requests", resources[r]);
                any |= limit || request;
                guaranteed &= limit && (!request || request == limit);
            }
        }
    }
    return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

unsigned pod_port(const json_t *container, const json_t *port)
{
    size_t i;
    json_t *entry;
    int64_t n = json_is_integer(port) ? json_integer_value(port) : 0;
    const char *text = json_string_value(port);
    json_array_foreach(json_object_get(container, "ports"), i, entry) {
        const char *name = json_str(entry, "name");
        if (text && name && str_eq(name, text))
            n = json_integer_value(json_object_get(entry, "containerPort"));
    }
    if (text && n == 0)
        n = strtol(text, NULL, 10);
    return n > 0 && n < 65536 ? (unsigned)n : 0;
}
