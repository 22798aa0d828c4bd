#include "api/format.h"
#include "controllers/controllers.h"
#include "controllers/volume/volume.h"

struct volume_settings volume_settings = {
    .dir = "/var/lib/orlop/jiva",
    .image_prefix = "",
    .rehome_ns = 300 * CLOCK_SECOND,
    .rehome_most = 2,
};

/* Reading. */

const char *volume_text(const json_t *object, const char *part, const char *key)
{
    return json_text(object, part, key);
}

const char *volume_annotation(const json_t *object, const char *key)
{
    const char *text = kube_annotation(object, key);
    return text ? text : "";
}

const char *volume_id(const struct volume_engine *x, const json_t *volume)
{
    return volume_annotation(volume, x->id);
}

bool volume_id_is_sound(const struct volume_engine *x, const json_t *volume)
{
    return !*volume_id(x, volume) || !api_volume_id.check(volume_id(x, volume));
}

struct volume_view volume_look(const struct volume_work *w)
{
    struct volume_view view;
    w->c->engine->view(w->volume, &view);
    return view;
}

uint64_t volume_amount(struct api_amount quantity)
{
    return *quantity.text && quantity.n > 0 ? (uint64_t)quantity.n : 0;
}

uint64_t volume_bytes(const json_t *quantity)
{
    return volume_amount(
        (struct api_amount){json_text_or_empty(quantity), api_quantity_int(quantity)});
}

json_t *volume_list(const json_t *volume, const char *annotation)
{
    json_t *list = json_array();
    for (const char *at = volume_annotation(volume, annotation); *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        _cleanup_free_ char *name = mem_strndup(at, n);
        if (!api_dns_subdomain.check(name)) /* it becomes a part of a path */
            json_array_append_new(list, json_string(name));
        at += n;
    }
    return list;
}

bool volume_listed(const json_t *list, const char *name)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)list, i, it) {
        if (str_eq(json_string_value(it), name))
            return true;
    }
    return false;
}

json_t *volume_list_text(const json_t *list)
{
    _cleanup_(str_done) struct str out = {0};
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)list, i, it)
        str_appendf(&out, "%s%s", i ? "," : "", json_string_value(it));
    return out.len ? json_string(str_get(&out)) : json_null();
}

json_t *volume_pods(struct volume_controller *v, const json_t *volume, const char *component)
{
    _cleanup_free_ char *key =
        mem_printf("%s/%s/%s", kube_namespace(volume), kube_name(volume), component);
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    json_t *pods = json_array();
    kube_informer_find(v->pods, "volume", key, &found);
    for (size_t i = 0; i < found.len; i++)
        json_array_append_new(pods, kube_object_json(found.p[i]));
    return pods;
}

bool volume_node_is_ready(struct volume_controller *v, const char *node)
{
    json_auto_t *object = kube_informer_json(v->nodes, NULL, node, NULL);
    return object && kube_condition_is_true(object, "Ready");
}

void volume_again(struct volume_work *w, int64_t ns)
{
    if (!w->result->again_ns || ns < w->result->again_ns)
        w->result->again_ns = ns;
}

/* Writing. */

int volume_patch(struct volume_work *w, json_t *patch, const char *what, struct err *e)
{
    json_t *metadata = json_object_at(patch, "metadata");
    json_object_set_new(metadata, "resourceVersion", json_string(kube_version(w->volume)));
    crash_point(what);
    json_t *now = kube_patch(w->c->client, &w->c->volumes_r, w->ns, w->name, KUBE_MERGE_PATCH,
                             patch, NULL, e);
    crash_point(what);
    if (!now)
        return -1;
    json_decref(w->volume);
    w->volume = now;
    return 0;
}

int volume_annotate(struct volume_work *w, const char *what, json_t *annotations, struct err *e)
{
    json_auto_t *patch = json_pack("{s:{s:o}}", "metadata", "annotations", annotations);
    return volume_patch(w, patch, what, e);
}

int volume_hold(struct volume_controller *v, const struct kube_resource *r, json_t **object,
                const char *finalizer, bool hold, struct err *e)
{
    if (kube_finalizer_has(*object, finalizer) == hold)
        return 0;
    crash_point("finalizer");
    int status = hold ? kube_finalizer_add(v->client, r, object, finalizer, e)
                      : kube_finalizer_remove(v->client, r, object, finalizer, e);
    crash_point("finalizer");
    return status;
}

int volume_write_status(struct volume_controller *v, const struct kube_resource *r, json_t **object,
                        const json_t *status, struct err *e)
{
    const char *phase = json_str(status, "phase");
    if (json_equal(json_object_get(*object, "status"), status))
        return 0;
    crash_point(phase ? phase : "status");
    int done = kube_status_write(v->client, r, object, status, e);
    crash_point(phase ? phase : "status");
    return done;
}

