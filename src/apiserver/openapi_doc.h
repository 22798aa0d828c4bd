/*
 * The OpenAPI documents of the API: from them `kubectl explain` reads, and kubectl learns that the
 * server validates fields itself.
 *
 *     /openapi/v3            index: each document's address with a hash of its content
 *     /openapi/v3/apis/G/V   schemas of the kinds in that version, and the paths they are at
 *     /openapi/v2            a stub: older clients only want it to be there and to be protobuf
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

/* A hash of any reply, for ?hash= and ETag: 32 hexadecimal digits. No protection against intent. */
enum { APISERVER_HASH_MAX = 33 };
const char *apiserver_content_hash(const void *bytes, size_t size, char buf[APISERVER_HASH_MAX]);

/* The protobuf of an empty OpenAPI v2 document and the media type it must be sent as. */
enum { APISERVER_OPENAPI_V2_SIZE = 15 };
extern const unsigned char apiserver_openapi_v2[APISERVER_OPENAPI_V2_SIZE];
#define APISERVER_OPENAPI_V2_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
