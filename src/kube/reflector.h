/*
 * Follows a collection on a thread of its own: lists it, then watches it from there, for ever. It
 * keeps nothing of the objects; what it hears it tells to whoever keeps a copy.
 *
 *               .-------------------- wait a little -------------------.
 *               v                                                      |
 *     begin, page, page, ..., replace --> watch: event, event, ... ----+--> lost touch: watch again
 *               ^                                                      |    from the last version
 *               '-- too old (410), or anything that cannot be right ---'
 *
 * Lost touch is a connection that broke, a watch that ended or was silent for too long, a server that
 * is busy: nothing was missed yet. What cannot be right is an event of a type that does not exist,
 * JSON that is none, an object of another kind or place or older than what came before it, a line
 * without an end: then nothing that was heard on this way can be relied on, and a list settles it.
 *
 * The delay before another attempt doubles from 100 ms while things go wrong, and starts anew when
 * they have gone well for a while.
 */
#pragma once

#include "kube/client.h"

struct kube_reflector;

enum kube_event { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED };

/* All on the reflector's thread. -1 with *e: this cannot be right; a new list begins. */
struct kube_reflector_ops {
    /* A new list; what was told of one before that was not replaced is void. */
    void (*begin)(void *context);
    int (*page)(void *context, const json_t *items, struct err *e);
    /* The list is complete: it is what there is. */
    void (*replace)(void *context);
    int (*event)(void *context, enum kube_event type, const json_t *object, struct err *e);
    /* It was stopped, or the client was. The last call. */
    void (*end)(void *context);
};

struct kube_reflector_options {
    struct kube_client *client;
    struct kube_resource resource;
    const char *ns, *labels, *fields; /* must live as long, as must all that the resource names */
    unsigned page;                    /* 0: 500 */
    int64_t stall_ns;                 /* 0: 3 minutes */
    int64_t backoff_max_ns;           /* 0: 30 s */
    const struct clock *clock;        /* NULL: the client's */
    struct metrics *metrics;
    const struct kube_reflector_ops *ops;
    void *context;
};

struct kube_reflector *kube_reflector_new(const struct kube_reflector_options *o);
int kube_reflector_start(struct kube_reflector *r, struct err *e);
void kube_reflector_stop(struct kube_reflector *r); /* ends its thread, if there is one */
void kube_reflector_free(struct kube_reflector *r); /* stopped */
/* On its thread: whether the last list found that the server has no such kind. */
bool kube_reflector_missing(const struct kube_reflector *r);
/* What went wrong last; code OK when nothing did since the last time that all was well. */
void kube_reflector_last(struct kube_reflector *r, struct err *ret_e);
