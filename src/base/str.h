/*
 * A string that grows, and small string questions.
 *
 * `struct str` is always terminated once something was appended; `len` does not count the NUL.
 * Zero-initialised is empty and valid: `_cleanup_(str_done) struct str s = {0};`
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    char *p; /* owned; NULL while nothing was ever appended */
    size_t len;
    size_t cap;
};

void str_done(struct str *s);
void str_clear(struct str *s); /* keeps the memory */
void str_append(struct str *s, const char *text);
void str_append_n(struct str *s, const void *bytes, size_t n); /* not bytes of s itself */
void str_append_c(struct str *s, char c);
void str_appendf(struct str *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));
void str_vappendf(struct str *s, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0), nonnull(2)));
void str_truncate(struct str *s, size_t len);
/* The text, "" when empty; still owned by s. */
const char *str_get(const struct str *s);
/* The text, now the caller's to free; s is empty again. Never NULL. */
char *str_take(struct str *s);

static inline bool str_eq(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool str_starts_with(const char *s, const char *prefix);
bool str_ends_with(const char *s, const char *suffix);
/* How many bytes of s to show when there is room for `most`: never half a UTF-8 character. */
size_t str_cut(const char *s, size_t most);
/* The length in bytes of the UTF-8 character that s begins with, 0 when there is no valid one. */
size_t str_utf8(const char *s, size_t n, uint32_t *ret_c);
bool str_in(const char *s, const char *const *words); /* words end with NULL */
/* How many single-character edits lie between a and b, counting at most `most` (then most + 1). */
unsigned str_distance(const char *a, const char *b, unsigned most);
/* The word nearest to s, for "did you mean"; NULL when none is near enough to suggest. */
const char *str_nearest(const char *s, const char *const *words);
