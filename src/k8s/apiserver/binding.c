/*
 * /binding of a pod: the one way to say where it runs. A pod is bound once.
 */
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

enum { TRIES = 20 };

/* For a Status about it. */
static const struct api_kind binding_kind = {
    .kind = "Binding",
    .plural = "pods/binding",
    .singular = "binding",
    .versions = API_VERSION("", "v1"),
};

/* The target of a binding; NULL with problems in c->report or c->err. */
static const char *target_of(struct call *c, const json_t *binding)
{
    const struct api_path *at = API_KEY(NULL, "target");
    const json_t *target = json_object_get(binding, "target");
    const char *kind = json_str(target, "kind"), *name = json_str(target, "name");
    const char *own = json_str(json_object_get(binding, "metadata"), "name");
    if (own && *own && !str_eq(own, c->path.name)) {
        call_bad_request(c, "the name of the binding does not match the name of the pod");
        return NULL;
    }
    if (kind && *kind && !str_eq(kind, "Node"))
        api_problem(&c->report, API_KEY(at, "kind"), API_UNSUPPORTED,
                    json_object_get(target, "kind"), "supported values: \"Node\", \"<empty>\"");
    if (!name || !*name)
        api_problem(&c->report, API_KEY(at, "name"), API_MISSING, NULL, "say which node");
    if (!c->report.errors)
        return name;
    c->path.kind = &binding_kind;
    c->path.gv = binding_kind.versions;
    err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid", "the target is invalid");
    return NULL;
}

static int conflict(struct call *c, const char *fmt, const char *what)
    __attribute__((format(printf, 2, 0)));

static int conflict(struct call *c, const char *fmt, const char *what)
{
    _cleanup_free_ char *text = mem_printf(fmt, what);
    return err_set(&c->err, ERR_ABORTED, "Conflict",
                   "Operation cannot be fulfilled on pods/binding \"%s\": %s", c->path.name, text);
}

/* What the binding says the pod is. */
static int check_pod(struct call *c, const json_t *pod, const json_t *binding)
{
    const json_t *metadata = json_object_get(pod, "metadata");
    const char *node = json_str(json_object_get(pod, "spec"), "nodeName");
    const char *uid = json_str(json_object_get(binding, "metadata"), "uid");
    const char *own = json_str(metadata, "uid");
    if (uid && *uid && own && !str_eq(uid, own))
        return conflict(c, "Precondition failed: UID in precondition: %s", uid);
    if (json_object_get(metadata, "deletionTimestamp"))
        return conflict(c, "pod %s is being deleted, cannot be assigned to a host", c->path.name);
    if (node && *node)
        return conflict(c, "pod is already assigned to node \"%s\"", node);
    if (json_array_size(json_at(pod, "spec", "schedulingGates")))
        return conflict(c, "pod %s has non-empty .spec.schedulingGates", c->path.name);
    return 0;
}

static void bind_pod(struct call *c, json_t *pod, const json_t *binding, const char *node)
{
    char now[RFC3339_MAX];
    registry_now(&c->server->registry, now);
    json_object_set_new(json_object_at(pod, "spec"), "nodeName", json_string(node));
    json_t *annotations = json_object_get(json_object_get(binding, "metadata"), "annotations");
    if (json_object_size(annotations))
        json_object_update(json_object_at(json_object_at(pod, "metadata"), "annotations"),
                           annotations);
    json_t *conditions = json_array(), *value;
    size_t i;
    json_array_foreach((json_t *)json_at(pod, "status", "conditions"), i, value) {
        const char *type = json_str(value, "type");
        if (type && !str_eq(type, "PodScheduled"))
            json_array_append(conditions, value);
    }
    json_array_append_new(conditions, json_pack("{s:s,s:s,s:s}", "type", "PodScheduled", "status",
                                                "True", "lastTransitionTime", now));
    json_object_set_new(json_object_at(pod, "status"), "conditions", conditions);
}

/* One try: 0, -1 with c->err, or 1 when somebody else was faster. */
static int try_binding(struct call *c, const json_t *binding, const char *node)
{
    struct apiserver_request r = call_request(c);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *there =
        registry_current(&c->server->registry, &r, &c->err);
    json_auto_t *pod = there ? json_parse(there->bytes, there->size, NULL, &c->err) : NULL;
    if (!pod || check_pod(c, pod, binding) < 0)
        return -1;
    bind_pod(c, pod, binding, node);
    struct apiserver_object *o =
        apiserver_update(&c->server->registry, &r, pod, &c->report, &c->err);
    apiserver_object_unref(o);
    return o ? 0 : c->err.code == ERR_ABORTED ? 1 : -1;
}

void call_binding(struct call *c)
{
    json_auto_t *binding = call_body(c);
    const char *node = binding ? target_of(c, binding) : NULL;
    int status = node ? 1 : -1;
    for (int tries = TRIES; tries && status > 0; tries--)
        status = try_binding(c, binding, node);
    if (status != 0) {
        call_fail(c);
        return;
    }
    json_auto_t *answer = json_pack("{s:s,s:s,s:{},s:s,s:i}", "kind", "Status", "apiVersion", "v1",
                                    "metadata", "status", "Success", "code", 201);
    call_reply_json(c, 201, answer);
}
