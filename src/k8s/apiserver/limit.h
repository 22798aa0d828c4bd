/*
 * Limits on requests: how many a client may make in a second, and how many are under way at once.
 *
 * Each client has a bucket that holds `burst` requests and fills at `per_second`. A bucket is one
 * number: the time at which it will be full again. There are at most twice CLIENTS of them: when that
 * many are in use those that were not asked for since the last time are forgotten, and a bucket that
 * is forgotten is a full one, so nobody is refused for what others do.
 *
 * Watches do not count among the requests under way, since they stay.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"

enum {
    APISERVER_CLIENT_RATE = 5000, /* requests per second */
    APISERVER_CLIENT_BURST = 10000,
    APISERVER_IN_FLIGHT = 400,
};

struct apiserver_limit_options {
    unsigned per_second, burst; /* of a client; 0: none is refused */
    unsigned in_flight;         /* of all; 0: any number */
};

struct apiserver_limits;

struct apiserver_limits *apiserver_limits_new(const struct apiserver_limit_options *options,
                                              const struct clock *clock);
void apiserver_limits_free(struct apiserver_limits *l); /* NULL is fine */

/*
 * A request begins. TooManyRequests when it must wait; otherwise apiserver_limit_end() follows it.
 * A client of NULL may ask as often as it likes. Thread-safe.
 */
int apiserver_limit_begin(struct apiserver_limits *l, const char *client, struct err *e);
void apiserver_limit_end(struct apiserver_limits *l);
