/*
 * Failed syncs, and what they put in doubt.
 *
 * A sync that fails says that something written since the last one that did not may be nowhere: the
 * kernel has forgotten it, and reports so once. ZFS does not look at the result of a sync, and takes
 * what it wrote for written. So a device that had such writes has lost them until the contrary is shown:
 *
 *     written, not synced ── sync fails ──> lost ──> takes no writes, also when it is opened again
 *                                            │
 *              the rest of its group has it: │ flushes succeed; ZFS's own books say which transactions
 *                                            │ it lacks, and after zpool_clear() they are copied to it
 *                                            │
 *                              nobody has it: every flush fails until the pool is imported anew. The
 *                                             device has taken no uberblock since, so that import finds
 *                                             the pool as of its last good sync, with everything that
 *                                             a flush ever promised
 *
 * A device whose sync fails though nothing was written since the last one has lost nothing.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "zpool/impl.h"

struct loss {
    char *path;
    uint64_t txg; /* the last that the pool had synced */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct loss) losses; /* under lock */
static _Atomic size_t n_losses;

/* Under lock; NULL. */
static struct loss *find(const char *path)
{
    vec_for_each(&losses, l) {
        if (strcmp(l->path, path) == 0)
            return l;
    }
    return NULL;
}

void zpool_doubt_add(const char *path)
{
    uint64_t txg = zpool_device_txg(path);
    pthread_mutex_lock(&lock);
    if (!find(path)) {
        vec_push(&losses, (struct loss){mem_strdup(path), txg});
        atomic_store(&n_losses, losses.len);
    }
    pthread_mutex_unlock(&lock);
}

static bool lookup(const char *path, uint64_t *ret_txg)
{
    pthread_mutex_lock(&lock);
    struct loss *l = path ? find(path) : NULL;
    if (l && ret_txg)
        *ret_txg = l->txg;
    pthread_mutex_unlock(&lock);
    return l != NULL;
}

bool zpool_doubt_has(const char *path)
{
    return atomic_load(&n_losses) && lookup(path, NULL);
}

void zpool_doubt_remove(const char *path)
{
    pthread_mutex_lock(&lock);
    struct loss *l = find(path);
    if (l) {
        free(l->path);
        *l = vec_last(&losses);
        losses.len--;
        atomic_store(&n_losses, losses.len);
    }
    pthread_mutex_unlock(&lock);
}

/*
 * The device lacks what was written when its sync failed: it says so itself from the next write on, which
 * it refuses, and so the pool's books get to the other devices.
 */
static void note(vdev_t *vd, uint64_t txg)
{
    for (uint64_t t = txg + 1; t <= txg + TXG_CONCURRENT_STATES; t++)
        vdev_dtl_dirty(vd, DTL_MISSING, t, 1);
}

/* Whether everything in this part of the tree can be read, with the configuration held. */
static bool is_whole(vdev_t *vd)
{
    uint64_t missing = 0, txg;
    if (!vdev_is_concrete(vd))
        return true;
    if (vd->vdev_ops->vdev_op_leaf) {
        bool lost = lookup(vd->vdev_path, &txg);
        if (lost && vd != vd->vdev_top && !vd->vdev_top->vdev_islog)
            note(vd, txg);
        return !lost && vdev_readable(vd) && vdev_dtl_empty(vd, DTL_MISSING);
    }
    for (uint64_t i = 0; i < vd->vdev_children; i++)
        missing += !is_whole(vd->vdev_child[i]);
    /* Mirrors, and pairs of old and new: one of them is enough. */
    return missing <=
           (vd->vdev_ops == &vdev_raidz_ops ? vdev_get_nparity(vd) : vd->vdev_children - 1);
}

struct parts {
    bool data, log; /* that are not whole */
};

static struct parts look(spa_t *spa)
{
    struct parts p = {0};
    spa_config_enter(spa, SCL_STATE, FTAG, RW_READER);
    vdev_t *root = spa->spa_root_vdev;
    for (uint64_t i = 0; i < root->vdev_children; i++) {
        vdev_t *top = root->vdev_child[i];
        bool whole = is_whole(top);
        p.log |= !whole && top->vdev_islog;
        p.data |= !whole && !top->vdev_islog;
    }
    spa_config_exit(spa, SCL_STATE, FTAG);
    return p;
}

void zpool_doubt_note(struct zpool *p)
{
    if (atomic_load(&n_losses))
        (void)look(p->spa);
}

bool zpool_doubt(struct zpool *p)
{
    if (!atomic_load(&n_losses))
        return false;
    struct parts lost = look(p->spa);
    if (!lost.data && lost.log) {
        /* What only the log had is in memory still: in the pool's tree the log is not needed. */
        txg_wait_synced(spa_get_dsl(p->spa), 0);
        lost = look(p->spa);
    }
    return lost.data;
}
