#include "base/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/str.h"

/*
 * Steps of one match and memory for places to go back to (KiB). RE2 has no such limits, it is
 * linear; a pattern that means to say something stays far below them.
 */
enum { STEPS = 200000, HEAP = 4 * 1024 };

struct pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
};

static int bad(struct err *e, size_t at, const char *why)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidPattern", "at byte %zu: %s", at + 1, why);
}

/* What follows a backslash; RE2 has fewer of them. */
static int check_escape(const char *text, size_t at, struct err *e)
{
    char c = text[at + 1];
    if (!c)
        return bad(e, at, "a trailing backslash");
    if (c >= '1' && c <= '9')
        return bad(e, at, "references back to a group are not supported");
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter && !strchr("abfnrtvxdDsSwWAzBpPQE", c))
        return bad(e, at, "this escape sequence is not supported");
    return 0;
}

/* What follows "(?": a group without capture, a name, or flags. */
static int check_group(const char *text, size_t at, struct err *e)
{
    const char *p = text + at + 2;
    if (str_starts_with(p, "P<") || (*p == '<' && p[1] != '=' && p[1] != '!'))
        return 0;
    size_t flags = strspn(p, "imsU-");
    if (p[flags] == ':' || (flags > 0 && p[flags] == ')'))
        return 0;
    return bad(e, at, "lookaround and other extensions of groups are not supported");
}

/* The end of the class that begins at `at`: its ']', or the end of the text. */
static size_t skip_class(const char *text, size_t at)
{
    at++;
    if (text[at] == '^')
        at++;
    if (text[at] == ']')
        at++;
    while (text[at] && text[at] != ']') {
        if (text[at] == '[' && text[at + 1] == ':') {
            const char *end = strstr(text + at + 2, ":]");
            at = end ? (size_t)(end - text) + 1 : at + 1;
        } else if (text[at] == '\\' && text[at + 1]) {
            at++;
        }
        at++;
    }
    return at;
}

/* Where a repetition ends that begins at `at`: * + ? {n,m}, and a ? that makes it lazy. 0: none. */
static size_t skip_repetition(const char *text, size_t at)
{
    size_t end = at;
    if (text[at] == '{') {
        size_t n = strspn(text + at + 1, "0123456789,");
        if (!n || text[at + 1] == ',' || text[at + 1 + n] != '}')
            return 0;
        end = at + n + 1;
    } else if (!text[at] || !strchr("*+?", text[at])) {
        return 0;
    }
    return text[end + 1] == '?' ? end + 2 : end + 1;
}

/* Refuses what the library knows and RE2 does not. */
static int check_syntax(const char *text, struct err *e)
{
    for (size_t at = 0; text[at]; at++) {
        size_t end = skip_repetition(text, at);
        if (end) {
            if (text[end] && strchr("*+?", text[end]))
                return bad(e, at, "a repetition of a repetition");
            at = end - 1;
        } else if (text[at] == '[') {
            at = skip_class(text, at);
            if (!text[at])
                break; /* the library says it better */
        } else if (text[at] == '(' && text[at + 1] == '*') {
            return bad(e, at, "a repetition of nothing");
        } else if (text[at] == '(' && text[at + 1] == '?') {
            if (check_group(text, at, e) < 0)
                return -1;
            at++; /* the '?' repeats nothing */
        } else if (text[at] == '\\') {
            if (check_escape(text, at, e) < 0)
                return -1;
            const char *quoted = text[at + 1] == 'Q' ? strstr(text + at, "\\E") : NULL;
            if (text[at + 1] == 'Q' && !quoted)
                break; /* to the end */
            at = quoted ? (size_t)(quoted - text) + 1 : at + 1;
        }
    }
    return 0;
}

struct pattern *pattern_new(const char *text, struct err *e)
{
    if (strlen(text) > PATTERN_MAX) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidPattern", "it is longer than %d bytes",
                PATTERN_MAX);
        return NULL;
    }
    if (check_syntax(text, e) < 0)
        return NULL;
    int code;
    PCRE2_SIZE offset;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C |
                                             PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE,
                                         &code, &offset, NULL);
    if (!compiled) {
        char why[128];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why));
        bad(e, offset, why);
        return NULL;
    }
    struct pattern *p = NEW(struct pattern);
    p->code = compiled;
    p->limits = pcre2_match_context_create(NULL);
    if (!p->limits)
        abort(); /* out of memory */
    pcre2_set_match_limit(p->limits, STEPS);
    pcre2_set_heap_limit(p->limits, HEAP);
    return p;
}

void pattern_free(struct pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    free(p);
}

enum pattern_match pattern_find(const struct pattern *p, const char *text, size_t size, size_t from,
                                size_t *ret_start, size_t *ret_end)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (!data)
        abort(); /* out of memory */
    int found = pcre2_match(p->code, (PCRE2_SPTR)text, size, from, 0, data, p->limits);
    if (found >= 0) {
        *ret_start = pcre2_get_ovector_pointer(data)[0];
        *ret_end = pcre2_get_ovector_pointer(data)[1];
    }
    pcre2_match_data_free(data);
    if (found >= 0)
        return PATTERN_YES;
    return found == PCRE2_ERROR_NOMATCH ? PATTERN_NO : PATTERN_TOO_HARD;
}

enum pattern_match pattern_match(const struct pattern *p, const char *text, size_t size)
{
    size_t start, end;
    return pattern_find(p, text, size, 0, &start, &end);
}
