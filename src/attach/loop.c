#include "attach/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"

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
    snprintf(prefix, ATTACH_LABEL_SIZE, "orlop:%016llx:", (unsigned long long)hash(folder));
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

/* False when it is free, or gone. */
static bool look(unsigned number, struct attach_loop *ret)
{
    struct loop_info64 info;
    snprintf(ret->path, sizeof(ret->path), "/dev/loop%u", number);
    int fd = device_open(ret->path, O_RDONLY);
    if (fd < 0)
        return false;
    bool used = ioctl(fd, LOOP_GET_STATUS64, &info) == 0;
    if (used) {
        memcpy(ret->label, info.lo_file_name, sizeof(ret->label));
        ret->label[sizeof(ret->label) - 1] = 0;
        ret->file_system = (dev_t)info.lo_device;
        ret->size = 0;
        ioctl(fd, BLKGETSIZE64, &ret->size);
    }
    close(fd);
    return used;
}

/* sysfs lists a device as bound when it has a folder "loop". A look there costs no open of the device. */
int attach_loop_list(const char *prefix, struct attach_loop **ret, size_t *ret_count, struct err *e)
{
    DIR *dir = opendir("/sys/block");
    if (!dir)
        return err_errno(e, errno, "/sys/block");
    struct attach_loop *found = NULL;
    size_t count = 0;
    for (struct dirent *d; (d = readdir(dir));) {
        unsigned number;
        char extra, path[300];
        if (sscanf(d->d_name, "loop%u%c", &number, &extra) != 1)
            continue;
        snprintf(path, sizeof(path), "/sys/block/%s/loop", d->d_name);
        struct attach_loop l;
        if (access(path, F_OK) || !look(number, &l) || !str_starts_with(l.label, prefix))
            continue;
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
    return result < 0 ? err_errno(e, error, "%s: cannot set it up", ret->path)
                      : look((unsigned)number, ret);
}

int attach_loop_make(const char *file, const char *label, uint32_t block_size,
                     struct attach_loop *ret, struct err *e)
{
    struct loop_config config = {.block_size = block_size,
                                 .info = {.lo_flags = LO_FLAGS_DIRECT_IO}};
    snprintf((char *)config.info.lo_file_name, LO_NAME_SIZE, "%s", label);
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

/* A flush in a thread of its own, which is left behind when it takes too long: it then ends with the I/O. */
struct flush {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int fd, error;
    bool done, left;
};

static void flush_free(struct flush *f)
{
    close(f->fd);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static void *flush_run(void *context)
{
    struct flush *f = context;
    int error = fsync(f->fd) < 0 ? errno : 0;
    pthread_mutex_lock(&f->lock);
    f->error = error;
    f->done = true;
    bool left = f->left;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (left)
        flush_free(f);
    return NULL;
}

int attach_loop_flush(const char *path, int64_t within_ns, struct err *e)
{
    int fd = device_open(path, O_RDWR);
    if (fd < 0)
        return errno == ENXIO || errno == ENOENT ? 0 : err_errno(e, errno, "%s", path);
    struct flush *f = NEW(struct flush);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&f->changed, &attributes);
    pthread_mutex_init(&f->lock, NULL);
    f->fd = fd;
    pthread_t thread;
    if (thread_start(&thread, "flush", flush_run, f, e) < 0) {
        flush_free(f);
        return -1;
    }
    pthread_detach(thread);
    int64_t until = clock_mono_ns(clock_system()) + within_ns;
    pthread_mutex_lock(&f->lock);
    while (!f->done && clock_wait(clock_system(), &f->changed, &f->lock, until))
        ;
    bool done = f->done;
    int error = f->error;
    f->left = !done;
    pthread_mutex_unlock(&f->lock);
    if (!done)
        return err_set(e, ERR_DEADLINE_EXCEEDED, "FlushTimeout", "%s cannot be flushed in time",
                       path);
    flush_free(f);
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
