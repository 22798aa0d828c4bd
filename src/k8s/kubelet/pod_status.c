/*
 * The status of a Pod, in the words that kubelet uses.
 */
#include "base/rfc3339.h"
#include "k8s/kinds/kinds.h"
#include "k8s/kubelet/pod.h"
#include "kube/condition.h"
#include "kube/object.h"

static json_t *time_of(int64_t ns)
{
    char text[RFC3339_MAX];
    return json_string(rfc3339_format(rfc3339_from_ns(ns), RFC3339_SECONDS, text));
}

/* A text that may hold bytes of anybody's: what is no UTF-8 becomes "?". */
static json_t *text_of(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    _cleanup_(str_done) struct str clean = {0};
    for (; *text; text++)
        str_append_c(&clean, (unsigned char)*text < 0x80 ? *text : '?');
    return json_string(str_get(&clean));
}

static json_t *container_id(const struct pod_report *r, const struct pod_container *c, int number)
{
    return json_sprintf("orlop://%s/%s/%d", r->spec->uid, c->name, number);
}

static json_t *terminated(const struct pod_report *r, const struct pod_container *c,
                          const struct pod_end *end, int number)
{
    json_t *state =
        json_pack("{s:i, s:s, s:o, s:o, s:o}", "exitCode", end->exit_code, "reason",
                  end->reason ? end->reason : "Error", "startedAt", time_of(end->started),
                  "finishedAt", time_of(end->finished), "containerID", container_id(r, c, number));
    if (end->signal)
        json_object_set_new(state, "signal", json_integer(end->signal));
    if (*end->message)
        json_object_set_new(state, "message", text_of(end->message));
    return json_pack("{s:o}", "terminated", state);
}

static json_t *waiting(const char *reason, const char *message)
{
    json_t *state = json_pack("{s:s}", "reason", reason);
    if (message && *message)
        json_object_set_new(state, "message", text_of(message));
    return json_pack("{s:o}", "waiting", state);
}

static json_t *backing_off(const struct pod_report *r, const struct pod_container *c, int64_t ns)
{
    int64_t seconds = ns / CLOCK_SECOND;
    _cleanup_(str_done) struct str wait = {0};
    if (seconds >= 60)
        str_appendf(&wait, "%lldm", (long long)(seconds / 60));
    str_appendf(&wait, "%llds", (long long)(seconds % 60));
    _cleanup_free_ char *message =
        mem_printf("back-off %s restarting failed container=%s pod=%s_%s(%s)", str_get(&wait),
                   c->name, r->spec->name, r->spec->ns, r->spec->uid);
    return waiting("CrashLoopBackOff", message);
}

/* What it waits for that has not been started yet. */
static json_t *not_run(const struct pod_report *r, const struct pod_facts *f)
{
    if (f->blocked)
        return waiting(f->blocked, f->why);
    bool init = r->spec->containers.len && r->spec->containers.p[0].role != POD_MAIN;
    return waiting(init ? "PodInitializing" : "ContainerCreating", NULL);
}

static json_t *container_status(const struct pod_report *r, size_t i)
{
    const struct pod_container *c = &r->spec->containers.p[i];
    const struct pod_facts *f = &r->facts[i];
    int64_t backoff = r->plan->backoffs.p[i];
    json_t *state, *last = NULL;
    bool again = f->running == POD_ENDED && (backoff || f->blocked);
    if (f->running == POD_NOT_RUN)
        state = not_run(r, f);
    else if (f->running == POD_RUNNING)
        state = json_pack("{s:{s:o}}", "running", "startedAt", time_of(f->started));
    else if (!again)
        state = terminated(r, c, &f->end, f->number);
    else
        state = f->blocked ? waiting(f->blocked, f->why) : backing_off(r, c, backoff);
    if (again)
        last = terminated(r, c, &f->end, f->number);
    else if (f->has_last)
        last = terminated(r, c, &f->last, f->number - 1);
    const char *program = api_image_program(c->image);
    json_t *status = json_pack(
        "{s:s, s:o, s:o, s:b, s:b, s:i, s:s, s:o}", "name", c->name, "state", state, "lastState",
        last ? last : json_object(), "ready", pod_is_ready(c, f), "started", pod_is_started(c, f),
        "restartCount", f->number > 0 ? f->number : 0, "image", c->image, "imageID",
        program && f->number >= 0 ? json_sprintf("orlop://%s", program) : json_string(""));
    if (f->number >= 0)
        json_object_set_new(status, "containerID", container_id(r, c, f->number));
    return status;
}

/* "containers with unready status: [a b]"; empty when all are. */
static void list_unready(const struct pod_report *r, bool init, const char *what, struct str *out)
{
    for (size_t i = 0; i < r->spec->containers.len; i++) {
        const struct pod_container *c = &r->spec->containers.p[i];
        const struct pod_facts *f = &r->facts[i];
        bool ok = init && c->role == POD_SIDECAR ? pod_is_started(c, f) : pod_is_ready(c, f);
        if (ok || (init ? c->role == POD_MAIN : c->role == POD_INIT))
            continue;
        str_append(out, out->len ? " " : what);
        str_append(out, c->name);
    }
    if (out->len)
        str_append_c(out, ']');
}

