/*
 * orlop-sidecar: looks after one volume's target until it is told to stop.
 */
#include "cmd/sidecar.h"

#include <malloc.h>

#include "base/stop.h"
#include "sidecar/sidecar.h"

static int run(const struct cli_args *args)
{
    const struct sidecar_settings *s = args->settings;
    struct err e = {0};
    struct kube_config config = {0};
    const struct sidecar_options o = {
        .kind = sidecar_kind_find(s->kind),
        .config = &config,
        .ns = s->ns,
        .name = s->name,
        .control = s->control,
    };
    int stop_fd, status = CLI_DONE;
    cli_log_start(&s->log);
    if (stop_catch(&stop_fd, &e) < 0 || kube_config_load(s->kubeconfig, NULL, &config, &e) < 0 ||
        sidecar_run(&o, stop_fd, &e) < 0)
        status = cli_fail(args, "%s", e.msg);
    kube_config_done(&config);
    return status;
}

int main(int argc, char **argv)
{
    mallopt(M_ARENA_MAX, 1); /* many threads, of which few work at a time */
    return cli_program_main(argc, argv,
                            (const struct cli_handler[]){{&sidecar_command, run}, {NULL}});
}
