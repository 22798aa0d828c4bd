#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

static void close_fd(const int *fd)
{
    int kept = errno;
    if (*fd >= 0)
        close(*fd);
    errno = kept;
}

/* Where a descriptor is; what is deleted has no place. */
static bool find_place(int fd, char ret_path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret_path, PATH_MAX - 1);
    if (n <= 0)
        return false;
    ret_path[n] = '\0';
    struct stat here, there;
    return fstat(fd, &here) == 0 && lstat(ret_path, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

static bool is_below(const char *folder, const char *path)
{
    size_t n = strlen(folder);
    return strncmp(folder, path, n) == 0 && (path[n] == '/' || !path[n] || str_eq(folder, "/"));
}

/* O_NONBLOCK: what is no file, a pipe say, is not waited for. */
static int open_and_look(int folder, const char *path, int flags)
{
    char base[PATH_MAX], place[PATH_MAX];
    int fd = openat(folder, path, flags | O_NONBLOCK);
    if (fd < 0 || (*path != '/' && find_place(folder, base) && find_place(fd, place) &&
                   is_below(base, place)))
        return fd;
    close(fd);
    errno = EXDEV;
    return -1;
}

int beneath_open(int folder, const char *path, int flags)
{
    static atomic_bool missing;
    const struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    if (flags & (O_CREAT | O_TRUNC)) {
        errno = EINVAL;
        return -1;
    }
    if (!atomic_load(&missing)) {
        long fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return (int)fd;
        atomic_store(&missing, errno == ENOSYS);
    }
    return open_and_look(folder, path, flags | O_CLOEXEC);
}

static int fail(const char *path, struct err *e)
{
    if (errno != EXDEV)
        return err_errno(e, errno, "%s", path);
    return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "\"%.200s\" leads out of its folder", path);
}

/* The part of the path that ends at `end`, made if it is not there. */
static int make_part(int folder, const char *path, size_t end, mode_t mode, struct err *e)
{
    _cleanup_free_ char *part = mem_strndup(path, end);
    int fd = beneath_open(folder, part, O_PATH);
    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? fail(path, e) : fd;
    char *slash = strrchr(part, '/');
    const char *name = slash ? slash + 1 : part;
    _cleanup_free_ char *above = slash ? mem_strndup(part, (size_t)(slash - part)) : NULL;
    _cleanup_(close_fd) int in = beneath_open(folder, above && *above ? above : ".", O_PATH);
    if (in < 0 || (mkdirat(in, name, mode) < 0 && errno != EEXIST) ||
        (fd = beneath_open(folder, part, O_PATH)) < 0)
        return fail(path, e);
    return fd;
}

int beneath_find(const char *folder, const char *path, struct str *ret_real, struct err *e)
{
    char place[PATH_MAX];
    _cleanup_(close_fd) int base = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(close_fd) int fd = base < 0 ? -1 : beneath_open(base, path, O_PATH);
    if (fd < 0 || !find_place(fd, place))
        return fail(path, e);
    str_append(ret_real, place);
    return 0;
}

int beneath_make(const char *folder, const char *path, mode_t mode, struct str *ret_real,
                 struct err *e)
{
    char place[PATH_MAX];
    _cleanup_(close_fd) int base = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return err_errno(e, errno, "%s", folder);
    for (size_t at = 0;; at++) {
        at += strcspn(path + at, "/");
        bool last = !path[at];
        if (at == 0 && !last) {
            errno = EXDEV; /* it is absolute */
            return fail(path, e);
        }
        _cleanup_(close_fd) int fd = make_part(base, path, at, mode, e);
        if (fd < 0)
            return -1;
        if (!last)
            continue;
        if (!find_place(fd, place))
            return err_errno(e, ENOENT, "%s", path);
        str_append(ret_real, place);
        return 0;
    }
}
