/*
 * `orlop pool serve`: the command line, and the process from its start to its end.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/log.h"
#include "base/net.h"
#include "base/quantity.h"
#include "base/stop.h"
#include "base/str.h"
#include "pool/impl.h"

enum { METRICS_PORT = 9500, HOST_ID_ODD = 0x6f726c70 };
#define DAY_NS (CLOCK_SECOND * 24 * 3600)

/* The same for the same node, on whichever machine it is asked; never 0. */
uint32_t pool_host_id(const char *node)
{
    uint32_t id = crc_32c(node, strlen(node));
    return id ? id : HOST_ID_ODD;
}

static int take_duration(const struct cli_args *args, const char *name, int64_t *ret_ns,
                         struct err *e)
{
    const char *text = cli_get(args, name);
    char *end;
    if (!text)
        return 0;
    unsigned long long n = strtoull(text, &end, 10);
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {{"ms", CLOCK_SECOND / 1000},
                 {"s", CLOCK_SECOND},
                 {"m", 60 * CLOCK_SECOND},
                 {"h", 3600 * CLOCK_SECOND},
                 {"d", DAY_NS}};
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (*text >= '0' && *text <= '9' && str_eq(end, units[i].unit) &&
            n <= (unsigned long long)(INT64_MAX / 2 / units[i].ns)) {
            *ret_ns = (int64_t)n * units[i].ns;
            return 0;
        }
    }
    if (str_eq(text, "0")) {
        *ret_ns = 0;
        return 0;
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                   "--%s takes a time such as 500ms, 10s or 30d, not '%s'", name, text);
}

static int take_options(const struct cli_args *args, struct pool_options *o, struct err *e)
{
    const char *cache = cli_get(args, "cache"), *dirty = cli_get(args, "dirty");
    *o = (struct pool_options){
        .ns = cli_get(args, "namespace"),
        .name = cli_get(args, "name"),
        .node = cli_get(args, "node"),
        .sparse = cli_get(args, "sparse-dir"),
        .direct = cli_get(args, "direct") != NULL,
        .scrub_ns = 30 * DAY_NS,
    };
    if (!o->name)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "serve needs --name");
    if (!o->ns)
        o->ns = "openebs";
    if (!o->sparse)
        o->sparse = getenv("ORLOP_SPARSE_DIR"); /* as a node tells the Pods of our images */
    if ((cache && quantity_parse_bytes(cache, &o->cache_bytes, e) < 0) ||
        (dirty && quantity_parse_bytes(dirty, &o->dirty_bytes, e) < 0) ||
        take_duration(args, "scrub-every", &o->scrub_ns, e) < 0 ||
        take_duration(args, "look-every", &o->tick_ns, e) < 0 ||
        take_duration(args, "write-every", &o->write_ns, e) < 0 ||
        take_duration(args, "sign-every", &o->sign_ns, e) < 0)
        return -1;
    return 0;
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

static int serve(struct pool_options *o, const struct cli_args *args, struct err *e)
{
    struct kube_config config = {0};
    const char *metrics = cli_get(args, "metrics");
    _cleanup_free_ char *address = NULL, *node = NULL;
    uint16_t port = METRICS_PORT;
    int stop_fd, status = -1;
    if (metrics && net_parse(metrics, METRICS_PORT, &address, &port, e) < 0)
        return -1;
    if (stop_catch(&stop_fd, e) == 0 &&
        kube_config_load(cli_get(args, "kubeconfig"), cli_get(args, "context"), &config, e) == 0 &&
        start_engine(o, &config, &node, e) == 0)
        status = run(o, &config, address, metrics ? port : -1, stop_fd, e);
    kube_config_done(&config);
    return status;
}

int pool_serve_command(const struct cli_args *args)
{
    struct pool_options o;
    struct err e = {0};
    enum log_format format = LOG_FORMAT_TEXT;
    enum log_level level = LOG_LEVEL_INFO;
    const char *format_text = cli_get(args, "log-format"), *level_text = cli_get(args, "log-level");
    if ((format_text && log_format_parse(format_text, &format, &e) < 0) ||
        (level_text && log_level_parse(level_text, &level, &e) < 0) ||
        take_options(args, &o, &e) < 0)
        return cli_misuse(args, "%s", e.msg);
    log_init(STDERR_FILENO, format, level);
    return serve(&o, args, &e) < 0 && e.code != ERR_CANCELLED ? cli_fail(args, "%s", e.msg)
                                                              : CLI_DONE;
}
