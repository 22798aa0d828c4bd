/*
 * Limits of containers, by cgroup v2. A folder is needed whose controllers may be handed on: the
 * kernel does not allow that for one that has processes itself, so an own one is used only where it
 * can be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/quantity.h"
#include "k8s/kubelet/pod_impl.h"

#define ROOT "/sys/fs/cgroup"

static int put(const char *folder, const char *file, const char *text, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int errnum = errno;
    if (fd >= 0)
        close(fd);
    return ok ? 0 : err_errno(e, errnum, "%s", path);
}

/* Our own folder, out of "0::/path". */
static char *own_folder(struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    struct statfs fs;
    if (statfs(ROOT, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
        err_set(e, ERR_UNIMPLEMENTED, "NotSupported", "the machine has no cgroup v2 at " ROOT);
        return NULL;
    }
    if (file_read("/proc/self/cgroup", 65536, &text, e) < 0)
        return NULL;
    const char *line = strstr(str_get(&text), "0::/");
    if (!line) {
        err_set(e, ERR_UNIMPLEMENTED, "NotSupported", "this process is in no cgroup v2");
        return NULL;
    }
    return mem_printf(ROOT "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
}

char *pod_cgroup_base(const char *given, struct err *e)
{
    _cleanup_free_ char *parent = given ? mem_strdup(given) : own_folder(e);
    if (!parent || put(parent, "cgroup.subtree_control", "+cpu +memory +pids", e) < 0)
        return NULL;
    char *base = mem_printf("%s/orlop-pods", parent);
    if ((mkdir(base, 0755) < 0 && errno != EEXIST && err_errno(e, errno, "%s", base)) ||
        put(base, "cgroup.subtree_control", "+cpu +memory +pids", e) < 0) {
        free(base);
        return NULL;
    }
    return base;
}

char *pod_cgroup_path(const char *base, const char *id)
{
    char *path = mem_printf("%s/%s", base, id);
    for (char *at = path + strlen(base) + 1; (at = strchr(at, '/'));)
        *at = '_';
    return path;
}

static bool limit(const json_t *container, const char *resource, struct quantity *ret)
{
    const char *text = json_str(json_at(container, "resources", "limits"), resource);
    return text && quantity_parse(text, ret, NULL) == 0;
}

char *pod_cgroup_make(const char *base, const char *id, const json_t *container, struct err *e)
{
    char *path = pod_cgroup_path(base, id), text[64];
    struct quantity q;
    int r = mkdir(path, 0755) < 0 && errno != EEXIST ? err_errno(e, errno, "%s", path) : 0;
    if (r == 0 && limit(container, "memory", &q)) {
        snprintf(text, sizeof(text), "%lld", (long long)quantity_to_int(&q));
        r = put(path, "memory.max", text, e);
    }
    if (r == 0 && limit(container, "cpu", &q)) {
        /* Of 100 ms; the kernel takes no less than 1 ms. */
        long long quota = (long long)(q.nano / 10000);
        snprintf(text, sizeof(text), "%lld 100000", quota < 1000 ? 1000 : quota);
        r = put(path, "cpu.max", text, e);
    }
    if (r == 0 && limit(container, "pids", &q)) {
        snprintf(text, sizeof(text), "%lld", (long long)quantity_to_int(&q));
        r = put(path, "pids.max", text, e);
    }
    if (r == 0)
        return path;
    pod_cgroup_remove(path);
    free(path);
    return NULL;
}

bool pod_cgroup_oom(const char *folder)
{
    _cleanup_free_ char *path = mem_printf("%s/memory.events", folder);
    _cleanup_(str_done) struct str text = {0};
    if (file_read(path, 4096, &text, NULL) < 0)
        return false;
    const char *line = strstr(str_get(&text), "oom_kill ");
    return line && strtoll(line + strlen("oom_kill "), NULL, 10) > 0;
}

void pod_cgroup_remove(const char *folder)
{
    rmdir(folder);
}

bool pod_has_limits(const json_t *pod)
{
    size_t i;
    json_t *container;
    json_array_foreach(json_at(pod, "spec", "containers"), i, container) {
        if (json_object_size(json_at(container, "resources", "limits")))
            return true;
    }
    return false;
}
