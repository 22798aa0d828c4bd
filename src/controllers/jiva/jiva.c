#include "controllers/jiva/jiva.h"

#include "api/format.h"
#include "base/quantity.h"
#include "controllers/controllers.h"
#include "json/patch.h"

struct jiva_settings jiva_settings = {
    .dir = "/var/lib/orlop/jiva",
    .image_prefix = "",
    .rehome_ns = 300 * CLOCK_SECOND,
    .rehome_most = 2,
};

/* Reading. */

const char *jiva_text(const json_t *object, const char *part, const char *key)
{
    const char *text = json_str(json_object_get(object, part), key);
    return text ? text : "";
}

const char *jiva_annotation(const json_t *object, const char *key)
{
    const char *text = kube_annotation(object, key);
    return text ? text : "";
}

const char *jiva_id(const json_t *volume)
{
    return jiva_annotation(volume, API_JIVA_ID);
}

bool jiva_id_is_sound(const json_t *volume)
{
    return !*jiva_id(volume) || !api_volume_id.check(jiva_id(volume));
}

uint64_t jiva_bytes(const json_t *quantity)
{
    return api_jiva_bytes(json_string_value(quantity));
}

json_t *jiva_list(const json_t *volume, const char *annotation)
{
    json_t *list = json_array();
    for (const char *at = jiva_annotation(volume, annotation); *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        _cleanup_free_ char *name = mem_strndup(at, n);
        if (!api_dns_subdomain.check(name)) /* it becomes a part of a path */
            json_array_append_new(list, json_string(name));
        at += n;
    }
    return list;
}

bool jiva_listed(const json_t *list, const char *name)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)list, i, it) {
        if (str_eq(json_string_value(it), name))
            return true;
    }
    return false;
}

json_t *jiva_list_text(const json_t *list)
{
    _cleanup_(str_done) struct str out = {0};
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)list, i, it)
        str_appendf(&out, "%s%s", i ? "," : "", json_string_value(it));
    return out.len ? json_string(str_get(&out)) : json_null();
}

json_t *jiva_pods(struct jiva *j, const json_t *volume, const char *component)
{
    _cleanup_free_ char *key =
        mem_printf("%s/%s/%s", kube_namespace(volume), kube_name(volume), component);
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    json_t *pods = json_array();
    kube_informer_find(j->pods, "jiva", key, &found);
    for (size_t i = 0; i < found.len; i++)
        json_array_append_new(pods, kube_object_json(found.p[i]));
    return pods;
}

bool jiva_node_is_ready(struct jiva *j, const char *node)
{
    json_auto_t *object = kube_informer_json(j->nodes, NULL, node, NULL);
    return object && kube_condition_is_true(object, "Ready");
}

void jiva_again(struct jiva_work *w, int64_t ns)
{
    if (!w->result->again_ns || ns < w->result->again_ns)
        w->result->again_ns = ns;
}

/* Writing. */

int jiva_patch_volume(struct jiva_work *w, json_t *patch, const char *what, struct err *e)
{
    json_t *metadata = json_object_get(patch, "metadata");
    if (!metadata) {
        metadata = json_object();
        json_object_set_new(patch, "metadata", metadata);
    }
    json_object_set_new(metadata, "resourceVersion", json_string(kube_version(w->volume)));
    crash_point(what);
    json_t *now = kube_patch(w->j->client, &w->j->volumes_r, w->ns, w->name, KUBE_MERGE_PATCH,
                             patch, NULL, e);
    crash_point(what);
    if (!now)
        return -1;
    json_decref(w->volume);
    w->volume = now;
    return 0;
}

static void set_diff(json_t *patch, const char *key, const json_t *is, const json_t *wanted)
{
    json_auto_t *nothing = json_object();
    json_t *diff = json_merge_diff(is ? is : nothing, wanted);
    if (json_object_size(diff))
        json_object_set_new(patch, key, diff);
    else
        json_decref(diff);
}

void jiva_patch_iscsi(const json_t *volume, const json_t *iscsi, json_t *patch)
{
    json_auto_t *published = api_jiva_iscsi_published(iscsi), *spec = json_object();
    set_diff(patch, "iscsi", json_object_get(volume, "iscsi"), iscsi);
    set_diff(spec, "iscsiSpec", json_at(volume, "spec", "iscsiSpec"), published);
    if (json_object_size(spec))
        json_object_set(patch, "spec", spec);
}

int jiva_annotate(struct jiva_work *w, const char *what, json_t *annotations, struct err *e)
{
    json_auto_t *patch = json_pack("{s:{s:o}}", "metadata", "annotations", annotations);
    return jiva_patch_volume(w, patch, what, e);
}

int jiva_hold(struct jiva *j, const struct kube_resource *r, json_t **object, const char *finalizer,
              bool hold, struct err *e)
{
    if (kube_finalizer_has(*object, finalizer) == hold)
        return 0;
    crash_point("finalizer");
    int status = hold ? kube_finalizer_add(j->client, r, object, finalizer, e)
                      : kube_finalizer_remove(j->client, r, object, finalizer, e);
    crash_point("finalizer");
    return status;
}

