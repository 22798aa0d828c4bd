/*
 * The API over HTTP.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "k8s/apiserver/audit.h"
#include "k8s/apiserver/gates.h"
#include "k8s/apiserver/limit.h"
#include "k8s/apiserver/store.h"

struct apiserver;

struct apiserver_options {
    const char *store;   /* path of the database */
    const char *address; /* numeric; NULL: loopback */
    uint16_t port;       /* 0: any that is free */
    const char *pki;     /* folder for keys and certificates */
    bool
        only_kubernetes; /* Orlop's kinds are not built in: they come as CustomResourceDefinitions */
    bool plain_http;     /* for tests: no TLS, everybody is the administrator, loopback only */
    /* The following may be NULL. */
    const char *control;       /* folder for the control socket */
    const char *kubeconfig;    /* where to write the administrator's */
    const char *controller;    /* and the controller's */
    const char *service_range; /* of addresses for services, 127.96.0.0/12 */
    const char *key_file;      /* with which Secrets are encrypted */
    const char *pods;          /* folder with the logs of containers */
    const char *const *names;  /* more names of the server, for its certificate; ends with NULL */
    const char *token_file;    /* static tokens */
    const struct clock *clock;
    unsigned event_ttl; /* seconds for which events are kept; 0: an hour */
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
