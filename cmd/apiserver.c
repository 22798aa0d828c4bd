#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/serve.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

static const struct option options[] = {
    {"data-dir", required_argument, NULL, 'd'},
    {"address", required_argument, NULL, 'a'},
    {"port", required_argument, NULL, 'p'},
    {"tls-san", required_argument, NULL, 's'},
    {"token-auth-file", required_argument, NULL, 't'},
    {"plain-http", no_argument, NULL, 'P'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int usage(FILE *out)
{
    fputs("Usage: orlop apiserver --data-dir DIR [--address IP] [--port PORT] [--tls-san NAME]...\n"
          "                       [--token-auth-file FILE] [--plain-http]\n\n"
          "Serves the Kubernetes API for the kinds that Orlop knows, from a database in DIR, over\n"
          "TLS. Keys and certificates are made in DIR/pki and renewed there; kubectl gets in with\n"
          "DIR/admin.kubeconfig. It listens on loopback unless told otherwise; port 0 takes any\n"
          "that is free.\n\n"
          "  --tls-san NAME          another name or address by which clients reach the server\n"
          "  --token-auth-file FILE  lines of token,user,uid,\"group,group\"\n"
          "  --plain-http            no TLS, for tests: whoever reaches it may do everything, so\n"
          "                          it is refused on an address that is not loopback\n",
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

int main(int argc, char **argv)
{
    struct apiserver_options o = {.port = 6443};
    const char *folder = NULL;
    VEC(const char *) names = {0};
    int found;
    while ((found = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (found == 'd')
            folder = optarg;
        else if (found == 'a')
            o.address = optarg;
        else if (found == 'p' && is_port(optarg))
            o.port = (uint16_t)strtoul(optarg, NULL, 10);
        else if (found == 's')
            vec_push(&names, optarg);
        else if (found == 't')
            o.token_file = optarg;
        else if (found == 'P')
            o.plain_http = true;
        else
            return usage(found == 'h' ? stdout : stderr);
    }
    if (!folder || optind < argc)
        return usage(stderr);
    _cleanup_free_ char *path = mem_printf("%s/store.db", folder);
    _cleanup_free_ char *pki = mem_printf("%s/pki", folder);
    _cleanup_free_ char *kubeconfig = mem_printf("%s/admin.kubeconfig", folder);
    vec_push(&names, NULL);
    o.store = path;
    o.pki = pki;
    o.kubeconfig = kubeconfig;
    o.names = names.p;
    int status = serve(folder, &o);
    vec_done(&names);
    return status;
}
