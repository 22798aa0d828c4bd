/*
 * The webhook of orlop-controller: admission of our kinds in any Kubernetes cluster.
 *
 *     kube-apiserver ── AdmissionReview, HTTPS ──> server.c ── review.c ──> lookup.c ──> the API
 *            ^                                        ^
 *            │ whom to trust                          │ key and certificate
 *     ValidatingWebhookConfiguration <── keeper ── Secret
 *         configuration.c                  certificates.c
 *
 * Every process serves, whoever leads; they share the certificates by the Secret. The keeper looks at
 * Secret and configuration every few seconds and puts right whatever is not as it should be: a Secret
 * that was deleted, an authority that nobody trusts any more, certificates that are due.
 *
 * Invariants:
 * - The configuration matches nothing but our kinds, and refuses for want of an answer only changes of
 *   the spec of a CStorPoolCluster, and what programs write that are held to what is their own
 *   (api/access.h). Everything else goes on when the webhook is down, also deletions, namespaces and all
 *   that people and controllers write.
 * - It is written only when this process serves with a certificate that it makes people trust.
 * - Asking changes nothing in a dry run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/manager.h"

struct admission;

struct admission_options {
    const struct kube_config *config; /* copied by who needs it */
    const char *ns;                   /* of Secret and Service */
    const char *name;                 /* of Secret and configuration; NULL: orlop-webhook */
    const char *service;              /* NULL: orlop-webhook */
    const char *url;                  /* in place of a service: "https://host:port" */
    const char *address;              /* to listen on; NULL: all */
    int port;                         /* 0: any */
    int64_t lifetime_ns;              /* of certificates; 0: a year */
    int64_t tick_ns;                  /* how often the keeper looks; 0: 10 s */
    bool remove_on_stop;              /* the configuration goes with the process */
};

/* Serves from now on, until the manager stops. */
int admission_start(struct kube_manager *m, const struct admission_options *o, struct err *e);
/* For an uninstallation: removes the configuration, then the Secret. What is gone is fine. */
int admission_remove(struct kube_client *client, const struct admission_options *o, struct err *e);
