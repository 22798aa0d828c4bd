/*
 * Snapshots as streams, in OpenZFS's format: between pools, and to and from `zfs send`.
 */
#include <unistd.h>

#include "zpool/impl.h"

struct output {
    int fd;
};

static int write_all(objset_t *os, void *p, int n, void *context)
{
    (void)os;
    const struct output *out = context;
    const char *from = p;
    while (n > 0) {
        ssize_t k = write(out->fd, from, (size_t)n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? errno : EIO;
        from += k;
        n -= (int)k;
    }
    return 0;
}

int zpool_send(struct zpool *p, const char *snapshot, const char *since, int fd, struct err *e)
{
    char to[ZFS_MAX_DATASET_NAME_LEN], from[2 * ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, snapshot, NAME_SNAPSHOT, to, e) < 0)
        return -1;
    if (since)
        snprintf(from, sizeof(from), "%.*s@%.255s", (int)strcspn(to, "@"), to, since);
    struct output out = {fd};
    dmu_send_outparams_t how = {.dso_outfunc = write_all, .dso_arg = &out};
    offset_t done = 0;
    int error = dmu_send(to, since ? from : NULL, B_FALSE, B_TRUE, B_TRUE, B_FALSE, B_FALSE, 0, 0,
                         NULL, fd, &done, &how);
    return error ? zpool_errno(e, error, "cannot send %s", to) : 0;
}

/* The first record of a stream is this long; what is in it libzpool looks at. */
enum { RECORD_BYTES = 312 };

int zpool_receive(struct zpool *p, const char *snapshot, int fd, struct err *e)
{
    char path[ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, snapshot, NAME_SNAPSHOT, path, e) < 0)
        return -1;
    char *snap = strchr(path, '@');
    *snap++ = '\0';
    _Alignas(8) char record[RECORD_BYTES];
    struct zfs_file *file = zpool_device_wrap(fd);
    dmu_recv_cookie_t cookie;
    offset_t done = 0;
    ssize_t left = 0;
    int error = zfs_file_read(file, record, sizeof(record), &left);
    if (!error && left)
        error = EINVAL;
    if (!error)
        error = dmu_recv_begin(path, snap, (dmu_replay_record_t *)(void *)record, B_FALSE, B_FALSE,
                               NULL, NULL, NULL, &cookie, file, &done);
    if (!error)
        error = dmu_recv_stream(&cookie, &done); /* ends what was begun if it fails */
    if (!error)
        error = dmu_recv_end(&cookie, NULL);
    zpool_device_unwrap(file);
    return error ? zpool_errno(e, error, "cannot receive %s@%s", path, snap) : 0;
}
