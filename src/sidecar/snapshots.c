/*
 * Orders about snapshots: create, delete, revert.
 *
 *     order in the object ──> "Running" ──> asked of the target ──> "Done" or "Failed", with why
 *
 * That it runs is written before it is begun, with the version in which the order was read. So an
 * order that is found running, while the target is at nothing, was interrupted with this program or
 * the target: creating and deleting are judged by what there is, and begun again; going back is
 * not, since what was written after it would be lost.
 */
#include "base/crash.h"
#include "sidecar/sidecar.h"

static const int64_t PATIENCE = 60 * CLOCK_SECOND;

static int write_answer(struct sidecar *m, json_t **volume, int64_t generation, const char *phase,
                        const char *message, struct err *e)
{
    json_auto_t *status = json_deep_copy(json_object_get(*volume, "status"));
    m->o->kind->answer(status, generation, phase, message);
    return sidecar_write_status(m, volume, status, phase, e) < 0 ? -1 : 1;
}

/* Asks the target; what it says is the answer. */
static int carry_out(struct sidecar *m, json_t **volume, enum sidecar_command command,
                     struct err *e)
{
    static const char *const verbs[] = {[SIDECAR_CREATE] = "snapshot",
                                        [SIDECAR_DELETE] = "snapshot-delete",
                                        [SIDECAR_REVERT] = "revert"};
    struct err why = {0};
    struct sidecar_order o; /* the object is another value since it was read */
    m->o->kind->order(*volume, &o);
    crash_point("snapshot");
    json_auto_t *done = sidecar_ask(
        m->o->control, json_pack("{s:s,s:s}", "command", verbs[command], "name", o.name), PATIENCE,
        &why);
    crash_point("snapshot");
    if (!done && why.code != ERR_FAILED_PRECONDITION)
        return 1; /* what it shows next says what became of it */
    return write_answer(m, volume, o.generation, done ? "Done" : "Failed", done ? "" : why.msg, e);
}

int sidecar_follow_order(struct sidecar *m, json_t **volume, const struct sidecar_shown *shown,
                         struct err *e)
{
    struct sidecar_order o = {0};
    if (m->o->kind->order)
        m->o->kind->order(*volume, &o);
    bool running = o.phase == SIDECAR_RUNNING;
    if (!o.generation || o.phase == SIDECAR_ENDED || !shown->ready)
        return 0;
    if (sidecar_is_busy(shown))
        return running;
    if (o.command == SIDECAR_COMMANDS)
        return write_answer(m, volume, o.generation, "Failed",
                            "\"command\" is none of create, delete, revert", e);
    if (running && o.command == SIDECAR_REVERT)
        return write_answer(
            m, volume, o.generation, "Failed",
            "It was interrupted, and may or may not have been done: look at the data, and "
            "ask again",
            e);
    if (running && sidecar_has_snapshot(shown, o.name) == (o.command == SIDECAR_CREATE))
        return write_answer(m, volume, o.generation, "Done", "", e);
    if (!running && write_answer(m, volume, o.generation, "Running", "", e) < 0)
        return -1;
    return carry_out(m, volume, o.command, e);
}
