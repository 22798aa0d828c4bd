/*
 * RFC 6901 JSON Pointer: "/spec/pools/0/nodeSelector/kubernetes.io~1hostname".
 */
#pragma once

#include "json/json.h"

/* The value, borrowed; NULL with NOT_FOUND or INVALID_ARGUMENT in *e. */
json_t *json_pointer_get(const json_t *root, const char *pointer, struct err *e);
/* Appends "/" and the escaped key. */
void json_pointer_append(struct str *pointer, const char *key);
void json_pointer_append_index(struct str *pointer, size_t index);
/*
 * Takes the next token off *pointer and unescapes it into token. 1: a token; 0: no more; -1: not a
 * pointer.
 */
int json_pointer_next(const char **pointer, struct str *token, struct err *e);
/* An array index as the RFC spells it: digits without leading zeros, below limit. */
bool json_pointer_index(const char *token, size_t limit, size_t *ret_index);
