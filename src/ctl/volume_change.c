/*
 * volume create and delete: one write each, and with --wait until the volume is ready or gone.
 */
#include "ctl/volume.h"
#include "kinds/jiva.h"

/* What is waited for. */
struct waiting {
    struct ctl_volume *v;
    const char *name;
    bool gone; /* else: ready */
};

static int is_done(void *context, struct str *ret_progress, struct err *e)
{
    struct waiting *w = context;
    struct err why = {0};
    json_auto_t *volume = kube_get(w->v->client, &w->v->volumes, w->v->ns, w->name, &why);
    if (!volume && why.code == ERR_NOT_FOUND && w->gone)
        return 1;
    if (!volume) {
        *e = why;
        return -1;
    }
    const char *phase = jiva_volume_of(volume, NULL).status.phase;
    const char *message = json_str(ctl_volume_trouble(volume), "message");
    str_appendf(ret_progress, "%s is %s%s%s", w->name, *phase ? phase : "new", message ? ": " : "",
                message ? message : "");
    return !w->gone && str_eq(phase, "Ready");
}

static int wait_until(struct ctl_volume *v, const char *name, bool gone, struct err *e)
{
    struct waiting w = {v, name, gone};
    return ctl_wait(v->args, "volume show", is_done, &w, e);
}

static json_t *make(struct ctl_volume *v)
{
    const struct cli_args *args = v->args;
    const char *reclaim = ctl_settings(args)->reclaim;
    unsigned replicas = ctl_settings(args)->replicas;
    json_t *volume =
        json_pack("{s:s,s:s,s:{s:s,s:s,s:{s:s}},s:{s:s}}", "apiVersion", v->volumes.api_version,
                  "kind", v->volumes.kind, "metadata", "name", args->words[0], "namespace", v->ns,
                  "annotations", API_JIVA_RESIZE_ENABLED,
                  ctl_settings(args)->fixed ? "false" : "true", "spec", "capacity", args->words[1]);
    if (replicas)
        json_object_set_new(json_object_get(volume, "spec"), "desiredReplicationFactor",
                            json_integer(replicas));
    if (reclaim)
        json_object_set_new(json_object_get(json_object_get(volume, "metadata"), "annotations"),
                            API_JIVA_RECLAIM, json_string(reclaim));
    return volume;
}

static int create(struct ctl_volume *v, struct err *e)
{
    const char *output = ctl_settings(v->args)->output;
    json_auto_t *wanted = make(v), *made = kube_create(v->client, &v->volumes, wanted, NULL, e);
    if (!made)
        return -1;
    if (!output || str_eq(output, "name"))
        printf("jivavolume.openebs.io/%s%s\n", kube_name(made), output ? "" : " created");
    fflush(stdout);
    if (ctl_settings(v->args)->wait && wait_until(v, kube_name(made), false, e) < 0)
        return err_prefix(e, "%s", kube_name(made));
    if (output && !str_eq(output, "name")) {
        json_auto_t *now = kube_get(v->client, &v->volumes, v->ns, kube_name(made), e);
        if (!now)
            return -1;
        ctl_print(now, output);
    }
    return 0;
}

static int run_create(const struct cli_args *args)
{
    struct err e = {0};
    int status = ctl_volume_size(args, args->words[1]);
    if (status != CLI_DONE)
        return status;
    _cleanup_(ctl_volume_close) struct ctl_volume v = {0};
    status = ctl_volume_open(args, &v);
    if (status != CLI_DONE)
        return status;
    return create(&v, &e) < 0 ? cli_fail(args, "%s", e.msg) : cli_finish(args);
}

static const struct cli_option create_options[] = {
    {"replicas", 'r', "N", CLI_INT, CTL_AT(replicas), .least = 1, .most = 100,
     .doc = "How many replicas it has; without it 3."},
    {"reclaim", 0, "POLICY", CLI_ENUM, CTL_AT(reclaim), .choices = CLI_WORDS("Delete", "Retain"),
     .doc = "What happens to the data when the volume is deleted; without it Retain."},
    {"fixed", 0, NULL, CLI_SWITCH, CTL_AT(fixed),
     .doc = "Refuse to resize it, until its annotation is changed."},
    CTL_WAIT_OPTIONS,
    CTL_MADE_OPTION,
    CTL_VOLUME_OPTIONS,
    {0},
};

CLI_COMMAND(volume_create) = {
    .name = "volume create",
    .topic = CLI_STORAGE,
    .arguments = "NAME SIZE",
    .least = 2,
    .most = 2,
    .summary = "Create a replicated volume",
    .doc =
        "Creates a JivaVolume: a target and its replicas, each on a node of its own, reached over "
        "iSCSI at the address that `orlop volume show` has.",
    .settings = sizeof(struct ctl_settings),
    .options = create_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume create data 10Gi --wait", "Create one with three replicas."},
            {"orlop volume create scratch 1Gi --replicas 1 --reclaim Delete",
             "Create one whose data is deleted with it."},
            {NULL},
        },
    .run = run_create,
};

static int delete_one(struct ctl_volume *v, const char *name, struct err *e)
{
    json_auto_t *volume = kube_get(v->client, &v->volumes, v->ns, name, e);
    if (!volume)
        return -1;
    if (ctl_settings(v->args)->erase) {
        json_auto_t *patch =
            json_pack("{s:{s:{s:s}}}", "metadata", "annotations", API_JIVA_RECLAIM, "Delete");
        json_auto_t *said =
            kube_patch(v->client, &v->volumes, v->ns, name, KUBE_MERGE_PATCH, patch, NULL, e);
        if (!said)
            return -1;
    }
    const struct kube_delete o = {.uid = kube_uid(volume), .grace_seconds = -1};
    if (kube_delete(v->client, &v->volumes, v->ns, name, &o, e) < 0)
        return -1;
    printf("jivavolume.openebs.io \"%s\" deleted\n", name);
    fflush(stdout);
    return ctl_settings(v->args)->wait ? wait_until(v, name, true, e) : 0;
}

static int run_delete(const struct cli_args *args)
{
    _cleanup_(ctl_volume_close) struct ctl_volume v = {0};
    int status = ctl_volume_open(args, &v);
    for (int i = 0; status != CLI_USAGE && v.client && i < args->count; i++) {
        struct err why = {0};
        if (delete_one(&v, args->words[i], &why) < 0)
            status = cli_fail(args, "%s: %s", args->words[i], why.msg);
    }
    return status == CLI_DONE ? cli_finish(args) : status;
}

static const struct cli_option delete_options[] = {
    {"erase", 0, NULL, CLI_SWITCH, CTL_AT(erase),
     .doc = "Delete their data, too, whatever their policy is."},
    CTL_WAIT_OPTIONS,
    CTL_VOLUME_OPTIONS,
    {0},
};

CLI_COMMAND(volume_delete) = {
    .name = "volume delete",
    .topic = CLI_STORAGE,
    .arguments = "NAME...",
    .least = 1,
    .most = -1,
    .summary = "Delete replicated volumes",
    .doc =
        "Deletes JivaVolumes: their targets end, then their replicas. Data stays in the folders of "
        "the nodes unless the volume was created with --reclaim Delete, its PersistentVolume "
        "says Delete, or --erase is given.",
    .settings = sizeof(struct ctl_settings),
    .options = delete_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume delete scratch --erase", "Delete it with its data."},
            {NULL},
        },
    .run = run_delete,
};
