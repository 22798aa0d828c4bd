/*
 * The loop: look at the target, say how it is, take one step.
 */
#include "base/crash.h"
#include "base/log.h"
#include "kube/condition.h"
#include "sidecar/sidecar.h"

static const int64_t PATIENCE = 5 * CLOCK_SECOND;
static const int64_t GROWTH_PATIENCE = 30 * CLOCK_SECOND;
static const int64_t SHORTLY =
    CLOCK_SECOND / 4; /* for what takes its time: it is looked at later */
static const int64_t IDLE = CLOCK_SECOND, BUSY = CLOCK_SECOND / 4;

int sidecar_write_status(struct sidecar *m, json_t **volume, const json_t *status, const char *what,
                         struct err *e)
{
    if (json_equal(json_object_get(*volume, "status"), status))
        return 0;
    crash_point(what);
    int r = kube_status_write(m->client, &m->r, volume, status, e);
    crash_point(what);
    return r;
}

/* Growth. */

static int end_growth(struct sidecar *m, json_t **volume, const struct sidecar_wanted *w,
                      const char *failure, struct err *e)
{
    json_auto_t *status = json_deep_copy(json_object_get(*volume, "status"));
    m->o->kind->acknowledge(status, w, failure);
    return sidecar_write_status(m, volume, status, "growth's end", e);
}

static int grow_target(struct sidecar *m, json_t **volume, const struct sidecar_wanted *w,
                       struct err *e)
{
    struct err why = {0};
    log_info("volume grows", LOG_S("resize", w->resize), LOG_U("size", w->grow_to));
    crash_point("grow");
    json_auto_t *shown = sidecar_ask(
        m->o->control, json_pack("{s:s,s:I}", "command", "grow", "size", (json_int_t)w->grow_to),
        GROWTH_PATIENCE, &why);
    crash_point("grow");
    if (shown || why.code != ERR_FAILED_PRECONDITION)
        return 0; /* what it shows next says what became of it */
    kube_event_warning(m->recorder, *volume, "GrowthFailed", "%s", why.msg);
    return end_growth(m, volume, w, why.msg, e);
}

/* 1 when a growth is under way or was asked for, so that nothing else is. */
static int follow_growth(struct sidecar *m, json_t **volume, const struct sidecar_shown *shown,
                         const struct sidecar_wanted *w, struct err *e)
{
    bool large = (uint64_t)shown->size >= w->grow_to;
    bool ours = w->taken && w->resize && str_eq(w->taken, w->resize);
    if (!shown->ready || sidecar_is_busy(shown))
        return 0;
    if (w->taken && (!w->resize || !ours || large)) /* done, or of an order that is no more */
        return end_growth(m, volume, NULL, NULL, e) < 0 ? -1 : 1;
    if (!w->resize || large || (ours && w->failed && *w->failed))
        return 0;
    if (!ours) {
        json_auto_t *status = json_deep_copy(json_object_get(*volume, "status"));
        m->o->kind->acknowledge(status, w, NULL);
        if (sidecar_write_status(m, volume, status, "acknowledge", e) < 0)
            return -1;
    }
    /* The object may be another value now; what is wanted was read before and is the same. */
    struct sidecar_wanted now;
    m->o->kind->wanted(*volume, &now);
    if (!now.resize)
        return 1;
    return grow_target(m, volume, &now, e) < 0 ? -1 : 1;
}

static void take_step(struct sidecar *m, json_t *step)
{
    struct err why = {0};
    _cleanup_(str_done) struct str text = {0};
    json_format(step, &text);
    log_info("asked of the target", LOG_S("request", str_get(&text)));
    json_auto_t *shown = sidecar_ask(m->o->control, json_incref(step), SHORTLY, &why);
    if (!shown && why.code != ERR_DEADLINE_EXCEEDED)
        log_warn("the target does not do it", LOG_S("request", str_get(&text)), LOG_ERR(&why));
}

/*
 * Follows orders, else has the replicas as they should be; whether the target is to be looked at
 * soon.
 */
static int take_steps(struct sidecar *m, json_t **volume, const struct sidecar_shown *shown,
                      struct err *e)
{
    struct sidecar_wanted wanted;
    m->o->kind->wanted(*volume, &wanted);
    int busy = follow_growth(m, volume, shown, &wanted, e);
    if (busy == 0)
        busy = sidecar_follow_order(m, volume, shown, e);
    if (busy < 0)
        return -1;
    m->o->kind->wanted(*volume, &wanted);
    json_auto_t *step = busy ? NULL : sidecar_next_request(shown, &wanted);
    if (step)
        take_step(m, step);
    return busy || step || sidecar_is_busy(shown) || !shown->ready;
}

