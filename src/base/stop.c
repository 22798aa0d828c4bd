#include "base/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
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
    static volatile sig_atomic_t seen;
    if (seen) /* at once: a sanitizer's _exit() would look at threads that are being ended */
        syscall(SYS_exit_group, 128 + signum);
    seen = 1;
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
