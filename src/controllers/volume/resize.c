/*
 * The controller of resizes that are objects, such as a JivaVolumeResize: from its creation to its
 * end.
 *
 *     ""           finalizer; the volume is there, may be resized, and is not larger
 *     INIT         takes the lock, or waits for its turn, the oldest first
 *                  with the lock: waits for a snapshot to end, for quota, for all replicas
 *     IN-PROGRESS  the order is given: orlop-sidecar takes it (status.resize), the target grows
 *     SUCCEEDED    status.capacity of the volume, read back from the target, says so
 *                  the volume controller writes spec.capacity
 *     COMPLETED    the lock is free
 *     FAILED       from INIT or IN-PROGRESS: nothing was changed, and the lock is free
 *
 *     volume:  lock ──────────── order ───────── ack ── capacity ── spec ── none
 *              resize.../name    .../capacity    status.resize
 *
 * Invariants:
 * - The lock is written over an empty one only, with the volume's version as the precondition. So
 *   there is one holder at a time, and nothing of a volume grows without it.
 * - The order is taken by an acknowledgement that carries the version, and is withdrawn, with the
 *   lock, by a write that does: so it is withdrawn only when nobody has acted on it.
 * - What is told is told in this order: lock free, then FAILED or COMPLETED.
 * - A resize that is deleted before its order was taken leaves everything as it was. After that it
 *   goes on to its end first, as a target that grows cannot be held.
 */
#include "controllers/volume/resize.h"

#include "base/rfc3339.h"

enum { WORKERS = 4 };
static const int64_t LOOK_AGAIN = 30 * CLOCK_SECOND;

static bool is_at(const struct resizing *g, const char *phase)
{
    return str_eq(resizing_look(g).status.phase, phase);
}

static bool is_over(const struct resizing *g)
{
    const struct jiva_resize resize = resizing_look(g);
    return jiva_resize_is_over(&resize);
}

/* Telling. */

/* This moment, as the API writes it. */
static json_t *make_time(const struct resizing *g)
{
    char text[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(g->w.c->clock)), RFC3339_SECONDS, text);
    return json_string(text);
}

/* Writes phase, reason and message, and what is in `more` (taken over; may be NULL). */
static int tell_phase(struct resizing *g, const char *phase, const char *reason,
                      const char *message, json_t *more, struct err *e)
{
    json_auto_t *status = kube_status_copy(g->resize);
    if (more)
        json_object_update_new(status, more);
    bool moved = !is_at(g, phase);
    json_object_set_new(status, "phase", json_string(phase));
    json_object_set_new(status, "reason", json_string(reason));
    json_object_set_new(status, "message", json_string(message));
    if (moved && (str_eq(phase, "COMPLETED") || str_eq(phase, "FAILED")))
        json_object_set_new(status, "completionTime", make_time(g));
    int r = volume_write_status(g->w.c, &g->w.c->resizes_r, &g->resize, status, e);
    if (r == 0 && moved && str_eq(phase, "FAILED"))
        kube_event_warning(g->w.c->recorder, g->resize, reason, "%s", message);
    else if (r == 0 && moved)
        kube_event_normal(g->w.c->recorder, g->resize, reason, "%s", message);
    return r;
}

int resizing_wait(struct resizing *g, const char *reason, const char *message, struct err *e)
{
    volume_again(&g->w, LOOK_AGAIN);
    const char *phase = resizing_look(g).status.phase;
    return tell_phase(g, *phase ? phase : "INIT", reason, message, NULL, e);
}

static int fail_resize(struct resizing *g, const char *reason, const char *message, struct err *e)
{
    if (resizing_unlock(g, e) < 0)
        return -1;
    return tell_phase(g, "FAILED", reason, message, NULL, e);
}

/*
 * Whether it can be done at all: 1 when it can, 0 when it has failed. That is final, so it is
 * judged by what the server has: the cache may not know yet of a volume that was made with its
 * resize, or that was just allowed to be resized.
 */
