/*
 * From jansson's error to a message for the person who wrote the text. jansson says how many bytes
 * it had read, which is the end of the token it could not use. The start of that token and the
 * token before it show what went wrong.
 */
#include <stdio.h>

#include "json/internal.h"

struct token {
    size_t start, end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '.' || (c & 0x80);
}

/* The token at or after offset: a string, a word or number, or one character. Empty at the end. */
static struct token token_at(const char *text, size_t len, size_t offset)
{
    while (offset < len && is_blank(text[offset]))
        offset++;
    struct token t = {offset, offset};
    if (t.end == len)
        return t;
    if (text[t.end] == '"') {
        for (t.end++; t.end < len && text[t.end] != '"' && text[t.end] != '\n'; t.end++)
            t.end += text[t.end] == '\\' && t.end + 1 < len;
        t.end += t.end < len;
    } else if (is_word(text[t.end])) {
        while (t.end < len && is_word(text[t.end]))
            t.end++;
    } else {
        t.end++;
    }
    return t;
}

/* The token that jansson stopped in, and the one before it (ends at 0 when there is none). */
static struct token token_of(const char *text, size_t len, size_t stopped, struct token *ret_before)
{
    struct token t = {0, 0};
    do {
        *ret_before = t;
        t = token_at(text, len, t.end);
    } while (t.end < stopped && t.start < len);
    return t;
}

/* As much of the token as helps to find it. */
static const char *shown(char buf[64], const char *text, struct token t)
{
    size_t n = t.end - t.start, most = 40;
    bool cut = n > most;
    if (cut) {
        for (n = most; n && ((unsigned char)text[t.start + n] & 0xc0) == 0x80;)
            n--;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[t.start + i];
        buf[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    memcpy(buf + n, cut ? "..." : "", cut ? 4 : 1);
    return buf;
}

static bool word_in(const char *text, struct token t, const char *const *words)
{
    char word[16] = "";
    if (t.end - t.start < sizeof(word))
        memcpy(word, text + t.start, t.end - t.start);
    return *word && str_in(word, words);
}

/* What to do about a token that never has a place in JSON, or not there; NULL: nothing known. */
static const char *remedy(const char *text, size_t len, struct token t, struct token before)
{
    static const char *const constants[] = {"True", "TRUE",      "False", "FALSE", "None",
                                            "NULL", "Null",      "yes",   "no",    "on",
                                            "off",  "undefined", NULL};
    static const char *const numbers[] = {"NaN", "nan", "Infinity", "-Infinity", "inf", NULL};
    const char *at = text + t.start;
    size_t n = t.end - t.start;

    if (*at == '\'')
        return "strings are in double quotes in JSON";
    if (*at == '#' || (*at == '/' && t.end < len && (at[1] == '/' || at[1] == '*')))
        return "JSON has no comments; remove it, or write YAML, where they start with \"#\"";
    if ((*at == '}' || *at == ']') && before.end && text[before.end - 1] == ',')
        return "remove the comma in front of it; JSON allows none after the last element";
    if (word_in(text, t, constants))
        return "write true, false or null";
    if (word_in(text, t, numbers))
        return "JSON has no such number";
    if (n >= 3 && (memcmp(at, "“", 3) == 0 || memcmp(at, "”", 3) == 0 || memcmp(at, "‘", 3) == 0 ||
                   memcmp(at, "’", 3) == 0))
        return "that is a typographic quote; write a plain \"";
    if (n > 1 && (*at == '0' || (*at == '-' && at[1] == '0')))
        return "numbers are decimal and have no leading zeros in JSON";
    if (*at == '+' || *at == '.')
        return "a number starts with a digit or \"-\" in JSON";
    return NULL;
}

static size_t hint_token(const char *text, size_t len, const json_error_t *error, struct err *e)
{
    struct token before, t = token_of(text, len, (size_t)error->position, &before);
    char buf[64];
    const char *what = shown(buf, text, t);
    const char *fix = t.start < len ? remedy(text, len, t, before) : NULL;
    bool starts_value =
        t.start < len && (json_is_one_of(text[t.start], "\"{[") || is_word(text[t.start]));

    if (fix)
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON", "%s has no place here: %s", what, fix);
    else if (json_error_code(error) == json_error_end_of_input_expected)
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "%s stands after the end of the JSON value; remove it", what);
    else if (str_starts_with(error->text, "':' expected"))
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON", "write \":\" between the key and %s", what);
    else if (str_starts_with(error->text, "string or '}' expected"))
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "%s is no key; keys are strings in double quotes in JSON", what);
    else if (strstr(error->text, "' expected") && starts_value)
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON", "write a comma in front of %s", what);
    else
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON", "%s has no place here; a value is expected",
                what);
    return t.start;
}

