/*
 * What is so, in the words of the object's status. A function of what the engine read from the pool.
 */
#include <inttypes.h>

#include "base/quantity.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "pool/impl.h"

enum { STUCK_MS = 10000, PERCENT = 100 };

unsigned pool_used_percent(uint64_t used, uint64_t available)
{
    uint64_t total = used + available;
    return total ? (unsigned)((unsigned __int128)used * PERCENT / total) : 0;
}

static json_t *bytes(uint64_t n)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int((int64_t)(n & INT64_MAX), QUANTITY_BINARY_SI);
    return json_string(quantity_format(&q, text));
}

static json_t *stamp(int64_t unix_time)
{
    char text[RFC3339_MAX];
    return json_string(
        rfc3339_format((struct timespec){.tv_sec = unix_time}, RFC3339_SECONDS, text));
}

static json_t *guid_text(uint64_t guid)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, guid);
    return json_string(text);
}

static json_t *capacity(const struct zpool_status *s)
{
    json_t *c = json_object();
    json_object_set_new(c, "total", bytes(s->used + s->available));
    json_object_set_new(c, "free", bytes(s->available));
    json_object_set_new(c, "used", bytes(s->used));
    json_object_set_new(c, "zfs", json_pack("{s:o}", "logicalUsed", bytes(s->logical)));
    return c;
}

static const char *state_of(const struct zpool_vdev *v)
{
    bool waits = v->role == ZPOOL_ROLE_SPARE && v->parent < 0 && v->state == ZPOOL_ONLINE;
    return waits ? "SPARE" : zpool_state_name(v->state);
}

static json_t *device(const struct pool_device *d, const struct zpool_vdev *v)
{
    json_t *it = json_pack("{s:s, s:s, s:o, s:I, s:I, s:I}", "blockDeviceName", d->name, "state",
                           state_of(v), "guid", guid_text(v->guid), "readErrors",
                           (json_int_t)v->read_errors, "writeErrors", (json_int_t)v->write_errors,
                           "checksumErrors", (json_int_t)v->checksum_errors);
    if (v->why)
        json_object_set_new(it, "message", json_string(v->why));
    return it;
}

static void add_devices(json_t *to, const struct pool_facts *f, const struct pool_device *devices,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int row = pool_wish_row(f->wish, &devices[i], f->status);
        if (row >= 0)
            json_array_append_new(to, device(&devices[i], &f->status->vdevs[row]));
    }
}

/* The device that is being filled; NULL. */
static const struct pool_device *filled(const struct pool_facts *f)
{
    const struct zpool_status *s = f->status;
    for (size_t i = 0; i < s->n_vdevs; i++) {
        if (s->vdevs[i].path[0] && s->vdevs[i].behind && s->vdevs[i].state == ZPOOL_ONLINE)
            return pool_wish_device(f->wish, s, i);
    }
    return NULL;
}

static json_t *resilver(const struct pool_facts *f)
{
    const struct zpool_progress *scan = &f->status->scan;
    json_t *r = json_pack("{s:i}", "percent", (int)scan->percent);
    const struct pool_device *d = filled(f);
    if (scan->eta_s >= 0)
        json_object_set_new(r, "remainingSeconds", json_integer(scan->eta_s));
    if (d)
        json_object_set_new(r, "blockDeviceName", json_string(d->name));
    return r;
}

static json_t *scrub(const struct zpool_progress *scan, const char *answered)
{
    json_t *r = json_pack("{s:i, s:o, s:I}", "percent", (int)scan->percent, "startTime",
                          stamp(scan->started), "errors", (json_int_t)scan->errors);
    json_object_set_new(r, "repaired", bytes(scan->repaired));
    if (*answered)
        json_object_set_new(r, "request", json_string(answered));
    if (scan->ended)
        json_object_set_new(r, "endTime", stamp(scan->ended));
    return r;
}

static void set_condition(json_t *conditions, const char *type, bool holds, const char *reason,
                          const char *message)
{
    json_object_set_new(conditions, type,
                        json_pack("{s:s, s:s, s:s}", "status", holds ? "True" : "False", "reason",
                                  reason, "message", message));
}

/* Devices that do not do what they should: their number, and the text that says which. */
static size_t list_failed(const struct pool_facts *f, struct str *out)
{
    const struct zpool_status *s = f->status;
    size_t n = 0;
    for (size_t i = 0; i < s->n_vdevs; i++) {
        const struct zpool_vdev *v = &s->vdevs[i];
        bool stuck = v->stuck_ms >= STUCK_MS;
        if (!v->path[0] || (v->state == ZPOOL_ONLINE && !stuck))
            continue;
        const struct pool_device *d = pool_wish_device(f->wish, s, i);
        str_appendf(out, "%s%s (%s) ", n++ ? "; " : "", d ? d->name : "a device", v->path);
        if (stuck)
            str_appendf(out, "has not answered for %" PRIu64 " s", v->stuck_ms / 1000);
        else
            str_appendf(out, "is %s%s%s", zpool_state_name(v->state), v->why ? ": " : "",
                        v->why ? v->why : "");
    }
    return n;
}

static bool is_whole(const struct pool_facts *f, const struct pool_device *d)
{
    int row = pool_wish_row(f->wish, d, f->status);
    if (row < 0)
        return false;
    const struct zpool_vdev *v = &f->status->vdevs[row];
    const char *parent = v->parent < 0 ? "" : f->status->vdevs[v->parent].type;
    return v->state == ZPOOL_ONLINE && !v->behind && !str_eq(parent, "replacing");
}

