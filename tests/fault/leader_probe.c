/*
 * leader_probe KUBECONFIG LEASE SECONDS FILE: takes part in an election, and as long as it leads it
 * appends the time to FILE, again and again. Ends with 0 on SIGTERM, with 3 when it has lost.
 *
 * Between the question and the line the process may be stopped for any time, and so may be whoever
 * asks the clock: a line is written only when both readings of the clock around the question are
 * near each other, and then says when the question was asked.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "kube/leader.h"

enum { NEAR_NS = 1000000, PAUSE_US = 1000 };

static volatile sig_atomic_t stopping;

static void on_signal(int signum)
{
    (void)signum;
    stopping = 1;
}

static void on_lost(void *context)
{
    (void)context;
    _exit(3);
}

static void act(int fd, const struct kube_leader *l)
{
    const struct clock *clock = clock_system();
    int64_t before = clock_mono_ns(clock);
    bool leads = kube_leader_is(l);
    int64_t after = clock_mono_ns(clock);
    char line[32];
    int n = snprintf(line, sizeof(line), "%" PRId64 "\n", before);
    if (leads && after - before < NEAR_NS && write(fd, line, (size_t)n) != n)
        _exit(4);
}

static int run(struct kube_client *client, const char *name, int64_t seconds, int fd, struct err *e)
{
    const struct kube_leader_options o = {
        .client = client,
        .ns = "default",
        .name = name,
        .lease_ns = seconds * CLOCK_SECOND,
        .lost = on_lost,
    };
    _cleanup_(kube_leader_freep) struct kube_leader *l = kube_leader_new(&o, e);
    if (!l || kube_leader_start(l, e) < 0)
        return -1;
    while (!stopping) {
        act(fd, l);
        usleep(PAUSE_US);
    }
    kube_leader_stop(l);
    act(fd, l); /* it does not lead now: a line would be a lie that the test finds */
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN);
    log_set_level(LOG_LEVEL_ERROR);
    struct err e = {0};
    struct kube_config config = {0};
    int64_t seconds = atoi(argv[3]);
    int status = 1, fd = open(argv[4], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0 && kube_config_load(argv[1], NULL, &config, &e) == 0) {
        const struct kube_client_options o = {
            .config = &config,
            .field_manager = "leader-probe",
            .deadline_ns = seconds * CLOCK_SECOND / 3,
        };
        _cleanup_(kube_client_freep) struct kube_client *client = kube_client_new(&o, &e);
        if (client && run(client, argv[2], seconds, fd, &e) == 0)
            status = 0;
    }
    if (status)
        fprintf(stderr, "leader_probe: %s\n", e.msg);
    kube_config_done(&config);
    close(fd);
    return status;
}
