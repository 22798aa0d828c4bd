/*
 * Volumes whose content is in the API: configMap, secret, downwardAPI, projected.
 */
#include <stdlib.h>

#include "k8s/kubelet/pod_content.h"
#include "kube/object.h"

enum { FILES_MOST = 10000, BYTES_MOST = 32 << 20 };

void pod_files_done(struct pod_files *f)
{
    vec_for_each(&f->p, it) {
        free(it->path);
        str_done(&it->data);
    }
    vec_done(&f->p);
}

bool pod_volume_is_payload(const json_t *volume)
{
    return json_object_get(volume, "configMap") || json_object_get(volume, "secret") ||
           json_object_get(volume, "downwardAPI") || json_object_get(volume, "projected");
}

/* A relative path that stays within the volume and clear of our own names in it. */
static bool is_path(const char *path)
{
    if (!*path || *path == '/' || str_starts_with(path, ".."))
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && *at == '.') || (n == 2 && strncmp(at, "..", 2) == 0))
            return false;
    }
    return true;
}

/* Takes the data over. A path that comes twice is the later one's. */
static int add(struct pod_files *f, const char *path, struct str *data, unsigned mode,
               struct err *e)
{
    size_t total = data->len;
    if (!is_path(path))
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "\"%.100s\" is no path within a volume",
                       path);
    vec_for_each(&f->p, it) {
        total += it->data.len;
        if (str_eq(it->path, path)) {
            str_done(&it->data);
            it->data = *data;
            it->mode = mode;
            *data = (struct str){0};
            return 0;
        }
    }
    if (f->p.len >= FILES_MOST || total > BYTES_MOST)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "TooLarge", "a volume has too many files");
    vec_push(&f->p, (struct pod_file){mem_strdup(path), *data, mode});
    *data = (struct str){0};
    return 0;
}

static unsigned mode_of(const json_t *object, const char *key, unsigned usual)
{
    const json_t *mode = json_object_get(object, key);
    return json_is_integer(mode) ? (unsigned)json_integer_value(mode) & 0777 : usual;
}

static int add_keys(struct pod_files *f, const char *kind, const json_t *object, unsigned mode,
                    struct err *e)
{
    static const char *const members[] = {"data", "binaryData"};
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        const char *key;
        json_t *value;
        json_object_foreach(json_object_get(object, members[i]), key, value) {
            _cleanup_(str_done) struct str data = {0};
            if (pod_source_value(kind, members[i], value, &data) && add(f, key, &data, mode, e) < 0)
                return -1;
        }
    }
    return 0;
}

/* A ConfigMap or Secret: all keys, or those that items name. */
static int add_object(struct pod_files *f, const char *kind, const char *ns, const char *name,
                      const json_t *from, unsigned mode, const struct pod_source *source,
                      struct err *e)
{
    bool optional = json_is_true(json_object_get(from, "optional"));
    json_auto_t *object = source->get(source->context, kind, ns, name ? name : "", e);
    if (!object)
        return optional && e->code == ERR_NOT_FOUND ? 0 : -1;
    const json_t *items = json_object_get(from, "items");
    if (!json_array_size(items))
        return add_keys(f, kind, object, mode, e);
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item) {
        const char *key = json_str(item, "key"), *path = json_str(item, "path");
        _cleanup_(str_done) struct str data = {0};
        if (!pod_source_value(kind, "data", json_at(object, "data", key ? key : ""), &data) &&
            !pod_source_value(kind, "binaryData", json_at(object, "binaryData", key ? key : ""),
                              &data)) {
            if (optional)
                continue;
            return err_set(e, ERR_NOT_FOUND, "NotFound",
                           "references non-existent config key: %.100s", key ? key : "");
        }
        if (add(f, path ? path : "", &data, mode_of(item, "mode", mode), e) < 0)
            return -1;
    }
    return 0;
}

static int add_facts(struct pod_files *f, const struct pod_spec *spec,
                     const struct pod_place *place, const json_t *from, unsigned mode,
                     struct err *e)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(from, "items"), i, item) {
        const json_t *field = json_object_get(item, "fieldRef");
        const json_t *resource = json_object_get(item, "resourceFieldRef");
        const char *path = json_str(item, "path"), *fact = json_str(field, "fieldPath");
        _cleanup_(str_done) struct str data = {0};
        int r = resource ? pod_resource_field(spec->pod, NULL, resource, &data, e)
                         : pod_field(spec->pod, place, fact ? fact : "", &data, e);
        if (r < 0 || add(f, path ? path : "", &data, mode_of(item, "mode", mode), e) < 0)
            return -1;
    }
    return 0;
}

static int add_token(struct pod_files *f, const struct pod_spec *spec, const json_t *from,
                     unsigned mode, const struct pod_source *source, struct err *e)
{
    const char *path = json_str(from, "path"), *audience = json_str(from, "audience");
    const json_t *seconds = json_object_get(from, "expirationSeconds");
    int64_t lasts = json_is_integer(seconds) ? json_integer_value(seconds) : 3600, expires;
    _cleanup_(str_done) struct str data = {0};
    if (source->token(source->context, spec->pod, audience, lasts, &data, &expires, e) < 0)
        return -1;
    /* At four fifths of its life, as Kubernetes does. */
    int64_t renew = expires - lasts * CLOCK_SECOND / 5;
    if (renew < f->renew_ns)
        f->renew_ns = renew;
    return add(f, path ? path : "", &data, mode, e);
}

static int add_source(struct pod_files *f, const struct pod_spec *spec,
                      const struct pod_place *place, const json_t *from, unsigned mode,
                      const struct pod_source *source, struct err *e)
{
    const json_t *part;
    if ((part = json_object_get(from, "configMap")))
        return add_object(f, "ConfigMap", spec->ns, json_str(part, "name"), part,
                          mode_of(part, "defaultMode", mode), source, e);
    if ((part = json_object_get(from, "secret"))) {
        const char *name = json_str(part, "secretName");
        return add_object(f, "Secret", spec->ns, name ? name : json_str(part, "name"), part,
                          mode_of(part, "defaultMode", mode), source, e);
    }
    if ((part = json_object_get(from, "downwardAPI")))
        return add_facts(f, spec, place, part, mode_of(part, "defaultMode", mode), e);
    if ((part = json_object_get(from, "serviceAccountToken")))
        return add_token(f, spec, part, mode, source, e);
    return err_set(e, ERR_UNIMPLEMENTED, "NotSupported",
                   "a projected volume takes configMap, secret, downwardAPI and "
                   "serviceAccountToken here");
}

int pod_payload(const struct pod_spec *spec, const json_t *volume, const struct pod_place *place,
                const struct pod_source *source, struct pod_files *ret_files, struct err *e)
{
    struct pod_files f = {.renew_ns = INT64_MAX};
    const json_t *projected = json_object_get(volume, "projected");
    unsigned mode = mode_of(projected, "defaultMode", 0644);
    int r = projected ? 0 : add_source(&f, spec, place, volume, mode, source, e);
    size_t i;
    json_t *from;
    json_array_foreach(json_object_get(projected, "sources"), i, from) {
        if (r == 0)
            r = add_source(&f, spec, place, from, mode, source, e);
    }
    if (r < 0)
        pod_files_done(&f);
    else
        *ret_files = f;
    return r;
}
