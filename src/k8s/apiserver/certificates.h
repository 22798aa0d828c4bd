/*
 * The server's keys and certificates: what lies in its pki folder, and the kubeconfig with which the
 * administrator gets in.
 *
 *     pki/ca.pem, ca.crt         the authority; see pki/authority.h
 *     pki/apiserver.pem          what clients see
 *     pki/admin.pem              kubernetes-admin in system:masters
 *     pki/service-accounts.pem   the key that signs tokens of service accounts
 *     pki/controller.pem         system:orlop-controller
 *     admin.kubeconfig           all that kubectl needs, with the real port
 *     controller.kubeconfig      the same for orlop-controller
 *
 * A tick once a second renews what is near its end, while the server runs and without it dropping a
 * connection. Thread-safe.
 */
#pragma once

#include "http/server.h"
#include "pki/authority.h"

struct apiserver_certificates;

struct apiserver_certificates_options {
    const char *folder;
    const char *kubeconfig;   /* path of the administrator's; NULL: none is written */
    const char *controller;   /* path of the controller's; NULL: none is written */
    const char *address;      /* where the server listens; NULL: loopback */
    const char *const *names; /* more names that the server has; ends with NULL; may be NULL */
    bool plain_http;          /* the kubeconfig is for that */
    const struct clock *clock;
};

int apiserver_certificates_open(const struct apiserver_certificates_options *o,
                                struct apiserver_certificates **ret_certificates, struct err *e);
void apiserver_certificates_close(struct apiserver_certificates *c); /* NULL is fine */

/* Starts an HTTP server with TLS, unless it is to be plain, and writes the kubeconfig. */
int apiserver_certificates_start_http(struct apiserver_certificates *c,
                                      const struct http_server_options *o,
                                      struct http_server **ret_server, struct err *e);
/* The HTTP server is about to be stopped. NULL is fine. */
void apiserver_certificates_leave_http(struct apiserver_certificates *c);
/* Renews what is due. Fails when something could not be; it is tried again after a minute. */
int apiserver_certificates_tick(struct apiserver_certificates *c, struct err *e);

/* Appends the authorities to trust. *ret_generation, if given, changes when they do. */
void apiserver_certificates_bundle(struct apiserver_certificates *c, struct str *ret_bundle,
                                   uint64_t *ret_generation);
uint64_t apiserver_certificates_generation(struct apiserver_certificates *c);
/* A client's certificate as a request asks: see pki_authority_sign(). */
int apiserver_certificates_sign(struct apiserver_certificates *c, const struct pki_csr *csr,
                                int64_t seconds, struct str *ret_chain, struct err *e);
/*
 * A kubeconfig that says where the server is and what to trust, and nothing of who one is; as
 * kubeadm writes it. False while that is not known, or TLS is not used.
 */
bool apiserver_certificates_cluster(struct apiserver_certificates *c, struct str *ret_kubeconfig);
/* What signs tokens; lives as long as the certificates. */
const struct pki_key *apiserver_certificates_token_key(const struct apiserver_certificates *c);
