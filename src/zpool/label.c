/*
 * What is written on a device.
 *
 *     0        256K      512K                             size - 512K   size - 256K    (of size,
 *     label 0 │ label 1 │ boot area, data ...             │ label 2 │ label 3          rounded down)
 *
 *     a label:  8K nothing, 8K boot, 112K nvlist with its checksum, 128K ring of uberblocks
 *
 * The four are copies, written two at a time, so the newest that can be read counts. Whether the
 * checksum fits is left to libzpool, which looks again at import: for "may this device be
 * overwritten" a label that is damaged is a label.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zpool/impl.h"

static nvlist_t *read_copy(int fd, uint64_t at, int *ret_error)
{
    vdev_phys_t *phys = mem_alloc(sizeof(*phys));
    nvlist_t *nv = NULL;
    ssize_t got =
        pread(fd, phys, sizeof(*phys), (off_t)(at + offsetof(vdev_label_t, vl_vdev_phys)));
    if (got < 0)
        *ret_error = errno;
    if (got != (ssize_t)sizeof(*phys) ||
        nvlist_unpack(phys->vp_nvlist, sizeof(phys->vp_nvlist), &nv, 0) != 0)
        nv = NULL;
    free(phys);
    if (nv && !zpool_number(nv, ZPOOL_CONFIG_GUID)) {
        nvlist_free(nv);
        nv = NULL;
    }
    return nv;
}

/* The newest of the uberblocks that were seen, and whether its pool says that it is in use while it is. */
struct newest {
    uint64_t txg;
    bool signs;
};

static void note_uberblock(const char *at, struct newest *n)
{
    uberblock_t copy;
    const uberblock_t *ub = memcpy(&copy, at, sizeof(copy));
    if (ub->ub_magic != UBERBLOCK_MAGIC || ub->ub_txg < n->txg)
        return;
    n->txg = ub->ub_txg;
    n->signs = MMP_VALID(ub) && ub->ub_mmp_delay;
}

/* Whether there is an uberblock behind this copy: without one no pool was ever complete here. */
static bool has_uberblock(int fd, uint64_t at, struct newest *n)
{
    enum { STEP = 1 << UBERBLOCK_SHIFT };
    _cleanup_free_ char *ring = mem_alloc(VDEV_UBERBLOCK_RING);
    ssize_t got =
        pread(fd, ring, VDEV_UBERBLOCK_RING, (off_t)(at + offsetof(vdev_label_t, vl_uberblock)));
    if (got != VDEV_UBERBLOCK_RING)
        return true; /* for all we know */
    bool any = false;
    for (size_t i = 0; i < VDEV_UBERBLOCK_RING; i += STEP) {
        uint64_t magic;
        memcpy(&magic, ring + i, sizeof(magic));
        any |= magic == UBERBLOCK_MAGIC || magic == __builtin_bswap64(UBERBLOCK_MAGIC);
        note_uberblock(ring + i, n);
    }
    return any;
}

/* The newest, for nvlist_free(), or NULL. *ret_error is set when there might be one that cannot be read. */
static nvlist_t *read_newest(int fd, uint64_t size, struct zpool_found *f, int *ret_error)
{
    int error = 0;
    struct newest newest = {0};
    const uint64_t label = sizeof(vdev_label_t);
    size -= size % label;
    if (size < SPA_MINDEVSIZE)
        return NULL;
    nvlist_t *best = NULL;
    for (unsigned i = 0; i < VDEV_LABELS; i++) {
        uint64_t at = i < 2 ? i * label : size - (VDEV_LABELS - i) * label;
        nvlist_t *nv = read_copy(fd, at, &error);
        f->complete |= nv && has_uberblock(fd, at, &newest);
        if (nv && (!best || zpool_number(nv, ZPOOL_CONFIG_POOL_TXG) >
                                zpool_number(best, ZPOOL_CONFIG_POOL_TXG))) {
            nvlist_t *worse = best;
            best = nv;
            nv = worse;
        }
        nvlist_free(nv);
    }
    f->signs = newest.signs;
    *ret_error = best ? 0 : error;
    return best;
}

/* A device that was detached keeps a label of transaction 0. */
static enum zpool_label kind_of(nvlist_t *nv)
{
    switch (zpool_number(nv, ZPOOL_CONFIG_POOL_STATE)) {
    case POOL_STATE_SPARE:
        return ZPOOL_LABEL_SPARE;
    case POOL_STATE_L2CACHE:
        return ZPOOL_LABEL_CACHE;
    case POOL_STATE_ACTIVE:
    case POOL_STATE_EXPORTED:
        return zpool_number(nv, ZPOOL_CONFIG_POOL_TXG) ? ZPOOL_LABEL_MEMBER : ZPOOL_LABEL_FORMER;
    default:
        return ZPOOL_LABEL_FORMER;
    }
}

