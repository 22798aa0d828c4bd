/*
 * Waiting for a descriptor, until a time is over or somebody fires a cancel. All the time that a
 * request spends asleep it spends here.
 */
#pragma once

#include "http/client.h"

struct http_wait {
    int64_t deadline;       /* monotonic; 0: none */
    int64_t idle_ns, heard; /* the longest silence, 0: any; and when it began */
    int64_t began;
    struct http_cancel *cancel; /* or NULL */
};

void http_wait_begin(struct http_wait *w, int64_t timeout_ns, int64_t idle_ns,
                     struct http_cancel *cancel);
/* Something came or went: the silence begins anew. */
void http_wait_heard(struct http_wait *w);
/* The same, and over after ns at the latest. */
struct http_wait http_wait_within(const struct http_wait *w, int64_t ns);
/* How much time is left, at most `most`. */
int64_t http_wait_left(const struct http_wait *w, int64_t most);
/* Whether to go on: -1 with CANCELLED or DEADLINE_EXCEEDED. */
int http_wait_check(const struct http_wait *w, struct err *e);
/* Until the descriptor has one of poll()'s events, or an error of its own. */
int http_wait_for(const struct http_wait *w, int fd, short events, struct err *e);
