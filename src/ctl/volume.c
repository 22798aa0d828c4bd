#include "ctl/volume.h"

int ctl_volume_open(const struct cli_args *args, struct ctl_volume *ret)
{
    struct err e = {0};
    const char *ns = cli_get(args, "namespace");
    if (ctl_check_timeout(args) != CLI_DONE)
        return CLI_USAGE;
    *ret = (struct ctl_volume){
        .args = args,
        .volumes = kube_resource("openebs.io/v1alpha1", "JivaVolume"),
        .resizes = kube_resource("openebs.io/v1alpha1", "JivaVolumeResize"),
        .pods = kube_resource("v1", "Pod"),
    };
    ret->client = ctl_connect(args, &e);
    if (!ret->client)
        return cli_fail(args, "%s", e.msg);
    ret->ns = ns ? ns : kube_client_namespace(ret->client);
    return CLI_DONE;
}

void ctl_volume_close(struct ctl_volume *v)
{
    if (v->client)
        kube_client_free(v->client);
}

unsigned ctl_volume_healthy(const json_t *volume, size_t *ret_all)
{
    const json_t *replicas = json_at(volume, "status", "replicaStatus");
    unsigned healthy = 0;
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)replicas, i, it) {
        const char *mode = json_str(it, "mode");
        healthy += mode && str_eq(mode, "RW");
    }
    *ret_all = json_array_size(replicas);
    return healthy;
}

const json_t *ctl_volume_trouble(const json_t *volume)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)json_at(volume, "status", "conditions"), i, it) {
        const char *status = json_str(it, "status"), *type = json_str(it, "type");
        bool good = status && str_eq(status, type && str_eq(type, "Deleting") ? "False" : "True");
        if (!good)
            return it;
    }
    return NULL;
}