static void copy_text(nvlist_t *nv, const char *name, char *to, size_t size)
{
    char *text;
    if (nvlist_lookup_string(nv, name, &text) == 0)
        snprintf(to, size, "%s", text);
}

static void fill(struct zpool_found *f, nvlist_t *nv)
{
    f->label = kind_of(nv);
    f->device_guid = zpool_number(nv, ZPOOL_CONFIG_GUID);
    f->pool_guid = zpool_number(nv, ZPOOL_CONFIG_POOL_GUID);
    f->txg = zpool_number(nv, ZPOOL_CONFIG_POOL_TXG);
    f->host_id = (uint32_t)zpool_number(nv, ZPOOL_CONFIG_HOSTID);
    f->exported = zpool_number(nv, ZPOOL_CONFIG_POOL_STATE) == POOL_STATE_EXPORTED;
    copy_text(nv, ZPOOL_CONFIG_POOL_NAME, f->pool_name, sizeof(f->pool_name));
    copy_text(nv, ZPOOL_CONFIG_HOSTNAME, f->host_name, sizeof(f->host_name));
}

static int device_size(int fd, uint64_t *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    if (S_ISBLK(st.st_mode))
        return ioctl(fd, BLKGETSIZE64, ret) < 0 ? errno : 0;
    *ret = (uint64_t)st.st_size;
    return S_ISREG(st.st_mode) ? 0 : ENOTBLK;
}

void zpool_label_look(const char *path, struct zpool_found *ret, nvlist_t **ret_label)
{
    *ret = (struct zpool_found){.path = path};
    if (ret_label)
        *ret_label = NULL;
    struct stat st;
    int pin = zpool_device_pin(path, &st), fd = pin < 0 ? pin : zpool_device_open(pin, O_RDONLY);
    if (pin >= 0)
        close(pin);
    if (fd < 0) {
        ret->error = -fd;
        return;
    }
    ret->error = device_size(fd, &ret->size);
    if (!ret->error)
        ret->error = zpool_device_is_free(fd);
    int unread = ret->error;
    nvlist_t *nv = ret->size ? read_newest(fd, ret->size, ret, &unread) : NULL;
    if (!ret->error)
        ret->error = unread;
    if (nv) {
        fill(ret, nv);
    } else if (!ret->error && !ret_label) {
        ret->error = zpool_signature_read(fd, ret->what, sizeof(ret->what));
        ret->label = ret->what[0] ? ZPOOL_LABEL_FOREIGN : ZPOOL_LABEL_NONE;
    }
    close(fd);
    if (ret_label)
        *ret_label = nv;
    else
        nvlist_free(nv);
}

/* All but the first 8 KiB of each label, which are no part of it: others may keep something there. */
static int clear(int fd, uint64_t size)
{
    enum { SKIP = 8 << 10 };
    const uint64_t label = sizeof(vdev_label_t);
    _cleanup_free_ char *zeroes = mem_zalloc(label);
    size -= size % label;
    for (unsigned i = 0; i < VDEV_LABELS; i++) {
        uint64_t at = i < 2 ? i * label : size - (VDEV_LABELS - i) * label;
        if (pwrite(fd, zeroes, label - SKIP, (off_t)(at + SKIP)) != (ssize_t)(label - SKIP))
            return errno ? errno : EIO;
    }
    return fdatasync(fd) < 0 ? errno : 0;
}

int zpool_label_clear(const char *path, uint64_t pool_guid, uint64_t device_guid, struct err *e)
{
    struct zpool_found f;
    struct stat st;
    zpool_label_look(path, &f, NULL);
    if (f.error == EBUSY)
        return err_set(e, ERR_FAILED_PRECONDITION, "DeviceInUse", "%s is in use", path);
    if (f.error)
        return err_errno(e, f.error, "%s", path);
    if (f.label == ZPOOL_LABEL_NONE)
        return 0;
    bool ours = f.device_guid && (f.pool_guid == pool_guid || f.device_guid == device_guid);
    if (!ours || f.size < SPA_MINDEVSIZE)
        return err_set(e, ERR_FAILED_PRECONDITION, "OtherDevice",
                       "%s has something else on it (%s): it is left as it is", path,
                       f.label == ZPOOL_LABEL_FOREIGN ? f.what : f.pool_name);
    int pin = zpool_device_pin(path, &st);
    int fd = pin < 0 ? pin : zpool_device_open(pin, O_RDWR | (S_ISBLK(st.st_mode) ? O_EXCL : 0));
    int error = fd < 0 ? -fd : clear(fd, f.size);
    if (pin >= 0)
        close(pin);
    if (fd >= 0)
        close(fd);
    return error ? err_errno(e, error, "cannot clear the labels of %s", path) : 0;
}

void zpool_scan(const char *const *paths, size_t n, struct zpool_found *ret_found)
{
    for (size_t i = 0; i < n; i++)
        zpool_label_look(paths[i], &ret_found[i], NULL);
}
