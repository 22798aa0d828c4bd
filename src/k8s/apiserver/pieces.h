/*
 * Bytes that wait to be sent, as references: what many send alike is in memory once, however many of
 * them do not read it.
 */
#pragma once

#include "base/str.h"
#include "k8s/apiserver/store.h"

/* Text that is shared; it never changes. */
struct pieces_text {
    unsigned refs; /* atomic */
    size_t size;
    char bytes[];
};

struct pieces_text *pieces_text_new(const struct str *text);
struct pieces_text *pieces_text_ref(struct pieces_text *t);
void pieces_text_unref(struct pieces_text *t); /* NULL is fine */

struct piece {
    const char *bytes;
    size_t size;
    struct pieces_text *text;        /* whose bytes they are; NULL: not */
    struct apiserver_object *object; /* the same */
};

struct pieces {
    VEC(struct piece) waiting;
    size_t next, offset; /* what was read of them: pieces, and bytes of the next */
    size_t bytes;        /* that wait */
};

void pieces_add_literal(struct pieces *p, const char *literal); /* it lives for ever */
void pieces_add_object(struct pieces *p, const struct apiserver_object *o);
void pieces_add_text(struct pieces *p, struct pieces_text *text); /* takes the reference */
/* At most max bytes, which then no longer wait. */
size_t pieces_read(struct pieces *p, char *buf, size_t max);
/* Forgets them all. */
void pieces_done(struct pieces *p);