int jiva_write_status(struct jiva *j, const struct kube_resource *r, json_t **object,
                      const json_t *status, struct err *e)
{
    const char *phase = json_str(status, "phase");
    if (json_equal(json_object_get(*object, "status"), status))
        return 0;
    crash_point(phase ? phase : "status");
    int done = kube_status_write(j->client, r, object, status, e);
    crash_point(phase ? phase : "status");
    return done;
}

int jiva_say(struct jiva_work *w, json_t *more, const struct kube_condition *condition,
             struct err *e)
{
    json_auto_t *status = json_deep_copy(json_object_get(w->volume, "status"));
    if (!status)
        status = json_object();
    json_t *conditions = json_object_get(status, "conditions");
    if (!json_is_array(conditions)) {
        conditions = json_array();
        json_object_set_new(status, "conditions", conditions);
    }
    bool differs = kube_condition_set(conditions, condition, w->j->clock);
    if (more)
        json_object_update_new(status, more);
    int r = jiva_write_status(w->j, &w->j->volumes_r, &w->volume, status, e);
    if (r == 0 && differs && str_eq(condition->status, "False"))
        kube_event_warning(w->j->recorder, w->volume, condition->reason, "%s", condition->message);
    return r;
}

int jiva_delete(struct jiva *j, const struct kube_resource *r, const json_t *object, bool now,
                struct err *e)
{
    const struct kube_delete o = {
        .uid = kube_uid(object), .propagation = "Background", .grace_seconds = now ? 0 : -1};
    crash_point("delete");
    int status = kube_delete(j->client, r, kube_namespace(object), kube_name(object), &o, e);
    crash_point("delete");
    return status;
}

/* Setting up. */

static void pod_values(const json_t *pod, struct kube_index_values *out)
{
    const char *volume = kube_label(pod, JIVA_VOLUME_LABEL),
               *component = kube_label(pod, JIVA_COMPONENT);
    if (!volume || !component)
        return;
    _cleanup_free_ char *key = mem_printf("%s/%s/%s", kube_namespace(pod), volume, component);
    kube_index_add(out, key);
}

static void resize_values(const json_t *resize, struct kube_index_values *out)
{
    const char *volume = kube_label(resize, API_JIVA_NAME);
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(resize), volume ? volume : "");
    kube_index_add(out, key);
}

static void jiva_free(void *context)
{
    struct jiva *j = context;
    map_done(&j->rehoming);
    map_done(&j->promised);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

static struct jiva_children children(struct kube_manager *m, const char *version, const char *kind)
{
    struct kube_resource r = kube_resource(version, kind);
    return (struct jiva_children){
        r, kube_manager_informer(m, r, NULL, "openebs.io/cas-type=jiva", NULL)};
}

static struct jiva *jiva_new(struct kube_manager *m)
{
    static const struct kube_index of_pods = {"jiva", pod_values},
                                   of_resizes = {"volume", resize_values};
    struct jiva *j = NEW(struct jiva);
    kube_manager_on_stop(m, jiva_free, j);
    pthread_mutex_init(&j->lock, NULL);
    j->clock = kube_manager_clock(m);
    j->ages = kube_manager_ages(m);
    j->client = kube_manager_client(m);
    j->recorder = kube_manager_recorder(m);
    j->volumes_r = kube_resource(JIVA_VERSION, "JivaVolume");
    j->resizes_r = kube_resource(JIVA_VERSION, "JivaVolumeResize");
    j->pods_r = kube_resource("v1", "Pod");
    j->volumes = kube_manager_informer(m, j->volumes_r, NULL, NULL, NULL);
    j->resizes = kube_manager_informer(m, j->resizes_r, NULL, NULL, NULL);
    j->pods = kube_manager_informer(m, j->pods_r, NULL, "openebs.io/cas-type=jiva", NULL);
    j->nodes = kube_manager_informer(m, kube_resource("v1", "Node"), NULL, NULL, NULL);
    kube_informer_add_index(j->pods, &of_pods);
    kube_informer_add_index(j->resizes, &of_resizes);
    return j;
}

int controllers_jiva_volume(struct kube_manager *m, struct err *e)
{
    struct jiva *j = jiva_new(m);
    j->pvs = kube_manager_informer(m, kube_resource("v1", "PersistentVolume"), NULL, NULL, NULL);
    j->secrets = children(m, "v1", "Secret");
    j->accounts = children(m, "v1", "ServiceAccount");
    j->roles = children(m, "rbac.authorization.k8s.io/v1", "Role");
    j->bindings = children(m, "rbac.authorization.k8s.io/v1", "RoleBinding");
    j->services = children(m, "v1", "Service");
    j->deployments = children(m, "apps/v1", "Deployment");
    return jiva_setup_volume(j, m, e);
}

int controllers_jiva_resize(struct kube_manager *m, struct err *e)
{
    struct jiva *j = jiva_new(m);
    j->pvs = kube_manager_informer(m, kube_resource("v1", "PersistentVolume"), NULL, NULL, NULL);
    j->quotas = kube_manager_informer(m, kube_resource("v1", "ResourceQuota"), NULL, NULL, NULL);
    return jiva_setup_resize(j, m, e);
}
