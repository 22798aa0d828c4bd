/*
 * Volumes: made, destroyed, opened, grown.
 *
 * A volume is a dataset with two objects that have a kernel zvol's numbers: the data, and a table with
 * the volume's size.
 */
#include <stdatomic.h>

#include "zpool/impl.h"

enum { BLOCK_LEAST = 512, BLOCK_MOST = 131072, BLOCK_DEFAULT = 16384 };

static const uint64_t MARK_LEAP = 1ULL << 32, MARK_UNREADABLE = 1ULL << 63;

static bool is_component(const char *text)
{
    namecheck_err_t why;
    char what;
    return zfs_component_namecheck(text, &why, &what) == 0 && !strchr(text, ' ') &&
           strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

int zpool_volume_path(struct zpool *p, const char *name, enum zpool_name_kind kind, char *ret_path,
                      struct err *e)
{
    char volume[ZFS_MAX_DATASET_NAME_LEN];
    size_t n = strlen(name);
    bool fits = strlen(p->name) + n + 1 < ZFS_MAX_DATASET_NAME_LEN;
    snprintf(volume, sizeof(volume), "%s", name);
    char *snap = strchr(volume, '@');
    if (snap)
        *snap++ = '\0';
    bool right = kind == NAME_EITHER || (kind == NAME_SNAPSHOT) == (snap != NULL);
    if (!fits || !right || !is_component(volume) || (snap && !is_component(snap)))
        return err_set(
            e, ERR_INVALID_ARGUMENT, "BadName",
            "\"%.80s\" is no name of a %s: letters, digits, \"-\", \"_\", \".\", \":\"%s", name,
            kind == NAME_SNAPSHOT ? "snapshot" : "volume",
            kind == NAME_SNAPSHOT ? ", as VOLUME@NAME" : "");
    stpcpy(stpcpy(stpcpy(ret_path, p->name), "/"), name);
    return 0;
}

/*
 * What a thick volume can take at most. A block on raidz takes parity and padding, of which ZFS takes
 * the usual part out of all it counts (deflate), so a small block counts more than its size. Then come
 * the blocks of pointers, of which there are two copies.
 */
static uint64_t reservation(struct zpool *p, uint64_t size, uint32_t block)
{
    enum { POINTER = 128, COPIES = 2 };
    spa_t *spa = p->spa;
    uint64_t most = block;
    spa_config_enter(spa, SCL_VDEV, FTAG, RW_READER);
    for (uint64_t i = 0; i < spa->spa_root_vdev->vdev_children; i++) {
        vdev_t *vd = spa->spa_root_vdev->vdev_child[i];
        if (vd->vdev_islog || !vdev_is_concrete(vd))
            continue;
        uint64_t takes =
            (vdev_psize_to_asize(vd, block) >> SPA_MINBLOCKSHIFT) * vd->vdev_deflate_ratio;
        most = takes > most ? takes : most;
    }
    spa_config_exit(spa, SCL_VDEV, FTAG);
    uint64_t blocks = (size + block - 1) / block;
    uint64_t pointers = (blocks + blocks / 512 + 1024) * POINTER * COPIES;
    return blocks * most + pointers;
}

static int check_spec(const struct zpool_volume_spec *s, uint32_t *ret_block, struct err *e)
{
    uint32_t block = s->block_size ? s->block_size : BLOCK_DEFAULT;
    uint64_t value;
    if (block < BLOCK_LEAST || block > BLOCK_MOST || (block & (block - 1)))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadBlockSize",
                       "the block size is %u: powers of two from %d to %d can be", block,
                       BLOCK_LEAST, BLOCK_MOST);
    if (s->size == 0 || s->size % block || s->size > INT64_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadSize",
                       "a volume of %llu bytes is no multiple of its block size, %u",
                       (unsigned long long)s->size, block);
    if (s->compression && zpool_compression_parse(s->compression, &value, e) < 0)
        return -1;
    *ret_block = block;
    return 0;
}

struct creation {
    uint64_t size;
    uint32_t block;
    nvlist_t *properties;
    int error;
};

/* In the transaction that makes the dataset, so that it is never there without its properties. */
static void make_objects(objset_t *os, void *context, cred_t *cr, dmu_tx_t *tx)
{
    (void)cr;
    struct creation *c = context;
    c->error = dmu_object_claim(os, VOLUME_OBJECT, DMU_OT_ZVOL, (int)c->block, DMU_OT_NONE, 0, tx);
    if (!c->error)
        c->error = zap_create_claim(os, VOLUME_PROPERTIES, DMU_OT_ZVOL_PROP, DMU_OT_NONE, 0, tx);
    if (!c->error)
        c->error = zap_update(os, VOLUME_PROPERTIES, VOLUME_SIZE, 8, 1, &c->size, tx);
    if (!c->error && !nvlist_empty(c->properties))
        dsl_props_set_sync_impl(dmu_objset_ds(os), ZPROP_SRC_LOCAL, c->properties, tx);
}

