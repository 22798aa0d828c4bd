/*
 * Steps of the plan, done: each is a few calls of the pool engine, on its thread, and may be the last that the
 * process does. Crash points stand before and after what others can see.
 */
#include "base/crash.h"
#include "base/log.h"
#include "base/str.h"
#include "kube/event.h"
#include "pool/impl.h"

/* The devices of a group as the engine wants them, into `to`. */
void pool_fill_devices(const struct pool_wish *w, uint64_t guid, const struct pool_device *from,
                       size_t n, struct zpool_device *to)
{
    for (size_t i = 0; i < n; i++) {
        struct zpool_found f;
        zpool_scan(&from[i].path, 1, &f);
        to[i] = (struct zpool_device){from[i].path, pool_is_own_leftover(w, guid, &f) ||
                                                        pool_is_announced_leftover(&from[i], &f)};
    }
}

static int check_ready(const struct pool_device *d, struct err *e)
{
    struct zpool_found f;
    if (d->not_ready)
        return err_set(e, ERR_UNAVAILABLE, "DeviceNotReady", "%s", d->not_ready);
    if (!pool_is_aux(d) || d->announced)
        return 0;
    zpool_scan(&d->path, 1, &f);
    return f.label == ZPOOL_LABEL_NONE && !f.error
               ? err_set(e, ERR_UNAVAILABLE, "Announcing", "%s is about to be added", d->name)
               : 0; /* the engine says what is wrong with it */
}

static int act_add(struct zpool *p, const struct pool_wish *w, const struct pool_step *s,
                   struct err *e)
{
    const struct pool_group *g = s->group;
    const struct pool_device *first = s->device ? s->device : g->devices;
    size_t n = s->device ? 1 : g->n_devices;
    for (size_t i = 0; i < n; i++) {
        if (check_ready(&first[i], e) < 0)
            return -1;
    }
    _cleanup_free_ struct zpool_device *devices = mem_zalloc(n * sizeof(*devices));
    pool_fill_devices(w, zpool_guid(p), first, n, devices);
    const struct zpool_group group = {g->type, g->role, devices, n};
    const struct zpool_layout layout = {.groups = &group, .n_groups = 1};
    return zpool_add(p, &layout, e);
}

static int act_replace(struct zpool *p, const struct pool_wish *w, const struct pool_step *s,
                       struct err *e)
{
    if (check_ready(s->device, e) < 0)
        return -1;
    if (!s->row[0])
        return err_set(e, ERR_FAILED_PRECONDITION, "NoPredecessor",
                       "%s is to take the place of %s, which the pool does not have",
                       s->device->name, s->device->predecessor);
    struct zpool_device by;
    pool_fill_devices(w, zpool_guid(p), s->device, 1, &by);
    return zpool_replace(p, s->row, &by, e);
}

/* The device of the row is where its BlockDevice says: by its label. */
static int act_online(struct zpool *p, const struct pool_step *s, struct err *e)
{
    struct zpool_found f;
    const char *path = s->path;
    zpool_scan(&path, 1, &f);
    if (f.error)
        return err_errno(e, f.error, "%s", path);
    if (zpool_move(p, s->row, path, e) < 0)
        return -1;
    return zpool_online(p, s->row, false, e);
}

int pool_act(struct zpool *p, const struct pool_wish *w, const struct pool_step *s,
             struct kube_recorder *recorder, struct err *e)
{
    static const char *const reasons[POOL_STEPS] = {
        [POOL_STEP_ONLINE] = "DeviceBack", [POOL_STEP_ADD] = "Expanded",
        [POOL_STEP_GROW] = "DeviceGrown",  [POOL_STEP_REPLACE] = "ReplacementBegun",
        [POOL_STEP_SPARE] = "SpareInUse",  [POOL_STEP_UNSPARE] = "SpareFree",
        [POOL_STEP_CLEAR] = "Cleared",     [POOL_STEP_SCRUB] = "ScrubBegun",
    };
    int status = -1;
    const char *reason = reasons[s->kind % POOL_STEPS];
    crash_point(reason);
    switch (s->kind) {
    case POOL_STEP_ONLINE:
        status = act_online(p, s, e);
        break;
    case POOL_STEP_ADD:
        status = act_add(p, w, s, e);
        break;
    case POOL_STEP_GROW:
        status = zpool_online(p, s->row, true, e);
        break;
    case POOL_STEP_REPLACE:
        status = act_replace(p, w, s, e);
        break;
    case POOL_STEP_SPARE:
        status = zpool_replace(p, s->row, &(struct zpool_device){.path = s->path}, e);
        break;
    case POOL_STEP_UNSPARE:
        status = zpool_detach(p, s->row, e);
        break;
    case POOL_STEP_CLEAR:
        status = zpool_clear(p, e);
        break;
    case POOL_STEP_SCRUB:
        status = zpool_scrub(p, true, e);
        break;
    case POOL_STEPS:
        break;
    }
    crash_point(reason);
    if (status < 0)
        return -1;
    log_info("pool changed", LOG_S("pool", zpool_name(p)), LOG_S("what", s->text));
    kube_event_normal(recorder, w->about, reason, "%s", s->text);
    return 0;
}
