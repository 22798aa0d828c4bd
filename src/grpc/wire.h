/*
 * What gRPC puts into HTTP/2: texts of headers, and the prefix of messages. Functions of their input.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum { GRPC_PREFIX = 5, GRPC_MESSAGE_MAX = 4 << 20 };

/* grpc-timeout: up to eight digits and a unit. False: it is none. Times too long to be counted are INT64_MAX. */
bool grpc_parse_timeout(const char *text, size_t n, int64_t *ret_ns);
/* The shortest form that is not shorter than ns > 0. */
void grpc_format_timeout(int64_t ns, char ret[16]);

/* grpc-message: UTF-8, where all but printable ASCII, and '%', is written as %XX. */
void grpc_encode_message(const char *text, struct str *out);
/* What is no valid escape stays as it is. */
void grpc_decode_message(const char *text, size_t n, struct str *out);

/*
 * The first message of a body: 1 with its bytes, 0 when it has not come whole, -1 when it cannot be one:
 * RESOURCE_EXHAUSTED (longer than `most`), UNIMPLEMENTED (compressed), INVALID_ARGUMENT.
 */
int grpc_take_message(const struct str *body, size_t from, size_t most, const uint8_t **ret_bytes,
                      size_t *ret_n, struct err *e);
void grpc_put_prefix(struct str *out, size_t n);
/* A code from its digits; UNKNOWN for what is none. */
enum err_code grpc_parse_status(const char *text, size_t n);
