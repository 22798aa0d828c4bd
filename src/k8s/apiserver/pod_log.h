/*
 * Logs of containers: where they come from, and how they are read.
 *
 * A log is a file of lines that begin with an RFC 3339 time and a space, which whoever runs the
 * container writes:
 *
 *     2026-01-02T03:04:05.123456789Z text
 *
 * Readers see the text, and the time if they ask for it. A line without a time belongs to the one
 * before it. Each instance of a container has a file of its own, which is locked (flock) while it may
 * still be written to: whoever follows it needs no other word of its end.
 */
#pragma once

#include "base/err.h"
#include "http/server.h"

struct apiserver;

/* Where logs come from. */
struct pod_log_source {
    /*
     * A descriptor of the container's log, or of that of the container that ran before it; -1 with
     * NOT_FOUND when there is none. All names have been checked: they are single path segments.
     */
    int (*open)(void *context, const char *node, const char *namespace, const char *pod,
                const char *container, bool previous, struct err *e);
    void *context;
};

/*
 * Files FOLDER/NAMESPACE/POD/CONTAINER.log, CONTAINER.previous.log; the context is the folder, in which
 * "{node}" is the name of the Pod's node, "" of one that has none.
 */
int pod_log_open_file(void *folder, const char *node, const char *namespace, const char *pod,
                      const char *container, bool previous, struct err *e);

struct pod_log_options {
    bool follow, timestamps;
    int64_t tail;     /* lines; -1: all */
    int64_t limit;    /* bytes; -1: all */
    int64_t since_ns; /* nothing before; INT64_MIN: everything */
};

/* pod_log_read.c: the lines of a log that options choose. */
struct pod_log_reader;
/* Takes over the descriptor. */
struct pod_log_reader *pod_log_reader_new(int fd, const struct pod_log_options *o);
void pod_log_reader_free(struct pod_log_reader *r);
/* Whether somebody writes to it: who does has it locked from before it can be found until the end. */
bool pod_log_is_written(const struct pod_log_reader *r);
/*
 * Fills at most max bytes and returns how many; 0: nothing now; -1: the end. `ended`: nobody writes
 * to the log any more.
 */
ssize_t pod_log_read(struct pod_log_reader *r, bool ended, char *buf, size_t max);

/*
 * pod_log_follow.c: wakes streams when their files change. A thread of its own from the first
 * stream on.
 */
struct pod_log_follow;
struct pod_log_follow *pod_log_follow_new(void);
void pod_log_follow_free(struct pod_log_follow *f); /* NULL is fine; no streams are left */
/* What is given back when the stream ends. */
struct pod_log_watch *pod_log_watch(struct pod_log_follow *f, int fd, struct http_stream *stream);
void pod_log_unwatch(struct pod_log_follow *f, struct pod_log_watch *w); /* NULL is fine */
