#include "attach/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAKE_TRIES = 100 };

/* FNV-1a */
static uint64_t hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3;
    return h;
}

void attach_loop_prefix(const char *folder, char prefix[ATTACH_LABEL_SIZE])
{
    snprintf(prefix, ATTACH_LABEL_SIZE,
             ATTACH_LABEL_BEGIN "%016llx:", (unsigned long long)hash(folder));
}

void attach_loop_label(const char *folder, const char *id, char label[ATTACH_LABEL_SIZE])
{
    attach_loop_prefix(folder, label);
    size_t n = strlen(label);
    snprintf(label + n, ATTACH_LABEL_SIZE - n, "%016llx", (unsigned long long)hash(id));
}

static int device_open(const char *path, int flags)
{
    return open(path, flags | O_CLOEXEC);
}

/*
 * What sysfs says of a device: the name by which the backing file was opened. It stays when the file system
 * has died or was detached, where asking the device itself fails. False when it is not bound.
 */
static bool label_of(const char *name, char label[ATTACH_LABEL_SIZE])
{
    _cleanup_(str_done) struct str text = {0};
    struct err unbound;
    char path[300];
    snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", name);
    if (file_read(path, PATH_MAX + 16, &text, &unbound) < 0 || !text.len)
        return false;
    text.p[strcspn(text.p, "\n")] = 0;
    const char *slash = strrchr(text.p, '/');
    snprintf(label, ATTACH_LABEL_SIZE, "%s", slash ? slash + 1 : text.p);
    return true;
}

/* A device whose file system is dead says nothing, and is on none. */
static void look(struct attach_loop *l)
{
    struct loop_info64 info;
    int fd = device_open(l->path, O_RDONLY);
    if (fd < 0)
        return;
    if (ioctl(fd, LOOP_GET_STATUS64, &info) == 0)
        l->file_system = (dev_t)info.lo_device;
    ioctl(fd, BLKGETSIZE64, &l->size);
    close(fd);
}

static bool is_loop(const char *name)
{
    size_t n = strlen(name);
    return str_starts_with(name, "loop") && n > 4 && strspn(name + 4, "0123456789") == n - 4;
}

int attach_loop_list(const char *prefix, struct attach_loop **ret, size_t *ret_count, struct err *e)
{
    DIR *dir = opendir("/sys/block");
    if (!dir)
        return err_errno(e, errno, "/sys/block");
    struct attach_loop *found = NULL;
    size_t count = 0;
    for (struct dirent *d; (d = readdir(dir));) {
        struct attach_loop l = {0};
        if (!is_loop(d->d_name) || !label_of(d->d_name, l.label) ||
            !str_starts_with(l.label, prefix))
            continue;
        snprintf(l.path, sizeof(l.path), "/dev/%.*s", (int)sizeof(l.path) - 6, d->d_name);
        look(&l);
        found = mem_realloc_array(found, count + 1, sizeof(*found));
        found[count++] = l;
    }
    closedir(dir);
    *ret = found;
    *ret_count = count;
    return 0;
}

static void no_scheduler(unsigned number)
{
    char path[64];
    snprintf(path, sizeof(path), "/sys/block/loop%u/queue/scheduler", number);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "none", 4) < 0)
        log_debug("the I/O scheduler of a loop device stays", LOG_U("device", number));
    if (fd >= 0)
        close(fd);
}

/* 1: done, 0: somebody else was faster */
static int configure(int control, const struct loop_config *config, struct attach_loop *ret,
                     struct err *e)
{
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0)
        return err_errno(e, errno, "no free loop device");
    snprintf(ret->path, sizeof(ret->path), "/dev/loop%d", number);
    if (access(ret->path, F_OK) &&
        mknod(ret->path, S_IFBLK | 0600, makedev(7, (unsigned)number)) < 0 && errno != EEXIST)
        return err_errno(e, errno, "%s", ret->path);
    int fd = device_open(ret->path, O_RDWR);
    if (fd < 0)
        return err_errno(e, errno, "%s", ret->path);
    int result = ioctl(fd, LOOP_CONFIGURE, config);
    int error = errno;
    if (result == 0)
        no_scheduler((unsigned)number);
    close(fd);
    if (result < 0 && error == EBUSY)
        return 0;
    if (result < 0)
        return err_errno(e, error, "%s: cannot set it up", ret->path);
    look(ret);
    return 1;
}

