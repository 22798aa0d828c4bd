/*
 * Hot plug: the kernel's own messages about devices, and the rescan that they lead to. A burst of
 * them, as when a disk with partitions appears, leads to one.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "node/impl.h"

enum { MESSAGE_MAX = 16384 };
static const int64_t QUIET_NS = CLOCK_SECOND / 2; /* udev makes its links meanwhile */

/* "add@/devices/...\0ACTION=add\0SUBSYSTEM=block\0..." */
static bool is_block(const char *message, size_t n)
{
    for (size_t at = 0; at < n; at += strnlen(message + at, n - at) + 1) {
        if (str_starts_with(message + at, "SUBSYSTEM=block"))
            return true;
    }
    return false;
}

static void take_messages(struct node *n)
{
    char message[MESSAGE_MAX + 1];
    bool changed = false;
    for (ssize_t got;
         (got = recv(n->uevents, message, MESSAGE_MAX, MSG_DONTWAIT)) > 0 || errno == ENOBUFS;) {
        message[got > 0 ? got : 0] = '\0';
        changed |= got <= 0 || is_block(message, (size_t)got); /* lost messages: anything may be */
        if (got <= 0)
            break;
    }
    if (changed)
        kube_controller_add_after(n->scan_controller, "", "scan", QUIET_NS);
}

static void *listen_thread(void *context)
{
    struct node *n = context;
    struct pollfd fds[] = {{n->uevents, POLLIN, 0}, {n->stop_fd, POLLIN, 0}};
    for (;;) {
        if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        if (fds[0].revents)
            take_messages(n);
    }
}

int node_uevents_start(struct node *n, struct err *e)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1}; /* the kernel's */
    n->stop_fd = eventfd(0, EFD_CLOEXEC);
    n->uevents = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
    if (n->stop_fd < 0)
        return err_errno(e, errno, "cannot make an eventfd");
    if (n->uevents < 0 || bind(n->uevents, (struct sockaddr *)&address, sizeof(address)) < 0) {
        log_warn("cannot listen for new devices; they are found by the rescan",
                 LOG_S("error", strerror(errno)));
        return 0;
    }
    int status = thread_start(&n->listener, "uevents", listen_thread, n, e);
    n->listening = status == 0;
    return status;
}

void node_uevents_stop(struct node *n)
{
    uint64_t one = 1;
    if (n->listening && write(n->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
        pthread_join(n->listener, NULL);
    n->listening = false;
    if (n->uevents >= 0)
        close(n->uevents);
    if (n->stop_fd >= 0)
        close(n->stop_fd);
}
