/*
 * lv create, resize and delete: one write each, and with --wait the answer of the node.
 */
#include "base/quantity.h"
#include "base/rfc3339.h"
#include "ctl/ctl.h"
#include "kube/condition.h"

/* Waiting. */

/* How far it is: 1 done, 0 not yet, -1 failed with the node's reason. lv NULL: it is gone. */
typedef int (*is_done_fn)(const json_t *lv, struct err *e);

static int node_failed(const json_t *lv, struct err *e)
{
    struct logical_volume v = logical_volume_of(lv);
    enum err_code code = (enum err_code)v.status.code;
    return code ? err_set(e, code, "Failed", "%s: %s", err_code_name(code), v.status.message) : 0;
}

static int is_large(const json_t *lv, struct err *e)
{
    struct logical_volume v = logical_volume_of(lv);
    if (!lv)
        return err_set(e, ERR_NOT_FOUND, "Gone", "it was deleted meanwhile");
    if (*v.status.volume_id && v.status.current_size >= v.spec.size)
        return 1;
    return node_failed(lv, e);
}

static int is_gone(const json_t *lv, struct err *e)
{
    (void)e;
    return !lv;
}

struct waiting {
    struct kube_client *client;
    const char *name;
    is_done_fn is_done;
};

static int look(void *context, struct str *ret_progress, struct err *e)
{
    const struct waiting *w = context;
    struct err why = {0};
    json_auto_t *lv = kube_get_any(w->client, &api_logical_volume, NULL, w->name, &why);
    if (!lv && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    str_appendf(ret_progress, "%s: waiting for node %s", w->name,
                logical_volume_of(lv).spec.node_name);
    return w->is_done(lv, e);
}

static int wait_until(const struct cli_args *args, struct kube_client *client, const char *name,
                      is_done_fn is_done, struct err *e)
{
    struct waiting w = {client, name, is_done};
    return ctl_wait(args, "lv list", look, &w, e);
}

/* Create. */

static json_t *make(const struct cli_args *args, const char *version)
{
    const char *name = args->words[0], *class = ctl_settings(args)->class;
    _cleanup_free_ char *finalizer =
        mem_printf("%.*s/logicalvolume", (int)strcspn(version, "/"), version);
    json_t *lv = json_pack("{s:s,s:s,s:{s:s,s:[s]},s:{s:s,s:s,s:s}}", "apiVersion", version, "kind",
                           "LogicalVolume", "metadata", "name", name, "finalizers", finalizer,
                           "spec", "name", name, "nodeName", ctl_settings(args)->node, "size",
                           ctl_settings(args)->size);
    if (class)
        json_object_set_new(json_object_get(lv, "spec"), "vgName", json_string(class));
    return lv;
}

static int create(const struct cli_args *args, struct kube_client *client, struct err *e)
{
    const struct kube_resource r = ctl_lvs(client), nodes = kube_resource("v1", "Node");
    const char *output = ctl_settings(args)->output;
    json_auto_t *node = kube_get(client, &nodes, NULL, ctl_settings(args)->node, e);
    json_auto_t *lv = make(args, r.api_version),
                *made = node ? kube_create(client, &r, lv, NULL, e) : NULL;
    if (!made)
        return -1;
    if (!output || str_eq(output, "name"))
        printf(CTL_LV "/%s%s\n", CTL_LV_GROUP(lv), kube_name(made), output ? "" : " created");
    fflush(stdout);
    if (ctl_settings(args)->wait && wait_until(args, client, kube_name(made), is_large, e) < 0)
        return err_prefix(e, "%s", kube_name(made));
    if (output && !str_eq(output, "name")) {
        json_auto_t *now = kube_get(client, &r, NULL, kube_name(made), e);
        if (!now)
            return -1;
        ctl_print(now, output);
    }
    return 0;
}

static int run_create(const struct cli_args *args)
{
    return ctl_run(args, create);
}

static const struct cli_option create_options[] = {
    {"node", 'n', "NODE", CLI_STRING, CTL_AT(node), .required = true,
     .doc = "The node that gets the volume."},
    {"size", 's', "SIZE", CLI_SIZE, CTL_AT(size), .required = true,
     .doc = "Size of the volume, such as 10Gi."},
    {"class", 'c', "CLASS", CLI_STRING, CTL_AT(class),
     .doc = "Device class or volume group; without it the node's default."},
    CTL_WAIT_OPTIONS,
    CTL_MADE_OPTION,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(lv_create) = {
    .name = "lv create",
    .topic = CLI_STORAGE,
    .arguments = "NAME",
    .least = 1,
    .most = 1,
    .summary = "Create a logical volume on a node",
    .doc =
        "Creates a LogicalVolume that no claim asks for. Volumes for Pods are created by claims.",
    .settings = sizeof(struct ctl_settings),
    .options = create_options,
    .examples =
        (const char *const[][2]){
            {"orlop lv create scratch --node node-1 --size 10Gi --wait", "Create one of 10 GiB."},
            {NULL},
        },
    .run = run_create,
};

/* Resize. */

/* A volume that a claim has grows with it. */
static int refuse_claimed(struct kube_client *client, const json_t *lv, const char *size,
                          struct err *e)
{
    struct err why = {0};
    json_auto_t *volume = ctl_volume_of(client, lv, &why);
    const json_t *claim = json_at(volume, "spec", "claimRef");
    const char *ns = json_str(claim, "namespace"), *name = json_str(claim, "name");
    if (why.code) {
        *e = why;
        return -1;
    }
    if (!ns || !name)
        return 0;
    return err_set(e, ERR_FAILED_PRECONDITION, "Claimed",
                   "%s is the volume of a claim and grows with it: kubectl patch pvc %s -n %s -p "
                   "'{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}'",
                   kube_name(lv), name, ns, size);
}

static int resize(const struct cli_args *args, struct kube_client *client, struct err *e)
{
    const char *name = args->words[0], *size = args->words[1];
    char now[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(clock_system())), RFC3339_MICRO, now);
    json_auto_t *lv = kube_get_any(client, &api_logical_volume, NULL, name, e);
    if (!lv || refuse_claimed(client, lv, size, e) < 0)
        return -1;
    if (logical_volume_of(lv).status.code) { /* no answer to what is asked now */
        json_auto_t *read = json_incref(lv); /* who has its kind's words */
        const struct kube_resource of = kube_resource_of(read);
        json_auto_t *status = json_deep_copy(json_object_get(lv, "status"));
        json_object_set_new(status, "code", json_integer(0));
        json_object_set_new(status, "message", json_string(""));
        if (kube_status_write(client, &of, &lv, status, e) < 0)
            return -1;
    }
    const struct kube_resource r = kube_resource_of(lv);
    json_auto_t *patch = json_pack("{s:{s:{s:s}},s:{s:s}}", "metadata", "annotations",
                                   topolvm_retry_key(lv), now, "spec", "size", size);
    json_auto_t *asked = kube_patch(client, &r, NULL, name, KUBE_MERGE_PATCH, patch, NULL, e);
    if (!asked)
        return -1;
    printf(CTL_LV "/%s resized\n", CTL_LV_GROUP(lv), name);
    fflush(stdout);
    if (ctl_settings(args)->wait && wait_until(args, client, name, is_large, e) < 0)
        return err_prefix(e, "%s", name);
    return 0;
}

static int run_resize(const struct cli_args *args)
{
    struct err e = {0};
    uint64_t bytes;
    if (quantity_parse_bytes(args->words[1], &bytes, &e) < 0)
        return cli_misuse(args, "%s", e.msg);
    return ctl_run(args, resize);
}

static const struct cli_option resize_options[] = {
    CTL_WAIT_OPTIONS,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(lv_resize) = {
    .name = "lv resize",
    .topic = CLI_STORAGE,
    .arguments = "NAME SIZE",
    .least = 2,
    .most = 2,
    .summary = "Grow a logical volume",
    .doc = "Asks for another size. Giving the same size again makes the node retry what failed; a "
           "smaller one, not below the current size, takes back a growth that failed. A volume "
           "that belongs to a claim grows with its claim.",
    .settings = sizeof(struct ctl_settings),
    .options = resize_options,
    .examples =
        (const char *const[][2]){
            {"orlop lv resize scratch 20Gi --wait", "Grow it to 20 GiB."},
            {NULL},
        },
    .run = run_resize,
};

/* Delete. */

static int delete_one(const struct cli_args *args, struct kube_client *client, const char *name,
                      struct err *e)
{
    json_auto_t *lv = kube_get_any(client, &api_logical_volume, NULL, name, e);
    struct err why = {0};
    json_auto_t *volume = lv && !ctl_settings(args)->force ? ctl_volume_of(client, lv, &why) : NULL;
    if (!lv)
        return -1;
    if (why.code) {
        *e = why;
        return -1;
    }
    if (volume)
        return err_set(
            e, ERR_FAILED_PRECONDITION, "InUse",
            "PersistentVolume %s stands for it: delete its claim instead, or say --force "
            "if its data may go",
            kube_name(volume));
    const struct kube_delete o = {.uid = kube_uid(lv), .grace_seconds = -1};
    const struct kube_resource r = kube_resource_of(lv);
    if (kube_delete(client, &r, NULL, name, &o, e) < 0)
        return -1;
    printf(CTL_LV " \"%s\" deleted\n", CTL_LV_GROUP(lv), name);
    fflush(stdout);
    return ctl_settings(args)->wait ? wait_until(args, client, name, is_gone, e) : 0;
}

static int run_delete(const struct cli_args *args)
{
    struct err e = {0};
    _cleanup_(kube_client_freep) struct kube_client *client = ctl_connect(args, &e);
    if (!client)
        return cli_fail(args, "%s", e.msg);
    int status = CLI_DONE;
    for (int i = 0; i < args->count; i++) {
        struct err why = {0};
        if (delete_one(args, client, args->words[i], &why) < 0)
            status = cli_fail(args, "%s: %s", args->words[i], why.msg);
    }
    return status == CLI_DONE ? cli_finish(args) : status;
}

static const struct cli_option delete_options[] = {
    {"force", 0, NULL, CLI_SWITCH, CTL_AT(force),
     .doc = "Delete it even if a PersistentVolume stands for it. Its data is lost."},
    CTL_WAIT_OPTIONS,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(lv_delete) = {
    .name = "lv delete",
    .topic = CLI_STORAGE,
    .arguments = "NAME...",
    .least = 1,
    .most = -1,
    .summary = "Delete logical volumes and their data",
    .doc = "Deletes LogicalVolumes; their nodes remove them. A volume that a PersistentVolume "
           "stands for is deleted with its claim, and by this command only with --force.",
    .settings = sizeof(struct ctl_settings),
    .options = delete_options,
    .examples =
        (const char *const[][2]){
            {"orlop lv delete scratch", "Delete one."},
            {NULL},
        },
    .run = run_delete,
};
