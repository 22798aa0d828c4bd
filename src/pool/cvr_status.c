/*
 * The status of a replica, and how much of it is news.
 */
#include <inttypes.h>

#include "base/quantity.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "pool/cvr.h"

static void set_text(json_t *status, const char *key, const char *text)
{
    if (*text)
        json_object_set_new(status, key, json_string(text));
    else
        json_object_del(status, key);
}

static void set_guid(json_t *status, const char *key, uint64_t guid)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, guid);
    set_text(status, key, guid ? text : "");
}

static json_t *bytes(uint64_t n)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int((int64_t)(n & INT64_MAX), QUANTITY_BINARY_SI);
    return json_string(quantity_format(&q, text));
}

/* Numbers from the pool; of a replica that nobody has looked at, those that were there. */
static void set_numbers(json_t *status, const struct pool_replica_view *view)
{
    if (!view->known)
        return;
    if (view->guid)
        json_object_set_new(
            status, "capacity",
            json_pack("{s:o, s:o}", "total", bytes(view->used), "used", bytes(view->logical)));
    if (view->rebuilding)
        json_object_set_new(status, "rebuildPercent", json_integer(view->percent));
    else
        json_object_del(status, "rebuildPercent");
}

/* By their names, which only a replica that runs knows. */
static void set_snapshots(json_t *status, const struct pool_replica_view *view)
{
    if (!view->known || !view->open)
        return;
    json_t *here = json_object(), *pending = json_object();
    for (unsigned i = 0; i < view->snapshots; i++) {
        if (*view->snapshot[i].name)
            json_object_set_new(
                here, view->snapshot[i].name,
                json_pack("{s:I}", "logicalReferenced", (json_int_t)view->snapshot[i].logical));
    }
    for (unsigned i = 0; i < view->pending; i++)
        json_object_set_new(pending, view->pending_name[i], json_object());
    const struct {
        const char *key;
        json_t *map;
    } maps[] = {{"snapshots", here}, {"pendingSnapshots", pending}};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        if (json_object_size(maps[i].map))
            json_object_set(status, maps[i].key, maps[i].map);
        else
            json_object_del(status, maps[i].key);
        json_decref(maps[i].map);
    }
}

json_t *pool_cvr_status(const struct volume_replica *object, const struct pool_cvr_verdict *v,
                        const struct pool_replica_view *view, const struct clock *clock)
{
    char now[RFC3339_MAX];
    const json_t *was = json_object_get(object->json, "status");
    json_t *status = was ? json_deep_copy(was) : json_object();
    rfc3339_format(rfc3339_from_ns(clock_real_ns(clock)), RFC3339_SECONDS, now);
    json_object_set_new(status, "phase", json_string(v->phase));
    set_text(status, "message", v->message);
    set_guid(status, "zvolGuid", v->zvol_guid);
    set_guid(status, "poolGuid", v->pool_guid);
    set_text(status, "recreate", v->recreate);
    set_numbers(status, view);
    set_snapshots(status, view);
    if (!str_eq(v->phase, object->status.phase))
        json_object_set_new(status, "lastTransitionTime", json_string(now));
    json_object_set_new(status, "lastUpdateTime", json_string(now));
    return status;
}

/* A copy without some members. */
static json_t *without(const json_t *status, const char *const *keys)
{
    json_t *copy = status ? json_copy((json_t *)(uintptr_t)status) : json_object();
    for (; *keys; keys++)
        json_object_del(copy, *keys);
    return copy;
}

static bool are_same(const json_t *was, const json_t *is, const char *const *ignored)
{
    json_auto_t *before = without(was, ignored), *after = without(is, ignored);
    return json_equal(before, after);
}

enum pool_cvr_difference pool_cvr_compare(const json_t *was, const json_t *is)
{
    static const char *const time[] = {"lastUpdateTime", NULL};
    static const char *const numbers[] = {"lastUpdateTime", "capacity", "rebuildPercent", NULL};
    static const char *const words[] = {"lastUpdateTime", "capacity", "rebuildPercent", "message",
                                        NULL};
    return are_same(was, is, time)      ? POOL_CVR_SAME
           : are_same(was, is, numbers) ? POOL_CVR_NUMBERS
           : are_same(was, is, words)   ? POOL_CVR_WORDS
                                        : POOL_CVR_STATE;
}
