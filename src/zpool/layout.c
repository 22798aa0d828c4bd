/*
 * Groups of devices, from what the caller says to what libzpool makes vdevs of:
 *
 *     root ── children ──┬── disk                      a stripe's devices stand side by side
 *          │             ├── mirror ── children: disk, disk
 *          │             └── disk, is_log
 *          ├── spares
 *          └── l2cache
 *
 * Here stands the guard of "import is never create": no device gets into a list that has not been
 * looked at just before.
 */
#include <sys/stat.h>

#include "zpool/impl.h"

enum { ASHIFT_DEFAULT = 12, ASHIFT_MOST = 16, DEVICES_MAX = 1024 };

static const struct {
    const char *name, *vdev; /* vdev: NULL, none above the devices */
    unsigned parity, least;
} types[] = {
    [ZPOOL_STRIPE] = {"stripe", NULL, 0, 1},
    [ZPOOL_MIRROR] = {"mirror", VDEV_TYPE_MIRROR, 0, 2},
    [ZPOOL_RAIDZ] = {"raidz", VDEV_TYPE_RAIDZ, 1, 2},
    [ZPOOL_RAIDZ2] = {"raidz2", VDEV_TYPE_RAIDZ, 2, 3},
    [ZPOOL_RAIDZ3] = {"raidz3", VDEV_TYPE_RAIDZ, 3, 4},
};
static const char *const roles[] = {"data", "log", "cache", "spare"};

static int check_group(const struct zpool_group *g, struct err *e)
{
    if (g->n_devices < types[g->type].least || g->n_devices > DEVICES_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadLayout",
                       "a %s group needs at least %u devices and has %zu", types[g->type].name,
                       types[g->type].least, g->n_devices);
    bool fits = g->role == ZPOOL_ROLE_DATA || g->type == ZPOOL_STRIPE ||
                (g->role == ZPOOL_ROLE_LOG && g->type == ZPOOL_MIRROR);
    if (!fits)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadLayout", "a %s group cannot be %s",
                       roles[g->role], types[g->type].name);
    return 0;
}

static int check_layout(struct zpool *p, const struct zpool_layout *l, struct err *e)
{
    size_t data = 0;
    for (size_t i = 0; i < l->n_groups; i++) {
        if (check_group(&l->groups[i], e) < 0)
            return -1;
        data += l->groups[i].role == ZPOOL_ROLE_DATA;
    }
    if (!l->n_groups || (!p->spa && !data))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadLayout", "there is no group for data");
    if (l->ashift && (l->ashift < ASHIFT_DEFAULT || l->ashift > ASHIFT_MOST))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadLayout",
                       "ashift is %u: sectors can have 2^%d to 2^%d bytes", l->ashift,
                       ASHIFT_DEFAULT, ASHIFT_MOST);
    return 0;
}

/* A label without a pool: what is left of one that was being made, or of an addition to this one. */
static bool is_leftover(struct zpool *p, const struct zpool_found *f)
{
    char guid[32];
    struct zpool_member m;
    snprintf(guid, sizeof(guid), "%llu", (unsigned long long)f->device_guid);
    if (f->label != ZPOOL_LABEL_MEMBER)
        return false;
    return !f->complete ||
           (p->spa && f->pool_guid == spa_guid(p->spa) && !zpool_member_find(p, guid, &m));
}

