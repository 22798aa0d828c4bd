/*
 * orlop-volume: looks after one volume's target until it is told to stop.
 */
#include "cmd/volume.h"

#include <malloc.h>

#include "base/stop.h"
#include "volume/volume.h"

static int run(const struct cli_args *args)
{
    const struct volume_settings *s = args->settings;
    struct err e = {0};
    struct kube_config config = {0};
    const struct volume_options o = {
        .kind = volume_kind_find(s->kind),
        .config = &config,
        .ns = s->ns,
        .name = s->name,
        .control = s->control,
    };
    int stop_fd, status = CLI_DONE;
    cli_log_start(&s->log);
    if (stop_catch(&stop_fd, &e) < 0 || kube_config_load(s->kubeconfig, NULL, &config, &e) < 0 ||
        volume_run(&o, stop_fd, &e) < 0)
        status = cli_fail(args, "%s", e.msg);
    kube_config_done(&config);
    return status;
}

int main(int argc, char **argv)
{
    mallopt(M_ARENA_MAX, 1); /* many threads, of which few work at a time */
    return cli_program_main(argc, argv,
                            (const struct cli_handler[]){{&volume_command, run}, {NULL}});
}
