/*
 * Bytes as text: base64 as in Secrets and kubeconfigs, and its variant for URLs without padding, as
 * in JSON web tokens.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum base64_kind {
    BASE64_STD, /* +/ and padding */
    BASE64_URL, /* -_ and none */
};

/* Appends. */
void base64_format(const void *bytes, size_t n, enum base64_kind kind, struct str *out);
/*
 * Appends the bytes; false, and nothing appended, for text that base64_format() would not have
 * written: other letters, wrong padding, bits that belong to no byte. So no two texts mean the same.
 */
bool base64_parse(const char *text, size_t n, enum base64_kind kind, struct str *out);
