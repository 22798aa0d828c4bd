/*
 * The API over HTTP.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct apiserver;

struct apiserver_options {
    const char *store;   /* path of the database */
    const char *control; /* folder for the control socket; NULL: none */
    const char *address; /* numeric; NULL: loopback */
    uint16_t port;       /* 0: any that is free */
};

int apiserver_start(const struct apiserver_options *options, struct apiserver **ret_server,
                    struct err *e);
uint16_t apiserver_port(const struct apiserver *a);
void apiserver_stop(struct apiserver *a);
