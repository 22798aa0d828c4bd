/*
 * The downward API: what a container may ask about its own pod.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "k8s/kubelet/pod_content.h"
#include "kube/object.h"

/* key="value" lines, with the value as Go quotes it. */
static void all_of(const json_t *map, struct str *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value) {
        str_appendf(out, "%s%s=\"", out->len ? "\n" : "", key);
        for (const char *at = json_string_value(value); at && *at; at++) {
            if (*at == '"' || *at == '\\')
                str_appendf(out, "\\%c", *at);
            else if (*at == '\n')
                str_append(out, "\\n");
            else if (*at == '\t')
                str_append(out, "\\t");
            else
                str_append_c(out, *at);
        }
        str_append_c(out, '"');
    }
}

/* The key in "metadata.labels['key']"; NULL when it is another path. */
static char *subscript(const char *path, const char *prefix)
{
    size_t n = strlen(path), p = strlen(prefix);
    if (!str_starts_with(path, prefix) || n < p + 4 || strncmp(path + p, "['", 2) != 0 ||
        !str_ends_with(path, "']"))
        return NULL;
    return mem_strndup(path + p + 2, n - p - 4);
}

int pod_field(const json_t *pod, const struct pod_place *place, const char *path, struct str *out,
              struct err *e)
{
    const json_t *meta = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");
    const char *account = json_str(spec, "serviceAccountName");
    const struct {
        const char *path, *value;
    } known[] = {
        {"metadata.name", kube_name(pod)},
        {"metadata.namespace", kube_namespace(pod)},
        {"metadata.uid", kube_uid(pod)},
        {"spec.nodeName", place->node},
        {"spec.serviceAccountName", account && *account ? account : "default"},
        {"status.hostIP", place->host_ip},
        {"status.hostIPs", place->host_ip},
        {"status.podIP", place->pod_ip},
        {"status.podIPs", place->pod_ip},
    };
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (str_eq(known[i].path, path)) {
            str_append(out, known[i].value ? known[i].value : "");
            return 0;
        }
    }
    static const char *const maps[] = {"labels", "annotations"};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        _cleanup_free_ char *whole = mem_printf("metadata.%s", maps[i]);
        const json_t *map = json_object_get(meta, maps[i]);
        if (str_eq(path, whole)) {
            all_of(map, out);
            return 0;
        }
        _cleanup_free_ char *key = subscript(path, whole);
        const char *value = key ? json_str(map, key) : NULL;
        if (key) {
            str_append(out, value ? value : "");
            return 0;
        }
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "fieldPath \"%.100s\" is not known", path);
}

static const json_t *find_container(const json_t *pod, const char *name)
{
    const json_t *found = json_find(json_at(pod, "spec", "containers"), "name", name);
    return found ? found : json_find(json_at(pod, "spec", "initContainers"), "name", name);
}

/* A limit that is not set is what the machine has. */
static struct quantity of_machine(const char *resource)
{
    int64_t n = 0;
    if (str_eq(resource, "cpu"))
        n = sysconf(_SC_NPROCESSORS_ONLN);
    else if (str_eq(resource, "memory"))
        n = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return quantity_from_int(n, QUANTITY_DECIMAL_SI);
}

int pod_resource_field(const json_t *pod, const json_t *container, const json_t *ref,
                       struct str *out, struct err *e)
{
    const char *name = json_str(ref, "containerName"), *resource = json_str(ref, "resource");
    const char *divisor = json_str(ref, "divisor");
    struct quantity unit = quantity_from_int(1, QUANTITY_DECIMAL_SI), amount = {0};
    if (name && *name)
        container = find_container(pod, name);
    bool limits = resource && str_starts_with(resource, "limits.");
    if (!container || !resource || !(limits || str_starts_with(resource, "requests.")))
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                       "resourceFieldRef %.100s of container %.100s is not known",
                       resource ? resource : "", name ? name : "");
    const char *what = strchr(resource, '.') + 1;
    const char *text =
        json_str(json_at(container, "resources", limits ? "limits" : "requests"), what);
    if (text && quantity_parse(text, &amount, e) < 0)
        return -1;
    if (!text && limits)
        amount = of_machine(what);
    if (divisor && !str_eq(divisor, "0") && quantity_parse(divisor, &unit, e) < 0)
        return -1;
    if (unit.nano <= 0 || amount.nano < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "divisor \"%.40s\" is not above 0",
                       divisor);
    str_appendf(out, "%lld", (long long)((amount.nano + unit.nano - 1) / unit.nano));
    return 0;
}

bool pod_source_value(const char *kind, const char *member, const json_t *value, struct str *out)
{
    const char *text = json_string_value(value);
    if (!text)
        return false;
    if (str_eq(kind, "ConfigMap") && str_eq(member, "data")) {
        str_append_n(out, text, json_string_length(value));
        return true;
    }
    return base64_parse(text, json_string_length(value), BASE64_STD, out);
}

int pod_source_key(const struct pod_source *s, const char *kind, const char *ns, const char *name,
                   const char *key, struct str *out, struct err *e)
{
    static const char *const members[] = {"data", "binaryData"};
    json_auto_t *object = s->get(s->context, kind, ns, name, e);
    if (!object)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        if (pod_source_value(kind, members[i], json_at(object, members[i], key), out))
            return 0;
    }
    return err_set(e, ERR_NOT_FOUND, "NotFound", "couldn't find key %s in %s %s/%s", key, kind, ns,
                   name);
}
