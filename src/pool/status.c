/*
 * The object's status, from what the engine reports. States are written at once; numbers alone wait until
 * nothing has been written for a while, for every write is told to all who watch.
 */
#include "base/crash.h"
#include "base/str.h"
#include "kube/condition.h"
#include "pool/impl.h"

static const int64_t WRITE_NS = 10 * CLOCK_SECOND;

static json_t *child(json_t *object, const char *key, json_t *(*make)(void))
{
    json_t *value = json_object_get(object, key);
    if (!value) {
        value = make();
        json_object_set_new(object, key, value);
    }
    return value;
}

static void set_conditions(struct pool_writer *s, json_t *status, const json_t *object,
                           const json_t *conditions)
{
    const char *type;
    json_t *it;
    json_t *list = child(status, "conditions", json_array);
    json_object_foreach((json_t *)conditions, type, it) {
        const struct kube_condition c = {
            .type = type,
            .status = json_str(it, "status"),
            .reason = json_str(it, "reason"),
            .message = json_str(it, "message"),
            .generation = kube_generation(object),
        };
        kube_condition_set(list, &c, s->clock);
    }
}

/* A copy without what changes all the time. */
static json_t *without_numbers(const json_t *status)
{
    json_t *copy = json_deep_copy(status);
    if (!copy)
        return json_object();
    json_object_del(copy, "capacity");
    json_object_del(copy, "provisionedReplicas");
    json_object_del(copy, "healthyReplicas");
    json_object_del(json_object_get(copy, "resilver"), "percent");
    json_object_del(json_object_get(copy, "resilver"), "remainingSeconds");
    json_object_del(json_object_get(copy, "scrub"), "percent");
    json_object_del(json_object_get(copy, "scrub"), "repaired");
    size_t i;
    json_t *it;
    json_array_foreach(json_object_get(copy, "conditions"), i, it)
        json_object_del(it, "message");
    return copy;
}

/* Whether it must be said now; numbers alone wait until they have not been said for a while. */
static bool is_urgent(struct pool_writer *s, const json_t *was, const json_t *is)
{
    json_auto_t *before = without_numbers(was), *after = without_numbers(is);
    int64_t every = s->write_ns ? s->write_ns : WRITE_NS;
    return !json_equal(before, after) || !s->written_at ||
           clock_mono_ns(s->clock) - s->written_at >= every;
}

int pool_status_write(struct pool_writer *s, json_t **object, const json_t *report, struct err *e)
{
    static const char *const members[] = {
        "phase",          "guid",     "capacity", "readOnly", "devices",
        "adding",         "resilver", "scrub",    "clear",    "provisionedReplicas",
        "healthyReplicas"};
    const json_t *was = json_object_get(*object, "status");
    json_auto_t *status = was ? json_deep_copy(was) : json_object();
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        json_t *value = json_object_get(report, members[i]);
        if (value)
            json_object_set(status, members[i], value);
    }
    static const char *const passing[] = {"adding", "resilver"};
    for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
        if (!json_object_get(report, passing[i]))
            json_object_del(status, passing[i]);
    }
    set_conditions(s, status, *object, json_object_get(report, "conditions"));
    if ((was && json_equal(was, status)) || !is_urgent(s, was, status))
        return 0;
    crash_point("before the status is written");
    if (kube_status_write(s->kinds->client, &s->kinds->pool, object, status, e) < 0)
        return -1;
    crash_point("after the status was written");
    s->written_at = clock_mono_ns(s->clock);
    return 0;
}
