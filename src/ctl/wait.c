/*
 * --wait: asks again until something is so, has failed, or takes too long.
 */
#include <unistd.h>

#include "ctl/ctl.h"
#include "ui/term.h"

enum { POLL_US = 200000 };

/* On a terminal it says what it waits for; the line goes when it ends. */
static void say(const struct str *progress, int64_t waited_ns, bool end)
{
    if (!isatty(STDERR_FILENO))
        return;
    fputs("\r\033[K", stderr);
    if (!end) {
        ui_text(stderr, str_get(progress), progress->len);
        fprintf(stderr, ", %lld s", (long long)(waited_ns / CLOCK_SECOND));
    }
    fflush(stderr);
}

int ctl_wait(const struct cli_args *args, const char *command, ctl_done_fn *is_done, void *context,
             struct err *e)
{
    int64_t began = clock_mono_ns(clock_system());
    int64_t most = ctl_settings(args)->timeout;
    for (;;) {
        _cleanup_(str_done) struct str progress = {0};
        int done = is_done(context, &progress, e);
        int64_t waited = clock_mono_ns(clock_system()) - began;
        say(&progress, waited, done || waited >= most);
        if (done)
            return done < 0 ? -1 : 0;
        if (waited >= most)
            return err_set(e, ERR_DEADLINE_EXCEEDED, "Timeout",
                           "%s: not done in %lld s; `orlop %s %s` shows how far it is",
                           str_get(&progress), (long long)(most / CLOCK_SECOND), command,
                           args->words[0]);
        usleep(POLL_US);
    }
}
