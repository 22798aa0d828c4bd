#include "k8s/controllers/rollout.h"

#include "base/mem.h"
#include "k8s/controllers/pods.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct rollout rollout_of(const json_t *deployment)
{
    const json_t *settings = json_at(deployment, "spec", "strategy", "rollingUpdate");
    struct rollout r = {.wanted = pods_integer(deployment, "spec", "replicas", 1),
                        .recreate =
                            str_eq(json_text(deployment, "spec", "strategy", "type"), "Recreate")};
    if (r.recreate)
        return r;
    const json_t *surge = json_object_get(settings, "maxSurge");
    const json_t *unavailable = json_object_get(settings, "maxUnavailable");
    r.surge = pods_int_or_percent(surge, r.wanted, true, (r.wanted + 3) / 4);
    r.unavailable = pods_int_or_percent(unavailable, r.wanted, false, r.wanted / 4);
    if (!r.surge && !r.unavailable)
        r.unavailable = 1; /* else nothing could ever move */
    r.unavailable = least(r.unavailable, r.wanted);
    return r;
}

int64_t rollout_total(const struct rollout_set *sets, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += sets[i].replicas;
    return sum;
}

static int64_t available_total(const struct rollout_set *sets, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += sets[i].available;
    return sum;
}

/* What is there or will be: an old pod that is still to be deleted takes up room, too. */
static int64_t present_total(const struct rollout_set *sets, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += sets[i].present > sets[i].replicas ? sets[i].present : sets[i].replicas;
    return sum;
}

static const struct rollout_set *new_of(const struct rollout_set *sets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sets[i].is_new)
            return &sets[i];
    }
    return NULL;
}

int64_t rollout_new_replicas(const struct rollout *r, const struct rollout_set *sets, size_t n)
{
    const struct rollout_set *new = new_of(sets, n);
    int64_t has = new ? new->replicas : 0;
    if (r->recreate || has >= r->wanted)
        return r->wanted;
    int64_t room = r->wanted + r->surge - present_total(sets, n);
    return room <= 0 ? has : has + least(room, r->wanted - has);
}

void rollout_scale_down(const struct rollout *r, struct rollout_set *sets, size_t n)
{
    const struct rollout_set *new = new_of(sets, n);
    int64_t needed = r->wanted - r->unavailable;
    int64_t missing = new &&new->replicas > new->available ? new->replicas - new->available : 0;
    int64_t may_go = rollout_total(sets, n) - needed - missing;
    /* Those that are of no use. */
    for (size_t i = 0; i < n && may_go > 0; i++) {
        int64_t useless = sets[i].replicas - sets[i].available;
        if (sets[i].is_new || useless <= 0)
            continue;
        int64_t step = least(useless, may_go);
        sets[i].replicas -= step;
        may_go -= step;
    }
    /* Those that the new ones replace. */
    int64_t spare = available_total(sets, n) - needed;
    for (size_t i = 0; i < n && spare > 0; i++) {
        if (sets[i].is_new || sets[i].replicas <= 0)
            continue;
        int64_t step = least(sets[i].replicas, spare);
        sets[i].replicas -= step;
        spare -= step;
    }
}

/* a * b / c to the nearest, halves away from zero; none is negative. */
static int64_t proportion(int64_t a, int64_t b, int64_t c)
{
    return (2 * a * b + c) / (2 * c);
}

void rollout_scale(const struct rollout *r, struct rollout_set *sets, size_t n)
{
    int64_t most = r->wanted ? r->wanted + r->surge : 0;
    int64_t change = most - rollout_total(sets, n), done = 0;
    size_t largest = n;
    if (!change)
        return;
    for (size_t i = 0; i < n; i++) {
        /* Of those of one size the newest grows, the oldest shrinks. */
        if (largest == n || sets[i].replicas > sets[largest].replicas ||
            (change > 0 && sets[i].replicas == sets[largest].replicas))
            largest = i;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t before = sets[i].most ? sets[i].most : rollout_total(sets, n);
        if (!sets[i].replicas || !before)
            continue;
        int64_t step = proportion(sets[i].replicas, most, before) - sets[i].replicas;
        int64_t left = change - done;
        if (change > 0)
            step = step < 0 ? 0 : least(step, left);
        else
            step = step > 0 ? 0 : -least(-step, -left);
        sets[i].replicas += step;
        done += step;
    }
    int64_t rest = sets[largest].replicas + change - done;
    sets[largest].replicas = rest > 0 ? rest : 0;
}
