/*
 * The pool's beginning and end: opened as judge.c decides, destroyed when that is asked for. On the engine's
 * thread; each function may be the last that the process does. Crash points stand before and after what
 * others can see.
 */
#include <errno.h>

#include "base/crash.h"
#include "base/log.h"
#include "base/str.h"
#include "kube/event.h"
#include "pool/impl.h"
#include "zpool/volume.h"

/* Opening. */

static const struct pool_device *device_at(const struct pool_wish *w, size_t i)
{
    return i < w->n_devices ? &w->devices[i] : &w->others[i - w->n_devices];
}

/* One for each device of the wish and each other; to be freed. */
static struct zpool_found *look(const struct pool_wish *w)
{
    size_t n = w->n_devices + w->n_others;
    struct zpool_found *found = mem_zalloc((n + 1) * sizeof(*found));
    for (size_t i = 0; i < n; i++) {
        const char *path = device_at(w, i)->path;
        if (*path)
            zpool_scan(&path, 1, &found[i]);
        else
            found[i].error = ENODEV;
    }
    return found;
}

static struct zpool *create(const struct pool_wish *w, struct err *e)
{
    struct arena a = {0};
    struct zpool_group *groups = arena_alloc(&a, w->n_groups * sizeof(*groups));
    struct zpool_device *devices = arena_alloc(&a, w->n_devices * sizeof(*devices)),
                        *next = devices;
    for (size_t i = 0; i < w->n_groups; i++) {
        const struct pool_group *g = &w->groups[i];
        pool_fill_devices(w, 0, g->devices, g->n_devices, next);
        groups[i] = (struct zpool_group){g->type, g->role, next, g->n_devices};
        next += g->n_devices;
    }
    const struct zpool_layout layout = {
        .groups = groups, .n_groups = w->n_groups, .compression = w->compression};
    crash_point("before the pool is made");
    struct zpool *p = zpool_create(w->name, &layout, e);
    crash_point("after the pool was made");
    arena_done(&a);
    return p;
}

/* All devices that are wanted are at this node, as the API says: its own agents say so, and no others. */
static bool is_here(const struct pool_wish *w)
{
    for (size_t i = 0; i < w->n_devices; i++) {
        if (w->devices[i].not_ready)
            return false;
    }
    return true;
}

/* Whether the pool would say on its devices that somebody uses it. */
static bool signs(const struct pool_wish *w, uint64_t guid, const struct zpool_found *found)
{
    bool all = true;
    for (size_t i = 0; i < w->n_devices + w->n_others; i++) {
        if (found[i].label == ZPOOL_LABEL_MEMBER && found[i].pool_guid == guid)
            all &= found[i].signs;
    }
    return all;
}

/*
 * A pool that another host had and did not export is taken over when that host is gone; and when its
 * devices are here and it can be seen that nobody uses it, for a process that was killed while its pool
 * moved away does not come again.
 */
static struct zpool *import(const struct pool_wish *w, uint64_t guid,
                            const struct zpool_found *found, struct err *e)
{
    size_t n = 0;
    _cleanup_free_ const char **paths =
        mem_zalloc((w->n_devices + w->n_others + 1) * sizeof(*paths));
    for (size_t i = 0; i < w->n_devices + w->n_others; i++) {
        if (*device_at(w, i)->path)
            paths[n++] = device_at(w, i)->path;
    }
    const struct zpool_import how = {.guid = guid,
                                     .paths = paths,
                                     .n_paths = n,
                                     .take_over =
                                         w->take_over || (is_here(w) && signs(w, guid, found))};
    crash_point("before the pool is imported");
    return zpool_import(&how, e);
}

/* Who wrote the newest label of the pool, and did not export it; 0: nobody. */
static uint32_t last_host(const struct pool_wish *w, uint64_t guid, const struct zpool_found *found)
{
    uint64_t txg = 0;
    uint32_t host = 0;
    for (size_t i = 0; i < w->n_devices + w->n_others; i++) {
        if (found[i].label == ZPOOL_LABEL_MEMBER && found[i].pool_guid == guid &&
            found[i].txg >= txg) {
            txg = found[i].txg;
            host = found[i].exported ? 0 : found[i].host_id;
        }
    }
    return host;
}

