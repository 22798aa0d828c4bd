#include "ctl/volume.h"

#include "base/quantity.h"
#include "kinds/jiva.h"

int ctl_volume_open(const struct cli_args *args, struct ctl_volume *ret)
{
    struct err e = {0};
    const char *ns = ctl_settings(args)->ns;
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

unsigned ctl_volume_healthy(const struct jiva_volume *volume, size_t *ret_all)
{
    size_t wanted = jiva_volume_factor(volume), there = volume->status.replicas.len;
    unsigned healthy = 0;
    for (size_t i = 0; i < there; i++)
        healthy += str_eq(volume->status.replicas.p[i].mode, "RW");
    *ret_all = there > wanted ? there : wanted;
    return healthy;
}

bool ctl_volume_is_trouble(const json_t *condition)
{
    const char *status = json_str(condition, "status"), *type = json_str(condition, "type");
    return !status || !str_eq(status, type && str_eq(type, "Deleting") ? "False" : "True");
}

const json_t *ctl_volume_trouble(const json_t *volume)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)json_at(volume, "status", "conditions"), i, it) {
        if (ctl_volume_is_trouble(it))
            return it;
    }
    return NULL;
}

int ctl_volume_size(const struct cli_args *args, const char *text)
{
    struct err e = {0};
    uint64_t bytes;
    if (quantity_parse_bytes(text, &bytes, &e) < 0)
        return cli_misuse(args, "%s", e.msg);
    if (strspn(text, "0123456789") == strlen(text))
        return cli_misuse(args, "'%s' has no unit: write %sGi for that many GiB", text, text);
    return CLI_DONE;
}
