/*
 * Stopping containers by what is on disk, without an API and without a runner.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "k8s/kubelet/pod_impl.h"
#include "k8s/shim/shim.h"

static const int64_t kill_ns = 5 * CLOCK_SECOND;

/* Sends the signal to the containers of a pod; how many there were at work. */
static unsigned signal_pod(const char *data_dir, const char *uid, int signum)
{
    _cleanup_free_ char *state = pod_state_folder(data_dir, uid);
    _cleanup_free_ char *folder = mem_printf("%s/containers", state);
    _cleanup_(pod_names_done) struct pod_names names = {0};
    unsigned found = 0;
    pod_state_list(folder, &names, NULL);
    vec_for_each(&names.p, it) {
        _cleanup_free_ char *container = pod_container_folder(state, *it);
        if (shim_owner(container) <= 0)
            continue;
        found++;
        if (signum)
            pod_signal(container, pod_last_number(container), signum);
    }
    return found;
}

/* What shims that were killed have left. */
static void kill_marked(const char *uid)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    _cleanup_free_ char *mark = mem_printf("%s/", uid);
    for (int tries = 0; tries < 250 && shim_signal_marked(mark, true, SIGKILL); tries++)
        nanosleep(&pause, NULL);
}

static unsigned signal_all(const char *data_dir, const struct pod_names *uids, int signum)
{
    unsigned found = 0;
    vec_for_each(&uids->p, it)
        found += signal_pod(data_dir, *it, signum);
    return found;
}

/* Until none is at work, at most so long; how many are. */
static unsigned wait_for(const char *data_dir, const struct pod_names *uids, int64_t ns)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int64_t end = clock_mono_ns(clock_system()) + ns;
    unsigned left;
    while ((left = signal_all(data_dir, uids, 0)) && clock_mono_ns(clock_system()) < end)
        nanosleep(&pause, NULL);
    return left;
}

static unsigned stop(const char *data_dir, const struct pod_names *uids, int64_t grace_ns)
{
    if (signal_all(data_dir, uids, SIGTERM) && wait_for(data_dir, uids, grace_ns))
        signal_all(data_dir, uids, SIGKILL);
    unsigned left = wait_for(data_dir, uids, kill_ns);
    vec_for_each(&uids->p, it)
        kill_marked(*it);
    return left;
}

void node_pods_stop_one(const char *data_dir, const char *uid)
{
    struct pod_names one = {0};
    vec_push(&one.p, mem_strdup(uid));
    stop(data_dir, &one, 0);
    pod_names_done(&one);
}

int node_pods_stop_all(const char *data_dir, int64_t grace_ns, struct err *e)
{
    _cleanup_free_ char *folder = pod_state_folder(data_dir, NULL);
    _cleanup_(pod_names_done) struct pod_names uids = {0};
    if (pod_state_list(folder, &uids, e) < 0)
        return -1;
    unsigned left = stop(data_dir, &uids, grace_ns);
    if (!left)
        return 0;
    return err_set(e, ERR_DEADLINE_EXCEEDED, "StillRunning",
                   "%u containers below %s do not end, not even when killed: they wait for the "
                   "kernel, perhaps for a device that does not answer",
                   left, data_dir);
}
