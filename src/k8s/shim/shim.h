/*
 * What runs one instance of a container, and the two texts by which it is told and tells.
 *
 * A shim is a process of its own, small, that outlives whoever asked for it:
 *
 *     asker --spec on stdin--> orlop-shim --forks--> the shim --forks--> the container's program
 *           <--exit status---- (reports)             lock, log, N.status
 *
 * Invariants:
 * - Who holds the lock of the folder is the shim that is at work; there is at most one.
 * - An instance runs only after its N.status was made by the same shim, and that fails when the file
 *   is there: each number is used at most once, for ever.
 * - N.status says how the program ended, on disk, before the lock is let go. A status without an end
 *   and nobody who holds the lock means that the shim was killed: the end is not known.
 * - When the program has ended the shim kills and waits for all that it left behind, before it
 *   records the end. It adopts orphans, so none gets away by being nobody's child.
 *
 * Everything here is plain libc and src/base: no threads, no heap to speak of.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

/* In the environment of every process of a container: the mark by which it is found. */
#define SHIM_MARK "ORLOP_CONTAINER"

struct shim_mount {
    const char *source, *target; /* absolute; both are folders or neither is */
    bool read_only;
};

struct shim_spec {
    const char *folder; /* of the container's state; exists */
    unsigned number;    /* of the instance */
    const char *log;    /* NULL: output is thrown away */
    const char *previous_log;
    const char *cwd; /* NULL: / */
    const char *cgroup;
    int64_t uid, gid; /* -1: ours */
    uint64_t log_bytes;
    VEC(const char *) argv; /* the first is a path, or looked up in PATH of env */
    VEC(const char *) env;
    VEC(struct shim_mount) mounts;
    VEC(int64_t) groups;
};

void shim_spec_done(struct shim_spec *s);
/* Strings that end with NUL, "key=value". Parsing borrows from the text and takes no unknown key. */
void shim_spec_format(const struct shim_spec *s, struct str *out);
int shim_spec_parse(const char *text, size_t size, struct shim_spec *ret_spec, struct err *e);

struct shim_status {
    bool begun, ended;         /* neither: claimed, and not known to have run */
    pid_t pid;                 /* of the program */
    uint64_t ticks;            /* when the kernel says it started: guards against a reused pid */
    int64_t started, finished; /* ns since 1970 */
    int exit_code, signal;     /* one is 0 */
    char error[256];           /* why it could not be run; "" */
};

void shim_status_format(const struct shim_status *s, struct str *out);
int shim_status_parse(const char *text, struct shim_status *ret_status, struct err *e);

/* FOLDER/lock, FOLDER/N.status; the caller's to free. */
char *shim_lock_path(const char *folder);
char *shim_status_path(const char *folder, unsigned number);
/* The pid of the shim that is at work; 0: none. */
pid_t shim_owner(const char *folder);
/* Start time of a process in clock ticks; 0 when there is none. */
uint64_t shim_ticks(pid_t pid);

/*
 * Sends a signal to every process whose environment has the mark with exactly this value, or with
 * prefix to those whose value begins with it; how many there were. Ours is not among them.
 */
unsigned shim_signal_marked(const char *value, bool prefix, int signum);

/* mount.c: makes a mount namespace of the caller's own and mounts there; it may have to chroot. */
int shim_mount(const struct shim_spec *s, struct err *e);

/* log.c: lines with a time, into a file that is rotated by size. */
struct shim_log {
    int fd; /* -1: nowhere */
    const char *path;
    uint64_t size, most;
    size_t used;
    char line[16 * 1024]; /* not yet ended; a longer one is cut into several */
};
/* The log of the instance before becomes the previous one. */
void shim_log_open(struct shim_log *l, const struct shim_spec *s);
void shim_log_write(struct shim_log *l, const char *bytes, size_t n, int64_t now_ns);
void shim_log_close(struct shim_log *l, int64_t now_ns);

/* run.c: from the lock to the record of the end. `report` gets "" or why it did not start. */
int shim_run(const struct shim_spec *s, int report);

/* enter.c: becomes argv; a name without a slash is looked up in PATH of env. Returns with errno. */
void shim_exec(const char *const *argv, const char *const *env);
/* The same beside the process pid: its environment, its mounts. Returns only on failure. */
int shim_enter(pid_t pid, const char *const *argv, struct err *e);
