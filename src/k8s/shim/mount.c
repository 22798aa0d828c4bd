/*
 * A container's view of the host: a mount namespace of its own, with its volumes bound into place.
 *
 * What the host mounts and unmounts later is followed (the namespace is a slave), where the host's mounts are
 * shared, as systemd makes them; nothing that is done here reaches the host. Where they are not shared, the
 * container keeps a copy of every mount that there was when it started, and whatever is unmounted on the host stays
 * in use until it ends. Taking copies away here would take from a host process what it may have come for, and
 * sharing the host's mounts is for its owner to say: docs/guides/pods.md tells how.
 *
 * A place that does not exist cannot be made without leaving it behind,
 * so the nearest folder above it is replaced by a copy in memory whose entries are bound to the
 * originals: the container sees all that was there, and its new place.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "k8s/shim/shim.h"

enum { ENTRIES_MOST = 2000 };

/* Makes to/name what from/name is, by a bind mount or as a symlink. */
static int bind_entry(const char *from, const char *to, const char *name)
{
    _cleanup_free_ char *source = mem_printf("%s/%s", from, name);
    _cleanup_free_ char *target = mem_printf("%s/%s", to, name);
    struct stat st;
    if (lstat(source, &st) < 0)
        return errno == ENOENT ? 0 : -1; /* it was removed meanwhile */
    if (S_ISLNK(st.st_mode)) {
        char text[PATH_MAX];
        ssize_t n = readlink(source, text, sizeof(text) - 1);
        if (n < 0)
            return -1;
        text[n] = '\0';
        return symlink(text, target);
    }
    if (S_ISDIR(st.st_mode) ? mkdir(target, 0755) : mknod(target, S_IFREG | 0644, 0))
        return -1;
    return mount(source, target, NULL, MS_BIND | MS_REC, NULL);
}

/* Puts a copy of the folder in its place. */
static int mimic(const char *folder, const char *staging, struct err *e)
{
    struct stat st;
    char options[64];
    unsigned entries = 0;
    if (stat(folder, &st) < 0 || (mkdir(staging, 0700) < 0 && errno != EEXIST))
        return err_errno(e, errno, "cannot copy the folder %s", folder);
    snprintf(options, sizeof(options), "mode=%o,uid=%u,gid=%u,size=64m",
             (unsigned)st.st_mode & 07777, st.st_uid, st.st_gid);
    if (mount("orlop", staging, "tmpfs", MS_NOSUID, options) < 0)
        return err_errno(e, errno, "cannot mount a tmpfs at %s", staging);
    DIR *d = opendir(folder);
    struct dirent *entry;
    int r = d ? 0 : -1;
    while (r == 0 && (entry = readdir(d))) {
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        errno = E2BIG;
        r = ++entries > ENTRIES_MOST ? -1 : bind_entry(folder, staging, entry->d_name);
    }
    if (r < 0)
        err_errno(e, errno, "cannot copy the folder %s; mount the volume where the folder exists",
                  folder);
    if (d)
        closedir(d);
    if (r < 0)
        return -1;
    bool root = str_eq(folder, "/");
    r = root ? chroot(staging) : mount(staging, folder, NULL, MS_MOVE, NULL);
    if (r < 0 || (root && chdir("/") < 0))
        return err_errno(e, errno, "cannot replace the folder %s", folder);
    return 0;
}

/* Makes sure that there is a folder, or a file, to mount on; what it really is is in *path. */
static int make_target(char path[PATH_MAX], bool folder, const char *staging, struct err *e)
{
    _cleanup_free_ char *wanted = mem_strdup(path);
    struct stat st;
    if (realpath(wanted, path)) {
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) == folder)
            return 0;
        return err_set(e, ERR_FAILED_PRECONDITION, "Invalid", "%s exists and is %s folder", wanted,
                       folder ? "no" : "a");
    }
    /* The part that exists, resolved, and the rest. */
    _cleanup_free_ char *above = mem_strdup(wanted);
    char base[PATH_MAX];
    char *slash;
    do {
        slash = strrchr(above, '/');
        *slash = '\0';
    } while (slash != above && !realpath(above, base) && errno == ENOENT);
    const char *rest = wanted + strlen(above);
    if (!realpath(*above ? above : "/", base) || stat(base, &st) < 0)
        return err_errno(e, errno, "%s", above);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAILED_PRECONDITION, "Invalid", "%s is no folder", base);
    if (mimic(base, staging, e) < 0)
        return -1;
    if (snprintf(path, PATH_MAX, "%s%s", str_eq(base, "/") ? "" : base, rest) >= PATH_MAX)
        return err_errno(e, ENAMETOOLONG, "%s", wanted);
    for (char *at = path + strlen(base); (at = strchr(at + 1, '/'));) {
        *at = '\0';
        bool ok = mkdir(path, 0755) == 0 || errno == EEXIST;
        *at = '/';
        if (!ok)
            return err_errno(e, errno, "%s", path);
    }
    if ((folder ? mkdir(path, 0755) : mknod(path, S_IFREG | 0644, 0)) < 0)
        return err_errno(e, errno, "cannot make %s", path);
    return 0;
}

static int bind_volume(const struct shim_mount *m, const char *staging, struct err *e)
{
    struct stat st;
    char target[PATH_MAX];
    /* Through a descriptor: making the target may put something else at the source's path. */
    int fd = open(m->source, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_errno(e, errno, "%s", m->source);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    _cleanup_free_ char *source = mem_printf("/proc/self/fd/%d", fd);
    if (snprintf(target, sizeof(target), "%s", m->target) >= (int)sizeof(target))
        err_errno(e, ENAMETOOLONG, "%s", m->target);
    else if (make_target(target, S_ISDIR(st.st_mode), staging, e) < 0)
        err_prefix(e, "mountPath %s", m->target);
    else if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0 ||
             (m->read_only &&
              mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0))
        err_errno(e, errno, "cannot mount %s at %s", m->source, target);
    else
        st.st_nlink = 0;
    close(fd);
    return st.st_nlink == 0 ? 0 : -1;
}

int shim_mount(const struct shim_spec *s, struct err *e)
{
    if (!s->mounts.len)
        return 0;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_errno(e, errno,
                         "cannot make a mount namespace: a Pod with volumes needs a node that runs "
                         "as root");
    _cleanup_free_ char *staging = mem_printf("%s/root", s->folder);
    vec_for_each(&s->mounts, it) {
        if (bind_volume(it, staging, e) < 0)
            return -1;
    }
    return 0;
}
