/*
 * Rules that look at other objects: is this block device free, does a volume live on this pool?
 *
 *     the API server: its store ─┐
 *     the webhook:    a client  ─┼─ struct api_lookup ──> the kind's `among` ──> problems, wishes
 *     orlop validate: files     ─┘
 *
 * They run when everything else about the object was found to be right, so they see normal form and
 * need not check types. They decide by what others are at this moment; a rule that must hold though
 * others write at the same time is the caller's to see to.
 *
 * A rule may have wishes: objects that should exist as soon as what was asked for is done, such as
 * the claim for a device that takes another's place. Who asked only what would happen gets none.
 * They are a courtesy: the controller of the kind comes to the same.
 */
#pragma once

#include "api/kind.h"

/* How other objects are found. Everything that is returned is in normal form, a new reference. */
struct api_lookup {
    /* NULL: there is none, or with an error that it cannot be said. */
    json_t *(*get)(void *context, const struct api_kind *kind, const char *namespace,
                   const char *name, struct err *e);
    /* An array of all in the namespace, of all where that is NULL; NULL with an error. */
    json_t *(*list)(void *context, const struct api_kind *kind, const char *namespace,
                    struct err *e);
    void *context;
};

struct api_among {
    const struct api_lookup *lookup;
    const json_t *object; /* NULL of a deletion */
    const json_t *old;    /* NULL of a creation */
    struct api_report *report;
    /* An array that gets the wishes; one with a resourceVersion is to be updated. NULL: nobody asks. */
    json_t *wishes;
};

/*
 * Whether the kind has such rules for a write; old and object as above. What changes neither spec nor
 * whether the object is there concerns none.
 */
bool api_among_concerns(const struct api_kind *kind, const json_t *old, const json_t *object);
/* Runs them. -1: other objects could not be looked at; what was found is in the report. */
int api_check_among(const struct api_kind *kind, const struct api_among *a, struct err *e);