/* The text ends too early: the innermost bracket that is still open is where to look. */
static size_t hint_end(const char *text, size_t len, struct err *e)
{
    size_t open[JSON_MAX_DEPTH];
    unsigned depth = 0;
    struct token t = {0, 0}, last;

    for (;;) {
        last = t;
        t = token_at(text, len, t.end);
        if (t.start == len)
            break;
        if ((text[t.start] == '{' || text[t.start] == '[') && depth < JSON_MAX_DEPTH)
            open[depth++] = t.start;
        else if ((text[t.start] == '}' || text[t.start] == ']') && depth)
            depth--;
    }
    if (last.end && text[last.start] == '"' &&
        (last.end == last.start + 1 || text[last.end - 1] != '"')) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "the string that starts here has no end; "
                "write its closing quote");
        return last.start;
    }
    if (depth) {
        bool object = text[open[depth - 1]] == '{';
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "the \"%c\" here is never closed; write its \"%c\"", object ? '{' : '[',
                object ? '}' : ']');
        return open[depth - 1];
    }
    err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON", "there is no JSON value");
    return len;
}

/* Mistakes inside a string: jansson stopped at the character, the token is the whole string. */
static size_t hint_string(const char *text, size_t len, const json_error_t *error, struct err *e)
{
    struct token before, t = token_of(text, len, (size_t)error->position, &before);

    if (str_starts_with(error->text, "unexpected newline")) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "the string that starts here does not end on its line; write its closing quote, or "
                "\\n for a line break inside");
        return t.start;
    }
    if (str_starts_with(error->text, "control character")) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "a control character inside a string; write it as \\t or \\u00XX");
        return (size_t)error->position;
    }
    if (str_starts_with(error->text, "invalid escape")) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "no such escape; after a backslash JSON knows \" \\ / b f n r t and uXXXX, and a "
                "backslash itself is \\\\");
        size_t at = (size_t)error->position - 1;
        while (at > t.start && text[at] != '\\')
            at--;
        return at;
    }
    err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
            "the string here has a \\uXXXX that is half a character; write both halves");
    return t.start;
}

size_t json_hint(const char *text, size_t len, const json_error_t *error, struct err *e)
{
    struct token before, t = token_of(text, len, (size_t)error->position, &before);
    char buf[64];

    switch (json_error_code(error)) {
    case json_error_invalid_utf8:
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "the byte here is not UTF-8; save the text as UTF-8");
        return (size_t)error->position;
    case json_error_null_character:
    case json_error_null_byte_in_key:
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "a string cannot contain \\u0000; remove it");
        return t.start;
    case json_error_duplicate_key:
        err_set(e, ERR_INVALID_ARGUMENT, "DuplicateKey",
                "the key %s is here twice in the same object; remove one",
                shown(buf, text, before.end && text[t.start] == ':' ? before : t));
        return text[t.start] == ':' ? before.start : t.start;
    case json_error_numeric_overflow:
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "the number %s is too large; write a smaller one, or a string in quotes",
                shown(buf, text, t));
        return t.start;
    case json_error_premature_end_of_input:
        return hint_end(text, len, e);
    case json_error_invalid_syntax:
        if (t.start < len && text[t.start] == '"' && !strstr(error->text, " expected near"))
            return hint_string(text, len, error, e);
        break;
    default:
        break;
    }
    return hint_token(text, len, error, e);
}
