/*
 * Kubernetes' binary form, as far as clients insist on it: kubectl and other Go clients write some
 * kinds in protobuf and have no second choice. Bodies are turned into JSON on arrival; answers are
 * JSON always, which these clients take too.
 *
 *     "k8s\0"  Unknown{ 1: TypeMeta{ 1: apiVersion, 2: kind }, 2: the object's own message }
 *
 * A kind that can come in this form has a table of its message's fields in protobuf.c. Go's encoder
 * writes "" and 0 for what nobody set; they are left out, as Go leaves them out of JSON.
 */
#pragma once

#include "json/json.h"

#define APISERVER_PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

/* The object; UnsupportedMediaType for kinds without a table, BadRequest for what is damaged. */
json_t *apiserver_protobuf_decode(const void *bytes, size_t size, struct err *e);
