/*
 * The phase of a replica, from its object and from what is so: a function without a clock, a disk or a server.
 *
 *     ""  ──> Init ──(data set made, GUIDs remembered)──> Offline ──(connected)──> by its data:
 *                                                            ^         complete        Healthy
 *     data set missing:                                      │         misses some     Degraded ── Rebuilding
 *       the pool is another one, ──> Recreate ──(made)───────┘         has none yet    NewReplicaDegraded
 *       or somebody asked                                                                ── ReconstructingNewReplica
 *       else ──> Error
 *     the object can never be a replica ──> Invalid; something is missing in it ──> Offline
 *     it is to go, and its data set cannot ──> DeletionFailed
 *
 * Where cStor's phase said less than is known, this differs: a replica whose pool is not open, or whose process has just
 * started, is Offline, and not what it was before; Recreate means a new data set, and never a restart.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "base/str.h"
#include "pool/cvr.h"

static void say(struct pool_cvr_verdict *v, const char *phase, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct pool_cvr_verdict *v, const char *phase, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    v->phase = phase;
    vsnprintf(v->message, sizeof(v->message), fmt, args);
    va_end(args);
}

static void warn(struct pool_cvr_verdict *v, const char *reason)
{
    v->reason = reason;
    v->warning = true;
}

static bool is_phase(const struct pool_cvr_facts *f, const char *phase)
{
    return str_eq(f->object.status.phase, phase);
}

enum pool_replica_want pool_cvr_want(const struct volume_replica *object, bool deleting)
{
    if (deleting)
        return POOL_REPLICA_DESTROY;
    return pool_number(object->status.zvol_guid) ? POOL_REPLICA_KEEP : POOL_REPLICA_CREATE;
}

static void judge_deletion(const struct pool_cvr_facts *f, struct pool_cvr_verdict *v)
{
    const struct pool_replica_view *view = f->view;
    v->gone = f->destroying && view->known && view->gone;
    if (v->gone || !f->destroying || !view->known || !view->why.code) {
        say(v, f->object.status.phase, "%s",
            f->pool->code                   ? f->pool->msg
            : is_phase(f, "DeletionFailed") ? f->object.status.message
                                            : "its data set is being destroyed");
        return;
    }
    say(v, "DeletionFailed", "%s; it is tried again", view->why.msg);
    warn(v, "FailDestroy");
}

/* There is no data set that the object remembers. */
static void judge_new(const struct pool_cvr_facts *f, struct pool_cvr_verdict *v)
{
    const struct pool_replica_view *view = f->view;
    const char *phase = is_phase(f, "Recreate") ? "Recreate" : "Init";
    if (view->known && view->foreign) {
        say(v, "Error", "%s",
            view->why.code
                ? view->why.msg
                : "the pool has a data set of this volume's name that belongs to another "
                  "replica: rename or remove it, or delete this replica");
        warn(v, "FailCreate");
    } else if (view->known && view->guid && !view->missing) {
        v->zvol_guid = view->guid;
        v->pool_guid = view->pool_guid;
        say(v, "Offline", "its data set is about to be opened");
        v->reason = "Created";
    } else if (view->known && view->why.code) {
        say(v, "Error", "its data set could not be made: %s; it is tried again", view->why.msg);
        warn(v, "FailCreate");
    } else {
        say(v, phase, "%s", f->pool->code ? f->pool->msg : "its data set is being made");
        v->reason = is_phase(f, "") ? "Synced" : NULL;
    }
}

/* The data set that the object remembers is not there. */
static void judge_missing(const struct pool_cvr_facts *f, struct pool_cvr_verdict *v)
{
    bool asked = *f->request && !str_eq(f->request, f->object.status.recreate);
    bool other = f->view->pool_guid != v->pool_guid;
    if (other)
        say(v, "Recreate",
            "the pool is another one (GUID %" PRIu64 ", it was %" PRIu64
            "): a new data set is made in it, and gets all data from the other replicas",
            f->view->pool_guid, v->pool_guid);
    else if (asked)
        say(v, "Recreate",
            "the data set with the GUID %" PRIu64
            " is missing, and a new one was asked for: it gets all data from the other replicas",
            v->zvol_guid);
    else
        say(v, "Error",
            "the data set with the GUID %" PRIu64
            " is missing in the pool that had it (GUID %" PRIu64
            "), and is not replaced by an empty one: if it will not be back, set the annotation "
            "orlop.io/recreate to \"true\" (or to another value than before) and it is rebuilt "
            "from "
            "the other replicas, or delete this object",
            v->zvol_guid, v->pool_guid);
    warn(v, other || asked ? "Recreate" : "ZvolMissing");
    if (asked && !other)
        v->recreate = f->request;
    if (other || asked)
        v->zvol_guid = v->pool_guid = 0;
}

