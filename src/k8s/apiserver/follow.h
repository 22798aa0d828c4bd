/*
 * Followers: what the server does of its own accord after objects have changed, such as collecting
 * what nobody owns any more.
 *
 * One thread calls them, one after the other, with every change in the order of revisions. At start,
 * and again should the history have run away from them, each gets a call to look at everything
 * there is: they must come to the same end whichever way they learn of something, and however often.
 * They may write; they must not wait.
 */
#pragma once

#include "k8s/apiserver/registry.h"

struct apiserver;
struct apiserver_follow;

struct apiserver_follower {
    const char *name;
    /* Look at everything. */
    void (*resync)(struct apiserver *a);
    /* One change. */
    void (*changed)(struct apiserver *a, const struct apiserver_event *event);
    /*
     * After a batch of changes and at least once a second: what could not be done at once. May be
     * NULL.
     */
    void (*tick)(struct apiserver *a);
    /* Frees what it keeps; no other call comes after it. May be NULL. */
    void (*stop)(struct apiserver *a);
};

/* Those that there are. */
extern const struct apiserver_follower apiserver_follow_definitions;

/* Sets a->follow and starts the thread; the first resync of every follower is done by then. */
void apiserver_follow_start(struct apiserver *a);
/* There are changes; quick, from any thread. NULL is fine. */
void apiserver_follow_wake(struct apiserver_follow *f);
/* How long ago they last had everything done that there was. NULL is fine: 0. */
int64_t apiserver_follow_behind_ns(struct apiserver_follow *f);
/* Lets the call that is under way finish. NULL is fine. */
void apiserver_follow_stop(struct apiserver_follow *f);
