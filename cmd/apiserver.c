/*
 * orlop-apiserver: flags, and the server until it is told to stop.
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "cmd/apiserver_backup.h"
#include "cmd/flags.h"
#include "k8s/apiserver/serve.h"

struct settings {
    struct apiserver_options server;
    const char *folder;
    VEC(const char *) names;
    enum log_format log_format;
    enum log_level log_level;
};

static int take_data_dir(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->folder = text;
    return 0;
}

static int take_address(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->server.address = text;
    return 0;
}

static int take_port(struct settings *s, const char *text, struct err *e)
{
    unsigned n = 0;
    if (flags_number(text, UINT16_MAX, &n, e) < 0)
        return -1;
    s->server.port = (uint16_t)n;
    return 0;
}

static int take_san(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    vec_push(&s->names, text);
    return 0;
}

static int take_token_file(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->server.token_file = text;
    return 0;
}

static int take_service_range(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->server.service_range = text;
    return 0;
}

static int take_pod_logs(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->server.pods = text;
    return 0;
}

static int take_plain(struct settings *s, const char *text, struct err *e)
{
    (void)text;
    (void)e;
    s->server.plain_http = true;
    return 0;
}

static int take_only_kubernetes(struct settings *s, const char *text, struct err *e)
{
    (void)text;
    (void)e;
    s->server.only_kubernetes = true;
    return 0;
}

static int take_audit_path(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->server.audit.path = text;
    if (str_eq(text, "off"))
        s->server.audit.level = APISERVER_AUDIT_OFF;
    return 0;
}

static int take_audit_level(struct settings *s, const char *text, struct err *e)
{
    static const char *const words[] = {
        [APISERVER_AUDIT_OFF] = "off",
        [APISERVER_AUDIT_WRITES] = "writes",
        [APISERVER_AUDIT_ALL] = "all",
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (str_eq(text, words[i])) {
            s->server.audit.level = (enum apiserver_audit_level)i;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write all, writes or off, not \"%s\"", text);
}

static int take_audit_size(struct settings *s, const char *text, struct err *e)
{
    unsigned megabytes = 0;
    int status = flags_number(text, 1000000, &megabytes, e);
    s->server.audit.max_bytes = (size_t)megabytes << 20;
    return status;
}

static int take_audit_backups(struct settings *s, const char *text, struct err *e)
{
    return flags_number(text, 1000, &s->server.audit.backups, e);
}

static int take_rate(struct settings *s, const char *text, struct err *e)
{
    int status = flags_number(text, 1000000, &s->server.limits.per_second, e);
    s->server.limits.burst = 2 * s->server.limits.per_second;
    return status;
}

static int take_in_flight(struct settings *s, const char *text, struct err *e)
{
    return flags_number(text, 1000000, &s->server.limits.in_flight, e);
}

/* Seconds: a number, with or without the s of a Go duration. */
static int take_event_ttl(struct settings *s, const char *text, struct err *e)
{
    _cleanup_free_ char *digits = mem_strdup(text);
    size_t n = strspn(digits, "0123456789");
    if (str_eq(digits + n, "s"))
        digits[n] = '\0';
    if (flags_number(digits, 999999999, &s->server.event_ttl, e) < 0)
        return -1;
    return s->server.event_ttl
               ? 0
               : err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write at least one second");
}

static int take_gates(struct settings *s, const char *text, struct err *e)
{
    return apiserver_features_parse(text, &s->server.features, e);
}

static int take_log_format(struct settings *s, const char *text, struct err *e)
{
    return log_format_parse(text, &s->log_format, e);
}

static int take_log_level(struct settings *s, const char *text, struct err *e)
{
    return log_level_parse(text, &s->log_level, e);
}

static int take_verbose(struct settings *s, const char *text, struct err *e)
{
    (void)text;
    return log_level_parse("debug", &s->log_level, e);
}