/* Its data set is there and open, and the target speaks to it. */
static void judge_connected(const struct pool_cvr_facts *f, struct pool_cvr_verdict *v)
{
    const struct pool_replica_view *view = f->view;
    const char *phase = view->rebuilding ? view->fresh ? "ReconstructingNewReplica" : "Rebuilding"
                        : view->complete ? "Healthy"
                        : view->fresh    ? "NewReplicaDegraded"
                                         : "Degraded";
    say(v, phase, "%s",
        view->full         ? "the pool takes no more writes, for it is full or above its "
                             "roThresholdLimit: writes of the volume wait, and go on when there is "
                             "room; add devices, or delete volumes or snapshots"
        : view->why.code   ? view->why.msg
        : view->rebuilding ? "data that it lacks is being written to it"
        : view->complete   ? ""
        : *view->damage    ? view->damage
                           : "it lacks data, and waits to be given it");
}

/* The data set that the object remembers is there. */
static void judge_present(const struct pool_cvr_facts *f, struct pool_cvr_verdict *v)
{
    const struct pool_replica_view *view = f->view;
    v->pool_guid = view->pool_guid ? view->pool_guid : v->pool_guid;
    if (view->open && view->connected) {
        judge_connected(f, v);
        return;
    }
    if (f->key->code) {
        say(v, "Offline", "%s", f->key->msg);
        warn(v, "SyncFailed");
    } else if (!view->open && view->why.code) {
        say(v, "Error", "its data set cannot be opened: %s; it is tried again", view->why.msg);
        warn(v, "SyncFailed");
    } else if (!view->open) {
        say(v, "Offline", "its data set is being opened");
    } else if (*view->last_end) {
        say(v, "Offline", "it has no connection to its target %s: %s", f->object.spec.target_ip,
            view->last_end);
    } else {
        say(v, "Offline", "it has no connection to its target %s yet", f->object.spec.target_ip);
    }
}

static void judge_known(const struct pool_cvr_facts *f, struct pool_cvr_verdict *v)
{
    const struct pool_replica_view *view = f->view;
    if (view->known && view->missing) {
        judge_missing(f, v);
    } else if (view->known && (view->foreign || view->guid != v->zvol_guid)) {
        say(v, "Error", "%s",
            view->why.code ? view->why.msg
                           : "the pool has another data set of this volume's name, which is left "
                             "alone: rename or remove it, or delete this object");
        warn(v, "ZvolForeign");
    } else if (view->known) {
        judge_present(f, v);
    } else if (f->pool->code) {
        say(v, "Offline", "%s", f->pool->msg);
    } else { /* the pool is open, and nobody has looked yet */
        say(v, f->object.status.phase, "%s", f->object.status.message);
    }
}

void pool_cvr_judge(const struct pool_cvr_facts *f, struct pool_cvr_verdict *ret)
{
    *ret = (struct pool_cvr_verdict){
        .zvol_guid = pool_number(f->object.status.zvol_guid),
        .pool_guid = pool_number(f->object.status.pool_guid),
        .recreate = f->object.status.recreate,
    };
    if (f->deleting) {
        judge_deletion(f, ret);
    } else if (f->wrong->code) {
        say(ret, f->wrong->code == ERR_INVALID_ARGUMENT ? "Invalid" : "Offline", "%s",
            f->wrong->msg);
        warn(ret, "FailValidate");
    } else if (!ret->zvol_guid) {
        judge_new(f, ret);
    } else {
        judge_known(f, ret);
    }
}
