/*
 * Administration of a volume: one thing at a time, and who asked for it is told of its end when the core has returned.
 */
#include <errno.h>

#include "base/clock.h"
#include "replio/volume_impl.h"

void volume_tell_admin(struct replio_volume *v)
{
    if (!v->admin || v->admin_status > 0)
        return;
    void (*done)(void *context, int error) = v->admin;
    int error = -v->admin_status;
    v->admin = NULL;
    if (!error && v->grow_to)
        v->store.size = v->grow_to;
    v->grow_to = 0;
    done(v->admin_context, error);
}

void volume_admin_done(void *context, enum repl_admin op, int status)
{
    struct replio_volume *v = context;
    (void)op;
    v->admin_status = status;
    turn_soon(v);
}

static bool begin(struct replio_volume *v, void (*done)(void *, int), void *context)
{
    if (v->admin)
        return false;
    v->admin = done;
    v->admin_context = context;
    v->admin_status = 1;
    turn_soon(v);
    return true;
}

static bool begun(struct replio_volume *v, bool ok)
{
    if (!ok)
        v->admin = NULL;
    return ok;
}

void volume_grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    struct replio_volume *v = volume_of(s);
    if (!begin(v, done, context)) {
        done(context, EBUSY);
        return;
    }
    v->grow_to = size;
    int status = repl_target_grow(v->core, size);
    if (!begun(v, status == 0)) {
        v->grow_to = 0;
        done(context, -status);
    }
}

/* status of a function that begins something with a snapshot: an errno. */
static int snap_begun(struct replio_volume *v, int status)
{
    begun(v, status == 0);
    return -status;
}

int replio_volume_snapshot(struct replio_volume *v, const char *name, void (*done)(void *, int),
                           void *context)
{
    uint64_t created = (uint64_t)(clock_real_ns(clock_system()) / CLOCK_SECOND);
    return begin(v, done, context) ? snap_begun(v, repl_target_snapshot(v->core, name, created))
                                   : EBUSY;
}

int replio_volume_snap_delete(struct replio_volume *v, const char *name, void (*done)(void *, int),
                              void *context)
{
    return begin(v, done, context) ? snap_begun(v, repl_target_snap_delete(v->core, name)) : EBUSY;
}

int replio_volume_revert(struct replio_volume *v, const char *name, void (*done)(void *, int),
                         void *context)
{
    return begin(v, done, context) ? snap_begun(v, repl_target_revert(v->core, name)) : EBUSY;
}

const struct repl_snaps *replio_volume_snaps(const struct replio_volume *v)
{
    return repl_target_snaps(v->core);
}

bool replio_volume_add(struct replio_volume *v, const struct uuid *id, const struct uuid *instead,
                       void (*done)(void *, int), void *context)
{
    return begin(v, done, context) && begun(v, repl_target_add(v->core, id, instead));
}

bool replio_volume_remove(struct replio_volume *v, const struct uuid *id, void (*done)(void *, int),
                          void *context)
{
    return begin(v, done, context) && begun(v, repl_target_remove(v->core, id));
}

int replio_volume_force_out(struct replio_volume *v, const struct uuid *id)
{
    turn_soon(v);
    return -repl_target_force_out(v->core, id);
}

bool replio_volume_scrub(struct replio_volume *v, void (*done)(void *, int), void *context)
{
    return begin(v, done, context) && begun(v, repl_target_scrub(v->core));
}

void replio_volume_set_rate(struct replio_volume *v, uint64_t bytes_per_second)
{
    repl_target_set_rate(v->core, bytes_per_second);
}

void replio_volume_create(struct replio_volume *v, uint64_t size, uint8_t replicas,
                          uint8_t consistency)
{
    repl_target_create(v->core, size, replicas, consistency);
    turn_soon(v);
}