int attach_loop_make(const char *mount, const char *label, uint32_t block_size,
                     struct attach_loop *ret, struct err *e)
{
    *ret = (struct attach_loop){0};
    snprintf(ret->label, sizeof(ret->label), "%s", label);
    struct loop_config config = {.block_size = block_size,
                                 .info = {.lo_flags = LO_FLAGS_DIRECT_IO}};
    _cleanup_free_ char *file = mem_printf("%s/%s", mount, label);
    int backing = open(file, O_RDWR | O_CLOEXEC | O_DIRECT);
    if (backing < 0)
        return err_errno(e, errno, "%s", file);
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0) {
        err_errno(e, errno, "/dev/loop-control: the kernel needs loop devices (modprobe loop)");
        close(backing);
        return -1;
    }
    config.fd = (uint32_t)backing;
    int result = 0;
    for (int tries = 0; result == 0 && tries < MAKE_TRIES; tries++)
        result = configure(control, &config, ret, e);
    close(control);
    close(backing);
    if (result == 0)
        return err_set(e, ERR_UNAVAILABLE, "NoLoopDevice",
                       "every free loop device is taken at once");
    return result < 0 ? -1 : 0;
}

int attach_loop_grow(const char *path, uint64_t *ret_size, struct err *e)
{
    int fd = device_open(path, O_RDWR);
    if (fd < 0)
        return err_errno(e, errno, "%s", path);
    int result = 0;
    if (ioctl(fd, LOOP_SET_CAPACITY, 0) < 0 || ioctl(fd, BLKGETSIZE64, ret_size) < 0)
        result = err_errno(e, errno, "%s: cannot take the new size", path);
    close(fd);
    return result;
}

bool attach_loop_in_use(const char *path)
{
    int fd = device_open(path, O_RDONLY | O_EXCL);
    if (fd < 0)
        return errno == EBUSY;
    close(fd);
    return false;
}

/*
 * Only what is safe between fork and exec in a program with threads. It keeps no descriptor of the parent,
 * for it may stay for as long as the target is away; nobody waits for it, not even when it ends.
 */
static void flush_alone(const char *path, int tell)
{
    if (fork() != 0)
        _exit(0);
    dup2(tell, 0);
    close_range(1, ~0U, 0);
    int fd = open(path, O_RDWR);
    int error = fd < 0 ? errno : fsync(fd) < 0 ? errno : 0;
    if (write(0, &error, sizeof(error)) < 0)
        _exit(1);
    _exit(0);
}

/* A process of its own does it: one that waits for I/O cannot even be killed, so it must not be the caller. */
int attach_loop_flush(const char *path, int64_t within_ns, struct err *e)
{
    int ends[2], status, error;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, errno, "pipe");
    pid_t pid = fork();
    if (pid == 0)
        flush_alone(path, ends[1]);
    int forked = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_errno(e, forked, "fork");
    }
    waitpid(pid, &status, 0);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    int64_t until = clock_mono_ns(clock_system()) + within_ns, left = within_ns;
    while (left >= 0 && poll(&p, 1, (int)(left / 1000000)) < 0 && errno == EINTR)
        left = until - clock_mono_ns(clock_system());
    bool done = p.revents && read(ends[0], &error, sizeof(error)) == sizeof(error);
    close(ends[0]);
    if (!done)
        return err_set(e, ERR_DEADLINE_EXCEEDED, "FlushTimeout", "%s cannot be flushed in time",
                       path);
    if (error == ENXIO || error == ENOENT)
        return 0;
    return error ? err_errno(e, error, "%s: cannot flush", path) : 0;
}

int attach_loop_remove(const char *path, struct err *e)
{
    int fd = device_open(path, O_RDONLY);
    if (fd < 0)
        return errno == ENOENT || errno == ENXIO ? 0 : err_errno(e, errno, "%s", path);
    int result = ioctl(fd, LOOP_CLR_FD) < 0 && errno != ENXIO
                     ? err_errno(e, errno, "%s: cannot detach it", path)
                     : 0;
    close(fd);
    return result;
}
