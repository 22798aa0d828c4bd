/*
 * Private to this module: lines of YAML text as a person sees them, for text that does not parse.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct lines {
    const char *text;
    size_t len;
};

struct line {
    unsigned number; /* from 1; 0 is no line */
    const char *p;
    size_t len;    /* without the line break and blanks before it */
    size_t indent; /* of blanks at its start */
    size_t body;   /* where the text starts, after "- " as well */
};

/* A line by its number; an empty one at the end of the text when there are fewer. */
struct line line_of(const struct lines *t, size_t number);
/* The nearest line before this one that is neither blank nor a comment. */
struct line line_before(const struct lines *t, struct line l);

/* The byte of a line at which a column of characters (from 0) stands. */
size_t line_byte(struct line l, size_t column);
/* How much of a line from `from` on to show: up to a comment, and not half a character. */
int line_shown(struct line l, size_t from);
/* Where the first colon of a line's text is that ends a key; its length when there is none. */
size_t line_key_end(struct line l);
/* The opening quote of a value that does not close on its line; l.len when all of them do. */
size_t line_open_quote(struct line l);
