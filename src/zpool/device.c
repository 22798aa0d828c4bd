/*
 * What libzpool does to devices: its zfs_file_*(), which this file defines in place of its own. Those
 * split every write in two at random, and end the process on errors that a device may well return.
 *
 * Invariants:
 *   - A request is one system call, repeated only for what it left undone; it never ends the process.
 *   - A device is open only with a claim to it (claim.c).
 *   - A device whose sync failed takes no more writes until it is forgiven (doubt.c).
 *   - Nothing is created: libzpool's cache file cannot be.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "zpool/impl.h"

enum { DIRECT_ALIGN = 4096 };

/* An open one. libzpool knows `zf`. */
struct file {
    zfs_file_t zf;
    struct zpool_target target;
    struct zpool_claim *claim; /* NULL: a stream, not a device */
    atomic_bool sync_failed;
    _Atomic uint64_t written, synced; /* counts: writes done; those of them before a sync began that
                                         was done */
    pthread_mutex_t lock;
    struct list_link requests; /* under way, oldest first; under lock */
    struct list_link link;
};

struct request {
    int64_t start_ns;
    struct list_link link;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_link files = {&files, &files}; /* under lock */
static bool direct;
static _Atomic int64_t no_space_ns; /* when a write last failed for want of space below a file; 0 */

void zpool_device_direct(bool yes)
{
    direct = yes;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct file *file_of(zfs_file_t *zf)
{
    return container_of(zf, struct file, zf);
}

static void request_begin(struct file *f, struct request *r)
{
    r->start_ns = now_ns();
    pthread_mutex_lock(&f->lock);
    list_push(&f->requests, &r->link);
    pthread_mutex_unlock(&f->lock);
}

static void request_end(struct file *f, struct request *r)
{
    pthread_mutex_lock(&f->lock);
    list_unlink(&r->link);
    pthread_mutex_unlock(&f->lock);
}

uint64_t zpool_device_stuck_ms(const char *path)
{
    int64_t oldest = INT64_MAX, now = now_ns();
    pthread_mutex_lock(&lock);
    list_for_each(&files, f, struct file, link) {
        if (strcmp(f->target.path, path) != 0)
            continue;
        pthread_mutex_lock(&f->lock);
        if (!list_empty(&f->requests)) {
            struct request *r = container_of(f->requests.next, struct request, link);
            oldest = r->start_ns < oldest ? r->start_ns : oldest;
        }
        pthread_mutex_unlock(&f->lock);
    }
    pthread_mutex_unlock(&lock);
    return oldest < now ? (uint64_t)(now - oldest) / 1000000 : 0;
}

const char *zpool_suspended_why(void)
{
    /* Writes of a suspended pool are tried again with every look at it. */
    const int64_t recent = 60 * 1000000000LL;
    int64_t last = atomic_load(&no_space_ns);
    return last && now_ns() - last < recent
               ? "the pool is suspended: the file system that its sparse devices are on is full; "
                 "free space there, and it goes on"
               : "the pool is suspended: too many of its devices fail";
}

void zpool_device_forgive(void)
{
    pthread_mutex_lock(&lock);
    list_for_each(&files, f, struct file, link) {
        /* What the kernel holds of it may be what never reached the device. */
        if (atomic_exchange(&f->sync_failed, false))
            posix_fadvise(f->target.fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    pthread_mutex_unlock(&lock);
}

static struct file *file_new(const char *path, int fd, struct zpool_claim *c)
{
    struct file *f = NEW(struct file);
    f->zf.f_fd = fd;
    f->zf.f_dump_fd = -1;
    f->target = (struct zpool_target){mem_strdup(path), fd};
    f->claim = c;
    pthread_mutex_init(&f->lock, NULL);
    list_init(&f->requests);
    list_init(&f->link);
    return f;
}

static void file_free(struct file *f)
{
    pthread_mutex_destroy(&f->lock);
    free((char *)(uintptr_t)f->target.path);
    free(f);
}

zfs_file_t *zpool_device_wrap(int fd)
{
    return &file_new("", fd, NULL)->zf;
}

void zpool_device_unwrap(zfs_file_t *file)
{
    file_free(file_of(file));
}

int zfs_file_open(const char *path, int flags, int mode, zfs_file_t **fp)
{
    (void)mode;
    struct stat st;
    if (flags & O_CREAT)
        return EPERM;
    int pin = zpool_device_pin(path, &st);
    if (pin < 0)
        return -pin;
    struct zpool_claim *c;
    int error = zpool_claim_take(path, pin, &st, &c);
    int fd = error ? -error : zpool_device_open(pin, (flags & O_ACCMODE) | (direct ? O_DIRECT : 0));
    close(pin);
    if (fd < 0) {
        if (!error)
            zpool_claim_drop(c);
        return -fd;
    }
    struct file *f = file_new(path, fd, c);
    f->sync_failed = zpool_doubt_has(path);
    pthread_mutex_lock(&lock);
    list_push(&files, &f->link);
    pthread_mutex_unlock(&lock);
    *fp = &f->zf;
    return 0;
}

void zfs_file_close(zfs_file_t *fp)
{
    struct file *f = file_of(fp);
    pthread_mutex_lock(&lock);
    list_unlink(&f->link);
    pthread_mutex_unlock(&lock);
    close(f->target.fd);
    zpool_claim_drop(f->claim);
    file_free(f);
}

/* All of it, or as far as it goes: bytes moved, or -errno when none. */
static ssize_t move(struct file *f, void *p, size_t n, off_t at, bool write)
{
    size_t done = 0;
    while (done < n) {
        char *from = (char *)p + done;
        ssize_t k = write ? zpool_fault_pwrite(&f->target, from, n - done, at + (off_t)done)
                          : zpool_fault_pread(&f->target, from, n - done, at + (off_t)done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && done == 0)
            return -errno;
        if (k <= 0)
            break;
        done += (size_t)k;
    }
    return (ssize_t)done;
}

/* With O_DIRECT memory must be aligned; libzpool's mostly is. */
static ssize_t move_aligned(struct file *f, void *p, size_t n, off_t at, bool write)
{
    if (!direct || (uintptr_t)p % DIRECT_ALIGN == 0)
        return move(f, p, n, at, write);
    void *copy;
    if (posix_memalign(&copy, DIRECT_ALIGN, n) != 0)
        return -ENOMEM;
    if (write)
        memcpy(copy, p, n);
    ssize_t done = move(f, copy, n, at, write);
    if (!write && done > 0)
        memcpy(p, copy, (size_t)done);
    free(copy);
    return done;
}

static int transfer(zfs_file_t *zf, void *p, size_t n, off_t at, bool write, ssize_t *ret_left)
{
    struct file *f = file_of(zf);
    if (write && atomic_load(&f->sync_failed))
        return EIO;
    struct request r;
    request_begin(f, &r);
    ssize_t done = move_aligned(f, p, n, at, write);
    request_end(f, &r);
    if (write && done == -ENOSPC)
        atomic_store(&no_space_ns, now_ns());
    if (done < 0)
        return (int)-done;
    if (write)
        atomic_fetch_add(&f->written, 1);
    if (ret_left)
        *ret_left = (ssize_t)n - done;
    else if ((size_t)done != n)
        return EIO;
    return 0;
}

int zfs_file_pwrite(zfs_file_t *fp, const void *buf, size_t len, loff_t off, ssize_t *resid)
{
    return transfer(fp, (void *)(uintptr_t)buf, len, off, true, resid);
}

int zfs_file_pread(zfs_file_t *fp, void *buf, size_t len, loff_t off, ssize_t *resid)
{
    return transfer(fp, buf, len, off, false, resid);
}

/* Of streams, which have no offsets. */
int zfs_file_read(zfs_file_t *fp, void *buf, size_t len, ssize_t *resid)
{
    size_t done = 0;
    while (done < len) {
        ssize_t k = read(fp->f_fd, (char *)buf + done, len - done);
        if (k < 0 && errno != EINTR)
            return errno;
        if (k == 0)
            break;
        done += k > 0 ? (size_t)k : 0;
    }
    if (resid)
        *resid = (ssize_t)(len - done);
    else if (done != len)
        return EIO;
    return 0;
}

/* Only libzpool's cache file is written so. */
int zfs_file_write(zfs_file_t *fp, const void *buf, size_t len, ssize_t *resid)
{
    (void)fp, (void)buf, (void)len, (void)resid;
    return EPERM;
}

int zfs_file_unlink(const char *path)
{
    (void)path;
    return EPERM;
}

int zfs_file_getattr(zfs_file_t *fp, zfs_file_attr_t *zfattr)
{
    struct stat st;
    if (fstat(fp->f_fd, &st) < 0)
        return errno;
    uint64_t size = (uint64_t)st.st_size;
    if (S_ISBLK(st.st_mode) && ioctl(fp->f_fd, BLKGETSIZE64, &size) < 0)
        return errno;
    zfattr->zfa_size = size;
    zfattr->zfa_mode = st.st_mode;
    return 0;
}

int zfs_file_fsync(zfs_file_t *fp, int flags)
{
    (void)flags;
    struct file *f = file_of(fp);
    struct request r;
    uint64_t written = atomic_load(&f->written);
    request_begin(f, &r);
    int error = zpool_fault_sync(&f->target) < 0 ? errno : 0;
    request_end(f, &r);
    if (!error) {
        atomic_store(&f->synced, written); /* an older one of two at a time: more is in doubt */
        return 0;
    }
    atomic_store(&f->sync_failed, true);
    if (atomic_load(&f->written) != atomic_load(&f->synced))
        zpool_doubt_add(f->target.path);
    return error;
}

int zfs_file_fallocate(zfs_file_t *fp, int mode, loff_t offset, loff_t len)
{
    return fallocate(fp->f_fd, mode, offset, len) < 0 ? errno : 0;
}
