/*
 * Requests for certificates: who asks is written down by the server, who may approve or sign is
 * asked of the roles, and those for the API itself are signed here.
 *
 *     create ──> pending ──approve──> Approved ──sign──> Approved, with a certificate
 *                   │ └─ by a person, or here for a node that joins or renews
 *                   └──deny──> Denied          what cannot be signed: Failed
 *
 * csr.c is the part of admission; csr_signer.c the follower that approves, signs and cleans up.
 */
#pragma once

#include "k8s/apiserver/admission.h"

#define CSR_CLIENT  "kubernetes.io/kube-apiserver-client"
#define CSR_KUBELET "kubernetes.io/kube-apiserver-client-kubelet"

/* Steps of admission. */
int csr_fill(struct apiserver_admission *a, struct err *e);
int csr_check(struct apiserver_admission *a, struct err *e);

struct pki_csr;
/* The request in the object, parsed; INVALID_ARGUMENT. To be done by the caller. */
int csr_parse(const json_t *object, struct pki_csr *ret_csr, struct err *e);
/* Whether it asks, in every respect, for what the agent of a node needs; else why not. */
const char *csr_is_node(const json_t *object, const struct pki_csr *csr);
