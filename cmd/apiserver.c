/*
 * orlop-apiserver: the server until it is told to stop.
 */
#include "cmd/apiserver.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/apiserver_backup.h"

static int serve(const struct cli_args *args)
{
    const struct apiserver_settings *s = args->settings;
    const struct apiserver_options *o = &s->server;
    struct err e = {0};
    struct apiserver *server;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* for every thread: one waits for them */
    signal(SIGPIPE, SIG_IGN);
    mallopt(M_ARENA_MAX, 2); /* memory that one thread freed is there for the others */
    if (file_make_dirs(s->folder, 0700, &e) < 0 || apiserver_start(o, &server, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    bool v6 = strchr(o->address, ':');
    printf("%s://%s%s%s:%u\n", o->plain_http ? "http" : "https", v6 ? "[" : "", o->address,
           v6 ? "]" : "", apiserver_port(server));
    fflush(stdout);
    int signum;
    sigwait(&ends, &signum);
    apiserver_stop(server);
    return 0;
}

/* What lies in the data folder. */
static int serve_folder(const struct cli_args *args)
{
    struct apiserver_settings *s = args->settings;
    _cleanup_free_ char *store = mem_printf("%s/store.db", s->folder);
    _cleanup_free_ char *pki = mem_printf("%s/pki", s->folder);
    _cleanup_free_ char *kubeconfig = mem_printf("%s/admin.kubeconfig", s->folder);
    _cleanup_free_ char *controller = mem_printf("%s/controller.kubeconfig", s->folder);
    _cleanup_free_ char *pods = mem_printf("%s/pods", s->folder);
    _cleanup_free_ char *keys = mem_printf("%s/encryption.key", s->folder);
    _cleanup_free_ char *audit = mem_printf("%s/audit.log", s->folder);
    s->server.store = store;
    s->server.control = s->folder;
    s->server.pki = pki;
    s->server.kubeconfig = kubeconfig;
    s->server.controller = controller;
    s->server.names = s->names.p;
    if (!s->server.pods)
        s->server.pods = pods;
    s->server.key_file = keys;
    if (!s->server.audit.path)
        s->server.audit.path = audit;
    return serve(args);
}

static int run(const struct cli_args *args)
{
    struct apiserver_settings *s = args->settings;
    struct err e = {0};
    if (s->features && apiserver_features_parse(s->features, &s->server.features, &e) < 0)
        return cli_misuse(args, "--feature-gates: %s", e.msg);
    s->server.audit.max_bytes = (size_t)s->audit_megabytes << 20;
    if (s->server.audit.path && str_eq(s->server.audit.path, "off"))
        s->server.audit.level = APISERVER_AUDIT_OFF;
    s->server.limits.burst = 2 * s->server.limits.per_second;
    s->server.event_ttl = (unsigned)(s->event_ttl / CLOCK_SECOND);
    if (s->verbose)
        s->log.level = LOG_LEVEL_DEBUG;
    cli_log_start(&s->log);
    return serve_folder(args);
}

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {
        {&apiserver_command, run},
        {&backup_command, run_backup},
        {&restore_command, run_restore},
        {NULL},
    };
    return cli_program_main(argc, argv, handlers);
}
