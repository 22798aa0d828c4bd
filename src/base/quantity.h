/*
 * Quantity: Kubernetes' exact numbers with a suffix.
 *
 * A quantity is an integer count of nano-units, at most 2^63-1 whole units either way. That count
 * fits 128 bits with room to spare, so parsing, comparing, adding and formatting are exact.
 *
 *     text      value              canonical text
 *     1.5Gi     1610612736         1536Mi       largest suffix that leaves no fraction
 *     1e3       1000               1e3          the family of the suffix is kept
 *     100m      0.1                100m
 *     0.1n      rounded up to 1n   1n           nothing is finer than nano; away from zero
 *
 * Two things that Kubernetes lets pass are refused, because a size that nobody asked for is worse
 * than an error: a number past the limit, which it caps, and a text without a digit such as "Gi" or
 * "-", which it takes for zero although its own grammar forbids it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum quantity_format {
    QUANTITY_DECIMAL_SI, /* n u m k M G T P E */
    QUANTITY_BINARY_SI,  /* Ki Mi Gi Ti Pi Ei */
    QUANTITY_DECIMAL_EXP /* e3 e6 e-3 */
};

struct quantity {
    __int128 nano;
    enum quantity_format format;
};

enum { QUANTITY_TEXT_MAX = 48 };

int quantity_parse(const char *text, struct quantity *ret_q, struct err *e);
/* Canonical text, always terminated; returns buf. */
char *quantity_format(const struct quantity *q, char buf[QUANTITY_TEXT_MAX]);

struct quantity quantity_from_int(int64_t units, enum quantity_format format);
/* Whole units, a fraction rounded up (away from zero). */
int64_t quantity_to_int(const struct quantity *q);
/* True when there is no fraction. */
bool quantity_is_whole(const struct quantity *q);

int quantity_cmp(const struct quantity *a, const struct quantity *b);
int quantity_sign(const struct quantity *q);
/* The result takes a's format. Fails with OUT_OF_RANGE past the limits and leaves *ret as it was. */
int quantity_add(const struct quantity *a, const struct quantity *b, struct quantity *ret_q,
                 struct err *e);
int quantity_sub(const struct quantity *a, const struct quantity *b, struct quantity *ret_q,
                 struct err *e);

/* text as a whole number of bytes >= 0, for sizes; refuses negative, fractional and overflowing. */
int quantity_parse_bytes(const char *text, uint64_t *ret_bytes, struct err *e);