static void set(const struct pod_report *r, json_t *conditions, const char *type, bool is,
                const char *reason, const char *message)
{
    struct kube_condition c = {type, is ? "True" : "False", reason, message, 0};
    kube_condition_set(conditions, &c, r->clock);
    size_t i;
    json_t *it;
    json_array_foreach(conditions, i, it) { /* Pods leave out what there is nothing to say of */
        static const char *const keys[] = {"reason", "message"};
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
            const char *text = json_str(it, keys[k]);
            if (text && !*text)
                json_object_del(it, keys[k]);
        }
    }
}

static bool gates_are_open(const struct pod_report *r, struct str *closed)
{
    size_t i;
    json_t *gate;
    json_array_foreach(json_at(r->spec->pod, "spec", "readinessGates"), i, gate) {
        const char *type = json_str(gate, "conditionType");
        if (type && !kube_condition_is_true(r->spec->pod, type))
            str_appendf(closed,
                        "%scorresponding condition of pod readiness gate \"%s\" does not exist or "
                        "is not true.",
                        closed->len ? " " : "", type);
    }
    return closed->len == 0;
}

static void set_conditions(const struct pod_report *r, json_t *conditions)
{
    _cleanup_(str_done) struct str unready = {0}, incomplete = {0}, closed = {0};
    list_unready(r, false, "containers with unready status: [", &unready);
    list_unready(r, true, "containers with incomplete status: [", &incomplete);
    bool ended = r->plan->phase == POD_SUCCEEDED || r->plan->phase == POD_FAILED;
    const char *over = r->plan->phase == POD_SUCCEEDED ? "PodCompleted" : "PodFailed";
    set(r, conditions, "PodScheduled", true, NULL, NULL);
    if (r->plan->initialized || r->plan->phase == POD_SUCCEEDED)
        set(r, conditions, "Initialized", true,
            r->plan->phase == POD_SUCCEEDED ? "PodCompleted" : NULL, NULL);
    else
        set(r, conditions, "Initialized", false, "ContainersNotInitialized", str_get(&incomplete));
    if (ended || unready.len) {
        const char *reason = ended ? over : "ContainersNotReady";
        const char *message = r->plan->phase == POD_SUCCEEDED ? NULL : str_get(&unready);
        set(r, conditions, "ContainersReady", false, reason, message);
        set(r, conditions, "Ready", false, reason, message);
    } else {
        set(r, conditions, "ContainersReady", true, NULL, NULL);
        bool open = gates_are_open(r, &closed);
        set(r, conditions, "Ready", open, open ? NULL : "ReadinessGatesNotReady",
            open ? NULL : str_get(&closed));
    }
    if (r->limits_message)
        set(r, conditions, "orlop.io/LimitsEnforced", false, "NoCgroup", r->limits_message);
}

static void set_address(json_t *status, const char *one, const char *many, const char *ip)
{
    if (!ip || !*ip)
        return;
    json_object_set_new(status, one, json_string(ip));
    json_object_set_new(status, many, json_pack("[{s:s}]", "ip", ip));
}

json_t *pod_status_make(const struct pod_report *r)
{
    static const char *const phases[] = {
        [POD_PENDING] = "Pending",
        [POD_PHASE_RUNNING] = "Running",
        [POD_SUCCEEDED] = "Succeeded",
        [POD_FAILED] = "Failed",
    };
    const json_t *old = json_object_get(r->spec->pod, "status");
    json_t *status = json_is_object(old) ? json_deep_copy(old) : json_object();
    json_t *conditions = json_object_get(status, "conditions");
    json_t *mains = json_array(), *inits = json_array();
    if (!json_is_array(conditions)) {
        conditions = json_array();
        json_object_set_new(status, "conditions", conditions);
    }
    for (size_t i = 0; i < r->spec->containers.len; i++)
        json_array_append_new(r->spec->containers.p[i].role == POD_MAIN ? mains : inits,
                              container_status(r, i));
    set_conditions(r, conditions);
    json_object_set_new(status, "phase", json_string(phases[r->plan->phase]));
    if (r->plan->past_deadline) {
        json_object_set_new(status, "reason", json_string("DeadlineExceeded"));
        json_object_set_new(
            status, "message",
            json_string("Pod was active on the node longer than the specified deadline"));
    }
    set_address(status, "hostIP", "hostIPs", r->place->host_ip);
    set_address(status, "podIP", "podIPs", r->place->pod_ip);
    json_object_set_new(status, "startTime", time_of(r->start_time));
    json_object_set_new(status, "qosClass", json_string(pod_qos_class(r->spec->pod)));
    json_object_set_new(status, "containerStatuses", mains);
    if (json_array_size(inits))
        json_object_set(status, "initContainerStatuses", inits);
    json_decref(inits);
    return status;
}