static int is_feasible(struct resizing *g, struct err *e)
{
    char text[RESIZING_TEXT_MAX];
    if (!resizing_why_never(g, text))
        return 1;
    struct err why = {0};
    json_t *now = kube_get(g->w.c->client, &g->w.c->volumes_r, g->w.ns, g->w.name, &why);
    if (!now && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    json_decref(g->w.volume);
    g->w.volume = now;
    const char *reason = resizing_why_never(g, text);
    if (!reason)
        return 1;
    return fail_resize(g, reason, text, e) < 0 ? -1 : 0;
}

/* With the lock. */

/* The replicas, and the size that each has; of one that is away that is not known. */
static json_t *list_progress(const struct resizing *g)
{
    const struct volume_view view = volume_look(&g->w);
    const json_t *has = json_at(g->w.volume, "status", "capacity");
    json_t *list = json_array();
    for (unsigned i = 0; i < view.members; i++) {
        const struct volume_member *m = &view.member[i];
        if (!*m->address)
            continue;
        json_t *one = json_pack("{s:s,s:s}", "address", m->address, "state", m->state);
        if (has && !m->offline)
            json_object_set(one, "capacity", (json_t *)(uintptr_t)has);
        json_array_append_new(list, one);
    }
    return json_pack("{s:o}", "replicas", list);
}

static int begin_resize(struct resizing *g, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    const char *reason = NULL;
    if (!*resizing_look(g).status.start_time) {
        json_t *more = json_pack("{s:s,s:o}", "fromCapacity", volume_look(&g->w).capacity,
                                 "startTime", make_time(g));
        if (tell_phase(g, "INIT", "Locked", "Has the volume's lock", more, e) < 0)
            return -1;
    }
    if (resizing_why_not_now(g, &reason, &text))
        return resizing_wait(g, reason, str_get(&text), e);
    return tell_phase(g, "IN-PROGRESS", "Growing", "Target and replicas grow", NULL, e);
}

static int take_turn(struct resizing *g, struct err *e)
{
    int ok = is_feasible(g, e);
    if (ok > 0)
        ok = resizing_lock(g, e);
    if (ok > 0)
        ok = is_feasible(g, e); /* while it waited another may have made it larger */
    return ok <= 0 ? ok : begin_resize(g, e);
}

/* Whether orlop-sidecar has taken our order. */
static bool is_growing(const struct resizing *g)
{
    return str_eq(volume_look(&g->w).growth, kube_name(g->resize));
}

static bool has_grown(const struct resizing *g)
{
    return volume_look(&g->w).has >= g->wanted;
}

static int follow_growth(struct resizing *g, struct err *e)
{
    if (!g->w.volume || kube_deleting(g->w.volume)) {
        int ok = is_feasible(g, e);
        if (ok <= 0)
            return ok;
    }
    int locked = resizing_lock(g, e); /* taken off by hand: it is taken again, or waited for */
    if (locked <= 0)
        return locked;
    bool growing = is_growing(g);
    const char *failure = volume_look(&g->w).growth_failure;
    if (has_grown(g))
        return tell_phase(g, "SUCCEEDED", "Grown", "Target and replicas have the new size",
                          list_progress(g), e);
    if (growing && *failure) {
        _cleanup_free_ char *text = mem_printf("The target could not grow: %s", failure);
        return fail_resize(g, "GrowthFailed", text, e);
    }
    const char *wanted = resizing_look(g).spec.capacity.text;
    if (!str_eq(volume_look(&g->w).order, wanted)) {
        json_auto_t *patch = g->w.c->engine->resize->order(kube_name(g->resize), wanted);
        if (volume_patch(&g->w, patch, "order", e) < 0)
            return -1;
    }
    return tell_phase(g, "IN-PROGRESS", "Growing",
                      growing ? "The target grows" : "The target was told", list_progress(g), e);
}

static int end_resize(struct resizing *g, struct err *e)
{
    if (g->w.volume && !kube_deleting(g->w.volume) && has_grown(g) &&
        volume_look(&g->w).size < g->wanted)
        /*
         * That is the volume controller's to write, under the lock, which anybody may have taken
         * off.
         */
        return resizing_lock(g, e) < 0 ? -1 : 0;
    if (resizing_unlock(g, e) < 0)
        return -1;
    return tell_phase(g, "COMPLETED", "Resized", "The volume has the new size", NULL, e);
}

static int hold_resize(struct resizing *g, bool yes, struct err *e)
{
    return volume_hold(g->w.c, &g->w.c->resizes_r, &g->resize, g->w.c->engine->resize->finalizer,
                       yes, e);
}

static int take_step(struct resizing *g, struct err *e)
{
    static const struct {
        const char *phase;
        int (*step)(struct resizing *g, struct err *e);
    } steps[] = {{"", take_turn},
                 {"INIT", take_turn},
                 {"IN-PROGRESS", follow_growth},
                 {"SUCCEEDED", end_resize},
                 {"COMPLETED", resizing_unlock},
                 {"FAILED", resizing_unlock}};
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        if (is_at(g, steps[i].phase))
            return steps[i].step(g, e);
    }
    return 0;
}

