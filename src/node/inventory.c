#include "node/inventory.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/str.h"
#include "node/exclusive.h"

void node_inventory_init(struct node_inventory *i)
{
    pthread_mutex_init(&i->scanning, NULL);
    pthread_mutex_init(&i->lock, NULL);
    i->options.filter = &i->filter;
    i->options.prober = &i->prober;
}

void node_inventory_done(struct node_inventory *i)
{
    node_scan_done(&i->scan);
    node_prober_done(&i->prober);
    node_filter_done(&i->filter);
    pthread_mutex_destroy(&i->scanning);
    pthread_mutex_destroy(&i->lock);
}

static int refresh_locked(struct node_inventory *i, struct err *e)
{
    struct node_scan scan;
    if (node_scan(&i->options, &scan, e) < 0)
        return -1;
    pthread_mutex_lock(&i->lock);
    struct node_scan old = i->scan;
    i->scan = scan;
    i->known = true;
    pthread_mutex_unlock(&i->lock);
    node_scan_done(&old);
    return 0;
}

int node_inventory_refresh(struct node_inventory *i, struct err *e)
{
    pthread_mutex_lock(&i->scanning);
    int status = refresh_locked(i, e);
    pthread_mutex_unlock(&i->scanning);
    return status;
}

const struct node_device *node_inventory_hold(struct node_inventory *i, const char *object)
{
    pthread_mutex_lock(&i->lock);
    return node_scan_find(&i->scan, object);
}

void node_inventory_release(struct node_inventory *i)
{
    pthread_mutex_unlock(&i->lock);
}

bool node_inventory_known(struct node_inventory *i)
{
    pthread_mutex_lock(&i->lock);
    bool known = i->known;
    pthread_mutex_unlock(&i->lock);
    return known;
}

/* Obstacles that are somebody's use of the device, as opposed to what lies on it. */
static bool is_use(const char *obstacle)
{
    static const char *const uses[] = {"Mounted",    "Swap",     "Held",         "Partitioned",
                                       "Unreadable", "ReadOnly", "SeveralPaths", NULL};
    return str_in(obstacle, uses);
}

static char *path_of(struct node_inventory *i, const char *object)
{
    const struct node_device *d = node_inventory_hold(i, object);
    char *path = d ? mem_strdup(d->path) : NULL;
    node_inventory_release(i);
    return path;
}

int node_inventory_check_path(const char *path, struct err *e)
{
    int fd = node_open_exclusive(path, O_RDONLY, e);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

int node_inventory_check(struct node_inventory *i, const char *object, enum node_check check,
                         char **ret_path, struct err *e)
{
    _cleanup_free_ char *before = path_of(i, object);
    pthread_mutex_lock(&i->scanning);
    if (before)
        node_prober_forget(&i->prober, before);
    int status = refresh_locked(i, e);
    pthread_mutex_unlock(&i->scanning);
    if (status < 0)
        return -1;
    const struct node_device *d = node_inventory_hold(i, object);
    char *path = d ? mem_strdup(d->path) : NULL;
    if (!d)
        status = err_set(e, ERR_NOT_FOUND, "Inactive", "the device of %s is not there", object);
    else if (d->obstacle && (check == NODE_CHECK_FREE || is_use(d->obstacle)))
        status = err_set(e, ERR_FAILED_PRECONDITION, d->obstacle, "%s: %s", d->path, d->why);
    node_inventory_release(i);
    if (status == 0)
        status = node_inventory_check_path(path, e);
    if (status == 0)
        *ret_path = TAKE_PTR(path);
    free(path);
    return status;
}
