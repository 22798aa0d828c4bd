/*
 * What may be opened as a device: block devices, and files of the one folder that was named at the start.
 *
 * A path comes from an object that others may have written, and what is at a path may change between two
 * looks. So a device is pinned first, by a descriptor that reads and writes nothing; what it is, and where
 * it is, is asked of that; and it is opened through it.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "zpool/impl.h"

static char *folder_path; /* real, without a slash at its end; NULL: no files at all */
static int folder_fd = -1;

int zpool_open_files(const char *folder, struct err *e)
{
    char real[PATH_MAX];
    if (!folder)
        return 0;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !realpath(folder, real)) {
        int number = errno;
        if (fd >= 0)
            close(fd);
        /* There are no sparse devices on this node. */
        return number == ENOENT ? 0
                                : err_errno(e, number, "the folder of sparse devices, %s", folder);
    }
    folder_fd = fd;
    folder_path = mem_strdup(strcmp(real, "/") == 0 ? "" : real);
    return 0;
}

/* The path within the folder; NULL when by its name it is not there. */
static const char *find_inner(const char *path)
{
    size_t n = folder_path ? strlen(folder_path) : 0;
    return folder_path && strncmp(path, folder_path, n) == 0 && path[n] == '/' ? path + n + 1
                                                                               : NULL;
}

int zpool_device_pin(const char *path, struct stat *ret_st)
{
    const char *inner = find_inner(path);
    int fd = inner ? beneath_open(folder_fd, inner, O_PATH) : -1;
    bool file = fd >= 0;
    if (!inner || (fd < 0 && errno == EXDEV))
        fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = fstat(fd, ret_st) < 0 ? errno : 0;
    if (!error && !S_ISBLK(ret_st->st_mode) && !(file && S_ISREG(ret_st->st_mode)))
        error = ENOTBLK;
    if (!error)
        return fd;
    close(fd);
    return -error;
}

int zpool_device_open(int pin, int flags)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", pin);
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

const char *zpool_device_problem(int error)
{
    return error == ENOTBLK ? "it is no block device, and no file of this node's sparse devices"
                            : strerror(error);
}
