/*
 * Admission webhooks: servers that are asked before an object is written, as
 * MutatingWebhookConfiguration and ValidatingWebhookConfiguration say.
 *
 *     mutating     one after the other, configurations by name; each may send a JSON patch. One that
 *                  asks for it (reinvocationPolicy IfNeeded) is asked once more when a later one
 *                  changed the object.
 *     validating   one after the other; the first refusal decides.
 *
 * A webhook that does not answer, or answers nonsense, refuses or is passed over, as its
 * failurePolicy says. All webhooks of one request have APISERVER_WEBHOOK_SECONDS together.
 *
 * They see objects with defaults, in the version that the rule matched. What the server sets itself
 * (identity, and status or the rest according to the path) is not theirs to change.
 *
 * The configurations are not subject to webhooks, nor is what the server creates before it serves.
 *
 * A write is decided by the configurations as they are stored when it begins: they are compiled
 * once, and a compiled set is used as long as it was made from exactly the objects that are stored.
 * Where there are none, that costs two look-ups.
 */
#pragma once

#include "k8s/apiserver/admission.h"
#include "k8s/apiserver/metrics.h"

enum { APISERVER_WEBHOOK_SECONDS = 34 };

struct apiserver_webhooks;

/* metrics may be NULL. */
struct apiserver_webhooks *apiserver_webhooks_new(struct apiserver_metrics *metrics);
void apiserver_webhooks_free(struct apiserver_webhooks *w); /* NULL is fine */

/* Whether anybody may have to be asked. */
bool apiserver_webhooks_any(struct apiserver_store *store);

/* Steps of admission; they do nothing in a registry without webhooks. */
int apiserver_webhooks_mutate(struct apiserver_admission *a, struct err *e);
int apiserver_webhooks_validate(struct apiserver_admission *a, struct err *e);
