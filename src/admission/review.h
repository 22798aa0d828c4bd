/*
 * AdmissionReview in, AdmissionReview out: the rules of our kinds for other people's API servers.
 *
 *     bytes ─> JSON ─> request ─> kind of ours? ─> normal form, structure, rules ─> rules among
 *                                     │ no                                          other objects
 *                                     └──> allowed                                        │
 *     bytes <─ JSON <─ response: allowed, or refused with a Status <──────────────────────┘
 *
 * It is the same code that the embedded API server runs (api/admit.h, api/among.h). The bytes are
 * hostile: whoever reaches the port can send them. What is no review is an error, never a refusal; and
 * so is one about which other objects cannot be asked: the configuration says what happens then.
 */
#pragma once

#include "api/among.h"

/* Who can answer. */
struct admission_judge {
    const struct api_lookup *lookup;
    /* Makes an object that an allowed request leads to; NULL: nobody does. */
    void (*fulfil)(void *context, const json_t *wish);
    void *context;
};

/* What was decided, for counting. */
struct admission_verdict {
    const struct api_kind *kind; /* NULL: none of ours */
    const char *operation;       /* a literal */
    bool allowed;
};

/* The answer; NULL with INVALID_ARGUMENT when it is no review, and with another code when nobody can say. */
json_t *admission_review(const struct admission_judge *judge, const char *body, size_t n,
                         struct admission_verdict *ret_verdict, struct err *e);
