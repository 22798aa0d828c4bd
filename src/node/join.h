/*
 * How a machine becomes a node of a cluster: with a token that somebody gave it, once.
 *
 *     cluster-info, read from a stranger ──> whom to trust: proven by the token, or by a pin
 *     key ──> CertificateSigningRequest, with the token ──> certificate ──> kubeconfig
 *
 * The kubeconfig then has the node's own key and certificate, and the token is needed no more. Before
 * the certificate ends it is renewed in the same way, with itself in place of the token. It is all
 * public API: kubeadm's tokens, cluster-info and signers.
 *
 * The private key is made here and never leaves; the kubeconfig appears when it is complete.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

struct node_join_options {
    const char *url;        /* of the API; no slash at the end */
    const char *name;       /* of the node */
    const char *token;      /* "abcdef.0123456789abcdef"; NULL: there is a kubeconfig already */
    const char *ca;         /* PEM of whom to trust; NULL: cluster-info says it */
    const char *ca_hash;    /* "sha256:HEX" of the authority's public key; NULL: not pinned */
    const char *kubeconfig; /* file */
    const struct clock *clock;
};

/*
 * Makes or renews the kubeconfig, or leaves one that is good as it is; *ret_changed, if given, says
 * which. What may pass (no server yet) is UNAVAILABLE or DEADLINE_EXCEEDED: try again.
 */
int node_join(const struct node_join_options *o, bool *ret_changed, struct err *e);

/* join_keep.c */

/* Joins, and waits for a cluster that is not there yet; CANCELLED once stop_fd is readable. */
int node_join_wait(const struct node_join_options *o, int stop_fd, struct err *e);

struct node_keeper;
/*
 * Looks at the credentials now and then, on a thread of its own. When they were renewed it calls
 * renewed(), for the program to start anew with them. The texts of the options must outlive it.
 */
int node_keeper_start(const struct node_join_options *o, void (*renewed)(void),
                      struct node_keeper **ret_keeper, struct err *e);
/* Whether they were. NULL is ignored. */
bool node_keeper_stop(struct node_keeper *k);

/* join_trust.c: the authorities of a cluster that is known by URL and token; PEM, appended. */
int node_join_trust(const char *url, const char *token, const char *ca_hash, struct str *ret_ca,
                    struct err *e);
