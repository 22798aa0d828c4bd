/*
 * What the files of this module share.
 */
#pragma once

#include "metrics/metrics.h"

struct metrics_out {
    struct str *text;
    const char *name; /* of the family that is being written */
};

/* format.c */
/* A line of NAME_bucket; bound NULL is +Inf. */
void out_bucket(struct metrics_out *out, const char *const *labels, const char *const *values,
                const double *bound, uint64_t count);
void out_suffixed(struct metrics_out *out, const char *suffix, const char *const *labels,
                  const char *const *values, double value);