/* May this device be used? */
static int check_device(struct zpool *p, const struct zpool_device *d, bool *ret_wipe,
                        struct err *e)
{
    struct zpool_found f;
    zpool_label_look(d->path, &f, NULL);
    struct zpool_member m;
    *ret_wipe = false;
    /* Another disk may be where one was that is missing now. */
    if (p->spa && zpool_member_find(p, d->path, &m) && (f.error || m.guid == f.device_guid))
        return err_set(e, ERR_ALREADY_EXISTS, "InThisPool", "%s is in pool %s already", d->path,
                       p->name);
    if (f.error == EBUSY)
        return err_set(e, ERR_FAILED_PRECONDITION, "DeviceInUse", "%s is in use by another process",
                       d->path);
    if (f.error)
        return err_errno(e, f.error, "%s", d->path);
    if (f.size < SPA_MINDEVSIZE)
        return err_set(e, ERR_FAILED_PRECONDITION, "DeviceTooSmall",
                       "%s has %llu bytes: a device needs 64 MiB", d->path,
                       (unsigned long long)f.size);
    if (is_leftover(p, &f))
        f.label = ZPOOL_LABEL_FORMER;
    switch (f.label) {
    case ZPOOL_LABEL_NONE:
        return 0;
    case ZPOOL_LABEL_MEMBER:
        return err_set(e, ERR_FAILED_PRECONDITION, "DeviceHasPool",
                       "%s belongs to pool %s (%llu)%s: import that pool, or wipe the device",
                       d->path, f.pool_name, (unsigned long long)f.pool_guid,
                       f.exported ? ", which was exported" : "");
    case ZPOOL_LABEL_SPARE:
    case ZPOOL_LABEL_CACHE:
        *ret_wipe = d->overwrite;
        if (d->overwrite)
            return 0;
        return err_set(e, ERR_FAILED_PRECONDITION, "DeviceHasPool",
                       "%s is a %s of a pool: remove it there, or wipe it", d->path,
                       f.label == ZPOOL_LABEL_SPARE ? "spare" : "cache");
    case ZPOOL_LABEL_FORMER:
    case ZPOOL_LABEL_FOREIGN:
        break;
    }
    *ret_wipe = d->overwrite;
    if (d->overwrite)
        return 0;
    if (f.label == ZPOOL_LABEL_FORMER)
        return err_set(
            e, ERR_FAILED_PRECONDITION, "DeviceNotEmpty",
            "%s was in pool %s, which it left or which was destroyed: wipe it, or allow it "
            "to be overwritten",
            d->path, f.pool_name);
    return err_set(e, ERR_FAILED_PRECONDITION, "DeviceNotEmpty",
                   "%s has %s on it: wipe it, or allow it to be overwritten", d->path, f.what);
}

/* By what they are, not by how they are called. */
static int check_twice(const struct zpool_layout *l, struct err *e)
{
    VEC(struct stat) seen = {0};
    int status = 0;
    for (size_t i = 0; i < l->n_groups; i++) {
        for (size_t k = 0; k < l->groups[i].n_devices && status == 0; k++) {
            const char *path = l->groups[i].devices[k].path;
            struct stat st = {0};
            if (path[0] != '/') {
                status = err_set(e, ERR_INVALID_ARGUMENT, "BadPath",
                                 "\"%s\" is no absolute path of a device", path);
            } else if (stat(path, &st) < 0) {
                status = err_errno(e, errno, "%s", path);
            }
            vec_for_each(&seen, s) {
                if (status == 0 && s->st_dev == st.st_dev && s->st_ino == st.st_ino)
                    status = err_set(e, ERR_INVALID_ARGUMENT, "DeviceTwice",
                                     "%s is in the layout twice", path);
            }
            if (status == 0)
                vec_push(&seen, st);
        }
    }
    vec_done(&seen);
    return status;
}

static nvlist_t *leaf_new(const char *path, unsigned ashift)
{
    struct stat st;
    bool block = stat(path, &st) == 0 && S_ISBLK(st.st_mode);
    nvlist_t *nv = fnvlist_alloc();
    fnvlist_add_string(nv, ZPOOL_CONFIG_TYPE, block ? VDEV_TYPE_DISK : VDEV_TYPE_FILE);
    fnvlist_add_string(nv, ZPOOL_CONFIG_PATH, path);
    fnvlist_add_uint64(nv, ZPOOL_CONFIG_ASHIFT, ashift);
    if (block)
        fnvlist_add_uint64(nv, ZPOOL_CONFIG_WHOLE_DISK, 0);
    return nv;
}

typedef VEC(nvlist_t *) nvlists;

static void set_children(nvlist_t *nv, const char *name, nvlists *v)
{
    if (v->len)
        fnvlist_add_nvlist_array(nv, name, v->p, (uint_t)v->len);
    vec_for_each(v, child)
        nvlist_free(*child);
    vec_done(v);
}

