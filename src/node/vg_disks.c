#include "node/vg_disks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

enum { LOOP_MAJOR = 7, ATTEMPTS = 100 };

static int open_loop(int number, struct err *e)
{
    char path[32];
    snprintf(path, sizeof(path), "/dev/loop%d", number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT &&
        mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned)number)) == 0)
        fd = open(path, O_RDWR | O_CLOEXEC); /* no udev in a container */
    return fd < 0 ? err_errno(e, errno, "cannot open %s", path) : fd;
}

/* Whether that loop device is on this file: by what the file is, whatever it is called. */
static bool is_on(int fd, const struct stat *file)
{
    struct loop_info64 info;
    return ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == file->st_ino &&
           info.lo_device == file->st_dev;
}

/* One that an agent before this has left, since something on it is in use: -1 when there is none. */
static int find_loop(const struct stat *file, int *ret_number)
{
    DIR *dir = opendir("/sys/block");
    int found = -1;
    for (struct dirent *d; dir && found < 0 && (d = readdir(dir));) {
        _cleanup_free_ char *backing = mem_printf("/sys/block/%s/loop/backing_file", d->d_name);
        if (!str_starts_with(d->d_name, "loop") || access(backing, F_OK) < 0)
            continue;
        *ret_number = (int)strtol(d->d_name + strlen("loop"), NULL, 10);
        int fd = open_loop(*ret_number, NULL);
        if (fd >= 0 && is_on(fd, file))
            found = fd;
        else if (fd >= 0)
            close(fd);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* A free one; whoever else wants one may be quicker, then the next. */
static int attach_new(int file_fd, int *ret_number, struct err *e)
{
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return err_errno(e, errno, "no loop devices here: /dev/loop-control");
    const struct loop_config config = {.fd = (__u32)file_fd,
                                       .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
    int fd = -1;
    for (int i = 0; fd < 0 && i < ATTEMPTS; i++) {
        *ret_number = ioctl(control, LOOP_CTL_GET_FREE);
        fd = *ret_number < 0 ? err_errno(e, errno, "no free loop device")
                             : open_loop(*ret_number, e);
        if (fd < 0)
            break;
        if (ioctl(fd, LOOP_CONFIGURE, &config) < 0) {
            int number = errno;
            close(fd);
            fd = -1;
            err_errno(e, number, "cannot attach a loop device");
            if (number != EBUSY)
                break;
        }
    }
    close(control);
    return fd;
}

/* The loop device of the file, open, and its node in our folder. */
static int attach(const char *path, const char *node, struct err *e)
{
    struct stat st;
    int number = -1, file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 || fstat(file, &st) < 0) {
        int why = errno;
        if (file >= 0)
            close(file);
        return err_errno(e, why, "%s", path);
    }
    int fd = find_loop(&st, &number);
    if (fd < 0)
        fd = attach_new(file, &number, e);
    else
        ioctl(fd, LOOP_SET_CAPACITY); /* the file may have grown */
    close(file);
    if (fd < 0)
        return -1;
    unlink(node);
    if (mknod(node, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned)number)) < 0) {
        err_errno(e, errno, "cannot make the device %s", node);
        close(fd);
        return -1;
    }
    return fd;
}

static const struct lvm_pv *pv_of(const struct lvm_view *v, const char *disk)
{
    vec_for_each(&v->pvs, pv) {
        if (str_eq(pv->name, disk))
            return pv;
    }
    return NULL;
}

/* The group has all disks, as large as they are now. */
static int keep_group(struct lvm *l, char *const *disks, const struct node_sparse *want,
                      struct err *e)
{
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = NULL;
    if (lvm_look(l, &v, e) < 0)
        return -1;
    const struct lvm_vg *vg = lvm_view_vg(v, NODE_VG);
    if (!vg)
        return lvm_vg_create(l, NODE_VG, (const char *const *)disks, e);
    for (; *disks; disks++) {
        const struct lvm_pv *pv = pv_of(v, *disks);
        int status = 0;
        if (!pv)
            status = lvm_vg_extend(l, NODE_VG, *disks, e);
        else if (pv->start + pv->size + vg->extent <= want->size)
            status = lvm_pv_resize(l, *disks, e);
        if (status < 0)
            return -1;
    }
    return 0;
}

/* INDEX of "INDEX-UUID.img", below count. */
static bool index_of(const char *name, unsigned count, unsigned *ret_index)
{
    char *end;
    unsigned long index = strtoul(name, &end, 10);
    *ret_index = (unsigned)index;
    return end != name && *end == '-' && index < count && str_ends_with(name, ".img");
}

static int attach_all(struct node_vg_disks *d, const char *folder, const char *device_dir,
                      unsigned count, char **ret_disks, struct err *e)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return err_errno(e, errno, "cannot list %s", folder);
    int status = 0;
    for (struct dirent *it; status == 0 && (it = readdir(dir));) {
        unsigned index;
        if (!index_of(it->d_name, count, &index) || ret_disks[index])
            continue;
        _cleanup_free_ char *path = mem_printf("%s/%s", folder, it->d_name);
        ret_disks[index] = mem_printf("%s/disk-%u", device_dir, index);
        int fd = attach(path, ret_disks[index], e);
        status = fd < 0 ? -1 : 0;
        if (fd >= 0)
            vec_push(&d->fds, fd);
    }
    closedir(dir);
    return status;
}

int node_vg_disks_start(struct node_vg_disks *d, struct lvm *l, const char *data_dir,
                        const char *device_dir, const struct node_sparse *want, struct err *e)
{
    _cleanup_free_ char *folder = mem_printf("%s/vg", data_dir);
    char **disks = mem_zalloc((want->count + 1) * sizeof(*disks));
    d->count = want->count;
    int status = file_make_dirs(device_dir, 0700, e);
    if (status == 0)
        status = node_sparse_make(folder, want, e);
    if (status == 0)
        status = attach_all(d, folder, device_dir, want->count, disks, e);
    if (status == 0)
        status = keep_group(l, disks, want, e);
    for (unsigned i = 0; i < want->count; i++)
        free(disks[i]);
    free(disks);
    return status;
}

void node_vg_disks_stop(struct node_vg_disks *d, struct lvm *l)
{
    struct err e = {0};
    if (d->fds.len && lvm_deactivate(l, NODE_VG, &e) < 0)
        log_warn("volumes stay in use, and the loop devices with them", LOG_ERR(&e));
}

void node_vg_disks_done(struct node_vg_disks *d)
{
    vec_for_each(&d->fds, fd)
        close(*fd);
    vec_done(&d->fds);
}
