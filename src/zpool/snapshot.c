/*
 * Snapshots and clones.
 */
#include "zpool/impl.h"

int zpool_snapshot(struct zpool *p, const char *volume, const char *name, struct err *e)
{
    char path[ZFS_MAX_DATASET_NAME_LEN], snap[2 * ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, volume, NAME_VOLUME, path, e) < 0)
        return -1;
    snprintf(snap, sizeof(snap), "%.255s@%.255s", volume, name);
    char whole[ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_volume_path(p, snap, NAME_SNAPSHOT, whole, e) < 0)
        return -1;
    int error = dmu_objset_snapshot_one(path, name);
    return error ? zpool_errno(e, error, "cannot make snapshot %s", whole) : 0;
}

int zpool_clone(struct zpool *p, const char *snapshot, const char *volume, struct err *e)
{
    char from[ZFS_MAX_DATASET_NAME_LEN], to[ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, snapshot, NAME_SNAPSHOT, from, e) < 0 ||
        zpool_volume_path(p, volume, NAME_VOLUME, to, e) < 0)
        return -1;
    int error = dmu_objset_clone(to, from);
    return error ? zpool_errno(e, error, "cannot clone %s as %s", from, to) : 0;
}

int zpool_promote(struct zpool *p, const char *clone, struct err *e)
{
    char path[ZFS_MAX_DATASET_NAME_LEN], conflict[ZFS_MAX_DATASET_NAME_LEN] = "";
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, clone, NAME_VOLUME, path, e) < 0)
        return -1;
    int error = dsl_dataset_promote(path, conflict);
    if (error == EEXIST)
        return err_set(e, ERR_ALREADY_EXISTS, "AlreadyExists",
                       "cannot promote %s: both it and its origin have a snapshot %s", path,
                       conflict);
    if (error == EINVAL)
        return err_set(e, ERR_FAILED_PRECONDITION, "NoClone", "cannot promote %s: it is no clone",
                       path);
    return error ? zpool_errno(e, error, "cannot promote %s", path) : 0;
}

int zpool_rollback(struct zpool *p, const char *snapshot, struct err *e)
{
    char snap[ZFS_MAX_DATASET_NAME_LEN], path[ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, snapshot, NAME_SNAPSHOT, snap, e) < 0)
        return -1;
    memcpy(path, snap, sizeof(path));
    *strchr(path, '@') = '\0';
    nvlist_t *result = fnvlist_alloc();
    int error = dsl_dataset_rollback(path, snap, NULL, result);
    nvlist_free(result);
    if (error == EEXIST || error == EXDEV || error == ESRCH)
        return err_set(e, error == ESRCH ? ERR_NOT_FOUND : ERR_FAILED_PRECONDITION,
                       error == ESRCH ? "NotFound" : "NewerSnapshots", "cannot roll back to %s: %s",
                       snap,
                       error == ESRCH ? "there is no such snapshot"
                                      : "the volume has newer snapshots; destroy them first");
    return error ? zpool_errno(e, error, "cannot roll back to %s", snap) : 0;
}