static void build_group(const struct zpool_group *g, unsigned ashift, nvlists *to)
{
    nvlists devices = {0};
    for (size_t i = 0; i < g->n_devices; i++)
        vec_push(&devices, leaf_new(g->devices[i].path, ashift));
    if (types[g->type].vdev) {
        nvlist_t *group = fnvlist_alloc();
        fnvlist_add_string(group, ZPOOL_CONFIG_TYPE, types[g->type].vdev);
        fnvlist_add_uint64(group, ZPOOL_CONFIG_ASHIFT, ashift);
        if (types[g->type].parity)
            fnvlist_add_uint64(group, ZPOOL_CONFIG_NPARITY, types[g->type].parity);
        set_children(group, ZPOOL_CONFIG_CHILDREN, &devices);
        vec_push(&devices, group);
    }
    vec_for_each(&devices, nv) {
        if (g->role == ZPOOL_ROLE_DATA || g->role == ZPOOL_ROLE_LOG)
            fnvlist_add_uint64(*nv, ZPOOL_CONFIG_IS_LOG, g->role == ZPOOL_ROLE_LOG);
        vec_push(to, *nv);
    }
    vec_done(&devices);
}

static nvlist_t *build(const struct zpool_layout *l)
{
    nvlists lists[ARRAY_SIZE(roles)] = {0};
    for (size_t i = 0; i < l->n_groups; i++) {
        const struct zpool_group *g = &l->groups[i];
        enum zpool_role list = g->role == ZPOOL_ROLE_LOG ? ZPOOL_ROLE_DATA : g->role;
        build_group(g, l->ashift ? l->ashift : ASHIFT_DEFAULT, &lists[list]);
    }
    nvlist_t *root = fnvlist_alloc();
    fnvlist_add_string(root, ZPOOL_CONFIG_TYPE, VDEV_TYPE_ROOT);
    set_children(root, ZPOOL_CONFIG_CHILDREN, &lists[ZPOOL_ROLE_DATA]);
    set_children(root, ZPOOL_CONFIG_SPARES, &lists[ZPOOL_ROLE_SPARE]);
    set_children(root, ZPOOL_CONFIG_L2CACHE, &lists[ZPOOL_ROLE_CACHE]);
    return root;
}

static int wipe(const char *path, struct err *e)
{
    struct zpool_found f;
    zpool_label_look(path, &f, NULL);
    if (f.device_guid && zpool_label_clear(path, f.pool_guid, f.device_guid, e) < 0)
        return -1;
    int error = zpool_signature_wipe(path);
    return error ? err_errno(e, error, "cannot remove what is on %s", path) : 0;
}

nvlist_t *zpool_layout_build(struct zpool *p, const struct zpool_layout *l, struct err *e)
{
    if (check_layout(p, l, e) < 0 || check_twice(l, e) < 0)
        return NULL;
    /* All are looked at before any is wiped. */
    VEC(const char *) wipes = {0};
    int status = 0;
    for (size_t i = 0; i < l->n_groups; i++) {
        for (size_t k = 0; k < l->groups[i].n_devices && status == 0; k++) {
            bool wipes_it;
            status = check_device(p, &l->groups[i].devices[k], &wipes_it, e);
            if (status == 0 && wipes_it)
                vec_push(&wipes, l->groups[i].devices[k].path);
        }
    }
    vec_for_each(&wipes, path) {
        if (status == 0)
            status = wipe(*path, e);
    }
    vec_done(&wipes);
    if (status < 0)
        return NULL;
    for (size_t i = 0; i < l->n_groups; i++)
        for (size_t k = 0; k < l->groups[i].n_devices; k++)
            zpool_device_allow(p, l->groups[i].devices[k].path);
    return build(l);
}

nvlist_t *zpool_layout_leaf(struct zpool *p, const struct zpool_device *device, unsigned ashift,
                            struct err *e)
{
    struct zpool_member m;
    bool spare = zpool_member_find(p, device->path, &m) && m.role == ZPOOL_ROLE_SPARE && !m.in_use;
    bool wipes_it = false;
    if (!spare && check_device(p, device, &wipes_it, e) < 0)
        return NULL;
    if (wipes_it && wipe(device->path, e) < 0)
        return NULL;
    zpool_device_allow(p, device->path);
    nvlist_t *leaf = leaf_new(device->path, ashift), *root = fnvlist_alloc();
    if (spare) {
        fnvlist_add_uint64(leaf, ZPOOL_CONFIG_IS_SPARE, 1);
        fnvlist_add_uint64(leaf, ZPOOL_CONFIG_GUID, m.guid);
    }
    fnvlist_add_string(root, ZPOOL_CONFIG_TYPE, VDEV_TYPE_ROOT);
    fnvlist_add_nvlist_array(root, ZPOOL_CONFIG_CHILDREN, &leaf, 1);
    nvlist_free(leaf);
    return root;
}