static int advance_resize(struct resizing *g, struct err *e)
{
    bool begun = is_at(g, "SUCCEEDED") || (is_at(g, "IN-PROGRESS") && resizing_holds_lock(g) &&
                                           (has_grown(g) || is_growing(g)));
    if (!kube_deleting(g->resize))
        return hold_resize(g, true, e) < 0 ? -1 : take_step(g, e);
    if (!kube_finalizer_has(g->resize, g->w.c->engine->resize->finalizer))
        return 0;
    if (begun && take_step(g, e) < 0)
        return -1;
    if (begun && !is_over(g))
        return 0;
    return resizing_unlock(g, e) < 0 ? -1 : hold_resize(g, false, e);
}

static int reconcile_resize(void *context, const char *ns, const char *name,
                            struct kube_result *ret, struct err *e)
{
    struct volume_controller *v = context;
    struct resizing g = {.w = {.c = v, .ns = ns, .result = ret}};
    g.resize = kube_informer_json(v->resizes, ns, name, NULL);
    if (!g.resize)
        return 0;
    const char *volume = kube_label(g.resize, v->engine->resize->about);
    _cleanup_free_ char *volume_name = mem_strdup(volume ? volume : "");
    g.w.name = volume_name;
    g.w.volume = kube_informer_json(v->volumes, ns, volume_name, NULL);
    g.wanted = volume_amount(resizing_look(&g).spec.capacity);
    int status = advance_resize(&g, e);
    json_decref(g.resize);
    json_decref(g.w.volume);
    return status;
}

static void map_volume(struct kube_controller *c, const struct kube_object *volume, void *context)
{
    struct volume_controller *v = context;
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(v->resizes, "volume", volume->key, &found);
    for (size_t i = 0; i < found.len; i++)
        kube_controller_add(c, found.p[i]->ns, found.p[i]->name);
}

/* All of the same volume: their turn may have come. */
static void map_resize(struct kube_controller *c, const struct kube_object *resize, void *context)
{
    struct volume_controller *v = context;
    json_auto_t *object = kube_object_json(resize);
    const char *volume = kube_label(object, v->engine->resize->about);
    _cleanup_free_ char *key = mem_printf("%s/%s", resize->ns, volume ? volume : "");
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_controller_add(c, resize->ns, resize->name);
    kube_informer_find(v->resizes, "volume", key, &found);
    for (size_t i = 0; i < found.len; i++)
        kube_controller_add(c, found.p[i]->ns, found.p[i]->name);
}

static void map_quota(struct kube_controller *c, const struct kube_object *quota, void *context)
{
    struct volume_controller *v = context;
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_list(v->resizes, quota->ns, &found);
    for (size_t i = 0; i < found.len; i++)
        kube_controller_add(c, found.p[i]->ns, found.p[i]->name);
}

int volume_setup_resize(struct volume_controller *v, struct kube_manager *m, struct err *e)
{
    const struct kube_controller_options o = {.name = v->engine->resize->controller,
                                              .workers = WORKERS,
                                              .reconcile = reconcile_resize,
                                              .context = v};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(
        c, (struct kube_source){.informer = v->resizes, .map = map_resize, .context = v});
    kube_controller_watch(
        c, (struct kube_source){.informer = v->volumes, .map = map_volume, .context = v});
    kube_controller_watch(
        c, (struct kube_source){.informer = v->quotas, .map = map_quota, .context = v});
    return 0;
}
