/*
 * Import: from the labels of the devices that were named to a pool.
 *
 * A label describes the group its device is in, and says how many groups there are; so the pool's
 * description is put together from the newest label of each group, with the paths that the devices
 * have now:
 *
 *     root ──┬── group 0   from the label of a device of group 0
 *            ├── group 1   from ...
 *            └── missing   no device of group 2 was found
 *
 * libzpool then reads the pool's own description from the devices, and compares. Spares and caches
 * say nothing of their pool: that description names them.
 */
#include "zpool/impl.h"

struct source {
    struct zpool_found found;
    nvlist_t *label; /* NULL: not of this pool */
};

struct gathered {
    VEC(struct source) sources; /* all that were named */
    struct source *newest;      /* of the pool's members */
};

static void gathered_done(struct gathered *g)
{
    vec_for_each(&g->sources, s)
        nvlist_free(s->label);
    vec_done(&g->sources);
}

static bool is_ours(const struct zpool_found *f, const struct zpool_import *how)
{
    return f->label == ZPOOL_LABEL_MEMBER && f->pool_guid == how->guid;
}

static void gather(const struct zpool_import *how, struct gathered *g)
{
    for (size_t i = 0; i < how->n_paths; i++) {
        struct source s;
        zpool_label_look(how->paths[i], &s.found, &s.label);
        if (!is_ours(&s.found, how) || s.found.error) {
            nvlist_free(s.label);
            s.label = NULL;
        }
        vec_push(&g->sources, s);
    }
    vec_for_each(&g->sources, s) {
        if (s->label && (!g->newest || s->found.txg > g->newest->found.txg))
            g->newest = s;
    }
}

/* Gives every device of the tree below nv the path at which it was found; counts those that were not. */
static unsigned set_paths(nvlist_t *nv, const struct gathered *g)
{
    nvlist_t **children;
    uint_t n;
    unsigned missing = 0;
    if (nvlist_lookup_nvlist_array(nv, ZPOOL_CONFIG_CHILDREN, &children, &n) == 0) {
        for (uint_t i = 0; i < n; i++)
            missing += set_paths(children[i], g);
        return missing;
    }
    vec_for_each(&g->sources, s) {
        if (s->label && s->found.device_guid == zpool_number(nv, ZPOOL_CONFIG_GUID)) {
            fnvlist_add_string(nv, ZPOOL_CONFIG_PATH, s->found.path);
            return 0;
        }
    }
    return 1;
}

/* The newest description of the group with this number, or NULL. */
static nvlist_t *find_group(const struct gathered *g, uint64_t id)
{
    const struct source *best = NULL;
    nvlist_t *tree, *best_tree = NULL;
    vec_for_each(&g->sources, s) {
        if (!s->label || nvlist_lookup_nvlist(s->label, ZPOOL_CONFIG_VDEV_TREE, &tree) != 0 ||
            zpool_number(tree, ZPOOL_CONFIG_ID) != id)
            continue;
        if (!best || s->found.txg > best->found.txg) {
            best = s;
            best_tree = tree;
        }
    }
    return best_tree;
}

static bool is_hole(nvlist_t *label, uint64_t id)
{
    uint64_t *holes;
    uint_t n;
    if (nvlist_lookup_uint64_array(label, ZPOOL_CONFIG_HOLE_ARRAY, &holes, &n) != 0)
        return false;
    for (uint_t i = 0; i < n; i++)
        if (holes[i] == id)
            return true;
    return false;
}

static nvlist_t *placeholder(const char *type, uint64_t id)
{
    nvlist_t *nv = fnvlist_alloc();
    fnvlist_add_string(nv, ZPOOL_CONFIG_TYPE, type);
    fnvlist_add_uint64(nv, ZPOOL_CONFIG_ID, id);
    fnvlist_add_uint64(nv, ZPOOL_CONFIG_GUID, 0);
    return nv;
}

