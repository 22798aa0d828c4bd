/*
 * Import, create, or neither: the decision on which data depends, as a function of what the object says
 * and of what is written on the devices.
 *
 *     the object has a GUID     a device has it: import. None has: wait, and never create
 *     it has none               a device has a pool of our name, complete: import, for a process died
 *                               between making it and saying so
 *                               every device is empty, or has what is left of making it: create
 *                               anything else on any of them: refuse
 *
 * Our name has the object's UID in it, so that nobody else's pool has it; cStor's has the UID of the cluster
 * that owns the object, and such a pool is imported and never made. What is left of making a pool
 * has a label and no uberblock on any device. Labels of spares and caches do not say whose they are: the
 * object does, before they are written (status.adding).
 */
#include <errno.h>

#include "base/str.h"
#include "pool/impl.h"

static const struct pool_device *device_at(const struct pool_wish *w, size_t i)
{
    return i < w->n_devices ? &w->devices[i] : &w->others[i - w->n_devices];
}

bool pool_is_own_leftover(const struct pool_wish *w, uint64_t guid, const struct zpool_found *f)
{
    bool ours = guid ? f->pool_guid == guid : str_eq(f->pool_name, w->name);
    return ours && !f->error &&
           (f->label == ZPOOL_LABEL_FORMER ||
            (f->label == ZPOOL_LABEL_MEMBER && (guid || !f->complete)));
}

bool pool_is_announced_leftover(const struct pool_device *d, const struct zpool_found *f)
{
    return pool_is_aux(d) && d->announced && !f->error &&
           (f->label == ZPOOL_LABEL_SPARE || f->label == ZPOOL_LABEL_CACHE);
}

static bool is_own_name(const struct pool_wish *w, const char *name)
{
    return str_eq(name, w->name) || (*w->cluster_name && str_eq(name, w->cluster_name));
}

/* A complete pool of our name; 0: none. False when there are two. */
static bool find_own(const struct pool_wish *w, const struct zpool_found *found, uint64_t *ret_guid)
{
    *ret_guid = 0;
    for (size_t i = 0; i < w->n_devices + w->n_others; i++) {
        const struct zpool_found *f = &found[i];
        if (f->label != ZPOOL_LABEL_MEMBER || !f->complete || !is_own_name(w, f->pool_name))
            continue;
        if (*ret_guid && *ret_guid != f->pool_guid)
            return false;
        *ret_guid = f->pool_guid;
    }
    return true;
}

static void set(struct pool_verdict *v, enum pool_verdict_kind kind, const char *phase)
{
    v->kind = kind;
    v->phase = phase;
}

/* The object has a GUID: the pool is on its devices, or lost. */
static void judge_known(const struct pool_wish *w, const struct zpool_found *found,
                        struct pool_verdict *v)
{
    size_t unread = 0, n = w->n_devices + w->n_others, one = 0;
    for (size_t i = 0; i < n; i++) {
        if (found[i].label == ZPOOL_LABEL_MEMBER && found[i].pool_guid == w->guid) {
            v->kind = POOL_IMPORT;
            v->guid = w->guid;
            return;
        }
        if (found[i].error) {
            unread++;
            one = i;
        }
    }
    set(v, POOL_WAIT, "UNAVAIL");
    if (unread)
        err_set(
            &v->why, ERR_UNAVAILABLE, "DevicesUnreadable",
            "the pool %llu is on none of its devices that can be read, and %zu of %zu cannot; %s "
            "(%s): %s",
            (unsigned long long)w->guid, unread, n, device_at(w, one)->name,
            device_at(w, one)->path, zpool_device_problem(found[one].error));
    else
        err_set(
            &v->why, ERR_NOT_FOUND, "PoolNotFound",
            "the pool %llu is on none of its %zu devices; it is not made anew: bring the devices "
            "back that had it, or delete this object",
            (unsigned long long)w->guid, n);
}

/* Whether a new pool may have this device. */
static void judge_device(const struct pool_wish *w, const struct pool_device *d,
                         const struct zpool_found *f, struct pool_verdict *v)
{
    if (d->not_ready || f->error) {
        set(v, POOL_WAIT, "Pending");
        if (d->not_ready)
            err_set(&v->why, ERR_UNAVAILABLE, "DeviceNotReady", "%s", d->not_ready);
        else
            err_set(&v->why, ERR_UNAVAILABLE,
                    f->error == EBUSY ? "DeviceInUse" : "DeviceUnreadable",
                    "the device %s (%s) cannot be used: %s", d->name, d->path,
                    zpool_device_problem(f->error));
        return;
    }
    if (f->label == ZPOOL_LABEL_NONE && pool_is_aux(d) && !d->announced) {
        set(v, POOL_WAIT, "Init");
        err_set(&v->why, ERR_UNAVAILABLE, "Announcing", "%s is about to be added", d->name);
        return;
    }
    if (f->label == ZPOOL_LABEL_NONE || pool_is_own_leftover(w, 0, f) ||
        pool_is_announced_leftover(d, f))
        return;
    set(v, POOL_REFUSE, "PoolCreationFailed");
    if (f->label == ZPOOL_LABEL_FOREIGN)
        err_set(&v->why, ERR_FAILED_PRECONDITION, "DeviceNotEmpty",
                "the device %s (%s) has %s on it and is left as it is: wipe it, or use another",
                d->name, d->path, f->what);
    else
        err_set(&v->why, ERR_FAILED_PRECONDITION, "DeviceHasPool",
                "the device %s (%s) has a label of pool %s (%llu) and is left as it is: use "
                "another, wipe "
                "it, or have that pool imported with the annotation " API_POOL_EXISTING,
                d->name, d->path, f->pool_name[0] ? f->pool_name : "without a name",
                (unsigned long long)f->pool_guid);
}

void pool_judge(const struct pool_wish *w, const struct zpool_found *found,
                struct pool_verdict *ret)
{
    *ret = (struct pool_verdict){.kind = POOL_CREATE};
    if (w->guid) {
        judge_known(w, found, ret);
        return;
    }
    if (!find_own(w, found, &ret->guid)) {
        set(ret, POOL_REFUSE, "ErrorDuplicate");
        err_set(&ret->why, ERR_FAILED_PRECONDITION, "TwoPools",
                "the devices have two pools that are called %s: take those of one of them away",
                w->name);
        return;
    }
    if (ret->guid) {
        ret->kind = POOL_IMPORT;
        return;
    }
    if (w->destroy) {
        ret->kind = POOL_NOTHING;
        return;
    }
    if (w->existing) {
        set(ret, POOL_WAIT, "UNAVAIL");
        err_set(&ret->why, ERR_NOT_FOUND, "PoolNotFound",
                "none of the devices has the pool %s that is to be imported", w->name);
        return;
    }
    /* All are looked at: that one is in use by others is graver than that another is not there yet. */
    for (size_t i = 0; i < w->n_devices && ret->kind != POOL_REFUSE; i++)
        judge_device(w, &w->devices[i], &found[i], ret);
    if (ret->kind == POOL_CREATE && !w->guarded) {
        set(ret, POOL_WAIT, "Init");
        err_set(&ret->why, ERR_UNAVAILABLE, "NotGuarded", "the object has no finalizer yet");
    }
}