static const struct flag table[] = {
    {"data-dir", "DIR", take_data_dir, "where everything is kept; made if it is missing"},
    {"address", "IP", take_address, "where to listen (127.0.0.1)"},
    {"port", "PORT", take_port, "and on which port (6443); 0 is any that is free"},
    {"tls-san", "NAME", take_san, "another name or address by which clients reach the server"},
    {"token-auth-file", "FILE", take_token_file, "lines of token,user,uid,\"group,group\""},
    {"service-cluster-ip-range", "CIDR", take_service_range,
     "addresses of services (127.96.0.0/12: on loopback, for one machine)"},
    {"pod-logs", "DIR", take_pod_logs,
     "where nodes write the logs of containers (DIR/pods); {node} in it is a node's name"},
    {"only-kubernetes", NULL, take_only_kubernetes,
     "Orlop's kinds are not built in: they come with their definitions (orlop crds), as on any "
     "cluster"},
    {"plain-http", NULL, take_plain,
     "no TLS, for tests: whoever reaches it may do everything, so only on loopback"},
    {"audit-log-path", "FILE", take_audit_path, "the audit log (DIR/audit.log); - is stdout"},
    {"audit-level", "LEVEL", take_audit_level,
     "what goes into it: all, writes (and what was refused), off"},
    {"audit-log-maxsize", "MB", take_audit_size, "how long it may become (100); 0 is any length"},
    {"audit-log-maxbackup", "N", take_audit_backups, "how many older ones to keep (5)"},
    {"max-requests-per-client", "N", take_rate,
     "requests a second of one client (5000), twice that at once; 0 is any number"},
    {"max-requests-inflight", "N", take_in_flight,
     "requests at a time of all (400), watches not counted; 0 is any number"},
    {"event-ttl", "SECONDS", take_event_ttl, "how long events are kept (3600)"},
    {"feature-gates", "NAME=BOOL,...", take_gates,
     "StatefulSetVolumeExpansion: sizes in volumeClaimTemplates can be changed (true);\n"
     "OrlopAdmission: the rules of our own kinds; false leaves them to a webhook (true)"},
    {"log-format", "FORMAT", take_log_format, "text or json, on standard error"},
    {"log-level", "LEVEL", take_log_level,
     "error, warn, info (writes, failures, what is slow) or debug (every request)"},
    {"verbose", NULL, take_verbose, "the same as --log-level debug; also -v"},
    {0},
};

static const struct flags flags = {
    "orlop apiserver",
    "Usage: orlop apiserver --data-dir DIR [OPTION]...\n\n"
    "Serves the Kubernetes API for the kinds that Orlop knows, and for those that users\n"
    "define, over TLS. Keys and certificates are made in DIR/pki and renewed there; kubectl\n"
    "gets in with DIR/admin.kubeconfig. Secrets are encrypted with DIR/encryption.key: keep\n"
    "a copy of that file apart from the backups.\n",
    table,
};

static int serve(const struct settings *s)
{
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
    if (file_make_dirs(s->folder, 0700, &e) < 0 || apiserver_start(o, &server, &e) < 0) {
        fprintf(stderr, "orlop apiserver: %s\n", e.msg);
        return 1;
    }
    const char *address = o->address ? o->address : "127.0.0.1";
    bool v6 = strchr(address, ':');
    printf("%s://%s%s%s:%u\n", o->plain_http ? "http" : "https", v6 ? "[" : "", address,
           v6 ? "]" : "", apiserver_port(server));
    fflush(stdout);
    int signum;
    sigwait(&ends, &signum);
    apiserver_stop(server);
    return 0;
}

/* What lies in the data folder. */
static int serve_folder(struct settings *s)
{
    _cleanup_free_ char *store = mem_printf("%s/store.db", s->folder);
    _cleanup_free_ char *pki = mem_printf("%s/pki", s->folder);
    _cleanup_free_ char *kubeconfig = mem_printf("%s/admin.kubeconfig", s->folder);
    _cleanup_free_ char *controller = mem_printf("%s/controller.kubeconfig", s->folder);
    _cleanup_free_ char *pods = mem_printf("%s/pods", s->folder);
    _cleanup_free_ char *keys = mem_printf("%s/encryption.key", s->folder);
    _cleanup_free_ char *audit = mem_printf("%s/audit.log", s->folder);
    vec_push(&s->names, NULL);
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
    return serve(s);
}

int main(int argc, char **argv)
{
    if (argc > 1 && str_eq(argv[1], "backup"))
        return backup_main(argc - 1, argv + 1);
    if (argc > 1 && str_eq(argv[1], "restore"))
        return restore_main(argc - 1, argv + 1);
    struct settings s = {
        .server = {.port = 6443,
                   .audit = {.level = APISERVER_AUDIT_WRITES,
                             .max_bytes = (size_t)APISERVER_AUDIT_MEGABYTES << 20,
                             .backups = APISERVER_AUDIT_BACKUPS},
                   .limits = {APISERVER_CLIENT_RATE, APISERVER_CLIENT_BURST, APISERVER_IN_FLIGHT}},
        .log_format = LOG_FORMAT_TEXT,
        .log_level = LOG_LEVEL_INFO,
    };
    int status = 0;
    if (flags_parse(&flags, argc, argv, &s, &status)) {
        log_init(STDERR_FILENO, s.log_format, s.log_level);
        status = s.folder ? serve_folder(&s) : flags_usage(&flags, stderr);
    }
    vec_done(&s.names);
    return status;
}
