/*
 * orlop-controller: the controllers until it is told to stop.
 */
#include "cmd/controller.h"

#include <malloc.h>

#include "base/stop.h"
#include "base/str.h"
#include "controllers/controllers.h"
#include "k8s/controllers/embedded.h"

static int remove_webhook(const struct admission_options *o, struct err *e)
{
    const struct kube_client_options client = {.config = o->config,
                                               .field_manager = "orlop-webhook"};
    _cleanup_(kube_client_freep) struct kube_client *c = kube_client_new(&client, e);
    return c ? admission_remove(c, o, e) : -1;
}

static int manage(const struct controller_settings *s, const struct kube_config *config,
                  int stop_fd, struct err *e)
{
    const struct kube_manager_options o = {
        .config = config,
        .name = "orlop-controller",
        .health_address = s->health_address,
        .health_port = s->health_port,
        .elect = s->elect == ELECT_YES || (s->elect == ELECT_AUTO && !s->embedded),
        .lease_ns = s->ns,
        .lease_name = s->lease_name,
        .lease_duration_ns = s->lease_ns,
        .qps = s->qps,
        .burst = s->burst,
    };
    struct admission_options admission = s->admission;
    admission.config = config;
    admission.ns = s->ns ? s->ns : config->ns;
    if (s->webhook == WEBHOOK_REMOVE)
        return remove_webhook(&admission, e);
    _cleanup_(kube_manager_freep) struct kube_manager *m = kube_manager_new(&o, e);
    if (!m || controllers_setup(m, s->controllers, s->embedded, e) < 0 ||
        (s->webhook == WEBHOOK_YES && admission_start(m, &admission, e) < 0))
        return -1;
    return kube_manager_run(m, stop_fd, e);
}

static void list_controllers(FILE *out)
{
    fputs("\nControllers (* only with --embedded, or by name):\n", out);
    for (const struct controller *it = controllers; it->name; it++)
        fprintf(out, "  %-28s %s %s\n", it->name, it->embedded ? "*" : " ", it->doc);
}

/* What the table cannot say. */
static int check(const struct cli_args *args)
{
    const struct controller_settings *s = args->settings;
    struct err e = {0};
    if (controllers_check(s->controllers, &e) < 0)
        return cli_misuse(args, "--controllers: %s", e.msg);
    if (s->lease_ns % CLOCK_SECOND)
        return cli_misuse(args, "--lease-duration: write whole seconds, such as 15s");
    if (s->admission.url && !str_starts_with(s->admission.url, "https://"))
        return cli_misuse(args, "--webhook-url: '%s' does not begin with https://",
                          s->admission.url);
    if (*s->volume.dir != '/')
        return cli_misuse(args, "--jiva-dir: '%s' is not an absolute path", s->volume.dir);
    return CLI_DONE;
}

static int run(const struct cli_args *args)
{
    const struct controller_settings *s = args->settings;
    struct err e = {0};
    struct kube_config config = {0};
    int stop_fd, status = check(args);
    if (status != CLI_DONE)
        return status;
    embedded_node_grace(s->node_grace);
    volume_settings = s->volume;
    cli_log_start(&s->log);
    if (stop_catch(&stop_fd, &e) < 0 ||
        kube_config_load(s->kubeconfig, s->context, &config, &e) < 0 ||
        manage(s, &config, stop_fd, &e) < 0)
        status = cli_fail(args, "%s", e.msg);
    kube_config_done(&config);
    return status;
}

int main(int argc, char **argv)
{
    struct cli_command command = controller_command;
    command.more = list_controllers;
    mallopt(M_ARENA_MAX, 1); /* many threads, of which few work at a time */
    return cli_program_main(argc, argv, (const struct cli_handler[]){{&command, run}, {NULL}});
}
