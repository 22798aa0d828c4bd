/*
 * What kubectl shows of a pod: how many containers are ready, and in one word how it is. The word is
 * the pod's phase or reason, unless a container says more; then of those before the others, and of
 * the first before the next.
 */
#include "base/age.h"
#include "k8s/kinds/cells.h"

struct pod {
    struct str status;
    json_int_t ready, total, restarts;
    const char *restarted; /* when the last container that ended did; NULL */
};

static void pod_done(struct pod *p)
{
    str_done(&p->status);
}

static const char *word_at(const json_t *container, const char *state)
{
    const char *reason = json_string_value(json_at(container, "state", state, "reason"));
    return reason && *reason ? reason : NULL;
}

static json_int_t number_at(const json_t *container, const char *member)
{
    return json_integer_value(json_at(container, "state", "terminated", member));
}

/* Why it ended. */
static void say_ended(struct str *out, const char *prefix, const json_t *container)
{
    const char *reason = word_at(container, "terminated");
    str_clear(out);
    if (reason)
        str_appendf(out, "%s%s", prefix, reason);
    else if (number_at(container, "signal"))
        str_appendf(out, "%sSignal:%" JSON_INTEGER_FORMAT, prefix, number_at(container, "signal"));
    else
        str_appendf(out, "%sExitCode:%" JSON_INTEGER_FORMAT, prefix,
                    number_at(container, "exitCode"));
}

static void count_restarts(struct pod *p, const json_t *container)
{
    const char *ended =
        json_string_value(json_at(container, "lastState", "terminated", "finishedAt"));
    p->restarts += json_integer_value(json_object_get(container, "restartCount"));
    if (ended && (!p->restarted || strcmp(ended, p->restarted) > 0))
        p->restarted = ended;
}

/* A container that starts before the others and stays. */
static bool is_sidecar(const json_t *spec, const json_t *status)
{
    size_t i;
    json_t *container;
    const char *name = json_str(status, "name");
    json_array_foreach(json_object_get(spec, "initContainers"), i, container) {
        const char *is = json_str(container, "name"),
                   *policy = json_str(container, "restartPolicy");
        if (name && is && str_eq(is, name))
            return policy && str_eq(policy, "Always");
    }
    return false;
}

/* Whether those that come first are done; else what they say is the pod's status. */
static bool look_at_first(struct pod *p, const json_t *pod)
{
    const json_t *spec = json_object_get(pod, "spec");
    size_t i;
    json_t *container;
    json_array_foreach(json_at(pod, "status", "initContainerStatuses"), i, container) {
        const json_t *ended = json_at(container, "state", "terminated");
        const char *waits = word_at(container, "waiting");
        bool sidecar = is_sidecar(spec, container);
        count_restarts(p, container);
        if (ended && number_at(container, "exitCode") == 0)
            continue;
        if (sidecar && json_is_true(json_object_get(container, "started"))) {
            p->ready += json_is_true(json_object_get(container, "ready"));
            continue;
        }
        if (ended) {
            say_ended(&p->status, "Init:", container);
            return false;
        }
        str_clear(&p->status);
        if (waits && !str_eq(waits, "PodInitializing"))
            str_appendf(&p->status, "Init:%s", waits);
        else
            str_appendf(&p->status, "Init:%zu/%zu", i,
                        json_array_size(json_object_get(spec, "initContainers")));
        return false;
    }
    return true;
}

static bool is_ready(const json_t *pod)
{
    size_t i;
    json_t *condition;
    json_array_foreach(json_at(pod, "status", "conditions"), i, condition) {
        const char *type = json_str(condition, "type"), *status = json_str(condition, "status");
        if (type && status && str_eq(type, "Ready"))
            return str_eq(status, "True");
    }
    return false;
}

