/*
 * A program that is kept running.
 *
 *     STOPPED ── start ──> RUNNING ── ends by itself ──> WAITING ── delay over ──> RUNNING
 *        ^                    └────── stop ── ENDING ──────┐
 *        └──────────────────────────── it has ended ───────┘
 *
 * It has a process group of its own, so that Ctrl-C at the terminal is for its keeper alone, and is
 * told to end when its keeper dies, however that happens. What it says on standard error goes through
 * the keeper into a log of bounded length; the first line on standard output, if wanted, is kept.
 *
 * A program that ends by itself is started again: at once, then after delays that double up to 30
 * seconds, and at once again after it has run for a minute. The keeper is one thread with poll().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

enum up_child_state { UP_STOPPED, UP_RUNNING, UP_WAITING, UP_ENDING };

struct up_child {
    char *name;      /* "apiserver", "node-1" */
    char **argv;     /* owned; ends with NULL; argv[0] is the path */
    char *log_path;  /* owned */
    bool wants_line; /* of standard output */

    enum up_child_state state;
    pid_t pid;
    int pidfd, log_fd, said_fd, file_fd; /* -1: closed */
    size_t log_size;
    struct str line; /* the first that it said, complete once `said` */
    bool said;
    int64_t started_ns, due_ns; /* monotonic: since it runs; when it is started or killed */
    int64_t delay_ns;
    int64_t started_at; /* real, for people */
    unsigned restarts;
    char ended[64]; /* how it ended last: "exit status 1", "signal 9" */
};

/* argv is copied. */
void up_child_init(struct up_child *c, const char *name, const char *const *argv,
                   const char *log_path);
void up_child_done(struct up_child *c); /* stopped */

int up_child_start(struct up_child *c, struct err *e);
/* Asks it to end; after grace_ns it is killed, its whole group. */
void up_child_stop(struct up_child *c, int64_t grace_ns);

/* Takes what it wrote. */
void up_child_read(struct up_child *c);
/*
 * Looks whether it has ended, and whether something is due; false when nothing happened. After true
 * the state, `ended` and `restarts` say what.
 */
bool up_child_check(struct up_child *c, int64_t now_ns, struct err *e);
