/*
 * Runs another program to its end and hands back what it said.
 *
 * There is never a shell: the arguments reach the program as they are. The program gets the given
 * environment and nothing else of ours: no descriptor but 0, 1 and 2, default signal handlers, an
 * empty signal mask, and a process group of its own. When the deadline passes the whole group is
 * killed, so helpers that the program started go too. No zombie is left on any path. Any thread may
 * run programs.
 *
 * What the program started and left behind when it ended in time is left alone; output that such a
 * process would still write is not waited for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct spawn {
    /* Ends with NULL. argv[0] without a slash is looked up in env's PATH or the system's folders. */
    const char *const *argv;
    const char *const *env; /* "NAME=value", ends with NULL; NULL is spawn_env */
    const void *input;      /* what it reads on stdin; NULL is nothing */
    size_t input_size;
    size_t limit;   /* of stdout and of stderr each; 0 is 1 MiB */
    int timeout_ms; /* > 0 */
};

/* PATH of the system's folders, and LC_ALL=C.UTF-8 so that output can be parsed. */
extern const char *const spawn_env[];

struct spawn_result {
    int status;     /* of exit, or -1 when a signal ended it */
    int signal;     /* that ended it, or 0 */
    bool err_cut;   /* stderr was longer than the limit and the rest is lost */
    struct str out; /* stdout and stderr; always terminated, may hold NULs */
    struct str err;
};

void spawn_result_done(struct spawn_result *r);

/*
 * 0 when the program ran to its end, however it ended: ask spawn_check(). Failures:
 *   NOT_FOUND, PERMISSION_DENIED, ...  it could not be started; the message names it
 *   DEADLINE_EXCEEDED                  it was killed
 *   RESOURCE_EXHAUSTED                 it wrote more to stdout than the limit, and was killed
 * *ret is set on success only.
 */
int spawn_run(const struct spawn *s, struct spawn_result *ret, struct err *e);

/* 0 when it exited with status 0; else INTERNAL, "CommandFailed", with the beginning of stderr. */
int spawn_check(const struct spawn *s, const struct spawn_result *r, struct err *e);