static void look_at_rest(struct pod *p, const json_t *pod)
{
    const json_t *all = json_at(pod, "status", "containerStatuses");
    bool running = false;
    for (size_t i = json_array_size(all); i > 0; i--) {
        const json_t *container = json_array_get(all, i - 1);
        const char *waits = word_at(container, "waiting");
        count_restarts(p, container);
        if (waits) {
            str_clear(&p->status);
            str_append(&p->status, waits);
        } else if (json_at(container, "state", "terminated")) {
            say_ended(&p->status, "", container);
        } else if (json_is_true(json_object_get(container, "ready")) &&
                   json_at(container, "state", "running")) {
            running = true;
            p->ready++;
        }
    }
    if (running && str_eq(str_get(&p->status), "Completed")) { /* one has ended, others run */
        str_clear(&p->status);
        str_append(&p->status, is_ready(pod) ? "Running" : "NotReady");
    }
}

static void look_at(const json_t *pod, struct pod *ret)
{
    *ret = (struct pod){0};
    const json_t *spec = json_object_get(pod, "spec");
    const char *phase = json_string_value(json_at(pod, "status", "phase"));
    const char *reason = json_string_value(json_at(pod, "status", "reason"));
    size_t i;
    json_t *container;
    str_append(&ret->status, reason && *reason ? reason : phase ? phase : "");
    if (json_array_size(json_object_get(spec, "schedulingGates"))) {
        str_clear(&ret->status);
        str_append(&ret->status, "SchedulingGated");
    }
    ret->total = (json_int_t)json_array_size(json_object_get(spec, "containers"));
    json_array_foreach(json_object_get(spec, "initContainers"), i, container)
        ret->total += is_sidecar(spec, container);
    if (look_at_first(ret, pod))
        look_at_rest(ret, pod);
    bool ended = phase && (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"));
    if (json_at(pod, "metadata", "deletionTimestamp") && !ended) {
        bool lost = reason && str_eq(reason, "NodeLost");
        str_clear(&ret->status);
        str_append(&ret->status, lost ? "Unknown" : "Terminating");
    }
}

json_t *api_cell_pod_ready(const json_t *object, int64_t now)
{
    (void)now;
    _cleanup_(pod_done) struct pod p;
    look_at(object, &p);
    return json_sprintf("%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT, p.ready, p.total);
}

json_t *api_cell_pod_status(const json_t *object, int64_t now)
{
    (void)now;
    _cleanup_(pod_done) struct pod p;
    look_at(object, &p);
    return json_string(str_get(&p.status));
}

json_t *api_cell_pod_restarts(const json_t *object, int64_t now)
{
    char age[AGE_MAX];
    _cleanup_(pod_done) struct pod p;
    look_at(object, &p);
    if (p.restarts && p.restarted)
        return json_sprintf("%" JSON_INTEGER_FORMAT " (%s ago)", p.restarts,
                            age_since(p.restarted, now, age));
    return json_sprintf("%" JSON_INTEGER_FORMAT, p.restarts);
}

json_t *api_cell_pod_address(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_text(json_string_value(json_at(object, "status", "podIP")), "<none>");
}

json_t *api_cell_pod_node(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_text(json_string_value(json_at(object, "spec", "nodeName")), "<none>");
}

json_t *api_cell_pod_nominated(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_text(json_string_value(json_at(object, "status", "nominatedNodeName")),
                         "<none>");
}

json_t *api_cell_pod_gates(const json_t *object, int64_t now)
{
    (void)now;
    const json_t *gates = json_at(object, "spec", "readinessGates");
    size_t open = 0, i, j;
    json_t *gate, *condition;
    if (!json_array_size(gates))
        return json_string("<none>");
    json_array_foreach((json_t *)gates, i, gate) {
        const char *wanted = json_str(gate, "conditionType");
        json_array_foreach(json_at(object, "status", "conditions"), j, condition) {
            const char *type = json_str(condition, "type"), *status = json_str(condition, "status");
            if (wanted && type && status && str_eq(type, wanted)) {
                open += str_eq(status, "True");
                break;
            }
        }
    }
    return json_sprintf("%zu/%zu", open, json_array_size(gates));
}
