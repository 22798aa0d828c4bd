/*
 * Conversion webhooks: servers that turn objects of one version of a kind into another, as
 * spec.conversion of a CustomResourceDefinition says.
 *
 *     stored, v1 ──> ConversionReview ──> v2, pruned and with the defaults of its schema
 *
 * Objects are sent many at a time. Of their metadata a webhook may change labels and annotations;
 * everything else in it stays as it was, and names, namespace, uid and kind must come back the same.
 *
 * All of these wait for the webhook: they are not for threads that serve connections. Errors are
 * worded like the original's; their reason is "Unknown", for which the API has no word.
 */
#pragma once

#include "base/vec.h"
#include "k8s/apiserver/registry.h"

enum { APISERVER_CONVERSION_SECONDS = 30 };

/* spec.conversion of a definition; NULL when its versions differ by name only. */
const struct api_conversion *apiserver_conversion_new(struct apiserver_registry *g,
                                                      const json_t *definition);
void apiserver_conversion_free(const struct api_conversion *c); /* NULL is fine */

/* Whether it is stored in the version that objects of the kind are written in now. */
bool apiserver_conversion_current(const struct api_kind *kind, const struct apiserver_object *o);
/*
 * Puts objects into the version of the kind: those that are not are replaced, and the references to
 * them dropped. On failure all are still valid.
 */
int apiserver_convert(const struct api_kind *kind, struct apiserver_object **objects, size_t n,
                      struct err *e);
/* The same for one; NULL, and the reference dropped, on failure. NULL stays NULL. */
struct apiserver_object *apiserver_convert_one(const struct api_kind *kind,
                                               struct apiserver_object *o, struct err *e);
/* One as JSON, without managedFields, in a version of the kind; a new reference. */
json_t *apiserver_convert_json(const struct api_kind *kind, const json_t *object,
                               const struct api_group_version *to, struct err *e);