int volume_say(struct volume_work *w, enum volume_state state,
               const struct kube_condition *condition, struct err *e)
{
    json_auto_t *status = kube_status_copy(w->volume);
    json_t *conditions = json_array_at(status, "conditions");
    bool differs = kube_condition_set(conditions, condition, w->c->clock);
    if (state != VOLUME_SAID)
        w->c->engine->tell_state(w->volume, state, status, w->c->clock);
    int r = volume_write_status(w->c, &w->c->volumes_r, &w->volume, status, e);
    if (r == 0 && differs && str_eq(condition->status, "False"))
        kube_event_warning(w->c->recorder, w->volume, condition->reason, "%s", condition->message);
    return r;
}

int volume_delete(struct volume_controller *v, const struct kube_resource *r, const json_t *object,
                  bool now, struct err *e)
{
    const struct kube_delete o = {
        .uid = kube_uid(object), .propagation = "Background", .grace_seconds = now ? 0 : -1};
    crash_point("delete");
    int status = kube_delete(v->client, r, kube_namespace(object), kube_name(object), &o, e);
    crash_point("delete");
    return status;
}

/* Setting up. */

static void pod_values(const json_t *pod, struct kube_index_values *out)
{
    const char *volume = kube_label(pod, VOLUME_LABEL),
               *component = kube_label(pod, VOLUME_COMPONENT);
    if (!volume || !component)
        return;
    _cleanup_free_ char *key = mem_printf("%s/%s/%s", kube_namespace(pod), volume, component);
    kube_index_add(out, key);
}

static void resize_values(const json_t *resize, struct kube_index_values *out)
{
    const char *volume = kube_label(resize, volume_jiva.resize->about);
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(resize), volume ? volume : "");
    kube_index_add(out, key);
}

static void free_controller(void *context)
{
    struct volume_controller *v = context;
    map_done(&v->rehoming);
    map_done(&v->promised);
    json_decref(v->recent);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

/* What has the engine's label. */
static struct kube_children follow_children(struct volume_controller *v, struct kube_manager *m,
                                            const char *version, const char *kind)
{
    struct kube_resource r = kube_resource(version, kind);
    _cleanup_free_ char *labels = mem_printf(VOLUME_ENGINE "=%s", v->engine->name);
    return (struct kube_children){r, kube_manager_informer(m, r, NULL, labels, NULL)};
}

static struct volume_controller *controller_new(const struct volume_engine *x,
                                                struct kube_manager *m)
{
    static const struct kube_index of_pods = {"volume", pod_values};
    struct volume_controller *v = NEW(struct volume_controller);
    kube_manager_on_stop(m, free_controller, v);
    pthread_mutex_init(&v->lock, NULL);
    v->engine = x;
    v->recent = json_object();
    v->clock = kube_manager_clock(m);
    v->ages = kube_manager_ages(m);
    v->client = kube_manager_client(m);
    v->recorder = kube_manager_recorder(m);
    v->volumes_r = kube_resource(x->version, x->kind);
    v->volumes = kube_manager_informer(m, v->volumes_r, NULL, NULL, NULL);
    v->nodes = kube_manager_informer(m, kube_resource("v1", "Node"), NULL, NULL, NULL);
    v->pvs = kube_manager_informer(m, kube_resource("v1", "PersistentVolume"), NULL, NULL, NULL);
    struct kube_children pods = follow_children(v, m, "v1", "Pod");
    v->pods_r = pods.r;
    v->pods = pods.informer;
    kube_informer_add_index(v->pods, &of_pods);
    if (x->resize) {
        static const struct kube_index of_resizes = {"volume", resize_values};
        v->resizes_r = kube_resource(x->version, x->resize->kind);
        v->resizes = kube_manager_informer(m, v->resizes_r, NULL, NULL, NULL);
        kube_informer_add_index(v->resizes, &of_resizes);
    }
    return v;
}

static int setup_volumes(const struct volume_engine *x, struct kube_manager *m, struct err *e)
{
    struct volume_controller *v = controller_new(x, m);
    v->secrets = follow_children(v, m, "v1", "Secret");
    kube_informer_add_index(v->secrets.informer, &kube_children_by_owner);
    v->accounts = follow_children(v, m, "v1", "ServiceAccount");
    v->roles = follow_children(v, m, "rbac.authorization.k8s.io/v1", "Role");
    v->bindings = follow_children(v, m, "rbac.authorization.k8s.io/v1", "RoleBinding");
    v->services = follow_children(v, m, "v1", "Service");
    v->deployments = follow_children(v, m, "apps/v1", "Deployment");
    if (x->follow)
        x->follow(v, m);
    return volume_setup(v, m, e);
}

int controllers_cstor_volume(struct kube_manager *m, struct err *e)
{
    return setup_volumes(&volume_cstor, m, e);
}

int controllers_jiva_volume(struct kube_manager *m, struct err *e)
{
    return setup_volumes(&volume_jiva, m, e);
}

int controllers_jiva_resize(struct kube_manager *m, struct err *e)
{
    struct volume_controller *v = controller_new(&volume_jiva, m);
    v->quotas = kube_manager_informer(m, kube_resource("v1", "ResourceQuota"), NULL, NULL, NULL);
    return volume_setup_resize(v, m, e);
}
