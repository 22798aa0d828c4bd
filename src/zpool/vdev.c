/*
 * Day-2 operations on the devices of a pool.
 */
#include <stdlib.h>

#include "zpool/impl.h"

static bool is_named(const vdev_t *vd, const char *device, uint64_t guid)
{
    return vd->vdev_guid == guid || (vd->vdev_path && strcmp(vd->vdev_path, device) == 0);
}

static vdev_t *find_leaf(vdev_t *vd, const char *device, uint64_t guid)
{
    if (vd->vdev_ops->vdev_op_leaf)
        return is_named(vd, device, guid) ? vd : NULL;
    for (uint64_t i = 0; i < vd->vdev_children; i++) {
        vdev_t *found = find_leaf(vd->vdev_child[i], device, guid);
        if (found)
            return found;
    }
    return NULL;
}

static vdev_t *find_aux(const spa_aux_vdev_t *aux, const char *device, uint64_t guid)
{
    for (int i = 0; i < aux->sav_count; i++)
        if (is_named(aux->sav_vdevs[i], device, guid))
            return aux->sav_vdevs[i];
    return NULL;
}

bool zpool_member_find(struct zpool *p, const char *device, struct zpool_member *ret)
{
    char *end;
    uint64_t guid = strtoull(device, &end, 10);
    if (*end || end == device)
        guid = 0;
    spa_t *spa = p->spa;
    spa_config_enter(spa, SCL_CONFIG | SCL_VDEV, FTAG, RW_READER);
    vdev_t *leaf = find_leaf(spa->spa_root_vdev, device, guid);
    vdev_t *spare = find_aux(&spa->spa_spares, device, guid);
    vdev_t *cache = find_aux(&spa->spa_l2cache, device, guid);
    vdev_t *vd = spare ? spare : cache ? cache : leaf;
    if (vd) {
        *ret = (struct zpool_member){.guid = vd->vdev_guid};
        ret->in_use = spare && leaf;
        if (spare)
            ret->role = ZPOOL_ROLE_SPARE;
        else if (cache)
            ret->role = ZPOOL_ROLE_CACHE;
        else if (leaf->vdev_top->vdev_islog)
            ret->role = ZPOOL_ROLE_LOG;
        if (leaf)
            ret->ashift = (unsigned)leaf->vdev_top->vdev_ashift;
    }
    spa_config_exit(spa, SCL_CONFIG | SCL_VDEV, FTAG);
    return vd != NULL;
}

/* What every operation on a device of the pool begins with. */
static int begin(struct zpool *p, const char *device, struct zpool_member *ret, struct err *e)
{
    if (zpool_ready(p, e) < 0)
        return -1;
    if (!zpool_member_find(p, device, ret))
        return err_set(e, ERR_NOT_FOUND, "DeviceNotFound", "pool %s has no device %s", p->name,
                       device);
    return 0;
}

int zpool_add(struct zpool *p, const struct zpool_layout *groups, struct err *e)
{
    if (zpool_ready(p, e) < 0)
        return -1;
    nvlist_t *root = zpool_layout_build(p, groups, e);
    if (!root)
        return -1;
    int error = spa_vdev_add(p->spa, root);
    nvlist_free(root);
    return error ? zpool_errno(e, error, "cannot add devices to pool %s", p->name) : 0;
}

static int attach(struct zpool *p, const char *old, const struct zpool_device *device, bool replace,
                  struct err *e)
{
    struct zpool_member m = {0};
    if (begin(p, old, &m, e) < 0)
        return -1;
    nvlist_t *root = zpool_layout_leaf(p, device, m.ashift, e);
    if (!root)
        return -1;
    int error = spa_vdev_attach(p->spa, m.guid, root, replace, B_FALSE);
    nvlist_free(root);
    return error ? zpool_errno(e, error, "cannot %s %s %s %s in pool %s",
                               replace ? "replace" : "attach", replace ? old : device->path,
                               replace ? "by" : "to", replace ? device->path : old, p->name)
                 : 0;
}

