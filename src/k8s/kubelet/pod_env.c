/*
 * The environment of a container, in the order in which later definitions win: what every container
 * gets, envFrom, env.
 */
#include <ctype.h>
#include <stdlib.h>

#include "k8s/kubelet/pod_content.h"
#include "k8s/shim/shim.h"
#include "kube/object.h"

void pod_vars_done(struct pod_vars *v)
{
    vec_for_each(&v->p, it)
        free(*it);
    vec_done(&v->p);
}

static char **find(const struct pod_vars *v, const char *name, size_t len)
{
    vec_for_each(&v->p, it) {
        if (strncmp(*it, name, len) == 0 && (*it)[len] == '=')
            return it;
    }
    return NULL;
}

const char *pod_vars_get(const struct pod_vars *v, const char *name)
{
    char **it = find(v, name, strlen(name));
    return it ? *it + strlen(name) + 1 : NULL;
}

static void set(struct pod_vars *v, const char *name, const char *value)
{
    char *entry = mem_printf("%s=%s", name, value ? value : "");
    char **it = find(v, name, strlen(name));
    if (it) {
        free(*it);
        *it = entry;
    } else {
        vec_push(&v->p, entry);
    }
}

char *pod_expand(const char *text, const struct pod_vars *v)
{
    struct str out = {0};
    while (*text) {
        const char *end = text[0] == '$' && text[1] == '(' ? strchr(text, ')') : NULL;
        char **it = end ? find(v, text + 2, (size_t)(end - text) - 2) : NULL;
        if (text[0] == '$' && text[1] == '$') {
            str_append_c(&out, '$');
            text += 2;
        } else if (it) {
            str_append(&out, strchr(*it, '=') + 1);
            text = end + 1;
        } else if (end) {
            str_append_n(&out, text, (size_t)(end - text) + 1);
            text = end + 1;
        } else {
            str_append_c(&out, *text++);
        }
    }
    return str_take(&out);
}

static bool is_name(const char *name)
{
    if (!*name || isdigit((unsigned char)*name))
        return false;
    for (; *name; name++) {
        if (!isalnum((unsigned char)*name) && !strchr("_.-", *name))
            return false;
    }
    return true;
}

static bool is_optional(const json_t *reference)
{
    return json_is_true(json_object_get(reference, "optional"));
}

/* All entries of a ConfigMap or Secret that can be variables. */
static int add_all(struct pod_vars *v, const struct pod_spec *spec, const json_t *entry,
                   const struct pod_source *source, struct err *e)
{
    const json_t *ref = json_object_get(entry, "configMapRef");
    const char *kind = ref ? "ConfigMap" : "Secret", *prefix = json_str(entry, "prefix");
    ref = ref ? ref : json_object_get(entry, "secretRef");
    const char *name = json_str(ref, "name"), *key;
    json_auto_t *object = source->get(source->context, kind, spec->ns, name ? name : "", e);
    if (!object)
        return is_optional(ref) && e->code == ERR_NOT_FOUND ? 0 : -1;
    json_t *value;
    json_object_foreach(json_object_get(object, "data"), key, value) {
        _cleanup_(str_done) struct str text = {0};
        _cleanup_free_ char *full = mem_printf("%s%s", prefix ? prefix : "", key);
        if (is_name(full) && pod_source_value(kind, "data", value, &text))
            set(v, full, str_get(&text));
    }
    return 0;
}

static int take_value(const struct pod_spec *spec, const struct pod_container *c,
                      const struct pod_place *place, const json_t *from,
                      const struct pod_source *source, bool *ret_missing, struct str *out,
                      struct err *e)
{
    const json_t *ref = json_object_get(from, "fieldRef");
    *ret_missing = false;
    if (ref) {
        return pod_field(spec->pod, place, json_text(ref, "fieldPath"), out, e);
    }
    if ((ref = json_object_get(from, "resourceFieldRef")))
        return pod_resource_field(spec->pod, c->json, ref, out, e);
    ref = json_object_get(from, "configMapKeyRef");
    const char *kind = ref ? "ConfigMap" : "Secret";
    if (!ref && !(ref = json_object_get(from, "secretKeyRef")))
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "valueFrom has no source that is known");
    const char *name = json_str(ref, "name"), *key = json_str(ref, "key");
    if (pod_source_key(source, kind, spec->ns, name ? name : "", key ? key : "", out, e) == 0)
        return 0;
    *ret_missing = is_optional(ref) && e->code == ERR_NOT_FOUND;
    return *ret_missing ? 0 : -1;
}

static int add_one(struct pod_vars *v, const struct pod_spec *spec, const struct pod_container *c,
                   const struct pod_place *place, const json_t *entry,
                   const struct pod_source *source, struct err *e)
{
    const char *name = json_str(entry, "name"), *value = json_str(entry, "value");
    const json_t *from = json_object_get(entry, "valueFrom");
    if (!name || !*name || strchr(name, '='))
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "a variable has no name");
    if (!from) {
        _cleanup_free_ char *expanded = pod_expand(value ? value : "", v);
        set(v, name, expanded);
        return 0;
    }
    _cleanup_(str_done) struct str text = {0};
    bool missing;
    if (take_value(spec, c, place, from, source, &missing, &text, e) < 0)
        return -1;
    if (!missing)
        set(v, name, str_get(&text));
    return 0;
}

int pod_vars_make(const struct pod_spec *spec, const struct pod_container *c,
                  const struct pod_place *place, const struct pod_source *source,
                  struct pod_vars *ret_vars, struct err *e)
{
    struct pod_vars v = {0};
    size_t i;
    json_t *entry;
    int r = 0;
    set(&v, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    set(&v, "HOSTNAME", spec->name);
    set(&v, "POD_IP", place->pod_ip);
    set(&v, "KUBERNETES_SERVICE_HOST", place->api_host);
    set(&v, "KUBERNETES_SERVICE_PORT", place->api_port);
    json_array_foreach(json_object_get(c->json, "envFrom"), i, entry) {
        if (r == 0)
            r = add_all(&v, spec, entry, source, e);
    }
    json_array_foreach(json_object_get(c->json, "env"), i, entry) {
        if (r == 0)
            r = add_one(&v, spec, c, place, entry, source, e);
    }
    if (r < 0)
        pod_vars_done(&v);
    else
        *ret_vars = v;
    return r;
}
