#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/serve.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

static const struct option options[] = {
    {"data-dir", required_argument, NULL, 'd'},
    {"address", required_argument, NULL, 'a'},
    {"port", required_argument, NULL, 'p'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int usage(FILE *out)
{
    fputs("Usage: orlop apiserver --data-dir DIR [--address IP] [--port PORT]\n\n"
          "Serves the Kubernetes API for the kinds that Orlop knows, from a database in DIR. It\n"
          "listens on loopback unless told otherwise; there is no authentication yet, so do not\n"
          "tell it otherwise where others can reach it. Port 0 takes any that is free.\n",
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
    mallopt(M_ARENA_MAX, 2); /* memory that one thread freed is there for the others */
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
    struct apiserver_options o = {.port = 6443};
    const char *folder = NULL;
    int found;
    while ((found = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (found == 'd')
            folder = optarg;
        else if (found == 'a')
            o.address = optarg;
        else if (found == 'p' && is_port(optarg))
            o.port = (uint16_t)strtoul(optarg, NULL, 10);
        else
            return usage(found == 'h' ? stdout : stderr);
    }
    if (!folder || optind < argc)
        return usage(stderr);
    _cleanup_free_ char *path = mem_printf("%s/store.db", folder);
    o.store = path;
    return serve(folder, &o);
}
