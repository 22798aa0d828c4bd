/*
 * Keeping a pool that is open: one step towards what is wanted, and a word to people about what became
 * other than it was.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "kube/event.h"
#include "pool/engine_impl.h"

enum { RETRY_TICKS = 5, HYSTERESIS = 2 };
static const unsigned levels[] = {75, 85, 95};

/* Devices. */

static struct pool_seen *seen_of(struct pool_engine *x, const struct zpool_vdev *v)
{
    vec_for_each(&x->seen, it) {
        if (it->guid == v->guid)
            return it;
    }
    vec_push(&x->seen, (struct pool_seen){v->guid, 0, ZPOOL_ONLINE});
    return &vec_last(&x->seen);
}

static void tell_device(struct pool_engine *x, const struct pool_wish *w,
                        const struct zpool_vdev *v, const char *name)
{
    struct pool_seen *seen = seen_of(x, v);
    if (v->state != seen->state && v->state != ZPOOL_ONLINE)
        kube_event_warning(x->recorder, w->about, "DeviceFailed", "%s (%s) is %s%s%s", name,
                           v->path, zpool_state_name(v->state), v->why ? ": " : "",
                           v->why ? v->why : "");
    else if (v->state != seen->state)
        kube_event_normal(x->recorder, w->about, "DeviceOnline", "%s (%s) works again", name,
                          v->path);
    if (v->checksum_errors > seen->checksum_errors)
        kube_event_warning(x->recorder, w->about, "DamageFound",
                           "%s (%s) returned %" PRIu64
                           " damaged blocks; they are mended where there is another copy",
                           name, v->path, v->checksum_errors - seen->checksum_errors);
    seen->state = v->state;
    seen->checksum_errors = v->checksum_errors;
}

static void tell_devices(struct pool_engine *x, const struct pool_wish *w,
                         const struct zpool_status *s)
{
    for (size_t i = 0; i < s->n_vdevs; i++) {
        const struct zpool_vdev *v = &s->vdevs[i];
        const struct pool_device *d = v->path[0] ? pool_wish_device(w, s, i) : NULL;
        if (v->path[0] && !(v->parent < 0 && v->spare_in_use))
            tell_device(x, w, v, d ? d->name : "a device");
    }
}

static void tell_scan(struct pool_engine *x, const struct pool_wish *w,
                      const struct zpool_progress *scan)
{
    /* One that was over before this process knew the pool is no news. */
    bool over = scan->state == ZPOOL_SCAN_DONE && x->scans && scan->ended != x->scan_ended;
    x->scans = true;
    x->scan_ended = scan->state == ZPOOL_SCAN_DONE ? scan->ended : 0;
    if (!over)
        return;
    const char *what = scan->kind == ZPOOL_SCAN_SCRUB ? "the scrub" : "the resilver";
    const char *reason = scan->kind == ZPOOL_SCAN_SCRUB ? "ScrubDone" : "ResilverDone";
    if (scan->errors)
        kube_event_warning(x->recorder, w->about, reason,
                           "%s is over: %" PRIu64 " blocks are damaged and have no other copy",
                           what, scan->errors);
    else
        kube_event_normal(x->recorder, w->about, reason,
                          "%s is over, without errors; %" PRIu64 " bytes were written anew", what,
                          scan->repaired);
}

/* Space. */

static void watch_space(struct pool_engine *x, const struct pool_wish *w,
                        const struct zpool_status *s)
{
    unsigned percent = pool_used_percent(s->used, s->available);
    unsigned before = x->percent == UINT32_MAX ? w->used_percent : x->percent;
    bool was = x->percent == UINT32_MAX ? w->was_read_only : x->read_only;
    for (size_t i = ARRAY_SIZE(levels); i-- > 0;) {
        if (before >= levels[i] || percent < levels[i])
            continue;
        kube_event_warning(x->recorder, w->about, "PoolNearlyFull",
                           "the pool is %u %% full, which is above %u %%: add devices, or delete "
                           "volumes or snapshots",
                           percent, levels[i]);
        break;
    }
    unsigned limit = w->read_only_percent;
    x->read_only = limit && (percent >= limit || (was && percent + HYSTERESIS > limit));
    x->percent = percent;
    pool_replicas_full(x->replicas, x->read_only);
    if (x->read_only && !was)
        kube_event_warning(x->recorder, w->about, "ReadOnly",
                           "the pool is %u %% full, and takes no more writes from %u %% on "
                           "(roThresholdLimit): add devices, or delete volumes or snapshots",
                           percent, limit);
    else if (!x->read_only && was)
        kube_event_normal(x->recorder, w->about, "ReadWrite", "the pool takes writes again");
}

