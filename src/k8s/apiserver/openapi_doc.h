/*
 * The OpenAPI documents of the API: from them `kubectl explain` reads, and kubectl learns that the
 * server validates fields itself.
 *
 *     /openapi/v3            index: each document's address with a hash of its content
 *     /openapi/v3/apis/G/V   schemas of the kinds in that version, and the paths they are at
 *     /openapi/v2            all of it in one document, for older clients (openapi_v2.h)
 *
 * Documents follow from the tables alone, so the hash changes when the tables do and never else:
 * the same program answers the same after a restart. Making one is work; a server makes each once
 * and keeps the bytes.
 */
#pragma once

#include "api/kind.h"
#include "base/str.h"

/* The document of a group and version; NULL when there is no such version. */
json_t *apiserver_openapi_document(const struct api_kind *const *kinds, const char *group,
                                   const char *version);
/* The index: makes every document, for its hash. */
json_t *apiserver_openapi_index(const struct api_kind *const *kinds);

/*
 * What the documents have of one kind in one of its versions: adds its schema, which is taken over,
 * the one of its lists, and its paths.
 */
void apiserver_openapi_kind(const struct api_kind *kind, const struct api_group_version *gv,
                            json_t *schema, json_t *schemas, json_t *paths);

/* A hash of any reply, for ?hash= and ETag: 32 hexadecimal digits. No protection against intent. */
enum { APISERVER_HASH_MAX = 33 };
const char *apiserver_content_hash(const void *bytes, size_t size, char buf[APISERVER_HASH_MAX]);
