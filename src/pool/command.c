/*
 * `orlop pool serve`: the command line, and the process from its start to its end.
 */
#include "pool/command.h"

#include <stdlib.h>

#include "base/crc.h"
#include "base/net.h"
#include "base/stop.h"
#include "base/str.h"
#include "pool/impl.h"

enum { METRICS_PORT = 9500, HOST_ID_ODD = 0x6f726c70 };

/* The same for the same node, on whichever machine it is asked; never 0. */
uint32_t pool_host_id(const char *node)
{
    uint32_t id = crc_32c(node, strlen(node));
    return id ? id : HOST_ID_ODD;
}

/* The host id is the node's: where it is not said it is the object's, which may not be there yet. */
static int find_node(struct kube_config *config, const struct pool_options *o, char **ret_node,
                     struct err *e)
{
    if (o->node) {
        *ret_node = mem_strdup(o->node);
        return 0;
    }
    const struct kube_client_options co = {.config = config, .field_manager = "orlop-pool"};
    _cleanup_(kube_client_freep) struct kube_client *client = kube_client_new(&co, e);
    static const char *const versions[] = {"openebs.io/v1alpha1", "cstor.openebs.io/v1"};
    for (size_t i = 0; client && i < ARRAY_SIZE(versions); i++) {
        struct kube_resource kind = kube_resource(versions[i], "CStorPoolInstance");
        struct err why = {0};
        json_auto_t *object = kube_get(client, &kind, o->ns, o->name, &why);
        if (!object && why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
        const char *host = pool_instance_of(object, NULL).spec.host_name;
        if (*host) {
            *ret_node = mem_strdup(host);
            return 0;
        }
    }
    return client ? err_set(e, ERR_NOT_FOUND, "NotFound",
                            "there is no CStorPoolInstance %s in %s that says its hostName: give "
                            "--node",
                            o->name, o->ns)
                  : -1;
}

static int run(const struct pool_options *o, const struct kube_config *config, const char *address,
               int port, int stop_fd, struct err *e)
{
    const struct kube_manager_options mo = {
        .config = config,
        .name = "orlop-pool",
        .host = o->node,
        .health_address = address,
        .health_port = port,
    };
    _cleanup_(kube_manager_freep) struct kube_manager *m = kube_manager_new(&mo, e);
    if (!m || pool_reconcile_setup(m, o, e) < 0)
        return -1;
    return kube_manager_run(m, stop_fd, e);
}

static int start_engine(struct pool_options *o, struct kube_config *config, char **node,
                        struct err *e)
{
    if (find_node(config, o, node, e) < 0 || !*node)
        return -1;
    o->node = *node;
    const struct zpool_options zo = {
        .cache_bytes = o->cache_bytes,
        .dirty_bytes = o->dirty_bytes,
        .host_id = pool_host_id(o->node),
        .files = o->sparse,
        .direct = o->direct,
        .sign_ms = (unsigned)(o->sign_ns / (CLOCK_SECOND / 1000)),
    };
    return zpool_start(&zo, e);
}

static int serve(struct pool_settings *s, struct err *e)
{
    struct pool_options *o = &s->o;
    struct kube_config config = {0};
    _cleanup_free_ char *address = NULL, *node = NULL;
    uint16_t port = METRICS_PORT;
    int stop_fd, status = -1;
    if (s->metrics && net_parse(s->metrics, METRICS_PORT, &address, &port, e) < 0)
        return -1;
    if (stop_catch(&stop_fd, e) == 0 &&
        kube_config_load(s->kubeconfig, s->context, &config, e) == 0 &&
        start_engine(o, &config, &node, e) == 0)
        status = run(o, &config, address, s->metrics ? port : -1, stop_fd, e);
    kube_config_done(&config);
    return status;
}

int pool_serve_command(const struct cli_args *args)
{
    struct pool_settings *s = args->settings;
    struct err e = {0};
    if (!s->o.sparse)
        s->o.sparse = getenv("ORLOP_SPARSE_DIR"); /* as a node tells the Pods of our images */
    cli_log_start(&s->log);
    return serve(s, &e) < 0 && e.code != ERR_CANCELLED ? cli_fail(args, "%s", e.msg) : CLI_DONE;
}
