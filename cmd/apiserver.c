#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/serve.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/apiserver_backup.h"

static const struct option options[] = {
    {"data-dir", required_argument, NULL, 'd'},
    {"address", required_argument, NULL, 'a'},
    {"port", required_argument, NULL, 'p'},
    {"log-format", required_argument, NULL, 'f'},
    {"log-level", required_argument, NULL, 'l'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int usage(FILE *out)
{
    fputs("Usage: orlop apiserver --data-dir DIR [--address IP] [--port PORT]\n"
          "                       [--log-format text|json] [--log-level LEVEL] [-v]\n\n"
          "Serves the Kubernetes API for the kinds that Orlop knows, from a database in DIR. It\n"
          "listens on loopback unless told otherwise; there is no authentication yet, so do not\n"
          "tell it otherwise where others can reach it. Port 0 takes any that is free.\n\n"
          "The log goes to standard error, a line for each request: writes, failures and what is\n"
          "slow at level info, all others at debug (-v). Levels are error, warn, info and debug.\n",
          out);
    return out == stdout ? 0 : 2;
}

static bool is_port(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) <= 5 &&
           strtoul(text, NULL, 10) <= UINT16_MAX;
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

/* -1 after saying what is wrong with it. */
static int set_log(const char *format, const char *level)
{
    enum log_format f = LOG_FORMAT_TEXT;
    enum log_level l = LOG_LEVEL_INFO;
    struct err e = {0};
    if ((format && log_format_parse(format, &f, &e) < 0) ||
        (level && log_level_parse(level, &l, &e) < 0)) {
        fprintf(stderr, "orlop apiserver: %s\n", e.msg);
        return -1;
    }
    log_init(STDERR_FILENO, f, l);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && str_eq(argv[1], "backup"))
        return backup_main(argc - 1, argv + 1);
    if (argc > 1 && str_eq(argv[1], "restore"))
        return restore_main(argc - 1, argv + 1);
    const char *format = NULL, *level = NULL;
    struct apiserver_options o = {.port = 6443};
    const char *folder = NULL;
    int found;
    while ((found = getopt_long(argc, argv, "hv", options, NULL)) != -1) {
        if (found == 'd')
            folder = optarg;
        else if (found == 'a')
            o.address = optarg;
        else if (found == 'p' && is_port(optarg))
            o.port = (uint16_t)strtoul(optarg, NULL, 10);
        else if (found == 'f')
            format = optarg;
        else if (found == 'l')
            level = optarg;
        else if (found == 'v')
            level = "debug";
        else
            return usage(found == 'h' ? stdout : stderr);
    }
    if (!folder || optind < argc)
        return usage(stderr);
    if (set_log(format, level) < 0)
        return 2;
    _cleanup_free_ char *path = mem_printf("%s/store.db", folder);
    o.store = path;
    o.control = folder;
    return serve(folder, &o);
}
