/*
 * What volumes there are, and what they take.
 */
#include "zpool/impl.h"

typedef VEC(struct zpool_volume_info) infos;

static int read_sizes(objset_t *os, struct zpool_volume_info *i)
{
    dmu_object_info_t info;
    int error = zap_lookup(os, VOLUME_PROPERTIES, VOLUME_SIZE, 8, 1, &i->size);
    if (!error)
        error = dmu_object_info(os, VOLUME_OBJECT, &info);
    if (!error)
        i->block_size = info.doi_data_block_size;
    return error;
}

static void read_space(objset_t *os, struct zpool_volume_info *i)
{
    dsl_dataset_t *ds = dmu_objset_ds(os);
    i->snapshot = dmu_objset_is_snapshot(os);
    i->guid = dsl_get_guid(ds);
    i->created = (int64_t)dsl_get_creation(ds);
    i->txg = dsl_get_creationtxg(ds);
    i->referenced = dsl_get_referenced(ds);
    i->logical = dsl_get_logicalreferenced(ds);
    i->used = i->snapshot ? dsl_get_used(ds) : dsl_dir_get_used(ds->ds_dir);
    if (i->snapshot)
        return;
    i->reserved = dsl_get_refreservation(ds);
    i->available = dsl_get_available(ds);
    char origin[ZFS_MAX_DATASET_NAME_LEN];
    if (dsl_dir_is_clone(ds->ds_dir)) {
        dsl_dir_get_origin(ds->ds_dir, origin);
        const char *name = strchr(origin, '/');
        snprintf(i->origin, sizeof(i->origin), "%s", name ? name + 1 : origin);
    }
}

static int read_one(const char *path, struct zpool_volume_info *i)
{
    objset_t *os;
    int error = dmu_objset_hold(path, FTAG, &os);
    if (error)
        return error;
    *i = (struct zpool_volume_info){0};
    snprintf(i->name, sizeof(i->name), "%s", strchr(path, '/') + 1);
    error = dmu_objset_type(os) == DMU_OST_ZVOL ? read_sizes(os, i) : EINVAL;
    uint64_t value;
    const char *word;
    if (!error) {
        read_space(os, i);
        if (dsl_prop_get_int_ds(dmu_objset_ds(os), "compression", &value) == 0 &&
            zfs_prop_index_to_string(ZFS_PROP_COMPRESSION, value, &word) == 0)
            snprintf(i->compression, sizeof(i->compression), "%s", word);
    }
    dmu_objset_rele(os, FTAG);
    return error;
}

int zpool_volume_read_info(struct zpool *p, const char *name, struct zpool_volume_info *ret_info,
                           struct err *e)
{
    char path[ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, name, NAME_EITHER, path, e) < 0)
        return -1;
    int error = read_one(path, ret_info);
    return error ? zpool_errno(e, error, "volume %s", path) : 0;
}

void zpool_volume_read_note(struct zpool *p, const char *name, const char *key, char *ret_value,
                            size_t size)
{
    char path[ZFS_MAX_DATASET_NAME_LEN];
    ret_value[0] = '\0';
    if (zpool_volume_path(p, name, NAME_EITHER, path, NULL) < 0 ||
        dsl_prop_get(path, key, 1, (int)size, ret_value, NULL) != 0)
        ret_value[0] = '\0';
}

int zpool_volume_note(struct zpool *p, const char *name, const char *key, const char *value,
                      struct err *e)
{
    char path[ZFS_MAX_DATASET_NAME_LEN];
    if (zpool_ready(p, e) < 0 || zpool_volume_path(p, name, NAME_VOLUME, path, e) < 0)
        return -1;
    int error = *value ? dsl_prop_set_string(path, key, ZPROP_SRC_LOCAL, value)
                       : dsl_prop_inherit(path, key, ZPROP_SRC_NONE);
    return error ? zpool_errno(e, error, "cannot note something on %s", path) : 0;
}

static int collect(const char *path, void *context)
{
    infos *v = context;
    struct zpool_volume_info i;
    if (strchr(path, '/') && read_one(path, &i) == 0)
        vec_push(v, i);
    return 0; /* one that was destroyed meanwhile is not there */
}

/* Volumes by name; snapshots behind theirs, by age. */
static int compare(const void *pa, const void *pb)
{
    const struct zpool_volume_info *a = pa, *b = pb;
    size_t na = strcspn(a->name, "@"), nb = strcspn(b->name, "@");
    int order = strncmp(a->name, b->name, na < nb ? na : nb);
    if (order || na != nb)
        return order ? order : na < nb ? -1 : 1;
    if (a->snapshot != b->snapshot)
        return a->snapshot ? 1 : -1;
    return a->txg != b->txg ? (a->txg < b->txg ? -1 : 1) : strcmp(a->name, b->name);
}

int zpool_volume_list(struct zpool *p, struct zpool_volume_info **ret_list, size_t *ret_n,
                      struct err *e)
{
    infos v = {0};
    if (zpool_ready(p, e) < 0)
        return -1;
    int error = dmu_objset_find(p->name, collect, &v, DS_FIND_CHILDREN | DS_FIND_SNAPSHOTS);
    if (error) {
        vec_done(&v);
        return zpool_errno(e, error, "cannot list the volumes of pool %s", p->name);
    }
    if (v.len)
        qsort(v.p, v.len, sizeof(*v.p), compare);
    *ret_list = v.p;
    *ret_n = v.len;
    return 0;
}
