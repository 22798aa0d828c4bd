/*
 * The controller of resizes that are objects, such as a JivaVolumeResize: from its creation to its end.
 *
 *     ""           finalizer; the volume is there and lets itself be resized; the size is not smaller
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
 * - The lock is written over an empty one only, with the volume's version as the precondition. So there
 *   is one holder at a time, and nothing of a volume grows without it.
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

static const char *phase_of(const json_t *resize)
{
    return volume_text(resize, "status", "phase");
}

bool resizing_is_over(const json_t *resize)
{
    return str_eq(phase_of(resize), "COMPLETED") || str_eq(phase_of(resize), "FAILED");
}

/* Telling. */

/* Writes phase, reason and message, and what is in `more` (taken over; may be NULL). */
static int tell(struct resizing *g, const char *phase, const char *reason, const char *message,
                json_t *more, struct err *e)
{
    json_auto_t *status = json_deep_copy(json_object_get(g->resize, "status"));
    if (!status)
        status = json_object();
    if (more)
        json_object_update_new(status, more);
    bool moved = !str_eq(phase_of(g->resize), phase);
    json_object_set_new(status, "phase", json_string(phase));
    json_object_set_new(status, "reason", json_string(reason));
    json_object_set_new(status, "message", json_string(message));
    if (moved && (str_eq(phase, "COMPLETED") || str_eq(phase, "FAILED")))
        json_object_set_new(status, "completionTime", resizing_now(g));
    int r = volume_write_status(g->w.c, &g->w.c->resizes_r, &g->resize, status, e);
    if (r == 0 && moved && str_eq(phase, "FAILED"))
        kube_event_warning(g->w.c->recorder, g->resize, reason, "%s", message);
    else if (r == 0 && moved)
        kube_event_normal(g->w.c->recorder, g->resize, reason, "%s", message);
    return r;
}

json_t *resizing_now(const struct resizing *g)
{
    char text[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(g->w.c->clock)), RFC3339_SECONDS, text);
    return json_string(text);
}

int resizing_wait(struct resizing *g, const char *reason, const char *message, struct err *e)
{
    volume_again(&g->w, LOOK_AGAIN);
    const char *phase = phase_of(g->resize);
    return tell(g, *phase ? phase : "INIT", reason, message, NULL, e);
}

static int fail(struct resizing *g, const char *reason, const char *message, struct err *e)
{
    if (resizing_unlock(g, e) < 0)
        return -1;
    return tell(g, "FAILED", reason, message, NULL, e);
}

/*
 * Whether it can be done at all: 1 when it can, 0 when it has failed. That is final, so it is judged by
 * what the server has: the cache may not know yet of a volume that was made with its resize, or that
 * was just allowed to be resized.
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
    return fail(g, reason, text, e) < 0 ? -1 : 0;
}

/* With the lock. */

/* The replicas, and the size that each has; of one that is away that is not known. */
static json_t *progress(const struct resizing *g)
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

static int begin(struct resizing *g, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    const char *reason = NULL;
    if (!json_at(g->resize, "status", "startTime")) {
        json_t *more =
            json_pack("{s:O,s:o}", "fromCapacity", json_at(g->w.volume, "spec", "capacity"),
                      "startTime", resizing_now(g));
        if (tell(g, "INIT", "Locked", "Has the volume's lock", more, e) < 0)
            return -1;
    }
    if (resizing_why_not_now(g, &reason, &text))
        return resizing_wait(g, reason, str_get(&text), e);
    return tell(g, "IN-PROGRESS", "Growing", "Target and replicas grow", NULL, e);
}

static int init(struct resizing *g, struct err *e)
{
    int ok = is_feasible(g, e);
    if (ok > 0)
        ok = resizing_lock(g, e);
    if (ok > 0)
        ok = is_feasible(g, e); /* while it waited another may have made it larger */
    return ok <= 0 ? ok : begin(g, e);
}

/* Whether orlop-sidecar has taken our order. */
static const json_t *taken(const struct resizing *g)
{
    const json_t *growth = volume_look(&g->w).growth;
    const char *name = json_str(growth, "name");
    return name && str_eq(name, kube_name(g->resize)) ? growth : NULL;
}

static bool has_grown(const struct resizing *g)
{
    return volume_look(&g->w).has >= g->wanted;
}

static int in_progress(struct resizing *g, struct err *e)
{
    if (!g->w.volume || kube_deleting(g->w.volume)) {
        int ok = is_feasible(g, e);
        if (ok <= 0)
            return ok;
    }
    int locked = resizing_lock(g, e); /* taken off by hand: it is taken again, or waited for */
    if (locked <= 0)
        return locked;
    const json_t *growth = taken(g);
    const char *failure = json_str(growth, "message");
    if (has_grown(g))
        return tell(g, "SUCCEEDED", "Grown", "Target and replicas have the new size", progress(g),
                    e);
    if (failure && *failure) {
        _cleanup_free_ char *text = mem_printf("The target could not grow: %s", failure);
        return fail(g, "GrowthFailed", text, e);
    }
    const char *wanted = volume_text(g->resize, "spec", "capacity");
    if (!str_eq(volume_look(&g->w).order, wanted)) {
        json_auto_t *patch = g->w.c->engine->resize->order(kube_name(g->resize), wanted);
        if (volume_patch(&g->w, patch, "order", e) < 0)
            return -1;
    }
    return tell(g, "IN-PROGRESS", "Growing", growth ? "The target grows" : "The target was told",
                progress(g), e);
}

static int succeeded(struct resizing *g, struct err *e)
{
    if (g->w.volume && !kube_deleting(g->w.volume) && has_grown(g) &&
        volume_look(&g->w).size < g->wanted)
        /* That is the volume controller's to write, under the lock, which anybody may have taken off. */
        return resizing_lock(g, e) < 0 ? -1 : 0;
    if (resizing_unlock(g, e) < 0)
        return -1;
    return tell(g, "COMPLETED", "Resized", "The volume has the new size", NULL, e);
}

static int hold(struct resizing *g, bool yes, struct err *e)
{
    return volume_hold(g->w.c, &g->w.c->resizes_r, &g->resize, g->w.c->engine->resize->finalizer,
                       yes, e);
}

static int step(struct resizing *g, struct err *e)
{
    static const struct {
        const char *phase;
        int (*step)(struct resizing *g, struct err *e);
    } steps[] = {{"", init},
                 {"INIT", init},
                 {"IN-PROGRESS", in_progress},
                 {"SUCCEEDED", succeeded},
                 {"COMPLETED", resizing_unlock},
                 {"FAILED", resizing_unlock}};
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        if (str_eq(steps[i].phase, phase_of(g->resize)))
            return steps[i].step(g, e);
    }
    return 0;
}

static int work(struct resizing *g, struct err *e)
{
    bool begun = str_eq(phase_of(g->resize), "SUCCEEDED") ||
                 (str_eq(phase_of(g->resize), "IN-PROGRESS") && resizing_holds_lock(g) &&
                  (has_grown(g) || taken(g)));
    if (!kube_deleting(g->resize))
        return hold(g, true, e) < 0 ? -1 : step(g, e);
    if (!kube_finalizer_has(g->resize, g->w.c->engine->resize->finalizer))
        return 0;
    if (begun && step(g, e) < 0)
        return -1;
    if (begun && !resizing_is_over(g->resize))
        return 0;
    return resizing_unlock(g, e) < 0 ? -1 : hold(g, false, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
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
    g.wanted = volume_bytes(json_at(g.resize, "spec", "capacity"));
    int status = work(&g, e);
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
                                              .reconcile = reconcile,
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
