/*
 * Growth by spec.capacity.
 *
 *     capacity > what the volume has ──> all pools have room ──> replicas' objects ──> the order
 *                                    └─> else refused, and nothing grows
 *     the target has grown ──> Resizing is Success, the order is taken back
 *
 * The order is named after the size, so the same wish gives the same order, whoever writes it. A
 * replica that is away follows when it is back: what has to be there is the volume, serving.
 */
#include <inttypes.h>

#include "controllers/volume/cstor/cstor.h"

static int say(struct volume_work *w, const char *status, const char *reason, const char *message,
               struct err *e)
{
    const struct kube_condition c = {
        .type = "Resizing", .status = status, .reason = reason, .message = message};
    return volume_say(w, VOLUME_SAID, &c, e);
}

static int order(struct volume_work *w, const char *name, const char *capacity, struct err *e)
{
    json_t *o = name ? json_pack("{s:s,s:s}", "name", name, "capacity", capacity) : json_null();
    json_auto_t *patch = json_pack("{s:{s:o}}", "spec", "resizeOrder", o);
    return volume_patch(w, patch, name ? "order" : "order is over", e);
}

/* Whether all pools can hold the larger replicas; else why not. */
static bool fits(struct volume_work *w, struct cstor_world *world, uint64_t size, struct str *why)
{
    pthread_mutex_lock(&w->c->lock);
    cstor_world_count(w, world);
    pthread_mutex_unlock(&w->c->lock);
    for (size_t i = 0; i < world->replicas_n; i++) {
        const struct cstor_replica *r = &world->replicas[i];
        uint64_t has = volume_bytes(json_at(r->object, "spec", "capacity"));
        if (r->at >= 0 && !r->deleting && !r->leaving && size > has &&
            !cstor_pool_holds(&world->pools[r->at], size - has, true, why))
            return false;
    }
    return true;
}

static int begin(struct volume_work *w, struct cstor_world *world, const char *name, struct err *e)
{
    const struct volume_view view = volume_look(w);
    _cleanup_(str_done) struct str why = {0};
    _cleanup_free_ char *capacity = mem_strdup(view.capacity);
    if (!view.serving) {
        volume_again(w, 30 * CLOCK_SECOND);
        return say(w, "InProgress", "WaitsForReplicas", "Waits until the volume serves", e);
    }
    if (!fits(w, world, view.size, &why)) {
        _cleanup_free_ char *text =
            mem_printf("The volume cannot grow to %s: %s", view.capacity, str_get(&why));
        volume_again(w, 30 * CLOCK_SECOND);
        return say(w, "False", "OUT_OF_RANGE", text, e);
    }
    if (say(w, "InProgress", "Growing", "Target and replicas grow", e) < 0 ||
        cstor_raise_replicas(w, world, capacity, e) < 0)
        return -1;
    return order(w, name, capacity, e);
}

static int end(struct volume_work *w, struct err *e)
{
    const json_t *said = kube_condition_get(w->volume, "Resizing");
    const char *status = json_str(said, "status");
    if (said && !str_eq(status ? status : "", "Success")) {
        const char *has = volume_text(w->volume, "status", "capacity");
        _cleanup_free_ char *text = mem_printf("The volume has %s", has);
        if (say(w, "Success", "Resized", text, e) < 0)
            return -1;
        kube_event_normal(w->c->recorder, w->volume, "Resized", "%s", text);
    }
    return json_at(w->volume, "spec", "resizeOrder") ? order(w, NULL, NULL, e) : 0;
}

int cstor_grow(struct volume_work *w, struct cstor_world *world, struct err *e)
{
    const struct volume_view view = volume_look(w);
    if (!view.made)
        return 0;
    if (view.has >= view.size)
        return end(w, e);
    _cleanup_free_ char *name = mem_printf("capacity-%" PRIu64, view.size);
    const char *ordered = json_str(json_at(w->volume, "spec", "resizeOrder"), "name");
    if (!ordered || !str_eq(ordered, name))
        return begin(w, world, name, e);
    if (str_eq(view.growth, name) && *view.growth_failure) {
        _cleanup_free_ char *text =
            mem_printf("The target could not grow: %s", view.growth_failure);
        return say(w, "False", "GrowthFailed", text, e);
    }
    return say(w, "InProgress", "Growing", "Target and replicas grow", e);
}
