/*
 * The API over HTTP.
 */
#pragma once

#include <stdint.h>

#include "apiserver/audit.h"
#include "apiserver/gates.h"
#include "apiserver/limit.h"
#include "apiserver/store.h"
#include "base/err.h"

struct apiserver;

struct apiserver_options {
    const char *store;    /* path of the database */
    const char *control;  /* folder for the control socket; NULL: none */
    const char *address;  /* numeric; NULL: loopback */
    uint16_t port;        /* 0: any that is free */
    const char *key_file; /* with which Secrets are encrypted; NULL: they are not */
    const char *pods;     /* folder with the logs of containers; NULL: there are none */
    unsigned event_ttl;   /* seconds for which events are kept; 0: an hour */
    struct apiserver_audit_options audit;
    struct apiserver_limit_options limits;
    struct apiserver_features features;
};

/* How the store of a server is opened, also by what looks at it from outside. */
struct apiserver_store_options apiserver_store_settings(const char *key_file);

int apiserver_start(const struct apiserver_options *options, struct apiserver **ret_server,
                    struct err *e);
uint16_t apiserver_port(const struct apiserver *a);
void apiserver_stop(struct apiserver *a);
