/*
 * Objects in Kubernetes' protobuf, which typed clients send for kinds that are built in.
 *
 *     "k8s\0"  Unknown{ typeMeta{apiVersion, kind}, raw, contentEncoding, contentType }
 *
 * `raw` is the message of the kind. Messages are tables of numbered fields (api/message.h): the
 * same table decodes and encodes. Only the kinds that clients must be able to send are there. What
 * Go's encoder writes for values that nobody set, "" and 0, is left out, as Go leaves it out of JSON.
 *
 * Input is hostile: lengths are checked against what is there, tables do not recur, so depth is
 * theirs, and the number of values is bounded.
 */
#pragma once

#include "api/message.h"

#define APISERVER_PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

/*
 * The object, with apiVersion and kind. INVALID_ARGUMENT ("BadRequest") when it is not well-formed,
 * UNIMPLEMENTED ("UnsupportedMediaType") when there is no table for its kind.
 */
json_t *apiserver_protobuf_parse(const void *bytes, size_t size, struct err *e);
/* The other way, appended. Members that the table does not have are left out. */
int apiserver_protobuf_format(const json_t *object, struct str *out, struct err *e);
