#include "base/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int stop_fd = -1;

void stop_ask(void)
{
    uint64_t one = 1;
    int was = errno;
    if (write(stop_fd, &one, sizeof(one)) < 0)
        _exit(1);
    errno = was;
}

static void on_signal(int signum)
{
    static atomic_bool seen; /* the second may be another thread's */
    if (atomic_exchange(&seen, true))
        _exit(128 + signum);
    stop_ask();
}

int stop_catch(int *ret_fd, struct err *e)
{
    const struct sigaction ends = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    stop_fd = eventfd(0, EFD_CLOEXEC);
    if (stop_fd < 0)
        return err_errno(e, errno, "eventfd");
    sigaction(SIGINT, &ends, NULL);
    sigaction(SIGTERM, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    *ret_fd = stop_fd;
    return 0;
}
