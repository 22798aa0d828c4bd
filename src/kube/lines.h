/*
 * Cuts a stream into lines, however the bytes arrive.
 *
 * What is kept is the beginning of one line, at most `limit` bytes: a longer one ends the stream with
 * RESOURCE_EXHAUSTED "LineTooLong". Lines that arrive whole are not copied. What comes after the last
 * line end is no line: half of one means nothing.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct kube_lines {
    size_t limit;
    /* Without its line end, never empty, and no NUL behind it. -1 with *e ends the stream. */
    int (*line)(void *context, const char *text, size_t n, struct err *e);
    void *context;
    struct str begun;
};

int kube_lines_feed(struct kube_lines *l, const char *bytes, size_t n, struct err *e);
void kube_lines_done(struct kube_lines *l);
