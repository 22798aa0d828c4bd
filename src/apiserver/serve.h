/*
 * The API over HTTP.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct apiserver;

struct apiserver_options {
    const char *store;   /* path of the database */
    const char *address; /* numeric; NULL: loopback */
    uint16_t port;       /* 0: any that is free */
    const char *pki;     /* folder for keys and certificates */
    /* The following may be NULL. */
    const char *kubeconfig;   /* where to write the administrator's */
    const char *const *names; /* more names of the server, for its certificate; ends with NULL */
    const char *token_file;   /* static tokens */
    const struct clock *clock;
    bool plain_http; /* for tests: no TLS, everybody is the administrator, loopback only */
};

int apiserver_start(const struct apiserver_options *options, struct apiserver **ret_server,
                    struct err *e);
uint16_t apiserver_port(const struct apiserver *a);
void apiserver_stop(struct apiserver *a);
