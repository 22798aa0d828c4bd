#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "ui/term.h"
#include "up/commands.h"
#include "up/place.h"

enum { WAIT_SECONDS = 60, TICK_MS = 200 };

/* Waits for the process to end; false when it does not. */
static bool await_end(int pidfd, int seconds)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    int64_t until = clock_mono_ns(clock_system()) + seconds * CLOCK_SECOND;
    bool shows = isatty(STDERR_FILENO);
    for (unsigned turn = 0; clock_mono_ns(clock_system()) < until; turn++) {
        if (poll(&p, 1, TICK_MS) > 0)
            break;
        if (shows)
            fprintf(stderr, "\rwaiting for the programs to end %c", "|/-\\"[turn % 4]);
    }
    if (shows)
        fputs("\r\033[K", stderr);
    return poll(&p, 1, 0) > 0;
}

static int run_down(const struct cli_args *args)
{
    _cleanup_(up_place_done) struct up_place place = {.lock_fd = -1};
    struct err e = {0};
    if (up_place_open(up_settings(args)->data, &place, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    if (!up_place_in_use(&place)) {
        printf("nothing runs in %s\n", place.folder);
        return cli_finish(args);
    }
    json_auto_t *state = up_place_read(&place, &e);
    pid_t pid = (pid_t)json_integer_value(json_object_get(state, "pid"));
    int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (pidfd < 0)
        return cli_fail(args, "somebody has %s, but %s", place.folder,
                        state ? "not the process that up.json names" : e.msg);
    pidfd_send_signal(pidfd, SIGTERM, NULL, 0);
    bool ended = await_end(pidfd, WAIT_SECONDS);
    if (!ended && up_settings(args)->force) {
        pidfd_send_signal(pidfd, SIGTERM, NULL, 0); /* the second kills */
        ended = await_end(pidfd, WAIT_SECONDS);
    }
    close(pidfd);
    if (!ended)
        return cli_fail(args,
                        "process %d has not ended within %d seconds; `orlop down --force` kills",
                        (int)pid, WAIT_SECONDS);
    printf("stopped; the data is in %s\n", place.folder);
    return cli_finish(args);
}

static const struct cli_option options[] = {
    UP_DATA_OPTION,
    {"force", 0, NULL, CLI_SWITCH, UP_AT(force),
     .doc = "Kill what does not end in time, and what a killed `orlop up` left behind."},
    {0},
};

CLI_COMMAND(down_command) = {
    .name = "down",
    .topic = CLI_MACHINE,
    .summary = "Stop the system that `orlop up` started",
    .doc =
        "Ends the programs of a system in order, and waits until they have ended. The data folder "
        "stays.",
    .settings = sizeof(struct up_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop down", "Stop it."},
            {NULL},
        },
    .run = run_down,
};