/* Those of a new volume; for nvlist_free(). The specification was checked. */
static nvlist_t *first_properties(const struct zpool_volume_spec *s)
{
    nvlist_t *props = fnvlist_alloc();
    uint64_t value;
    if (s->compression && zpool_compression_parse(s->compression, &value, NULL) == 0)
        fnvlist_add_uint64(props, "compression", value);
    for (size_t i = 0; i < s->n_notes; i++)
        fnvlist_add_string(props, s->notes[i].key, s->notes[i].value);
    return props;
}

static int set_reservation(struct zpool *p, const char *path, const struct zpool_volume_spec *s,
                           uint64_t size, uint32_t block, struct err *e)
{
    uint64_t value = s->thick ? reservation(p, size, block) : s->reserve;
    int error = dsl_dataset_set_refreservation(path, ZPROP_SRC_LOCAL, value);
    if (error)
        return zpool_errno(e, error, "cannot set aside %llu bytes for volume %s",
                           (unsigned long long)value, path);
    return 0;
}

/* Compression and reservation of the volume at path. */
static int set(struct zpool *p, const char *path, const struct zpool_volume_spec *s, uint64_t size,
               uint32_t block, struct err *e)
{
    int error = 0;
    uint64_t value;
    if (s->compression) {
        if (zpool_compression_parse(s->compression, &value, e) < 0)
            return -1;
        error = dsl_prop_set_int(path, "compression", ZPROP_SRC_LOCAL, value);
    } else {
        error = dsl_prop_inherit(path, "compression", ZPROP_SRC_NONE);
    }
    if (error)
        return zpool_errno(e, error, "cannot set the compression of volume %s", path);
    return set_reservation(p, path, s, size, block, e);
}

int zpool_volume_create(struct zpool *p, const char *name, const struct zpool_volume_spec *spec,
                        struct err *e)
{
    char path[ZFS_MAX_DATASET_NAME_LEN];
    struct creation c = {.size = spec->size};
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, name, NAME_VOLUME, path, e) < 0 ||
        check_spec(spec, &c.block, e) < 0)
        return -1;
    c.properties = first_properties(spec);
    int error = dmu_objset_create(path, DMU_OST_ZVOL, 0, NULL, make_objects, &c);
    nvlist_free(c.properties);
    if (error)
        return zpool_errno(e, error, "cannot create volume %s", path);
    int status = c.error ? zpool_errno(e, c.error, "cannot create volume %s", path)
                 : spec->thick || spec->reserve ? set_reservation(p, path, spec, c.size, c.block, e)
                                                : 0;
    if (status < 0)
        (void)dsl_destroy_head(path);
    return status;
}

int zpool_volume_set(struct zpool *p, const char *name, const struct zpool_volume_spec *spec,
                     struct err *e)
{
    char path[ZFS_MAX_DATASET_NAME_LEN];
    struct zpool_volume_info info;
    struct zpool_volume_spec checked = *spec;
    uint32_t block;
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, name, NAME_VOLUME, path, e) < 0 ||
        zpool_volume_read_info(p, name, &info, e) < 0)
        return -1;
    checked.size = info.size;
    checked.block_size = info.block_size;
    if (check_spec(&checked, &block, e) < 0)
        return -1;
    return set(p, path, spec, info.size, info.block_size, e);
}

int zpool_volume_destroy(struct zpool *p, const char *name, struct err *e)
{
    char path[ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, name, NAME_EITHER, path, e) < 0)
        return -1;
    bool snapshot = strchr(name, '@') != NULL;
    int error = snapshot ? dsl_destroy_snapshot(path, B_FALSE) : dsl_destroy_head(path);
    if (error == EEXIST || error == EBUSY)
        return err_set(e, ERR_FAILED_PRECONDITION, "Busy", "%s %s cannot be destroyed while %s",
                       snapshot ? "snapshot" : "volume", path,
                       snapshot ? "a clone of it exists or it is open"
                                : "it is open or has snapshots");
    return error ? zpool_errno(e, error, "cannot destroy %s", path) : 0;
}

/* One of the numbers that lie beside the data, durably. */
static int write_number(struct zpool_volume *v, const char *name, uint64_t value)
{
    dmu_tx_t *tx = dmu_tx_create(v->os);
    dmu_tx_hold_zap(tx, VOLUME_PROPERTIES, TRUE, NULL);
    dmu_tx_mark_netfree(tx); /* also where there is no room for data */
    int error = dmu_tx_assign(tx, TXG_WAIT);
    if (error) {
        dmu_tx_abort(tx);
        return error;
    }
    error = zap_update(v->os, VOLUME_PROPERTIES, name, 8, 1, &value, tx);
    dmu_tx_commit(tx);
    txg_wait_synced(dmu_objset_pool(v->os), 0);
    return error;
}

