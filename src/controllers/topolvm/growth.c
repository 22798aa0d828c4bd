#include "controllers/topolvm/growth.h"

void growth_done(struct growth *g)
{
    json_decref(g->claim);
    json_decref(g->volume);
    json_decref(g->lv);
}

/* The claim's status. */

const char *growth_progress(const json_t *claim)
{
    const char *word =
        json_str(json_at(claim, "status", "allocatedResourceStatuses"), GROWTH_STORAGE);
    if (!word)
        return "";
    /* What it was called before. */
    if (str_eq(word, "ControllerResizeFailed"))
        return GROWTH_INFEASIBLE;
    return str_eq(word, "NodeResizeFailed") ? "NodeResizeInfeasible" : word;
}

int growth_write(struct growth *g, const char *progress, const json_t *allocated,
                 const json_t *capacity, const struct kube_condition *condition, struct err *e)
{
    static const char *const conditions[] = {"Resizing", "ControllerResizeError",
                                             "FileSystemResizePending"};
    json_auto_t *status = kube_status_copy(g->claim);
    if (progress)
        json_object_set_new(json_object_at(status, "allocatedResourceStatuses"), GROWTH_STORAGE,
                            json_string(progress));
    else
        json_object_del(json_object_get(status, "allocatedResourceStatuses"), GROWTH_STORAGE);
    if (!json_object_size(json_object_get(status, "allocatedResourceStatuses")))
        json_object_del(status, "allocatedResourceStatuses");
    if (allocated)
        json_object_set(json_object_at(status, "allocatedResources"), GROWTH_STORAGE,
                        (json_t *)(uintptr_t)allocated);
    if (capacity)
        json_object_set(json_object_at(status, "capacity"), GROWTH_STORAGE,
                        (json_t *)(uintptr_t)capacity);
    json_t *list = json_array_at(status, "conditions");
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
        if (!condition || !str_eq(condition->type, conditions[i]))
            kube_condition_remove(list, conditions[i]);
    }
    if (condition)
        kube_condition_set(list, condition, g->t->clock);
    return kube_status_write(g->t->client, &g->t->claims_r, &g->claim, status, e);
}

static void count_failure(struct growth *g)
{
    struct metrics_family *f = metrics_counter(
        g->t->metrics, "orlop_topolvm_resize_failures_total", "Times that a claim could not grow.",
        METRICS_LABELS("namespace", "persistentvolumeclaim"));
    metrics_add(metrics_at(f, METRICS_VALUES(kube_namespace(g->claim), kube_name(g->claim))), 1);
}

int growth_failed(struct growth *g, const char *progress, enum err_code code, const char *why,
                  struct err *e)
{
    _cleanup_free_ char *text = mem_printf("%s: %s", err_code_name(code), why);
    const json_t *was = kube_condition_get(g->claim, "ControllerResizeError");
    const char *before = json_str(was, "message");
    if (before && str_eq(before, text) && str_eq(growth_progress(g->claim), progress))
        return 0;
    const struct kube_condition failed = {
        .type = "ControllerResizeError",
        .status = "True",
        .reason = code == ERR_OUT_OF_RANGE ? "OutOfRange" : "Failed",
        .message = text,
    };
    if (growth_write(g, progress, g->wanted_text, NULL, &failed, e) < 0)
        return -1;
    count_failure(g);
    kube_event_warning(g->t->recorder, g->claim, "VolumeResizeFailed", "%s", text);
    return 0;
}

/* The LogicalVolume. */

void growth_take(struct growth *g, json_t *lv)
{
    json_decref(g->lv);
    g->lv = lv;
    g->v = logical_volume_of(lv);
}

static int patch_lv(struct growth *g, json_t *patch, struct err *e)
{
    json_auto_t *own = patch;
    json_t *now = kube_patch(g->t->client, kube_groups_of(&g->t->ledger->lvs, g->lv), NULL,
                             kube_name(g->lv), KUBE_MERGE_PATCH, own, NULL, e);
    if (!now)
        return -1;
    growth_take(g, now);
    return 0;
}

/* What the node said of the last time is no answer to this one. */
static int wipe_code(struct growth *g, struct err *e)
{
    if (!g->v.status.code)
        return 0;
    json_auto_t *status = json_deep_copy(json_object_get(g->lv, "status"));
    json_object_set_new(status, "code", json_integer(0));
    json_object_set_new(status, "message", json_string(""));
    json_t *now = json_incref(g->lv);
    int written =
        kube_status_write(g->t->client, kube_groups_of(&g->t->ledger->lvs, g->lv), &now, status, e);
    growth_take(g, now);
    return written;
}

/* `asked`: the node is to try, whatever became of it before; else it is only said what there is. */
static int set_size(struct growth *g, const json_t *size, bool asked, struct err *e)
{
    json_t *patch = json_pack("{s:{s:s},s:{s:O}}", "metadata", "resourceVersion",
                              kube_version(g->lv), "spec", "size", size);
    if (asked)
        topolvm_ledger_stamp(g->t->ledger, g->lv, json_object_get(patch, "metadata"));
    return patch_lv(g, patch, e);
}

int growth_promise(struct growth *g, struct str *ret_why, struct err *e)
{
    struct topolvm_ledger *l = g->t->ledger;
    const char *node = g->v.spec.node_name;
    int64_t more = topolvm_round(g->wanted) - g->v.status.current_size, room = 0;
    char need[TOPOLVM_SIZE_MAX], has[TOPOLVM_SIZE_MAX];
    bool known = topolvm_ledger_room(l, node, NULL, g->v.spec.class_name, &room);
    if (known && __builtin_add_overflow(room, topolvm_pending(&g->v), &room))
        room = INT64_MAX; /* what was promised to itself is its own */
    if (!known || room < more) {
        str_appendf(ret_why, "to grow, the volume needs %s more on node %s, which has %s",
                    topolvm_size(more, need), node, known ? topolvm_size(room, has) : "nothing");
        return 0;
    }
    _cleanup_free_ char *before = NULL;
    if (wipe_code(g, e) < 0)
        return -1;
    before = mem_strdup(kube_version(g->lv));
    if (set_size(g, g->wanted_text, true, e) < 0)
        return -1;
    topolvm_ledger_wrote(l, g->lv, before);
    return 1;
}

int growth_withdraw(struct growth *g, enum err_code code, struct err *e)
{
    const char *said = g->v.status.message;
    _cleanup_free_ char *why =
        mem_printf("node %s: %s", g->v.spec.node_name, *said ? said : "it gave no reason");
    if (code == ERR_OUT_OF_RANGE)
        topolvm_ledger_refused(g->t->ledger, &g->v);
    if (g->v.status.current_size &&
        set_size(g, json_at(g->lv, "status", "currentSize"), false, e) < 0)
        return -1;
    return growth_failed(g, GROWTH_INFEASIBLE, code, why, e);
}