int zpool_attach(struct zpool *p, const char *beside, const struct zpool_device *device,
                 struct err *e)
{
    return attach(p, beside, device, false, e);
}

int zpool_replace(struct zpool *p, const char *old, const struct zpool_device *by, struct err *e)
{
    return attach(p, old, by, true, e);
}

/* The operations on one device: what libzpool returns, and the word for a message. */
static int detach(spa_t *spa, uint64_t guid)
{
    return spa_vdev_detach(spa, guid, 0, 0);
}

static int take_out(spa_t *spa, uint64_t guid)
{
    return spa_vdev_remove(spa, guid, B_FALSE);
}

static int offline(spa_t *spa, uint64_t guid)
{
    return vdev_offline(spa, guid, 0);
}

static int online(spa_t *spa, uint64_t guid)
{
    vdev_state_t state;
    return vdev_online(spa, guid, 0, &state);
}

static int online_all(spa_t *spa, uint64_t guid)
{
    vdev_state_t state;
    return vdev_online(spa, guid, ZFS_ONLINE_EXPAND, &state);
}

static int operate(struct zpool *p, const char *device, int (*fn)(spa_t *spa, uint64_t guid),
                   const char *word, struct err *e)
{
    struct zpool_member m = {0};
    if (begin(p, device, &m, e) < 0)
        return -1;
    int error = fn(p->spa, m.guid);
    return error ? zpool_errno(e, error, "cannot %s %s of pool %s", word, device, p->name) : 0;
}

int zpool_detach(struct zpool *p, const char *device, struct err *e)
{
    return operate(p, device, detach, "detach", e);
}

int zpool_remove(struct zpool *p, const char *device, struct err *e)
{
    return operate(p, device, take_out, "remove", e);
}

int zpool_offline(struct zpool *p, const char *device, struct err *e)
{
    return operate(p, device, offline, "take offline", e);
}

int zpool_move(struct zpool *p, const char *device, const char *path, struct err *e)
{
    struct zpool_member m = {0};
    if (begin(p, device, &m, e) < 0)
        return -1;
    struct zpool_found f;
    zpool_label_look(path, &f, NULL);
    if (f.error || f.device_guid != m.guid)
        return err_set(e, ERR_FAILED_PRECONDITION, "OtherDevice",
                       "%s is not device %s of pool %s (its label says otherwise)", path, device,
                       p->name);
    zpool_device_allow(p, path);
    int error = spa_vdev_setpath(p->spa, m.guid, path);
    return error ? zpool_errno(e, error, "cannot move %s of pool %s to %s", device, p->name, path)
                 : 0;
}

int zpool_online(struct zpool *p, const char *device, bool expand, struct err *e)
{
    if (device[0] == '/')
        zpool_device_allow(p, device);
    return operate(p, device, expand ? online_all : online, "bring online", e);
}

int zpool_scrub(struct zpool *p, bool start, struct err *e)
{
    if (zpool_ready(p, e) < 0)
        return -1;
    int error = start ? spa_scan(p->spa, POOL_SCAN_SCRUB) : spa_scan_stop(p->spa);
    if (!start && error == ENOENT)
        error = 0; /* none runs */
    return error ? zpool_errno(e, error, "cannot %s a scrub of pool %s", start ? "start" : "stop",
                               p->name)
                 : 0;
}

int zpool_clear(struct zpool *p, struct err *e)
{
    if (zpool_doubt(p))
        return zpool_in_doubt(p, e);
    zpool_device_forgive();
    zpool_device_trust(p);
    spa_vdev_state_enter(p->spa, SCL_NONE);
    vdev_clear(p->spa, NULL);
    (void)spa_vdev_state_exit(p->spa, NULL, 0);
    if (zio_resume(p->spa) != 0)
        return zpool_errno(e, EIO, "pool %s cannot go on: its devices still fail", p->name);
    spa_async_request(p->spa, SPA_ASYNC_RESILVER); /* what is behind, if anything is */
    return 0;
}
