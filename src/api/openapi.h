/*
 * OpenAPI v3 schemas and CustomResourceDefinitions, from the tables.
 *
 * The schemas are structural, as Kubernetes demands. They accept whatever api_normalize() accepts
 * (aliases, synonyms, the published form), because on a cluster the API server validates and prunes
 * by them before any of our programs sees the object. Rules that a structural schema cannot say
 * are left to admission.
 *
 * OpenAPI v2 says less, and kubectl reads even less of it: it takes what properties do not name for a
 * mistake, and knows neither choices nor null. api_openapi_to_v2() leaves of a schema what remains
 * true then, as Kubernetes does with those of definitions.
 */
#pragma once

#include "api/message.h"

/* The schema of the whole object. */
json_t *api_openapi_schema(const struct api_kind *kind);
/* The same for v2; it refers to what is shared as "#/definitions/<name>". */
json_t *api_openapi_schema_v2(const struct api_kind *kind);

/* An object that is in many kinds; the list ends with one without a name. */
struct api_openapi_shared {
    const char *name;
    const struct api_field *fields;
    const struct api_message_field *message;
};
const struct api_openapi_shared *api_openapi_shared(void);
json_t *api_openapi_shared_schema(const struct api_openapi_shared *s);

/* Turns a schema of v3 into one that v2 can say, in place (openapi_v2.c). */
void api_openapi_to_v2(json_t *schema);
/* The CustomResourceDefinition of the kind in one of its groups; NULL when it has none there. */
json_t *api_crd(const struct api_kind *kind, const char *group);