/* The pool's description, for nvlist_free(). */
static nvlist_t *describe(const struct gathered *g, uint64_t guid, unsigned *ret_missing)
{
    enum { GROUPS_MAX = 4096 };
    nvlist_t *label = g->newest->label;
    uint64_t n = zpool_number(label, ZPOOL_CONFIG_VDEV_CHILDREN);
    VEC(nvlist_t *) groups = {0};
    *ret_missing = 0;
    for (uint64_t id = 0; id < n && id < GROUPS_MAX; id++) {
        nvlist_t *tree = find_group(g, id), *group;
        if (tree) {
            group = fnvlist_dup(tree);
            *ret_missing += set_paths(group, g);
        } else {
            bool hole = is_hole(label, id);
            group = placeholder(hole ? VDEV_TYPE_HOLE : VDEV_TYPE_MISSING, id);
            *ret_missing += !hole;
        }
        vec_push(&groups, group);
    }
    nvlist_t *root = placeholder(VDEV_TYPE_ROOT, 0);
    fnvlist_add_uint64(root, ZPOOL_CONFIG_GUID, guid);
    fnvlist_add_nvlist_array(root, ZPOOL_CONFIG_CHILDREN, groups.p, (uint_t)groups.len);
    vec_for_each(&groups, group)
        nvlist_free(*group);
    vec_done(&groups);

    nvlist_t *config = fnvlist_alloc();
    static const char *const numbers[] = {ZPOOL_CONFIG_VERSION, ZPOOL_CONFIG_POOL_GUID,
                                          ZPOOL_CONFIG_POOL_STATE, ZPOOL_CONFIG_POOL_TXG,
                                          ZPOOL_CONFIG_HOSTID};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        fnvlist_add_uint64(config, numbers[i], zpool_number(label, numbers[i]));
    fnvlist_add_string(config, ZPOOL_CONFIG_POOL_NAME, g->newest->found.pool_name);
    fnvlist_add_string(config, ZPOOL_CONFIG_HOSTNAME, g->newest->found.host_name);
    fnvlist_add_nvlist(config, ZPOOL_CONFIG_VDEV_TREE, root);
    nvlist_free(root);
    return config;
}

/* Where the device with this GUID is, whatever its label says of a pool; NULL. */
static const char *path_of(const struct gathered *g, uint64_t guid)
{
    vec_for_each(&g->sources, s) {
        if (guid && s->found.device_guid == guid)
            return s->found.path;
    }
    return NULL;
}

/* The list that the pool keeps of its spares or caches, for nvlist_free(); NULL. */
static nvlist_t *read_aux(spa_t *spa, uint64_t object)
{
    enum { LIST_MAX = 16 << 20 };
    dmu_buf_t *db;
    nvlist_t *nv = NULL;
    if (!object || dmu_bonus_hold(spa->spa_meta_objset, object, FTAG, &db) != 0)
        return NULL;
    uint64_t size = *(uint64_t *)db->db_data;
    dmu_buf_rele(db, FTAG);
    if (size == 0 || size > LIST_MAX)
        return NULL;
    _cleanup_free_ char *packed = mem_alloc(size);
    if (dmu_read(spa->spa_meta_objset, object, 0, size, packed, DMU_READ_PREFETCH) != 0 ||
        nvlist_unpack(packed, size, &nv, 0) != 0)
        return NULL;
    return nv;
}

/* spa_import() forgets them: it wants to be told. They are at the paths where they were found. */
static void restore_aux(spa_t *spa, spa_aux_vdev_t *aux, const char *list, void (*load)(spa_t *spa),
                        const struct gathered *g)
{
    nvlist_t *nv = read_aux(spa, aux->sav_object), **rows;
    uint_t n;
    if (!nv || nvlist_lookup_nvlist_array(nv, list, &rows, &n) != 0) {
        nvlist_free(nv);
        return;
    }
    for (uint_t i = 0; i < n; i++) {
        const char *path = path_of(g, zpool_number(rows[i], ZPOOL_CONFIG_GUID));
        if (path)
            fnvlist_add_string(rows[i], ZPOOL_CONFIG_PATH, path);
    }
    spa_config_enter(spa, SCL_ALL, FTAG, RW_WRITER);
    nvlist_free(aux->sav_config);
    aux->sav_config = nv;
    load(spa);
    aux->sav_sync = B_TRUE;
    spa_config_exit(spa, SCL_ALL, FTAG);
}

