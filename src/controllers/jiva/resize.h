/*
 * What the files of the resize controller share.
 */
#pragma once

#include "controllers/jiva/jiva.h"

struct resizing {
    struct jiva_work w; /* of the volume, which may be NULL */
    json_t *resize;     /* owned */
    uint64_t wanted;    /* bytes */
};

/* This moment, as the API writes it. */
json_t *resizing_now(const struct resizing *g);
/* quota.c: whether the namespace has no room for the growth; then why. */
bool resizing_over_quota(const struct resizing *g, struct str *ret_why);
