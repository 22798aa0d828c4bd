#include <unistd.h>

#include "ctl/ctl.h"
#include "up/place.h"

/* The kubeconfig of a data folder; NULL when it has none and none was asked for. To be freed. */
static char *of_folder(const char *folder)
{
    _cleanup_(up_place_done) struct up_place place = {.lock_fd = -1};
    if (up_place_open(folder, &place, NULL) < 0)
        return NULL;
    char *path = up_place_path(&place, "kubeconfig");
    if (folder || access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

struct kube_client *ctl_connect(const struct cli_args *args, struct err *e)
{
    const char *given = ctl_settings(args)->kubeconfig, *data = ctl_settings(args)->data;
    const char *variable = getenv("KUBECONFIG");
    bool named = given || (!data && variable && *variable);
    _cleanup_free_ char *found = named ? NULL : of_folder(data);
    struct kube_config config = {0};
    if (kube_config_load(given ? given : found, ctl_settings(args)->context, &config, e) < 0)
        return NULL;
    const struct kube_client_options o = {.config = &config, .field_manager = "orlop"};
    struct kube_client *client = kube_client_new(&o, e);
    kube_config_done(&config);
    return client;
}

int ctl_run(const struct cli_args *args, ctl_run_fn *fn)
{
    struct err e = {0};
    _cleanup_(kube_client_freep) struct kube_client *client = ctl_connect(args, &e);
    if (!client || fn(args, client, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    return cli_finish(args);
}

struct kube_resource ctl_lvs(struct kube_client *c)
{
    return kube_resource(kube_serves(c, TOPOLVM_LEGACY "/v1") ? TOPOLVM_LEGACY "/v1"
                                                              : TOPOLVM_GROUP "/v1",
                         "LogicalVolume");
}

json_t *ctl_volume_of(struct kube_client *c, const json_t *lv, struct err *e)
{
    const struct kube_resource volumes = kube_resource("v1", "PersistentVolume");
    const char *name = logical_volume_of(lv).spec.name;
    struct err why = {0};
    json_t *volume = kube_get(c, &volumes, NULL, *name ? name : kube_name(lv), &why);
    if (!volume && why.code != ERR_NOT_FOUND)
        *e = why;
    if (volume && !topolvm_is_ours(json_str(json_at(volume, "spec", "csi"), "driver"))) {
        json_decref(volume);
        return NULL;
    }
    return volume;
}