struct zpool *pool_open(const struct pool_wish *w, struct kube_recorder *recorder,
                        struct pool_verdict *ret)
{
    _cleanup_free_ struct zpool_found *found = look(w);
    pool_judge(w, found, ret);
    struct zpool *p = NULL;
    if (ret->kind == POOL_IMPORT) {
        p = import(w, ret->guid, found, &ret->why);
        ret->phase = ret->why.code == ERR_UNAVAILABLE ? "UNAVAIL" : "Error";
        ret->host_id = p ? 0 : last_host(w, ret->guid, found);
    } else if (ret->kind == POOL_CREATE) {
        p = create(w, &ret->why);
        ret->phase = "PoolCreationFailed";
    }
    if (!p)
        return NULL;
    const char *verb = ret->kind == POOL_CREATE ? "made" : "imported";
    log_info("the pool is open", LOG_S("pool", zpool_name(p)), LOG_S("it was", verb),
             LOG_U("guid", zpool_guid(p)));
    kube_event_normal(recorder, w->about, ret->kind == POOL_CREATE ? "Created" : "Imported",
                      "the pool %s (%llu) was %s", zpool_name(p), (unsigned long long)zpool_guid(p),
                      verb);
    return p;
}

/* The end. */

/* Labels of the pool on all its devices; what has something else on it is left alone. */
static int clear_labels(const struct pool_wish *w, uint64_t guid, struct err *e)
{
    for (size_t i = 0; i < w->n_devices + w->n_others; i++) {
        const struct pool_device *d = device_at(w, i);
        struct zpool_found f;
        if (!*d->path)
            continue;
        zpool_scan(&d->path, 1, &f);
        bool ours = f.device_guid && ((guid && f.pool_guid == guid) || f.device_guid == d->guid ||
                                      pool_is_own_leftover(w, 0, &f));
        if (!ours)
            continue;
        crash_point("before labels are cleared");
        if (zpool_label_clear(d->path, f.pool_guid, f.device_guid, e) < 0)
            return -1;
    }
    crash_point("after labels were cleared");
    return 0;
}

/*
 * Whether there is nothing to destroy any more: some label says that the pool was destroyed, and what is
 * left of it cannot be imported; or every device can be read and none has it.
 */
static bool was_destroyed(const struct pool_wish *w, const struct zpool_found *found)
{
    size_t unread = 0, members = 0;
    for (size_t i = 0; i < w->n_devices + w->n_others; i++) {
        bool ours = w->guid && found[i].pool_guid == w->guid;
        if (ours && found[i].label == ZPOOL_LABEL_FORMER)
            return true;
        members += ours;
        unread += i < w->n_devices && found[i].error;
    }
    return !members && !unread;
}

static int check_empty(struct zpool *p, struct err *e)
{
    struct zpool_volume_info *list;
    size_t n;
    if (zpool_volume_list(p, &list, &n, e) < 0)
        return -1;
    free(list);
    return n == 0 ? 0
                  : err_set(e, ERR_FAILED_PRECONDITION, "PoolNotEmpty",
                            "the pool %s has %zu volumes and snapshots: delete them first; it is "
                            "not destroyed before",
                            zpool_name(p), n);
}

int pool_destroy(struct zpool **p, const struct pool_wish *w, struct kube_recorder *recorder,
                 struct err *e)
{
    uint64_t guid = w->guid;
    if (!*p) {
        _cleanup_free_ struct zpool_found *found = look(w);
        struct pool_verdict v;
        pool_judge(w, found, &v);
        if (v.kind == POOL_IMPORT)
            *p = import(w, v.guid, found, &v.why);
        if (!*p && v.kind != POOL_NOTHING && !was_destroyed(w, found)) {
            *e = v.why;
            return err_prefix(
                e,
                "the pool cannot be destroyed (if its devices will not be back: orlop pool forget; "
                "of an instance without a cluster, remove the finalizer " API_POOL_FINALIZER
                " by hand)");
        }
        guid = v.guid ? v.guid : guid;
    }
    if (*p) {
        guid = zpool_guid(*p);
        if (check_empty(*p, e) < 0)
            return -1;
        crash_point("before the pool is destroyed");
        if (zpool_destroy(*p, e) < 0)
            return -1;
        *p = NULL;
        crash_point("after the pool was destroyed");
    }
    if (clear_labels(w, guid, e) < 0)
        return -1;
    kube_event_normal(recorder, w->about, "Destroyed", "the pool %s was destroyed", w->name);
    return 0;
}
