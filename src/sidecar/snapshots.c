/*
 * Orders about snapshots: create, delete, revert.
 *
 *     order in the object ──> "Running" ──> asked of the target ──> "Done" or "Failed", with why
 *
 * That it runs is written before it is begun, with the version in which the order was read. So an order
 * that is found running, while the target is at nothing, was interrupted with this program or the
 * target: creating and deleting are judged by what there is, and begun again; going back is not,
 * since what was written after it would be lost.
 */
#include "base/crash.h"
#include "sidecar/sidecar.h"

static const int64_t PATIENCE = 60 * CLOCK_SECOND;

void sidecar_order_done(struct sidecar_order *o)
{
    json_decref(o->json);
}

static const char *verb_of(const char *command)
{
    static const char *const verbs[][2] = {
        {"create", "snapshot"}, {"delete", "snapshot-delete"}, {"revert", "revert"}};
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (str_eq(verbs[i][0], command))
            return verbs[i][1];
    }
    return NULL;
}

static bool exists(const json_t *shown, const char *name)
{
    size_t i;
    json_t *it;
    json_array_foreach(json_object_get(shown, "snapshots"), i, it) {
        if (str_eq(json_str(it, "name"), name))
            return true;
    }
    return false;
}

static int say(struct sidecar *m, json_t **volume, const char *id, const char *phase,
               const char *message, struct err *e)
{
    json_auto_t *status = json_deep_copy(json_object_get(*volume, "status"));
    m->o->kind->answer(status, id, phase, message);
    return sidecar_write_status(m, volume, status, phase, e) < 0 ? -1 : 1;
}

/* Asks the target; what it says is the answer. */
static int carry_out(struct sidecar *m, json_t **volume, const struct sidecar_order *o,
                     struct err *e)
{
    struct err why = {0};
    crash_point("snapshot");
    json_auto_t *done = sidecar_ask(
        m->o->control, json_pack("{s:s,s:s}", "command", verb_of(o->command), "name", o->name),
        PATIENCE, &why);
    crash_point("snapshot");
    if (!done && why.code != ERR_FAILED_PRECONDITION)
        return 1; /* what it shows next says what became of it */
    return say(m, volume, o->id, done ? "Done" : "Failed", done ? "" : why.msg, e);
}

int sidecar_follow_order(struct sidecar *m, json_t **volume, const json_t *shown, struct err *e)
{
    _cleanup_(sidecar_order_done) struct sidecar_order o;
    m->o->kind->order(*volume, &o);
    const char *doing = json_str(shown, "doing");
    bool running = str_eq(o.phase, "Running");
    if (!o.json || (*o.phase && !running) || !json_is_true(json_object_get(shown, "ready")))
        return 0;
    if (doing && *doing)
        return running;
    if (!verb_of(o.command))
        return say(m, volume, o.id, "Failed", "\"command\" is none of create, delete, revert", e);
    if (running && str_eq(o.command, "revert"))
        return say(m, volume, o.id, "Failed",
                   "It was interrupted, and may or may not have been done: look at the data, and "
                   "ask again",
                   e);
    if (running && exists(shown, o.name) == str_eq(o.command, "create"))
        return say(m, volume, o.id, "Done", "", e);
    if (!running && say(m, volume, o.id, "Running", "", e) < 0)
        return -1;
    return carry_out(m, volume, &o, e);
}
