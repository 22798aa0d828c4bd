/*
 * Volumes as paths of the host.
 *
 *     FOLDER/volumes/NAME      emptyDir, and all that is out of the API
 *     FOLDER/volumes/.access   the account's token, with a kubeconfig that leads to it
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/file.h"
#include "k8s/kubelet/pod_content.h"
#include "kube/object.h"

static char *own_path(const char *folder, const char *volume)
{
    return mem_printf("%s/volumes/%s", folder, volume);
}

bool pod_wants_access(const json_t *pod)
{
    return !json_is_false(json_at(pod, "spec", "automountServiceAccountToken"));
}

char *pod_access_path(const char *folder)
{
    return mem_printf("%s/volumes/.access/kubeconfig", folder);
}

static int make_folder(const char *path, mode_t mode, struct err *e)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    if (file_make_dirs(path, 0755, e) < 0)
        return -1;
    return chmod(path, mode) < 0 ? err_errno(e, errno, "%s", path) : 0;
}

/* What a hostPath must be. */
static int check_host_path(const json_t *source, struct err *e)
{
    static const struct {
        const char *type;
        mode_t format, create;
    } types[] = {
        {"DirectoryOrCreate", S_IFDIR, 0755},
        {"Directory", S_IFDIR, 0},
        {"FileOrCreate", S_IFREG, 0644},
        {"File", S_IFREG, 0},
        {"Socket", S_IFSOCK, 0},
        {"CharDevice", S_IFCHR, 0},
        {"BlockDevice", S_IFBLK, 0},
    };
    const char *path = json_str(source, "path"), *type = json_str(source, "type");
    struct stat st;
    if (!path || *path != '/' || strstr(path, "/../"))
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "hostPath \"%.100s\" is no path",
                       path ? path : "");
    for (size_t i = 0; type && i < ARRAY_SIZE(types); i++) {
        if (!str_eq(types[i].type, type))
            continue;
        bool there = stat(path, &st) == 0;
        if (!there && types[i].create && types[i].format == S_IFDIR)
            return file_make_dirs(path, types[i].create, e);
        if (!there && types[i].create)
            return mknod(path, S_IFREG | types[i].create, 0) < 0 ? err_errno(e, errno, "%s", path)
                                                                 : 0;
        if (!there || (st.st_mode & S_IFMT) != types[i].format)
            return err_set(e, ERR_FAILED_PRECONDITION, "Invalid",
                           "hostPath type check failed: %.200s is not a %s", path, type);
    }
    return stat(path, &st) < 0 ? err_errno(e, errno, "hostPath %s", path) : 0;
}

static int claim_path(const struct pod_spec *spec, const json_t *claim,
                      const struct node_pods_options *o, struct str *ret_path, struct err *e)
{
    const char *name = json_str(claim, "claimName");
    bool read_only = json_is_true(json_object_get(claim, "readOnly"));
    if (!o->claim)
        return err_set(e, ERR_UNIMPLEMENTED, "NotSupported",
                       "claim \"%.100s\": this node cannot mount claims yet", name ? name : "");
    return o->claim(o->claim_context, spec->pod, name ? name : "", read_only, ret_path, e);
}

/* The path of a volume; it is made when that is asked for. */
static int volume_path(const struct pod_spec *spec, const json_t *volume,
                       const struct pod_paths *paths, struct str *ret_path, struct err *e)
{
    const char *name = json_str(volume, "name");
    const json_t *host = json_object_get(volume, "hostPath");
    const json_t *claim = json_object_get(volume, "persistentVolumeClaim");
    const char *host_path = json_str(host, "path");
    if (claim)
        return claim_path(spec, claim, paths->options, ret_path, e);
    if (host_path) {
        str_append(ret_path, host_path);
        return 0;
    }
    if (!name || strchr(name, '/') || *name == '.')
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "a volume has no name");
    _cleanup_free_ char *own = own_path(paths->folder, name);
    str_append(ret_path, own);
    return 0;
}

static int set_up_payload(const struct pod_spec *spec, const json_t *volume, const char *path,
                          const struct pod_place *place, const struct pod_source *source,
                          int64_t *ret_renew, struct err *e)
{
    _cleanup_(pod_files_done) struct pod_files files = {0};
    if (make_folder(path, 0755, e) < 0 || pod_payload(spec, volume, place, source, &files, e) < 0)
        return -1;
    if (files.renew_ns < *ret_renew)
        *ret_renew = files.renew_ns;
    return pod_files_write(path, &files, e);
}

static int set_up_volume(const struct pod_spec *spec, const json_t *volume,
                         const struct pod_paths *paths, const struct pod_place *place,
                         const struct pod_source *source, int64_t *ret_renew, struct err *e)
{
    _cleanup_(str_done) struct str path = {0};
    const json_t *host = json_object_get(volume, "hostPath");
    if (volume_path(spec, volume, paths, &path, e) < 0)
        return -1;
    if (host)
        return check_host_path(host, e);
    if (json_object_get(volume, "persistentVolumeClaim"))
        return 0;
    if (pod_volume_is_payload(volume))
        return set_up_payload(spec, volume, str_get(&path), place, source, ret_renew, e);
    if (json_object_get(volume, "emptyDir"))
        return make_folder(str_get(&path), 0777, e);
    return err_set(e, ERR_UNIMPLEMENTED, "NotSupported",
                   "volumes of this type are not known here; there are emptyDir, hostPath, "
                   "configMap, secret, projected, downwardAPI and persistentVolumeClaim");
}

