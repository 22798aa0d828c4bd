/*
 * What the files of the resize controller share.
 */
#pragma once

#include "controllers/volume/volume.h"
#include "kinds/jiva.h"

struct resizing {
    struct volume_work w; /* of the volume, which may be NULL */
    json_t *resize;       /* owned */
    uint64_t wanted;      /* bytes */
};

/* What the resize says now. */
static inline struct jiva_resize resizing_look(const struct resizing *g)
{
    return jiva_resize_of(g->resize, NULL);
}

/* resize.c */
/* It waits: the phase stays, and it is said for what. */
int resizing_wait(struct resizing *g, const char *reason, const char *message, struct err *e);

/* resize_checks.c */
enum { RESIZING_TEXT_MAX = 600 };
/* Why it cannot be done at all, as a reason and a text; NULL: it can. */
const char *resizing_why_never(const struct resizing *g, char text[RESIZING_TEXT_MAX]);
/* What the volume has to be for its size to change, with the reason; NULL: it is so. */
const char *resizing_why_not_now(const struct resizing *g, const char **ret_reason,
                                 struct str *text);

/* resize_lock.c */
bool resizing_holds_lock(const struct resizing *g);
/* 1 with the lock; 0 while it waits for it. */
int resizing_lock(struct resizing *g, struct err *e);
/* Takes lock and order off the volume, if they are ours and nobody has acted on them since. */
int resizing_unlock(struct resizing *g, struct err *e);

/* quota.c */
/*
 * Whether the namespace has no room for the growth; then why. When it has, the growth is promised,
 * so that another, which is looked at beside it, counts it.
 */
bool resizing_over_quota(const struct resizing *g, struct str *ret_why);
/* What was promised is none any more: it has grown, or will not. */
void resizing_forget(const struct resizing *g);
