/*
 * What to do with a pool that is there: the difference between what is wanted and what is, as steps in
 * the order in which they are to be done. A function of both, and of the time.
 *
 *     devices that are back          they hold what others may lack
 *     additions, larger devices      expansion comes before
 *     replacements                   replacement
 *     spares                         take over, or are free again
 *     clear                          when somebody asked for it
 *     scrub                          when nothing else is under way
 */
#include <inttypes.h>

#include "base/str.h"
#include "pool/impl.h"

struct planner {
    const struct pool_wish *w;
    const struct zpool_status *s;
    struct pool_step *steps;
    size_t n;
};

static struct pool_step *add(struct planner *p, enum pool_step_kind kind)
{
    static struct pool_step none;
    if (p->n == POOL_PLAN_MAX)
        return &none; /* next time */
    struct pool_step *step = &p->steps[p->n++];
    *step = (struct pool_step){.kind = kind};
    return step;
}

static void name_row(struct pool_step *step, const struct zpool_vdev *v)
{
    snprintf(step->row, sizeof(step->row), "%" PRIu64, v->guid);
}

static const struct zpool_vdev *parent_of(const struct planner *p, const struct zpool_vdev *v)
{
    return v->parent < 0 ? NULL : &p->s->vdevs[v->parent];
}

static bool is_type(const struct zpool_vdev *v, const char *type)
{
    return v && str_eq(v->type, type);
}

static bool is_out(const struct zpool_vdev *v)
{
    return v->state == ZPOOL_FAULTED || v->state == ZPOOL_UNAVAILABLE || v->state == ZPOOL_REMOVED;
}

static const char *name_of(const struct planner *p, const struct zpool_vdev *v)
{
    const struct pool_device *d = pool_wish_device(p->w, p->s, (size_t)(v - p->s->vdevs));
    return d ? d->name : v->path;
}

static void plan_online(struct planner *p)
{
    for (size_t i = 0; i < p->s->n_vdevs; i++) {
        const struct zpool_vdev *v = &p->s->vdevs[i];
        const struct pool_device *d = v->path[0] ? pool_wish_device(p->w, p->s, i) : NULL;
        bool gone = v->state == ZPOOL_UNAVAILABLE || v->state == ZPOOL_REMOVED;
        if (!d || !gone || v->parent < 0 || !*d->path)
            continue;
        struct pool_step *step = add(p, POOL_STEP_ONLINE);
        name_row(step, v);
        step->device = d;
        snprintf(step->path, sizeof(step->path), "%s", d->path);
        snprintf(step->text, sizeof(step->text), "%s is back", d->name);
    }
}

static bool in_pool(const struct planner *p, const struct pool_device *d)
{
    return pool_wish_row(p->w, d, p->s) >= 0;
}

/*
 * A group of which the pool has nothing is added whole. Of one without layout, devices are added one by
 * one. Any other device that the pool has not is a replacement.
 */
static void plan_add(struct planner *p)
{
    for (size_t i = 0; i < p->w->n_groups; i++) {
        const struct pool_group *g = &p->w->groups[i];
        size_t have = 0;
        for (size_t k = 0; k < g->n_devices; k++)
            have += in_pool(p, &g->devices[k]);
        if (g->type != ZPOOL_STRIPE && have)
            continue;
        for (size_t k = 0; k < g->n_devices; k++) {
            const struct pool_device *d = &g->devices[k];
            if (g->type == ZPOOL_STRIPE && (in_pool(p, d) || *d->predecessor))
                continue;
            struct pool_step *step = add(p, POOL_STEP_ADD);
            step->group = g;
            step->device = g->type == ZPOOL_STRIPE ? d : NULL;
            if (step->device)
                snprintf(step->text, sizeof(step->text), "%s is added", d->name);
            else
                snprintf(step->text, sizeof(step->text), "a group of %zu devices is added: %s, ...",
                         g->n_devices, d->name);
            if (!step->device)
                break;
        }
    }
}

static void plan_grow(struct planner *p)
{
    for (size_t i = 0; i < p->s->n_vdevs; i++) {
        const struct zpool_vdev *v = &p->s->vdevs[i];
        if (!v->path[0] || !v->expandable || v->state != ZPOOL_ONLINE || v->parent < 0)
            continue;
        struct pool_step *step = add(p, POOL_STEP_GROW);
        name_row(step, v);
        snprintf(step->path, sizeof(step->path), "%s", v->path);
        snprintf(step->text, sizeof(step->text), "%s has grown", name_of(p, v));
    }
}

static void plan_replace(struct planner *p)
{
    for (size_t i = 0; i < p->w->n_devices; i++) {
        const struct pool_device *d = &p->w->devices[i];
        if (!*d->predecessor || in_pool(p, d))
            continue;
        const struct pool_device *old = pool_wish_named(p->w, d->predecessor);
        int row = old ? pool_wish_row(p->w, old, p->s) : -1;
        struct pool_step *step = add(p, POOL_STEP_REPLACE);
        step->device = d;
        if (row >= 0)
            name_row(step, &p->s->vdevs[row]);
        snprintf(step->text, sizeof(step->text), "%s takes the place of %s", d->name,
                 d->predecessor);
    }
}

