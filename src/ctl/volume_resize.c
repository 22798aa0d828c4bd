/*
 * volume resize: the workflow around a JivaVolumeResize.
 *
 *     may it? ─> create ─> follow: phase, replicas ─┬─ COMPLETED ─> delete, 0
 *                                                   ├─ FAILED ────> delete, 1 with the reason
 *                                                   ├─ time is up ─> it goes on, 1
 *                                                   └─ interrupt ──> delete, which withdraws it, 1
 */
#include <poll.h>

#include "base/stop.h"
#include "ctl/volume.h"

struct following {
    struct ctl_volume *v;
    const char *name;
    int stop_fd;
    struct str last; /* what was said of it */
};

static int check(struct ctl_volume *v, const json_t *volume, struct err *e)
{
    const char *enabled = kube_annotation(volume, API_JIVA_RESIZE_ENABLED);
    if (enabled && str_eq(enabled, "true"))
        return 0;
    return err_set(e, ERR_FAILED_PRECONDITION, "NotEnabled",
                   "resizing is not enabled for %s; enable it with: kubectl annotate jivavolume %s "
                   "-n %s " API_JIVA_RESIZE_ENABLED "=true",
                   kube_name(volume), kube_name(volume), v->ns);
}

static json_t *create(struct ctl_volume *v, struct err *e)
{
    const char *name = v->args->words[0];
    json_auto_t *wanted = json_pack(
        "{s:s,s:s,s:{s:o,s:s,s:{s:s}},s:{s:s}}", "apiVersion", v->resizes.api_version, "kind",
        v->resizes.kind, "metadata", "generateName", json_sprintf("%s-", name), "namespace", v->ns,
        "labels", API_JIVA_NAME, name, "spec", "capacity", v->args->words[1]);
    return kube_create(v->client, &v->resizes, wanted, NULL, e);
}

/* A line for each change of what it is at; on a terminal one line that changes. */
static void report(const struct jiva_resize *resize, struct str *last)
{
    _cleanup_(str_done) struct str line = {0};
    const char *phase = resize->status.phase, *message = resize->status.message;
    str_appendf(&line, "%s: %s", *phase ? phase : "INIT", *message ? message : "It was asked for");
    for (size_t i = 0; i < resize->status.replicas.len; i++) {
        const struct jiva_progress *r = &resize->status.replicas.p[i];
        str_appendf(&line, "%s%s %s%s%s", i ? ", " : "; ", r->address, r->state,
                    *r->capacity.text ? " " : "", r->capacity.text);
    }
    if (str_eq(str_get(&line), str_get(last)))
        return;
    fprintf(stderr, "%s\n", str_get(&line));
    str_clear(last);
    str_append(last, str_get(&line));
}

/* An interrupt, too, is an end. */
static bool is_interrupted(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static int is_done(void *context, struct str *ret_progress, struct err *e)
{
    struct following *f = context;
    json_auto_t *resize = kube_get(f->v->client, &f->v->resizes, f->v->ns, f->name, e);
    _cleanup_(arena_done) struct arena arena = {0};
    const struct jiva_resize r = jiva_resize_of(resize, &arena);
    if (!resize)
        return -1;
    report(&r, &f->last);
    str_appendf(ret_progress, "%s: %s", f->name, r.status.message);
    if (str_eq(r.status.phase, "FAILED"))
        return err_set(e, ERR_FAILED_PRECONDITION, "Failed", "%s", r.status.message);
    if (is_interrupted(f->stop_fd))
        return err_set(e, ERR_CANCELLED, "Interrupted",
                       "interrupted: it is withdrawn, unless the target has begun");
    return str_eq(r.status.phase, "COMPLETED");
}

static int resize(struct ctl_volume *v, int stop_fd, struct err *e)
{
    json_auto_t *volume = kube_get(v->client, &v->volumes, v->ns, v->args->words[0], e);
    if (!volume || check(v, volume, e) < 0)
        return -1;
    json_auto_t *made = create(v, e);
    if (!made)
        return -1;
    struct following f = {.v = v, .name = kube_name(made), .stop_fd = stop_fd};
    int done = ctl_wait(v->args, "volume show", is_done, &f, e);
    str_done(&f.last);
    bool goes_on = done < 0 && e->code == ERR_DEADLINE_EXCEEDED;
    struct err why = {0};
    if (!goes_on && !(done == 0 && ctl_settings(v->args)->keep) &&
        kube_delete(v->client, &v->resizes, v->ns, kube_name(made), NULL, &why) < 0)
        fprintf(stderr, "JivaVolumeResize %s stays: %s\n", kube_name(made), why.msg);
    if (done < 0)
        return -1;
    printf("jivavolume.openebs.io/%s resized\n", v->args->words[0]);
    return 0;
}

static int run_resize(const struct cli_args *args)
{
    struct err e = {0};
    int stop_fd, status = ctl_volume_size(args, args->words[1]);
    if (status != CLI_DONE)
        return status;
    _cleanup_(ctl_volume_close) struct ctl_volume v = {0};
    status = ctl_volume_open(args, &v);
    if (status != CLI_DONE)
        return status;
    if (stop_catch(&stop_fd, &e) < 0 || resize(&v, stop_fd, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    return cli_finish(args);
}

static const struct cli_option options[] = {
    {"keep", 0, NULL, CLI_SWITCH, CTL_AT(keep),
     .doc = "Keep the JivaVolumeResize when it is completed."},
    CTL_TIMEOUT_OPTION,
    CTL_VOLUME_OPTIONS,
    {0},
};

CLI_COMMAND(volume_resize) = {
    .name = "volume resize",
    .topic = CLI_STORAGE,
    .arguments = "NAME SIZE",
    .least = 2,
    .most = 2,
    .summary = "Grow a replicated volume while it is in use",
    .doc =
        "Checks that resizing is enabled for the volume, creates a JivaVolumeResize, shows its "
        "progress, and deletes it when it is completed. Initiators are told the new size and stay "
        "logged in.\n\n"
        "When the resize fails, the volume is unchanged, the reason is shown, and the exit status "
        "is 1. When it takes longer than the timeout it goes on: `kubectl get jvr` shows it. An "
        "interrupt deletes it, which withdraws it unless the target has begun.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop volume resize data 20Gi", "Grow it to 20 GiB."},
            {NULL},
        },
    .run = run_resize,
};