/* A phase that changes is told as an event, as the published controller does. */
static int write_shown(struct sidecar *m, json_t **volume, const json_t *status, struct err *e)
{
    const char *before = json_str(json_object_get(*volume, "status"), "phase"),
               *phase = json_str(status, "phase");
    bool moves = m->o->kind->tells_phase && phase && *phase && !(before && str_eq(before, phase));
    if (sidecar_write_status(m, volume, status, "status", e) < 0)
        return -1;
    if (moves && m->o->kind->tells_phase(phase))
        kube_event_normal(m->recorder, *volume, phase, "Volume is in %s state", phase);
    else if (moves)
        kube_event_warning(m->recorder, *volume, phase, "Volume is in %s state", phase);
    return 0;
}

static int look_at_target(struct sidecar *m, json_t **volume, struct kube_result *ret,
                          struct err *e)
{
    struct err why = {0};
    struct sidecar_shown shown = {0};
    json_t *answer =
        sidecar_ask(m->o->control, json_pack("{s:s}", "command", "show"), PATIENCE, &why);
    if (answer)
        sidecar_shown_read(answer, &shown);
    json_auto_t *status = m->o->kind->status(*volume, answer ? &shown : NULL, why.msg, m->clock);
    int busy = write_shown(m, volume, status, e);
    if (busy == 0 && answer)
        busy = take_steps(m, volume, &shown, e);
    if (busy > 0)
        ret->again_ns = BUSY;
    sidecar_shown_done(&shown);
    return busy < 0 ? -1 : 0;
}

static int reconcile_volume(void *context, const char *ns, const char *name,
                            struct kube_result *ret, struct err *e)
{
    struct sidecar *m = context;
    json_t *volume = kube_informer_json(m->volumes, ns, name, NULL);
    int status = 0;
    ret->again_ns = IDLE;
    if (volume && !kube_deleting(volume)) /* its end is not told by this */
        status = look_at_target(m, &volume, ret, e);
    json_decref(volume);
    return status;
}

/* Changes of the status are our own. */
static bool is_asked(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *after = now ? kube_object_json(now) : NULL;
    return !before || !after || before == after ||
           !json_equal(json_object_get(before, "spec"), json_object_get(after, "spec")) ||
           !json_equal(json_at(before, "metadata", "annotations"),
                       json_at(after, "metadata", "annotations"));
}

/* Nobody will look at the target after this. What cannot be said now, the controller says. */
static void say_last(void *context)
{
    struct sidecar *m = context;
    struct err why = {0};
    json_t *volume = kube_get(m->client, &m->r, m->o->ns, m->o->name, &why);
    if (volume && !kube_deleting(volume)) {
        json_auto_t *status = m->o->kind->last_status(volume, m->clock);
        sidecar_write_status(m, &volume, status, "last status", &why);
    }
    json_decref(volume);
}

int sidecar_run(const struct sidecar_options *o, int stop_fd, struct err *e)
{
    const struct kube_manager_options mo = {
        .config = o->config, .name = "orlop-sidecar", .health_port = -1};
    _cleanup_(kube_manager_freep) struct kube_manager *km = kube_manager_new(&mo, e);
    if (!km)
        return -1;
    _cleanup_free_ char *fields = mem_printf("metadata.name=%s", o->name);
    struct sidecar m = {
        .o = o,
        .clock = kube_manager_clock(km),
        .client = kube_manager_client(km),
        .recorder = kube_manager_recorder(km),
        .r = kube_resource(o->kind->version, o->kind->kind),
    };
    m.volumes = kube_manager_informer(km, m.r, o->ns, NULL, fields);
    const struct kube_controller_options co = {.name = "volume",
                                               .reconcile = reconcile_volume,
                                               .context = &m,
                                               .backoff_max_ns = 5 * CLOCK_SECOND};
    struct kube_controller *c = kube_manager_controller(km, &co, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = m.volumes, .predicate = is_asked});
    if (o->kind->last_status)
        kube_manager_before_end(km, say_last, &m);
    return kube_manager_run(km, stop_fd, e);
}

const struct sidecar_kind *sidecar_kind_find(const char *name)
{
    static const struct sidecar_kind *const kinds[] = {&sidecar_jiva, &sidecar_cstor};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (str_eq(kinds[i]->kind, name))
            return kinds[i];
    }
    return NULL;
}
