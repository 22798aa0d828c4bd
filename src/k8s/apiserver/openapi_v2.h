/*
 * /openapi/v2: one document of all kinds and paths, for clients that do not know v3. kubectl before
 * 1.24 validates manifests by it, before 1.27 it explains and merges by it.
 *
 *     tables, definitions --> schema of v3 --> schema of v2 --+--> JSON, "swagger": "2.0"
 *                                                             '--> protobuf, gnostic's Document
 *
 * It is made kind by kind into the bytes that are sent, so that never more than one kind is in memory
 * as values. What goes by which number in protobuf is in openapi_protobuf.c.
 */
#pragma once

#include "api/kind.h"
#include "base/str.h"

#define APISERVER_OPENAPI_V2_PROTOBUF "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

/* Appends the document of these kinds. */
void apiserver_openapi_v2(const struct api_kind *const *kinds, bool protobuf, struct str *out);

/* openapi_protobuf.c */
struct openapi_message;
extern const struct openapi_message openapi_info, openapi_path_item, openapi_schema;
/* A member of an object that JSON has by name: a message {name = 1, value = 2} as that field. */
void openapi_write_named(struct str *out, unsigned number, const char *name,
                         const struct openapi_message *message, const json_t *value);
void openapi_write_message(struct str *out, unsigned number, const struct openapi_message *message,
                           const json_t *value);
void openapi_write_bytes(struct str *out, unsigned number, const void *bytes, size_t n);
