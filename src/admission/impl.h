/*
 * What the files of this module share.
 */
#pragma once

#include "admission/admission.h"
#include "api/among.h"
#include "base/log.h"
#include "http/server.h"
#include "kube/client.h"
#include "kube/object.h"
#include "metrics/metrics.h"
#include "pki/authority.h"

/* lookup.c: context is the client. */
json_t *admission_get(void *context, const struct api_kind *kind, const char *namespace,
                      const char *name, struct err *e);
json_t *admission_list(void *context, const struct api_kind *kind, const char *namespace,
                       struct err *e);
void admission_fulfil(void *context, const json_t *wish);

/* certificates.c: what the Secret holds. */
struct admission_certificates {
    struct str bundle;    /* whom to trust, PEM */
    struct pki_leaf leaf; /* the server's own */
    int64_t expiry;       /* of the leaf, in seconds since 1970 */
};

void admission_certificates_done(struct admission_certificates *c);
/*
 * Reads the Secret, makes or renews what is due, and writes it back. Of several processes that do so at
 * once one wins, and the others take what it wrote.
 */
int admission_certificates_read(struct kube_client *client, const struct admission_options *o,
                                struct admission_certificates *ret, struct err *e);

/* configuration.c */
/* Makes the ValidatingWebhookConfiguration what it should be; *ret_changed: it was not. */
int admission_configure(struct kube_client *client, const struct admission_options *o,
                        const char *bundle, bool *ret_changed, struct err *e);
/* Removes it; one that is gone is fine. */
int admission_unconfigure(struct kube_client *client, const struct admission_options *o,
                          struct err *e);
