/*
 * OpenAPI v3 schemas and CustomResourceDefinitions, from the tables.
 *
 * The schemas are structural, as Kubernetes demands. They accept whatever api_normalize() accepts
 * (aliases, synonyms, the published form), because on a cluster the API server validates and prunes
 * by them before any of our programs sees the object. Rules that a structural schema cannot say
 * are left to admission.
 */
#pragma once

#include "api/kind.h"

/* The schema of the whole object. */
json_t *api_openapi_schema(const struct api_kind *kind);
/* The CustomResourceDefinition of the kind in one of its groups; NULL when it has none there. */
json_t *api_crd(const struct api_kind *kind, const char *group);
