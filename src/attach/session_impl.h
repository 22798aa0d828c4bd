/*
 * What the files of a session share: session.c keeps it and its time, session_login.c makes it, session_io.c
 * sends I/O over it. Nothing is called from outside: libiscsi calls back while it is being serviced, so a
 * session that is lost is only marked, and dropped afterwards.
 */
#pragma once

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#include "attach/session.h"
#include "base/clock.h"

#define MS         (CLOCK_SECOND / 1000)
#define AGAIN_TIME (100 * MS) /* until what a busy target refused is sent again */

enum attach_state { AWAY, CONNECTING, LOGGING_IN, ASKING, READY };

struct attach_session {
    struct attach_session_options o;
    struct iscsi_context *iscsi; /* NULL: AWAY */
    enum attach_state state;
    bool lost; /* noticed in a callback: libiscsi is on the stack, so it is dropped later */
    struct list_link waiting, busy;
    void (*changed)(void *context);
    void *context;
    void (*told)(void *context, int error); /* who waits for a rescan */
    void *told_context;
    bool rescan, rescanning;
    struct attach_facts facts;
    int64_t now, next_try, pause, login_until, heard, away_since, again_at, fail_check;
    bool nop;
    bool unmaps, no_same;
    unsigned unsent;        /* commands that libiscsi was given since it last sent */
    uint32_t transfer_most; /* in bytes */
    uint64_t same_most;
};

/* The session is of no use any more; the first reason is remembered. */
void attach_lose(struct attach_session *s, const char *what);
/* An I/O has ended: 0 or an errno. */
void attach_finish(struct attach_io *io, int error);
/* Whoever waits for a rescan is told. */
void attach_told(struct attach_session *s, int error);

/* session_login.c: connects and logs in; asks for the size. */
void attach_begin(struct attach_session *s);
void attach_ask_capacity(struct attach_session *s);

/* session_io.c: what waits is sent, once the session is ready and what a busy target refused has rested. */
void attach_send_waiting(struct attach_session *s);
