/*
 *     FOLDER/a          -> ..data/a          a name per first segment
 *     FOLDER/..data     -> ..v1a2b3c         replaced with rename(2)
 *     FOLDER/..v1a2b3c/a                     the files
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/uuid.h"
#include "k8s/kubelet/pod_content.h"

static bool same(const char *folder, const struct pod_files *f)
{
    vec_for_each(&f->p, it) {
        _cleanup_free_ char *path = mem_printf("%s/%s", folder, it->path);
        _cleanup_(str_done) struct str data = {0};
        struct stat st;
        if (stat(path, &st) < 0 || (st.st_mode & 0777) != it->mode ||
            file_read(path, it->data.len, &data, NULL) < 0 || data.len != it->data.len ||
            (data.len && memcmp(data.p, it->data.p, data.len) != 0))
            return false;
    }
    return true;
}

static size_t count_files(const char *folder, unsigned depth)
{
    DIR *d = depth > 40 ? NULL : opendir(folder);
    size_t n = 0;
    struct dirent *entry;
    while (d && (entry = readdir(d))) {
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        _cleanup_free_ char *path = mem_printf("%s/%s", folder, entry->d_name);
        n += entry->d_type == DT_DIR ? count_files(path, depth + 1) : 1;
    }
    if (d)
        closedir(d);
    return n;
}

/* No sync: after a crash of the machine the pod starts anew and they are written again. */
static int write_file(const char *folder, const struct pod_file *f, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, f->path);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    if (file_make_dirs(path, 0755, e) < 0)
        return -1;
    *slash = '/';
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t done = 0;
    while (fd >= 0 && done < f->data.len) {
        ssize_t n = write(fd, f->data.p + done, f->data.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        done += (size_t)n;
    }
    int r = fd < 0 || done < f->data.len || fchmod(fd, f->mode) < 0
                ? err_errno(e, errno, "%s", path)
                : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

static int point(const char *folder, const char *name, const char *to, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
    _cleanup_free_ char *fresh = mem_printf("%s/..new", folder);
    unlink(fresh);
    if (symlink(to, fresh) < 0 || rename(fresh, path) < 0)
        return err_errno(e, errno, "%s", path);
    return 0;
}

/* Names that lead to what is no more, and folders of earlier versions. */
static int remove_old(const char *folder, const char *version, struct err *e)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    int r = 0;
    while (d && r == 0 && (entry = readdir(d))) {
        const char *name = entry->d_name;
        _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
        struct stat st;
        if (str_starts_with(name, "..v") && !str_eq(name, version))
            r = file_remove_tree(path, e);
        else if (name[0] != '.' || (name[1] && !str_starts_with(name, "..")))
            if (stat(path, &st) < 0 && errno == ENOENT)
                unlink(path);
    }
    if (d)
        closedir(d);
    return r;
}

int pod_files_write(const char *folder, const struct pod_files *f, struct err *e)
{
    _cleanup_free_ char *current = mem_printf("%s/..data", folder);
    char text[UUID_TEXT_MAX], target[PATH_MAX];
    struct uuid u = uuid_random();
    ssize_t n = readlink(current, target, sizeof(target) - 1);
    if (n > 0) {
        target[n] = '\0';
        _cleanup_free_ char *now = mem_printf("%s/%s", folder, target);
        if (same(now, f) && count_files(now, 0) == f->p.len)
            return 0;
    }
    _cleanup_free_ char *version = mem_printf("..v%s", uuid_format(&u, text));
    _cleanup_free_ char *fresh = mem_printf("%s/%s", folder, version);
    if (file_make_dirs(fresh, 0755, e) < 0)
        return -1;
    vec_for_each(&f->p, it) {
        if (write_file(fresh, it, e) < 0) {
            file_remove_tree(fresh, NULL);
            return -1;
        }
    }
    if (point(folder, "..data", version, e) < 0)
        return -1;
    vec_for_each(&f->p, it) {
        _cleanup_free_ char *first = mem_strndup(it->path, strcspn(it->path, "/"));
        _cleanup_free_ char *to = mem_printf("..data/%s", first);
        if (point(folder, first, to, e) < 0)
            return -1;
    }
    return remove_old(folder, version, e);
}