/* Steps. */

const char *pool_answered(const struct pool_engine *x, const struct pool_wish *w,
                          enum pool_request r)
{
    return x->answered[r][0] ? x->answered[r] : w->answered[r];
}

static void note_answer(struct pool_engine *x, const struct pool_wish *w, enum pool_step_kind kind)
{
    if (kind != POOL_STEP_SCRUB && kind != POOL_STEP_CLEAR)
        return;
    enum pool_request r = kind == POOL_STEP_SCRUB ? POOL_SCRUB : POOL_CLEAR;
    snprintf(x->answered[r], sizeof(x->answered[r]), "%s", w->request[r]);
    if (r == POOL_CLEAR)
        x->cleared = clock_real_ns(x->clock) / CLOCK_SECOND;
}

/*
 * Does the first that can be done; whether one was. What fails is noted, and the next is tried; what has
 * failed is tried again only when that is due.
 */
static bool step(struct pool_engine *x, const struct pool_wish *w, const struct zpool_status *s,
                 bool due)
{
    struct pool_step steps[POOL_PLAN_MAX];
    const char *const answered[POOL_REQUESTS] = {pool_answered(x, w, POOL_SCRUB),
                                                 pool_answered(x, w, POOL_CLEAR)};
    size_t n = pool_plan(w, s, answered, clock_real_ns(x->clock) / CLOCK_SECOND, steps);
    struct err errors[POOL_STEPS] = {0};
    bool done = false;
    for (size_t i = 0; i < n && !done; i++) {
        const struct err *before = &x->errors[steps[i].kind];
        struct err *e = &errors[steps[i].kind], why = {0};
        if (before->code && !due) {
            *e = *before;
            continue;
        }
        pool_engine_say(x, "changing the pool");
        done = pool_act(x->pool, w, &steps[i], x->recorder, &why) == 0;
        if (done)
            note_answer(x, w, steps[i].kind);
        if (done || e->code)
            continue;
        *e = why;
        if (!str_eq(before->msg, why.msg) && steps[i].kind != POOL_STEP_ONLINE) {
            log_warn("cannot change the pool", LOG_S("what", steps[i].text), LOG_ERR(&why));
            kube_event_warning(x->recorder, w->about, why.reason, "%s: %s", steps[i].text, why.msg);
        }
    }
    if (!done)
        memcpy(x->errors, errors, sizeof(errors));
    return done;
}

static void set_compression(struct pool_engine *x, const struct pool_wish *w)
{
    struct err why = {0};
    if (str_eq(x->compression, w->compression))
        return;
    if (zpool_set_compression(x->pool, w->compression, &why) < 0)
        log_warn("cannot set the compression", LOG_ERR(&why));
    else
        snprintf(x->compression, sizeof(x->compression), "%s", w->compression);
}

int pool_keep(struct pool_engine *x, const struct pool_wish *w, struct zpool_status *ret,
              struct err *e)
{
    pool_engine_say(x, "looking at the pool");
    if (zpool_status_read(x->pool, ret, e) < 0)
        return -1;
    tell_scan(x, w, &ret->scan);
    bool due = x->fresh || x->turns >= x->retry;
    if (!w->paused && !ret->suspended) {
        set_compression(x, w);
        x->again = step(x, w, ret, due);
        if (due && !x->again)
            x->retry = x->turns + RETRY_TICKS;
        if (x->again) {
            zpool_status_done(ret);
            if (zpool_status_read(x->pool, ret, e) < 0)
                return -1;
        }
    }
    tell_devices(x, w, ret);
    tell_scan(x, w, &ret->scan);
    watch_space(x, w, ret);
    return 0;
}
