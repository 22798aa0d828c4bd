/*
 * The audit log: who did what, when, and what came of it. One line of JSON for each request, an
 * audit.k8s.io/v1 Event at level Metadata: never a body, so no Secret, and no credentials.
 *
 *     request threads ──> bounded queue ──> one writer ──> audit.log, audit.log.1, audit.log.2, ...
 *
 * A request never waits for it. When the queue is full, or the disk, what does not fit is dropped and
 * counted; the writer says so in the program's log.
 */
#pragma once

#include "base/str.h"
#include "k8s/apiserver/path.h"
#include "k8s/apiserver/user.h"

enum apiserver_audit_level {
    APISERVER_AUDIT_OFF,
    APISERVER_AUDIT_WRITES, /* and what was refused */
    APISERVER_AUDIT_ALL,
};

enum {
    APISERVER_AUDIT_MEGABYTES = 100,
    APISERVER_AUDIT_BACKUPS = 5,
    APISERVER_AUDIT_ID_MAX = 65,
};

struct apiserver_audit_options {
    enum apiserver_audit_level level;
    const char *path;   /* "-": standard output, which is not rotated */
    size_t max_bytes;   /* of a file; 0: any size */
    unsigned backups;   /* how many older files to keep */
    size_t queue_lines; /* 0: a sensible number */
};

struct apiserver_audit;

/* Fails when the file cannot be written. */
int apiserver_audit_open(const struct apiserver_audit_options *options,
                         struct apiserver_audit **ret_audit, struct err *e);
/* Writes what is queued, then ends. NULL is fine. */
void apiserver_audit_close(struct apiserver_audit *a);

enum apiserver_audit_level apiserver_audit_level(const struct apiserver_audit *a);
/* How many lines there were, and how many of them were lost. */
uint64_t apiserver_audit_lines(const struct apiserver_audit *a);
uint64_t apiserver_audit_dropped(const struct apiserver_audit *a);
/* Queues a line, which ends with a newline; takes over the text. Never waits. */
void apiserver_audit_line(struct apiserver_audit *a, struct str *line);

/* What is known of a request; kept in its call. */
struct apiserver_audit_call {
    char id[APISERVER_AUDIT_ID_MAX];
    int64_t received; /* wall clock, ns */
    const char *why;  /* the reason of the Status that was answered; NULL */
};

struct apiserver_audit_record {
    const struct apiserver_audit_call *call;
    int64_t answered; /* wall clock, ns */
    bool goes_on;     /* a watch: the answer has begun */
    const char *method, *target, *user_agent, *peer;
    const struct apiserver_user *user;         /* NULL: unknown */
    const struct apiserver_user *impersonated; /* as whom they act; NULL: as themselves */
    const struct apiserver_path *path;         /* NULL: it leads nowhere */
    unsigned code;
    bool decided, allowed; /* by authorization */
    const char *reason;    /* of that */
};

/* audit_event.c: the line of a record, appended. */
void apiserver_audit_format(const struct apiserver_audit_record *r, struct str *out);
