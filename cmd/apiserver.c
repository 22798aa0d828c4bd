#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/serve.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

enum flag {
    DATA_DIR = 256,
    ADDRESS,
    PORT,
    AUDIT_PATH,
    AUDIT_LEVEL,
    AUDIT_SIZE,
    AUDIT_BACKUPS,
    CLIENT_RATE,
    IN_FLIGHT,
};

static const struct option options[] = {
    {"data-dir", required_argument, NULL, DATA_DIR},
    {"address", required_argument, NULL, ADDRESS},
    {"port", required_argument, NULL, PORT},
    {"audit-log-path", required_argument, NULL, AUDIT_PATH},
    {"audit-level", required_argument, NULL, AUDIT_LEVEL},
    {"audit-log-maxsize", required_argument, NULL, AUDIT_SIZE},
    {"audit-log-maxbackup", required_argument, NULL, AUDIT_BACKUPS},
    {"max-requests-per-client", required_argument, NULL, CLIENT_RATE},
    {"max-requests-inflight", required_argument, NULL, IN_FLIGHT},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int usage(FILE *out)
{
    fputs(
        "Usage: orlop apiserver --data-dir DIR [OPTION]...\n\n"
        "Serves the Kubernetes API for the kinds that Orlop knows, from a database in DIR. It\n"
        "listens on loopback unless told otherwise; there is no authentication yet, so do not\n"
        "tell it otherwise where others can reach it.\n\n"
        "  --address IP                   where to listen (127.0.0.1)\n"
        "  --port PORT                    and on which port (6443); 0 is any that is free\n"
        "  --audit-log-path FILE          the audit log (DIR/audit.log); - is standard output\n"
        "  --audit-level LEVEL            what goes into it: all, writes (and what was refused), "
        "off\n"
        "  --audit-log-maxsize MB         how long it may become (100); 0 is any length\n"
        "  --audit-log-maxbackup N        how many older ones to keep (5)\n"
        "  --max-requests-per-client N    requests a second of one client (5000), twice that at "
        "once;\n"
        "                                 0 is any number\n"
        "  --max-requests-inflight N      requests at a time of all (400), watches not counted;\n"
        "                                 0 is any number\n\n"
        "Secrets are encrypted with the key in DIR/encryption.key, which is made at first start.\n"
        "Keep a copy of that file apart from the backups.\n",
        out);
    return out == stdout ? 0 : 2;
}

static bool parse_number(const char *text, unsigned long most, unsigned *ret_n)
{
    if (!*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 9 ||
        strtoul(text, NULL, 10) > most)
        return false;
    *ret_n = (unsigned)strtoul(text, NULL, 10);
    return true;
}

static bool parse_level(const char *text, enum apiserver_audit_level *ret_level)
{
    static const char *const words[] = {
        [APISERVER_AUDIT_OFF] = "off",
        [APISERVER_AUDIT_WRITES] = "writes",
        [APISERVER_AUDIT_ALL] = "all",
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (str_eq(text, words[i])) {
            *ret_level = (enum apiserver_audit_level)i;
            return true;
        }
    }
    return false;
}

static bool take(int flag, const char *text, const char **folder, struct apiserver_options *o)
{
    enum { MOST = 1000000 };
    unsigned n;
    switch (flag) {
    case DATA_DIR:
        *folder = text;
        return true;
    case ADDRESS:
        o->address = text;
        return true;
    case PORT:
        if (!parse_number(text, UINT16_MAX, &n))
            return false;
        o->port = (uint16_t)n;
        return true;
    case AUDIT_PATH:
        o->audit.path = text;
        if (str_eq(text, "off"))
            o->audit.level = APISERVER_AUDIT_OFF;
        return true;
    case AUDIT_LEVEL:
        return parse_level(text, &o->audit.level);
    case AUDIT_SIZE:
        if (!parse_number(text, MOST, &n))
            return false;
        o->audit.max_bytes = (size_t)n << 20;
        return true;
    case AUDIT_BACKUPS:
        return parse_number(text, 1000, &o->audit.backups);
    case CLIENT_RATE:
        if (!parse_number(text, MOST, &o->limits.per_second))
            return false;
        o->limits.burst = 2 * o->limits.per_second;
        return true;
    case IN_FLIGHT:
        return parse_number(text, MOST, &o->limits.in_flight);
    default:
        return false;
    }
}

static int serve(const char *folder, const struct apiserver_options *o)
{
    struct err e = {0};
    struct apiserver *server;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* for every thread: one waits for them */
    signal(SIGPIPE, SIG_IGN);
    if (file_make_dirs(folder, 0700, &e) < 0 || apiserver_start(o, &server, &e) < 0) {
        fprintf(stderr, "orlop apiserver: %s\n", e.msg);
        return 1;
    }
    printf("http://%s:%u\n", o->address ? o->address : "127.0.0.1", apiserver_port(server));
    fflush(stdout);
    int signum;
    sigwait(&ends, &signum);
    apiserver_stop(server);
    return 0;
}

int main(int argc, char **argv)
{
    struct apiserver_options o = {
        .port = 6443,
        .audit = {.level = APISERVER_AUDIT_WRITES,
                  .max_bytes = (size_t)APISERVER_AUDIT_MEGABYTES << 20,
                  .backups = APISERVER_AUDIT_BACKUPS},
        .limits = {APISERVER_CLIENT_RATE, APISERVER_CLIENT_BURST, APISERVER_IN_FLIGHT},
    };
    const char *folder = NULL;
    int found;
    while ((found = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (found == 'h' || !take(found, optarg, &folder, &o))
            return usage(found == 'h' ? stdout : stderr);
    }
    if (!folder || optind < argc)
        return usage(stderr);
    _cleanup_free_ char *path = mem_printf("%s/store.db", folder);
    _cleanup_free_ char *keys = mem_printf("%s/encryption.key", folder);
    _cleanup_free_ char *pods = mem_printf("%s/pods", folder);
    o.pods = pods;
    _cleanup_free_ char *audit = mem_printf("%s/audit.log", folder);
    o.store = path;
    o.key_file = keys;
    if (!o.audit.path)
        o.audit.path = audit;
    return serve(folder, &o);
}
