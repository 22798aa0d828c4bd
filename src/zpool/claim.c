/*
 * Which devices libzpool may open, and the locks on those that it has.
 *
 * Invariants:
 *   - Only what a caller has named for a pool is opened. libzpool would open what the pool remembers
 *     of its devices' paths, where another device may be by now, or one that hangs.
 *   - A device is open only with an exclusive lock, which this process has once however often the
 *     device is opened (a spare in use is open twice). Block devices are opened exclusively as well,
 *     so that a mounted one is refused.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zpool/impl.h"

/* A device that this process has. */
struct zpool_claim {
    dev_t device; /* a file's file system and number; a block device's number and 0 */
    ino_t number;
    int fd; /* locked */
    unsigned files;
    struct list_link link;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_link claims = {&claims, &claims}; /* under lock */
static struct list_link pools = {&pools, &pools};    /* under lock: those that may open something */

/* Under lock. */
static bool may_open(const struct zpool *p, const char *path)
{
    vec_for_each(&p->paths, allowed) {
        if (strcmp(*allowed, path) == 0)
            return true;
    }
    return false;
}

/* Under lock. */
static bool is_allowed(const char *path)
{
    list_for_each(&pools, p, struct zpool, link) {
        if (may_open(p, path))
            return true;
    }
    return false;
}

uint64_t zpool_device_txg(const char *path)
{
    uint64_t txg = 0;
    pthread_mutex_lock(&lock);
    list_for_each(&pools, p, struct zpool, link) {
        if (p->spa && may_open(p, path))
            txg = spa_last_synced_txg(p->spa);
    }
    pthread_mutex_unlock(&lock);
    return txg;
}

void zpool_device_allow(struct zpool *p, const char *path)
{
    pthread_mutex_lock(&lock);
    if (!p->paths.len)
        list_push(&pools, &p->link);
    if (!may_open(p, path))
        vec_push(&p->paths, mem_strdup(path));
    pthread_mutex_unlock(&lock);
}

void zpool_device_trust(struct zpool *p)
{
    pthread_mutex_lock(&lock);
    vec_for_each(&p->paths, path)
        zpool_doubt_remove(*path);
    pthread_mutex_unlock(&lock);
}

void zpool_device_forget(struct zpool *p)
{
    zpool_device_trust(p);
    pthread_mutex_lock(&lock);
    if (p->paths.len)
        list_unlink(&p->link);
    vec_for_each(&p->paths, path)
        free(*path);
    vec_done(&p->paths);
    pthread_mutex_unlock(&lock);
}

/* Under lock. */
static struct zpool_claim *find_claim(const struct stat *st)
{
    bool block = S_ISBLK(st->st_mode);
    list_for_each(&claims, c, struct zpool_claim, link) {
        if (c->device == (block ? st->st_rdev : st->st_dev) &&
            c->number == (block ? 0 : st->st_ino))
            return c;
    }
    return NULL;
}

/* Under lock; an errno value. */
static int lock_device(int pin, const struct stat *st, struct zpool_claim **ret)
{
    bool block = S_ISBLK(st->st_mode);
    int fd = zpool_device_open(pin, O_RDWR | (block ? O_EXCL : 0));
    if (fd < 0)
        return -fd;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int error = errno == EWOULDBLOCK ? EBUSY : errno;
        close(fd);
        return error;
    }
    struct zpool_claim *c = NEW(struct zpool_claim);
    c->device = block ? st->st_rdev : st->st_dev;
    c->number = block ? 0 : st->st_ino;
    c->fd = fd;
    list_push(&claims, &c->link);
    *ret = c;
    return 0;
}

int zpool_claim_take(const char *path, int pin, const struct stat *st,
                     struct zpool_claim **ret_claim)
{
    pthread_mutex_lock(&lock);
    struct zpool_claim *c = find_claim(st);
    int error = is_allowed(path) ? 0 : ENOENT;
    if (!error && !c)
        error = lock_device(pin, st, &c);
    if (!error && c)
        c->files++;
    *ret_claim = c;
    pthread_mutex_unlock(&lock);
    return error;
}

void zpool_claim_drop(struct zpool_claim *c)
{
    pthread_mutex_lock(&lock);
    if (--c->files == 0) {
        list_unlink(&c->link);
        close(c->fd);
        free(c);
    }
    pthread_mutex_unlock(&lock);
}

int zpool_device_is_free(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    pthread_mutex_lock(&lock);
    bool ours = find_claim(&st) != NULL;
    pthread_mutex_unlock(&lock);
    if (ours || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? EBUSY : errno;
}