static int check(const struct zpool_import *how, const struct gathered *g, struct err *e)
{
    unsigned busy = 0, failed = 0;
    const struct source *one = NULL;
    vec_for_each(&g->sources, s) {
        bool held = s->found.error == EBUSY && is_ours(&s->found, how);
        busy += held;
        failed += s->found.error != 0;
        if (s->found.error && (!one || held))
            one = s;
    }
    if (busy)
        return err_set(e, ERR_FAILED_PRECONDITION, "DeviceInUse",
                       "%s is in use by another process: pool %llu may be imported there",
                       one->found.path, (unsigned long long)how->guid);
    if (!g->newest && failed)
        return err_set(
            e, ERR_UNAVAILABLE, "DevicesUnreadable",
            "of %zu devices none is known to be of pool %llu, and %u cannot be read; %s: %s",
            how->n_paths, (unsigned long long)how->guid, failed, one->found.path,
            strerror(one->found.error));
    if (!g->newest)
        return err_set(e, ERR_NOT_FOUND, "PoolNotFound",
                       "none of %zu devices belongs to pool %llu: nothing was imported or created",
                       how->n_paths, (unsigned long long)how->guid);
    const struct zpool_found *f = &g->newest->found;
    if (!f->exported && f->host_id != zpool_host_id() && !how->take_over)
        return err_set(e, ERR_FAILED_PRECONDITION, "OtherHost",
                       "pool %s was last used by host %s (id %x) and not exported there: make sure "
                       "that host is gone, then take the pool over",
                       f->pool_name, f->host_name, f->host_id);
    return 0;
}

/* The pool, or NULL and what is wrong. */
static struct zpool *assemble(const struct zpool_import *how, const struct gathered *g,
                              struct err *e)
{
    struct zpool *p = zpool_new(g->newest->found.pool_name);
    vec_for_each(&g->sources, s)
        zpool_device_allow(p, s->found.path);
    unsigned missing;
    nvlist_t *config = describe(g, how->guid, &missing);
    nvlist_t *props = zpool_properties();
    uint64_t flags = ZFS_IMPORT_ANY_HOST | (how->without_log ? ZFS_IMPORT_MISSING_LOG : 0);
    int error = spa_import(p->name, config, props, flags);
    nvlist_free(config);
    nvlist_free(props);
    if (error == 0)
        return zpool_hold(p, e);
    if (error != EEXIST && (error == ENOENT || missing))
        error = ENXIO;
    if (error == EEXIST)
        err_set(e, ERR_ALREADY_EXISTS, "Imported", "pool %s is imported already", p->name);
    else
        zpool_errno(e, error,
                    "cannot import pool %s (%llu), of whose devices %u are not among the %zu given",
                    p->name, (unsigned long long)how->guid, missing, how->n_paths);
    zpool_free(p);
    return NULL;
}

struct zpool *zpool_import(const struct zpool_import *how, struct err *e)
{
    struct gathered g = {0};
    gather(how, &g);
    struct zpool *p = check(how, &g, e) < 0 || !g.newest ? NULL : assemble(how, &g, e);
    if (p) {
        restore_aux(p->spa, &p->spa->spa_spares, ZPOOL_CONFIG_SPARES, spa_load_spares, &g);
        restore_aux(p->spa, &p->spa->spa_l2cache, ZPOOL_CONFIG_L2CACHE, spa_load_l2cache, &g);
        /* What was replaced leaves when its successor is complete; a process that ended between the two
         * left that undone, and libzpool does not look again by itself. */
        spa_async_request(p->spa, SPA_ASYNC_RESILVER_DONE);
    }
    gathered_done(&g);
    return p;
}
