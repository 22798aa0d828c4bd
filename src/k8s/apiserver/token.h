/*
 * Continue tokens: where a list that was cut goes on. To clients they are opaque; they are what
 * Kubernetes makes them, base64 (of URLs, unpadded) of {"v":"meta.k8s.io/v1","rv":7,"start":"key"}.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct apiserver_token {
    uint64_t revision; /* of the first page; 0: whatever there is now, inconsistent with it */
    struct str after;  /* the last key that was given */
};

/* Appended. */
void apiserver_token_format(uint64_t revision, const char *after, struct str *out);
/* BadRequest when it is none of ours. */
int apiserver_token_parse(const char *text, struct apiserver_token *ret_token, struct err *e);