/* Whether somebody else takes the place of this device, or is to. */
static bool is_replaced(const struct planner *p, const struct zpool_vdev *v)
{
    const struct zpool_vdev *parent = parent_of(p, v);
    if (is_type(parent, "replacing") || is_type(parent, "spare"))
        return true;
    for (size_t i = 0; i < p->n; i++) {
        char guid[32];
        snprintf(guid, sizeof(guid), "%" PRIu64, v->guid);
        if (p->steps[i].kind == POOL_STEP_REPLACE && str_eq(p->steps[i].row, guid))
            return true;
    }
    return false;
}

/* A spare that is free, and not promised to another in this plan; NULL. */
static const struct zpool_vdev *find_spare(const struct planner *p, uint64_t size)
{
    for (size_t i = 0; i < p->s->n_vdevs; i++) {
        const struct zpool_vdev *v = &p->s->vdevs[i];
        bool taken = v->role != ZPOOL_ROLE_SPARE || v->parent >= 0 || v->spare_in_use ||
                     v->state != ZPOOL_ONLINE || (size && v->size && v->size < size);
        for (size_t k = 0; k < p->n && !taken; k++)
            taken = p->steps[k].kind == POOL_STEP_SPARE && str_eq(p->steps[k].path, v->path);
        if (!taken)
            return v;
    }
    return NULL;
}

static void plan_spares(struct planner *p)
{
    for (size_t i = 0; i < p->s->n_vdevs; i++) {
        const struct zpool_vdev *v = &p->s->vdevs[i], *parent = parent_of(p, v);
        bool redundant = is_type(parent, "mirror") || is_type(parent, "raidz");
        if (!v->path[0] || v->role != ZPOOL_ROLE_DATA || !redundant || !is_out(v) ||
            is_replaced(p, v))
            continue;
        const struct zpool_vdev *spare = find_spare(p, v->size);
        if (!spare)
            continue;
        struct pool_step *step = add(p, POOL_STEP_SPARE);
        name_row(step, v);
        snprintf(step->path, sizeof(step->path), "%s", spare->path);
        snprintf(step->text, sizeof(step->text), "the spare %s stands in for %s", name_of(p, spare),
                 name_of(p, v));
    }
}

static bool is_spare_guid(const struct planner *p, uint64_t guid)
{
    for (size_t i = 0; i < p->s->n_vdevs; i++) {
        const struct zpool_vdev *v = &p->s->vdevs[i];
        if (v->role == ZPOOL_ROLE_SPARE && v->parent < 0 && v->guid == guid)
            return true;
    }
    return false;
}

/* The first of a pair is what the spare stands in for. */
static void plan_unspare(struct planner *p)
{
    if (p->s->scan.state == ZPOOL_SCAN_RUNNING)
        return;
    const struct zpool_vdev *old = NULL;
    for (size_t i = 0; i < p->s->n_vdevs; i++) {
        const struct zpool_vdev *v = &p->s->vdevs[i];
        if (!v->path[0] || !is_type(parent_of(p, v), "spare"))
            continue;
        if (!is_spare_guid(p, v->guid)) {
            old = v;
            continue;
        }
        if (!old || old->parent != v->parent || old->state != ZPOOL_ONLINE || old->behind)
            continue;
        struct pool_step *step = add(p, POOL_STEP_UNSPARE);
        name_row(step, v);
        snprintf(step->text, sizeof(step->text), "%s is whole again, and the spare %s free",
                 name_of(p, old), name_of(p, v));
    }
}

static bool is_asked(const struct planner *p, const char *const answered[], enum pool_request r)
{
    return *p->w->request[r] && !str_eq(p->w->request[r], answered[r]);
}

static void plan_clear(struct planner *p, const char *const answered[])
{
    if (!is_asked(p, answered, POOL_CLEAR))
        return;
    struct pool_step *step = add(p, POOL_STEP_CLEAR);
    snprintf(step->text, sizeof(step->text),
             "errors are forgotten and failed devices tried again, as somebody asked for");
}

static void plan_scrub(struct planner *p, const char *const answered[], int64_t now_s)
{
    const struct pool_wish *w = p->w;
    const struct zpool_progress *scan = &p->s->scan;
    int64_t started = w->scrub_started;
    if (scan->kind == ZPOOL_SCAN_SCRUB && scan->started > started)
        started = scan->started;
    bool asked = is_asked(p, answered, POOL_SCRUB);
    bool due = w->scrub_due && now_s >= w->scrub_due && started < w->scrub_due;
    if (scan->state == ZPOOL_SCAN_RUNNING || (!asked && !due))
        return;
    for (size_t i = 0; i < p->s->n_vdevs; i++) {
        const struct zpool_vdev *v = &p->s->vdevs[i];
        if (v->behind && v->state == ZPOOL_ONLINE)
            return; /* it is about to be filled; one that is not there need not be waited for */
    }
    struct pool_step *step = add(p, POOL_STEP_SCRUB);
    snprintf(step->text, sizeof(step->text), "a scrub begins, %s",
             asked ? "as somebody asked for" : "as it is time");
}

size_t pool_plan(const struct pool_wish *w, const struct zpool_status *s,
                 const char *const answered[POOL_REQUESTS], int64_t now_s,
                 struct pool_step steps[POOL_PLAN_MAX])
{
    struct planner p = {w, s, steps, 0};
    if (s->suspended)
        return 0;
    plan_online(&p);
    plan_add(&p);
    plan_grow(&p);
    plan_replace(&p);
    plan_spares(&p);
    plan_unspare(&p);
    plan_clear(&p, answered);
    plan_scrub(&p, answered, now_s);
    return p.n;
}
