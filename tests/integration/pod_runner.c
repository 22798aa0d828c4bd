/*
 * The pod runner as a program, for tests: without the rest of a node.
 *
 * pod_runner KUBECONFIG DATA_DIR LIBEXEC [NAME=VALUE...]   runs until SIGTERM
 * pod_runner --stop DATA_DIR                               what `orlop down` does
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "k8s/kubelet/pods.h"

static const char *value_of(int argc, char **argv, const char *name, const char *missing)
{
    size_t n = strlen(name);
    for (int i = 4; i < argc; i++) {
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            return argv[i] + n + 1;
    }
    return missing;
}

static int64_t time_of(int argc, char **argv, const char *name)
{
    return atoll(value_of(argc, argv, name, "0")) * (CLOCK_SECOND / 1000);
}

static int run(int argc, char **argv, int stop, struct err *e)
{
    struct kube_config config = {0};
    if (kube_config_load(argv[1], NULL, &config, e) < 0)
        return -1;
    struct kube_manager_options options = {
        .config = &config, .name = "orlop-node", .health_port = -1};
    _cleanup_(kube_manager_freep) struct kube_manager *m = kube_manager_new(&options, e);
    struct node_pods_options pods = {
        .node = value_of(argc, argv, "node", "node-1"),
        .address = "127.0.0.1",
        .pod_cidr = value_of(argc, argv, "cidr", "127.10.3.0/24"),
        .data_dir = argv[2],
        .libexec = argv[3],
        .allow_host_commands = *value_of(argc, argv, "allow", "1") == '1',
        .stop_on_exit = *value_of(argc, argv, "stop", "0") == '1',
        .backoff_ns = time_of(argc, argv, "backoff"),
        .backoff_max_ns = time_of(argc, argv, "backoff-max"),
        .refresh_ns = time_of(argc, argv, "refresh"),
    };
    int status = m ? node_pods_setup(m, &pods, e) : -1;
    puts(status == 0 ? "ready" : "");
    fflush(stdout);
    if (status == 0)
        status = kube_manager_run(m, stop, e);
    kube_config_done(&config);
    return status;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int status = argc == 3 && str_eq(argv[1], "--stop")
                     ? node_pods_stop_all(argv[2], 2 * CLOCK_SECOND, &e)
                     : run(argc, argv, signalfd(-1, &set, SFD_CLOEXEC), &e);
    if (status < 0)
        log_error("pod_runner", LOG_ERR(&e));
    return status < 0;
}
