/*
 * Pools: made, exported, destroyed.
 */
#include "zpool/impl.h"

struct zpool *zpool_new(const char *name)
{
    struct zpool *p = NEW(struct zpool);
    snprintf(p->name, sizeof(p->name), "%s", name);
    return p;
}

void zpool_free(struct zpool *p)
{
    zpool_device_forget(p);
    free(p);
}

/*
 * Held: the handle keeps the pool from being exported under it, and works without libzpool's lock of
 * all pools, which an operation that waits for a device may have.
 */
struct zpool *zpool_hold(struct zpool *p, struct err *e)
{
    int error = spa_open(p->name, &p->spa, p);
    if (!error)
        return p;
    zpool_errno(e, error, "cannot open pool %s", p->name);
    zpool_free(p);
    return NULL;
}

nvlist_t *zpool_properties(void)
{
    nvlist_t *props = fnvlist_alloc();
    fnvlist_add_string(props, zpool_prop_to_name(ZPOOL_PROP_CACHEFILE), "none");
    fnvlist_add_uint64(props, zpool_prop_to_name(ZPOOL_PROP_FAILUREMODE),
                       ZIO_FAILURE_MODE_CONTINUE);
    fnvlist_add_uint64(props, zpool_prop_to_name(ZPOOL_PROP_MULTIHOST), 1);
    return props;
}

static nvlist_t *new_properties(void)
{
    nvlist_t *props = zpool_properties();
    for (int i = 0; i < SPA_FEATURES; i++) {
        char name[128];
        snprintf(name, sizeof(name), "feature@%s", spa_feature_table[i].fi_uname);
        fnvlist_add_uint64(props, name, 0);
    }
    return props;
}

int zpool_compression_parse(const char *word, uint64_t *ret_value, struct err *e)
{
    if (zfs_prop_string_to_index(ZFS_PROP_COMPRESSION, word, ret_value) == 0)
        return 0;
    return err_set(e, ERR_INVALID_ARGUMENT, "BadCompression",
                   "there is no compression \"%s\": write off, lz4 or zstd", word);
}

struct zpool *zpool_create(const char *name, const struct zpool_layout *layout, struct err *e)
{
    namecheck_err_t why;
    char what;
    if (strlen(name) > 100 || pool_namecheck(name, &why, &what) != 0) {
        err_set(e, ERR_INVALID_ARGUMENT, "BadName",
                "\"%s\" is no name of a pool: a letter, then letters, digits, \"-\", \"_\", \".\"",
                name);
        return NULL;
    }
    uint64_t compression;
    if (zpool_compression_parse(layout->compression ? layout->compression : "off", &compression,
                                e) < 0)
        return NULL;
    struct zpool *p = zpool_new(name);
    nvlist_t *root = zpool_layout_build(p, layout, e);
    if (!root) {
        zpool_free(p);
        return NULL;
    }
    nvlist_t *props = new_properties();
    int error = spa_create(name, root, props, NULL, NULL);
    nvlist_free(root);
    nvlist_free(props);
    if (error) {
        zpool_errno(e, error, "cannot create pool %s", name);
        zpool_free(p);
        return NULL;
    }
    error = dsl_prop_set_int(name, "compression", ZPROP_SRC_LOCAL, compression);
    p = zpool_hold(p, e);
    if (p && error) {
        zpool_errno(e, error, "cannot set the compression of pool %s", name);
        (void)zpool_destroy(p, NULL);
        return NULL;
    }
    return p;
}

int zpool_set_compression(struct zpool *p, const char *word, struct err *e)
{
    uint64_t wanted, is;
    if (zpool_compression_parse(word, &wanted, e) < 0 || zpool_ready(p, e) < 0)
        return -1;
    int error = dsl_prop_get_integer(p->name, "compression", &is, NULL);
    if (!error && is != wanted)
        error = dsl_prop_set_int(p->name, "compression", ZPROP_SRC_LOCAL, wanted);
    return error ? zpool_errno(e, error, "cannot set the compression of pool %s", p->name) : 0;
}

static int end(struct zpool *p, bool destroy, struct err *e)
{
    if (zpool_ready(p, e) < 0)
        return -1;
    if (zpool_doubt(p)) /* its device takes no writes: it would be waited for for ever */
        return zpool_in_doubt(p, e);
    spa_close(p->spa, p);
    int error = destroy ? spa_destroy(p->name) : spa_export(p->name, NULL, B_FALSE, B_FALSE);
    if (error == 0) {
        zpool_free(p);
        return 0;
    }
    /* It is there still. */
    VERIFY0(spa_open(p->name, &p->spa, p));
    return zpool_errno(e, error, "cannot %s pool %s", destroy ? "destroy" : "export", p->name);
}

int zpool_export(struct zpool *p, struct err *e)
{
    return end(p, false, e);
}

int zpool_destroy(struct zpool *p, struct err *e)
{
    return end(p, true, e);
}

const char *zpool_name(const struct zpool *p)
{
    return p->name;
}

bool zpool_is_suspended(const struct zpool *p)
{
    return spa_suspended(p->spa);
}

uint64_t zpool_guid(const struct zpool *p)
{
    return spa_guid(p->spa);
}

int zpool_sync(struct zpool *p, struct err *e)
{
    if (zpool_ready(p, e) < 0)
        return -1;
    txg_wait_synced(spa_get_dsl(p->spa), 0);
    return zpool_doubt(p) ? zpool_in_doubt(p, e) : 0;
}