/* It has its place, and what had it before is no longer in the pool. */
static bool is_replaced(const struct pool_facts *f, const struct pool_device *d)
{
    const struct pool_device *old = pool_wish_named(f->wish, d->predecessor);
    return is_whole(f, d) && (!old || pool_wish_row(f->wish, old, f->status) < 0);
}

static void report_replacements(const struct pool_facts *f, json_t *report, json_t *conditions)
{
    _cleanup_(str_done) struct str busy = {0};
    json_t *done = json_array();
    for (size_t i = 0; i < f->wish->n_devices; i++) {
        const struct pool_device *d = &f->wish->devices[i];
        if (!*d->predecessor)
            continue;
        if (is_replaced(f, d))
            json_array_append_new(done, json_string(d->name));
        else
            str_appendf(&busy, "%s%s takes the place of %s", busy.len ? "; " : "", d->name,
                        d->predecessor);
    }
    json_object_set_new(report, "replaced", done);
    const struct zpool_progress *scan = &f->status->scan;
    if (f->replacing->code)
        str_appendf(&busy, ", which waits: %s", f->replacing->msg);
    else if (busy.len && scan->kind == ZPOOL_SCAN_RESILVER && scan->state == ZPOOL_SCAN_RUNNING)
        str_appendf(&busy, ": %d %%", (int)scan->percent);
    set_condition(conditions, "DiskReplacement", busy.len,
                  f->replacing->code ? f->replacing->reason
                  : busy.len         ? "InProgress"
                                     : "NotInProgress",
                  busy.len ? str_get(&busy) : "no device is being replaced");
}

/* Why writes of volumes wait. */
static void report_room(const struct pool_facts *f, json_t *conditions)
{
    _cleanup_free_ char *message = mem_printf(
        "the pool is %u %% full, and takes no more writes from %u %% on "
        "(roThresholdLimit): writes of its volumes wait, and go on when there is room; "
        "add devices, or delete volumes or snapshots",
        pool_used_percent(f->status->used, f->status->available), f->wish->read_only_percent);
    set_condition(conditions, "ReadOnly", f->read_only,
                  f->read_only ? "RoThresholdLimit" : "RoomLeft",
                  f->read_only ? message : "the pool takes writes");
}

static void report_pool(const struct pool_facts *f, json_t *report, json_t *conditions)
{
    const struct zpool_status *s = f->status;
    _cleanup_(str_done) struct str failed = {0};
    json_t *devices = json_array();
    add_devices(devices, f, f->wish->devices, f->wish->n_devices);
    add_devices(devices, f, f->wish->others, f->wish->n_others);
    json_object_set_new(report, "devices", devices);
    json_object_set_new(report, "capacity", capacity(s));
    json_object_set_new(report, "readOnly", json_boolean(f->read_only));
    if (s->scan.kind == ZPOOL_SCAN_RESILVER && s->scan.state == ZPOOL_SCAN_RUNNING)
        json_object_set_new(report, "resilver", resilver(f));
    if (s->scan.kind == ZPOOL_SCAN_SCRUB)
        json_object_set_new(report, "scrub", scrub(&s->scan, f->answered[POOL_SCRUB]));
    if (*f->answered[POOL_CLEAR] && f->cleared)
        json_object_set_new(
            report, "clear",
            json_pack("{s:s, s:o}", "request", f->answered[POOL_CLEAR], "time", stamp(f->cleared)));
    report_room(f, conditions);
    bool any = list_failed(f, &failed) > 0;
    set_condition(conditions, "DiskUnavailable", any, any ? "DevicesFailed" : "DevicesWork",
                  any ? str_get(&failed) : "all devices work");
    report_replacements(f, report, conditions);
    set_condition(conditions, "PoolExpansion", f->adding->code,
                  f->adding->code ? f->adding->reason : "NotInProgress",
                  f->adding->code ? f->adding->msg : "the pool has all its devices");
}

/* Spares and caches that are to be added, and were announced or may be. */
static json_t *adding(const struct pool_facts *f)
{
    json_t *names = json_array();
    for (size_t i = 0; i < f->wish->n_devices; i++) {
        const struct pool_device *d = &f->wish->devices[i];
        bool in_pool = f->status && pool_wish_row(f->wish, d, f->status) >= 0;
        if (!in_pool && (d->announced || (f->announce && f->announce[i])))
            json_array_append_new(names, json_string(d->name));
    }
    return names;
}

json_t *pool_report(const struct pool_facts *f)
{
    const struct zpool_status *s = f->status;
    bool works = s && !s->suspended, lost = !works && (f->guid || f->wish->guid);
    const char *phase = f->phase;
    if (!phase)
        phase = !s ? "Init" : s->suspended ? "FAULTED" : zpool_state_name(s->state);
    json_t *report = json_pack("{s:s}", "phase", phase), *conditions = json_object();
    if (f->guid)
        json_object_set_new(report, "guid", guid_text(f->guid));
    if (s)
        report_pool(f, report, conditions);
    json_auto_t *names = adding(f);
    if (json_array_size(names))
        json_object_set(report, "adding", names);
    const char *reason = f->why->code ? f->why->reason : s ? "PoolSuspended" : "Opening";
    const char *message = f->why->code ? f->why->msg
                          : s          ? zpool_suspended_why()
                                       : "the pool is being looked for";
    set_condition(conditions, "Available", works, works ? "Open" : reason,
                  works ? "the pool is open" : message);
    set_condition(conditions, "PoolLost", lost, lost ? reason : "NotLost",
                  lost ? message : "the pool is there, or was never made");
    json_object_set_new(report, "conditions", conditions);
    return report;
}
