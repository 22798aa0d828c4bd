/*
 * volume snapshot: an order in the volume's object, which orlop-sidecar beside the target carries out.
 *
 * One order at a time: it is written over one that was answered, with the object's version as the
 * precondition.
 */
#include "ctl/volume.h"

struct ordering {
    struct ctl_volume *v;
    const char *volume, *command, *name;
    json_int_t generation; /* of our order; 0: it is not given yet */
};

/* Whether the order before was answered. */
static bool is_free(const struct jiva_volume *volume)
{
    return volume->spec.snapshot.generation <= volume->status.snapshot.generation &&
           !str_eq(volume->status.snapshot.phase, "Running");
}

static int give(struct ordering *o, const struct jiva_volume *volume, struct err *e)
{
    json_int_t generation = volume->status.snapshot.generation + 1;
    json_auto_t *patch = json_pack(
        "{s:{s:s},s:{s:{s:I,s:s,s:s}}}", "metadata", "resourceVersion", kube_version(volume->json),
        "spec", "snapshotOrder", "generation", generation, "command", o->command, "name", o->name);
    struct err why = {0};
    json_auto_t *now = kube_patch(o->v->client, &o->v->volumes, o->v->ns, o->volume,
                                  KUBE_MERGE_PATCH, patch, NULL, &why);
    if (now)
        o->generation = generation;
    if (now || why.code == ERR_ABORTED)
        return 0; /* or it is tried again, with what there is then */
    *e = why;
    return -1;
}

static int is_done(void *context, struct str *ret_progress, struct err *e)
{
    struct ordering *o = context;
    json_auto_t *volume = kube_get(o->v->client, &o->v->volumes, o->v->ns, o->volume, e);
    if (!volume)
        return -1;
    const struct jiva_volume v = jiva_volume_of(volume, NULL);
    str_appendf(ret_progress, "%s is %s", o->volume, v.status.phase);
    if (!o->generation)
        return is_free(&v) ? give(o, &v, e) : 0;
    json_int_t answered = v.status.snapshot.generation;
    if (answered < o->generation)
        return 0;
    if (answered > o->generation)
        return err_set(e, ERR_ABORTED, "Overtaken",
                       "it was answered, and another order came after it before the answer was "
                       "read; look with: orlop volume snapshot list %s",
                       o->volume);
    if (str_eq(v.status.snapshot.phase, "Running"))
        return 0;
    if (str_eq(v.status.snapshot.phase, "Failed"))
        return err_set(e, ERR_FAILED_PRECONDITION, "Failed", "%s", v.status.snapshot.message);
    return 1;
}

static int list(struct ctl_volume *v, const char *name, struct err *e)
{
    static const char *const titles[] = {"NAME", "CREATED", NULL};
    const char *output = ctl_settings(v->args)->output;
    json_auto_t *volume = kube_get(v->client, &v->volumes, v->ns, name, e);
    const json_t *all = json_at(volume, "status", "snapshots"); /* as it is, for -o */
    _cleanup_(arena_done) struct arena arena = {0};
    const struct jiva_volume jv = jiva_volume_of(volume, &arena);
    if (!volume)
        return -1;
    if (output && !str_eq(output, "table")) {
        json_auto_t *none = json_array();
        ctl_print(all ? all : none, output);
        return 0;
    }
    if (!jv.status.snapshots.len) {
        fprintf(stderr, "No snapshots of %s\n", name);
        return 0;
    }
    struct ctl_table t;
    ctl_table_init(&t, titles);
    for (size_t i = 0; i < jv.status.snapshots.len; i++)
        ctl_table_add(&t, (const char *const[]){jv.status.snapshots.p[i].name,
                                                jv.status.snapshots.p[i].created});
    ctl_table_print(&t, stdout);
    ctl_table_done(&t);
    return 0;
}

static int run_snapshot(const struct cli_args *args)
{
    const char *verb = args->words[0];
    bool lists = str_eq(verb, "list");
    if (lists != (args->count == 2))
        return cli_misuse(args, lists ? "list takes a volume, and nothing else"
                                      : "say which volume, and which snapshot of it");
    _cleanup_(ctl_volume_close) struct ctl_volume v = {0};
    struct err e = {0};
    int status = ctl_volume_open(args, &v);
    if (status != CLI_DONE)
        return status;
    if (lists)
        return list(&v, args->words[1], &e) < 0 ? cli_fail(args, "%s", e.msg) : cli_finish(args);
    struct ordering o = {
        .v = &v, .volume = args->words[1], .command = verb, .name = args->words[2]};
    if (ctl_wait(args, "volume show", is_done, &o, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    if (str_eq(verb, "revert"))
        printf("%s reverted to snapshot %s\n", o.volume, o.name);
    else
        printf("snapshot %s of %s %sd\n", o.name, o.volume, verb);
    return cli_finish(args);
}

static const struct cli_option options[] = {
    CTL_TIMEOUT_OPTION,
    {"output", 'o', "FORMAT", CLI_ENUM, CTL_AT(output), .def = "table",
     .choices = CLI_WORDS("table", "json", "yaml"), .doc = "Output format of list."},
    CTL_VOLUME_OPTIONS,
    {0},
};

CLI_COMMAND(volume_snapshot) = {
    .name = "volume snapshot",
    .topic = CLI_STORAGE,
    .arguments = "list|create|delete|revert VOLUME [SNAPSHOT]",
    .least = 2,
    .most = 3,
    .summary = "Create, list, revert to and delete snapshots of a volume",
    .doc =
        "`create` keeps the volume as it is now, on every replica; it copies nothing, and writes "
        "go "
        "on. `list` shows the snapshots, the oldest first. `revert` restores the volume as it was "
        "then: nobody may be logged in, later snapshots have to be deleted first, and what was "
        "written since is lost. `delete` removes a snapshot and merges what only it has into the "
        "next.\n\n"
        "The command waits until it is done; when it fails it shows the reason, and the exit "
        "status is 1.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .choices = CLI_WORDS("list", "create", "delete", "revert"),
    .examples =
        (const char *const[][2]){
            {"orlop volume snapshot create data before-upgrade", "Before something risky."},
            {"orlop volume snapshot revert data before-upgrade", "If it went wrong."},
            {NULL},
        },
    .run = run_snapshot,
};
