/*
 * orlop-csi: the driver's sockets, until it is told to stop.
 */
#include "cmd/csi.h"

#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "csi/csi.h"

enum { DRIVERS_MAX = 8, LOOK_MS = 2000 };

struct serving {
    struct csi shared;
    struct csi_driver drivers[DRIVERS_MAX];
    size_t n;
    struct grpc_server *server;
};

static int add_driver(struct serving *s, const char *dir, const char *name, struct err *e)
{
    const struct csi_engine *engine = csi_engine_find(name);
    if (!engine)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "there is no driver %s here", name);
    if (s->n == DRIVERS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "more than %d drivers", DRIVERS_MAX);
    struct csi_driver *d = &s->drivers[s->n++];
    *d = (struct csi_driver){.csi = &s->shared, .name = name, .engine = engine};
    _cleanup_free_ char *folder = mem_printf("%s/%s", dir, name);
    _cleanup_free_ char *path = mem_printf("%s/csi.sock", folder);
    if (file_make_dirs(folder, 0700, e) < 0 ||
        grpc_server_listen(s->server, path, 0600, csi_methods, d, e) < 0)
        return -1;
    log_info("serves CSI", LOG_S("driver", name), LOG_S("socket", path));
    return 0;
}

static int add_drivers(struct serving *s, const struct csi_settings *o, struct err *e)
{
    if (!o->drivers.len)
        return add_driver(s, o->sockets, csi_jiva.names[0], e);
    for (size_t i = 0; i < o->drivers.len; i++) {
        if (add_driver(s, o->sockets, o->drivers.p[i], e) < 0)
            return -1;
    }
    return 0;
}

/* Until the stop: whether the API answers is what Probe says. */
static void look(struct serving *s, int stop_fd)
{
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
    do {
        struct err e = {0};
        _cleanup_(str_done) struct str body = {0};
        bool ready = kube_raw(s->shared.client, "GET", "/readyz", NULL, &body, &e) == 0;
        if (ready != atomic_exchange(&s->shared.ready, ready) && !ready)
            log_warn("the API does not answer", LOG_ERR(&e));
    } while (poll(&stop, 1, LOOK_MS) == 0);
}

static int serve(const struct csi_settings *o, const struct kube_config *config, int stop_fd,
                 struct err *e)
{
    static struct serving s;
    const struct kube_client_options co = {.config = config, .field_manager = "orlop-csi"};
    _cleanup_(kube_client_freep) struct kube_client *client = kube_client_new(&co, e);
    if (!client)
        return -1;
    s.shared.client = client;
    s.shared.clock = clock_system();
    s.shared.ns = o->ns;
    s.shared.controller = true;
    csi_init(&s.shared);
    s.server = grpc_server_new(&(struct grpc_server_options){0}, e);
    int status = s.server ? 0 : -1;
    if (status == 0)
        status = add_drivers(&s, o, e);
    if (status == 0)
        status = grpc_server_start(s.server, e);
    if (status == 0)
        look(&s, stop_fd);
    if (s.server)
        grpc_server_free(s.server);
    csi_done(&s.shared);
    return status;
}

static int run(const struct cli_args *args)
{
    const struct csi_settings *s = args->settings;
    struct kube_config config = {0};
    struct err e = {0};
    int stop_fd, status = CLI_DONE;
    cli_log_start(&s->log);
    if (stop_catch(&stop_fd, &e) < 0 ||
        kube_config_load(s->kubeconfig, s->context, &config, &e) < 0 ||
        serve(s, &config, stop_fd, &e) < 0)
        status = cli_fail(args, "%s", e.msg);
    kube_config_done(&config);
    return status;
}

int main(int argc, char **argv)
{
    mallopt(M_ARENA_MAX, 2); /* many threads, of which few work at a time */
    return cli_program_main(argc, argv, (const struct cli_handler[]){{&csi_command, run}, {NULL}});
}
