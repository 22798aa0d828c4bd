/*
 * Objects in Kubernetes' protobuf, which typed clients send for kinds that are built in.
 *
 *     "k8s\0"  Unknown{ typeMeta{apiVersion, kind}, raw, contentEncoding, contentType }
 *
 * `raw` is the message of the kind. Messages are tables of numbered fields (protobuf_tables.h): the
 * same table decodes and encodes. Only the kinds that clients must be able to send are there. What
 * Go's encoder writes for values that nobody set, "" and 0, is left out, as Go leaves it out of JSON.
 *
 * Input is hostile: lengths are checked against what is there, tables do not recur, so depth is
 * theirs, and the number of values is bounded.
 */
#pragma once

#include "json/json.h"

#define APISERVER_PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

enum apiserver_protobuf_kind {
    APISERVER_PROTOBUF_STRING,
    APISERVER_PROTOBUF_BOOL,
    APISERVER_PROTOBUF_INT,
    APISERVER_PROTOBUF_BYTES,      /* in JSON base64 */
    APISERVER_PROTOBUF_MESSAGE,    /* .fields */
    APISERVER_PROTOBUF_TIME,       /* {seconds, nanos}; in JSON to the second */
    APISERVER_PROTOBUF_MICRO_TIME, /* in JSON to the microsecond */
    APISERVER_PROTOBUF_QUANTITY,   /* {string} */
    /* {type, intVal, strVal}; type 1 is a string */
    APISERVER_PROTOBUF_INT_OR_STRING,
    APISERVER_PROTOBUF_JSON,       /* {raw}: the text of a JSON value */
    APISERVER_PROTOBUF_INLINE,     /* .fields, which in JSON are members of the object around */
    APISERVER_PROTOBUF_MAP,        /* of strings */
    APISERVER_PROTOBUF_BYTES_MAP,  /* of bytes; in JSON base64 */
    APISERVER_PROTOBUF_QUANTITIES, /* a map of quantities */
    APISERVER_PROTOBUF_LISTS,      /* a map of lists of strings: {items} */
};

struct apiserver_protobuf_field {
    const char *name;
    unsigned number; /* 0 ends a table */
    enum apiserver_protobuf_kind kind;
    const struct apiserver_protobuf_field *fields;
    bool repeated;
    bool keep; /* false, 0 and "" say something */
};

/* The message of a kind; NULL when there is no table for it. */
const struct apiserver_protobuf_field *apiserver_protobuf_find(const char *api_version,
                                                               const char *kind);

/*
 * The object, with apiVersion and kind. INVALID_ARGUMENT ("BadRequest") when it is not well-formed,
 * UNIMPLEMENTED ("UnsupportedMediaType") when there is no table for its kind.
 */
json_t *apiserver_protobuf_parse(const void *bytes, size_t size, struct err *e);
/* The other way, appended. Members that the table does not have are left out. */
int apiserver_protobuf_format(const json_t *object, struct str *out, struct err *e);