/* The token as a volume that nobody has to write down, and a kubeconfig beside it. */
static int set_up_access(const struct pod_spec *spec, const struct pod_paths *paths,
                         const struct pod_place *place, const struct pod_source *source,
                         int64_t *ret_renew, struct err *e)
{
    json_auto_t *volume = json_pack(
        "{s:{s:i, s:[{s:{s:s, s:i}}, {s:{s:s, s:[{s:s, s:s}]}}, {s:{s:[{s:s, s:{s:s}}]}}]}}",
        "projected", "defaultMode", 0600, "sources", "serviceAccountToken", "path", "token",
        "expirationSeconds", 3607, "configMap", "name", "kube-root-ca.crt", "items", "key",
        "ca.crt", "path", "ca.crt", "downwardAPI", "items", "path", "namespace", "fieldRef",
        "fieldPath", "metadata.namespace");
    _cleanup_free_ char *folder = own_path(paths->folder, ".access");
    _cleanup_free_ char *path = pod_access_path(paths->folder);
    if (set_up_payload(spec, volume, folder, place, source, ret_renew, e) < 0)
        return -1;
    bool v6 = strchr(place->api_host, ':');
    json_auto_t *config =
        json_pack("{s:s, s:s, s:s, s:[{s:s, s:{s:o, s:o}}], s:[{s:s, s:{s:o}}], "
                  "s:[{s:s, s:{s:s, s:s, s:s}}]}",
                  "apiVersion", "v1", "kind", "Config", "current-context", "pod", "clusters",
                  "name", "pod", "cluster", "server",
                  json_sprintf("https://%s%s%s:%s", v6 ? "[" : "", place->api_host, v6 ? "]" : "",
                               place->api_port),
                  "certificate-authority", json_sprintf("%s/ca.crt", folder), "users", "name",
                  "pod", "user", "tokenFile", json_sprintf("%s/token", folder), "contexts", "name",
                  "pod", "context", "cluster", "pod", "user", "pod", "namespace", spec->ns);
    _cleanup_(str_done) struct str text = {0}, old = {0};
    json_format_pretty(config, &text);
    if (file_read(path, text.len, &old, NULL) == 0 && str_eq(str_get(&old), str_get(&text)))
        return 0;
    return file_replace(path, str_get(&text), text.len, 0600, e);
}

int pod_volumes_set_up(const struct pod_spec *spec, const struct pod_paths *paths,
                       const struct pod_place *place, const struct pod_source *source,
                       int64_t *ret_renew, struct err *e)
{
    size_t i;
    json_t *volume;
    *ret_renew = INT64_MAX;
    json_array_foreach(json_at(spec->pod, "spec", "volumes"), i, volume) {
        if (set_up_volume(spec, volume, paths, place, source, ret_renew, e) < 0)
            return err_prefix(e, "MountVolume.SetUp failed for volume \"%s\" ",
                              json_text(volume, "name"));
    }
    if (pod_wants_access(spec->pod) && set_up_access(spec, paths, place, source, ret_renew, e) < 0)
        return err_prefix(e, "MountVolume.SetUp failed for the account's token");
    return 0;
}

void pod_volumes_release(const struct pod_spec *spec, const struct node_pods_options *o)
{
    size_t i;
    json_t *volume;
    json_array_foreach(json_at(spec->pod, "spec", "volumes"), i, volume) {
        const char *claim = json_str(json_object_get(volume, "persistentVolumeClaim"), "claimName");
        if (claim && o->release)
            o->release(o->claim_context, spec->pod, claim);
    }
}

void pod_mounts_done(struct pod_mounts *m)
{
    vec_for_each(&m->p, it) {
        free(it->source);
        free(it->target);
    }
    vec_done(&m->p);
}

/* Part of a volume. No link that a container made may lead out of it, and nothing is made outside. */
static int enter_sub_path(struct str *path, const char *sub, struct err *e)
{
    _cleanup_(str_done) struct str real = {0};
    if (beneath_make(str_get(path), sub, 0755, &real, e) < 0)
        return err_prefix(e, "subPath");
    str_clear(path);
    str_append(path, str_get(&real));
    return 0;
}

int pod_mounts_make(const struct pod_spec *spec, const struct pod_container *c,
                    const struct pod_paths *paths, const struct pod_vars *vars,
                    struct pod_mounts *ret_mounts, struct err *e)
{
    size_t i;
    json_t *mount;
    json_array_foreach(json_object_get(c->json, "volumeMounts"), i, mount) {
        const char *name = json_str(mount, "name"), *at = json_str(mount, "mountPath");
        const char *sub = json_str(mount, "subPath"), *expr = json_str(mount, "subPathExpr");
        const json_t *volume =
            json_find(json_at(spec->pod, "spec", "volumes"), "name", name ? name : "");
        _cleanup_(str_done) struct str path = {0};
        _cleanup_free_ char *expanded = expr ? pod_expand(expr, vars) : NULL;
        if (!volume || !at || *at != '/' || strstr(at, "/../"))
            return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                           "volumeMounts[%zu]: there is no volume \"%.100s\", or no place for it",
                           i, name ? name : "");
        sub = expanded ? expanded : sub;
        if (volume_path(spec, volume, paths, &path, e) < 0 ||
            (sub && *sub && enter_sub_path(&path, sub, e) < 0))
            return -1;
        bool read_only = json_is_true(json_object_get(mount, "readOnly"));
        if (!read_only && str_eq(str_get(&path), at))
            continue; /* a path of the host at its own place: it is there */
        vec_push(&ret_mounts->p, (struct pod_mount){str_take(&path), mem_strdup(at), read_only});
    }
    if (ret_mounts->p.len && geteuid() != 0)
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "volumes are mounted in a mount namespace, and that takes root: start "
                       "orlop-node as root to run this Pod");
    return 0;
}