static int open_objects(struct zpool_volume *v)
{
    dmu_object_info_t info;
    int error = zap_lookup(v->os, VOLUME_PROPERTIES, VOLUME_SIZE, 8, 1, &v->size);
    if (!error)
        error = dmu_object_info(v->os, VOLUME_OBJECT, &info);
    if (!error)
        error = dnode_hold(v->os, VOLUME_OBJECT, v, &v->dn);
    if (!error)
        v->block = info.doi_data_block_size;
    return error;
}

static void close_objects(struct zpool_volume *v)
{
    if (v->dn)
        dnode_rele(v->dn, v);
    dmu_objset_disown(v->os, B_TRUE, v);
    zfs_rangelock_fini(&v->ranges);
    free(v);
}

struct zpool_volume *zpool_volume_open(struct zpool *p, const char *name, bool read_only,
                                       struct err *e)
{
    struct zpool_volume *v = NEW(struct zpool_volume);
    v->pool = p;
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, name, NAME_EITHER, v->name, e) < 0) {
        free(v);
        return NULL;
    }
    bool writes = !read_only && !strchr(name, '@');
    int error = dmu_objset_own(v->name, DMU_OST_ZVOL, !writes, B_TRUE, v, &v->os);
    if (error) {
        zpool_errno(e, error, "cannot open volume %s", v->name);
        free(v);
        return NULL;
    }
    zfs_rangelock_init(&v->ranges, NULL, NULL);
    error = open_objects(v);
    if (!error && writes)
        error = zpool_intent_replay(v);
    if (error) {
        if (v->replay_error) {
            (void)zpool_volume_set_mark(v, zpool_volume_mark(v) + MARK_LEAP, NULL);
            err_set(e, ERR_DATA_LOSS, "LogNotPlayed",
                    "volume %s: what was flushed last could not be brought back (%s)", v->name,
                    strerror(v->replay_error));
        } else {
            zpool_errno(e, error, "cannot open volume %s", v->name);
        }
        close_objects(v);
        return NULL;
    }
    if (writes)
        v->log = zil_open(v->os, zpool_intent_data);
    return v;
}

void zpool_volume_close(struct zpool_volume *v)
{
    if (v->log)
        zil_close(v->log);
    close_objects(v);
}

uint64_t zpool_volume_size(const struct zpool_volume *v)
{
    return __atomic_load_n(&v->size, __ATOMIC_ACQUIRE);
}

uint32_t zpool_volume_block_size(const struct zpool_volume *v)
{
    return v->block;
}

uint64_t zpool_volume_guid(const struct zpool_volume *v)
{
    return dsl_get_guid(dmu_objset_ds(v->os));
}

uint64_t zpool_volume_mark(struct zpool_volume *v)
{
    uint64_t mark = 0;
    int error = zap_lookup(v->os, VOLUME_PROPERTIES, VOLUME_MARK, 8, 1, &mark);
    return error && error != ENOENT ? MARK_UNREADABLE : error ? 0 : mark;
}

int zpool_volume_set_mark(struct zpool_volume *v, uint64_t mark, struct err *e)
{
    if (zpool_ready(v->pool, e) < 0)
        return -1;
    int error = write_number(v, VOLUME_MARK, mark);
    return error ? zpool_errno(e, error, "cannot mark volume %s", v->name) : 0;
}

int zpool_volume_grow(struct zpool_volume *v, uint64_t size, struct err *e)
{
    if (size == v->size)
        return 0;
    if (!v->log)
        return err_set(e, ERR_FAILED_PRECONDITION, "ReadOnly",
                       "volume %s is open for reading alone", v->name);
    if (size < v->size || size % v->block || size > INT64_MAX)
        return err_set(
            e, ERR_INVALID_ARGUMENT, "BadSize",
            "volume %s has %llu bytes and can only grow, to a multiple of its block size %u; "
            "%llu is none",
            v->name, (unsigned long long)v->size, v->block, (unsigned long long)size);
    if (zpool_ready(v->pool, e) < 0)
        return -1;
    /* The space of a thick one first: where there is none it stays as it was. */
    uint64_t reserved = dsl_get_refreservation(dmu_objset_ds(v->os));
    int error = 0;
    if (reserved)
        error = dsl_dataset_set_refreservation(v->name, ZPROP_SRC_LOCAL,
                                               reservation(v->pool, size, v->block));
    if (!error) {
        error = write_number(v, VOLUME_SIZE, size);
        if (error && reserved)
            (void)dsl_dataset_set_refreservation(v->name, ZPROP_SRC_LOCAL, reserved);
    }
    if (error)
        return zpool_errno(e, error, "cannot grow volume %s to %llu bytes", v->name,
                           (unsigned long long)size);
    __atomic_store_n(&v->size, size, __ATOMIC_RELEASE);
    return 0;
}
