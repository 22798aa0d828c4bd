/*
 * From libyaml's error to the mistake. libyaml names the place where it gave up, which is often a
 * line or more after the slip: "a:1" is fine as the start of a long string, and only the next line
 * shows that it was meant as a key. So each rule below knows one slip, looks for it in the lines
 * around the place, and if it is there moves the position to it and says what to write instead.
 * The first rule that knows wins; the last one repeats libyaml.
 */
#include <stdio.h>
#include <yaml.h>

#include "base/mem.h"
#include "json/internal.h"
#include "json/node.h"
#include "json/yaml_line.h"

struct hint {
    const yaml_parser_t *parser;
    struct lines lines;
    struct line at;       /* the line where libyaml gave up */
    size_t column;        /* the byte in it */
    struct line context;  /* where what it was reading began */
    struct json_pos base; /* where the text starts in the stream */
    struct json_pos *pos;
    struct err *e;
};

static bool say(struct hint *h, struct line l, size_t byte, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static bool say(struct hint *h, struct line l, size_t byte, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(h->e, ERR_INVALID_ARGUMENT, "InvalidYAML", fmt, ap);
    va_end(ap);
    *h->pos = (struct json_pos){l.number, 1};
    for (size_t i = 0; i < byte && i < l.len; i++)
        h->pos->column += ((unsigned char)l.p[i] & 0xc0) != 0x80;
    return true;
}

static bool problem_is(const struct hint *h, const char *part)
{
    return h->parser->problem && strstr(h->parser->problem, part);
}

static bool context_is(const struct hint *h, const char *part)
{
    return h->parser->context && strstr(h->parser->context, part);
}

static bool rule_encoding(struct hint *h)
{
    if (h->parser->error != YAML_READER_ERROR)
        return false;
    struct json_pos at = json_pos_at(h->lines.text, h->lines.len, h->parser->problem_offset);
    struct line l = line_of(&h->lines, at.line);
    size_t byte = line_byte(l, at.column - 1);
    if (problem_is(h, "control characters"))
        return say(h, l, byte,
                   "the character U+%04X is not allowed here; remove it, or write it as an escape "
                   "in double quotes",
                   (unsigned)h->parser->problem_value);
    return say(h, l, byte, "the byte 0x%02X here is not UTF-8; save the text as UTF-8",
               (unsigned)h->parser->problem_value & 0xff);
}

/* The lines that may hold the slip, nearest first: where libyaml stopped, and what was before. */
static unsigned suspects(const struct hint *h, struct line ret[4])
{
    unsigned n = 0;
    if (context_is(h, "simple key"))
        ret[n++] = h->context;
    ret[n++] = h->at;
    struct line before = line_before(&h->lines, h->at);
    if (before.number)
        ret[n++] = before;
    if (before.number && (before = line_before(&h->lines, before)).number)
        ret[n++] = before;
    return n;
}

static bool rule_comment(struct hint *h)
{
    struct line lines[4];
    for (unsigned i = 0, n = suspects(h, lines); i < n; i++) {
        struct line l = lines[i];
        if (l.len < l.indent + 2 || l.p[l.indent] != '/' ||
            (l.p[l.indent + 1] != '/' && l.p[l.indent + 1] != '*'))
            continue;
        size_t from = l.indent + 2;
        while (from < l.len && l.p[from] == ' ')
            from++;
        return say(h, l, l.indent, "comments start with \"#\" in YAML; write \"# %.*s\"",
                   line_shown(l, from), l.p + from);
    }
    return false;
}

static bool rule_tab(struct hint *h)
{
    const char *tab = h->at.len ? memchr(h->at.p, '\t', h->at.indent) : NULL;
    if (tab)
        return say(h, h->at, (size_t)(tab - h->at.p),
                   "a tab in the indentation; YAML is indented with spaces only");
    return false;
}

static bool rule_conflict(struct hint *h)
{
    struct line lines[4];
    for (unsigned i = 0, n = suspects(h, lines); i < n; i++) {
        struct line l = lines[i];
        if (l.len >= 7 && (memcmp(l.p, "<<<<<<<", 7) == 0 || memcmp(l.p, ">>>>>>>", 7) == 0 ||
                           memcmp(l.p, "=======", 7) == 0))
            return say(h, l, 0,
                       "a conflict that a merge left behind; choose one side and remove "
                       "the markers");
    }
    return false;
}

/* key:value */
static bool rule_no_space(struct hint *h)
{
    if (!problem_is(h, "expected ':'") && !problem_is(h, "mapping values") &&
        !problem_is(h, "expected key") && !problem_is(h, "'-' indicator") &&
        !problem_is(h, "<document start>"))
        return false;
    struct line lines[4];
    for (unsigned i = 0, n = suspects(h, lines); i < n; i++) {
        struct line l = lines[i];
        const char *colon = l.len ? memchr(l.p + l.body, ':', l.len - l.body) : NULL;
        if (!colon || line_key_end(l) < l.len)
            continue;
        size_t at = (size_t)(colon - l.p);
        if (at == l.body || at + 1 == l.len || str_starts_with(colon, "://") || colon[1] == ':' ||
            memchr(l.p + l.body, ' ', at - l.body) || l.p[l.body] == '#')
            continue;
        return say(h, l, l.body, "\"%.*s\" has no space after the colon; write \"%.*s: %.*s\"",
                   line_shown(l, l.body), l.p + l.body, (int)(at - l.body), l.p + l.body,
                   line_shown(l, at + 1), colon + 1);
    }
    return false;
}

static bool rule_first_character(struct hint *h)
{
    struct line l = h->at;
    if (problem_is(h, "cannot start any token"))
        return say(
            h, l, h->column, "a value cannot start with \"%.1s\"; put it in quotes: \"%.*s\"",
            h->column < l.len ? l.p + h->column : "", line_shown(l, h->column), l.p + h->column);
    if (context_is(h, "scanning an alias") || context_is(h, "scanning an anchor")) {
        l = h->context;
        size_t at = line_byte(l, h->parser->context_mark.column);
        return say(h, l, at, "text that starts with \"%.1s\" must be in quotes: \"%.*s\"",
                   at < l.len ? l.p + at : "", line_shown(l, at), l.p + at);
    }
    if (problem_is(h, "unknown escape"))
        return say(h, l, h->column,
                   "no such escape; write \"\\\\\" for a backslash, or use single quotes");
    if (problem_is(h, "expected node content") && h->column < l.len)
        return say(h, l, h->column,
                   context_is(h, "flow") ? "a value is missing in front of \"%.1s\""
                                         : "a value cannot start with \"%.1s\"; put it in quotes",
                   l.p + h->column);
    return false;
}

static bool say_open_quote(struct hint *h, struct line l, size_t at)
{
    static const char *const typographic[] = {"“", "”", "‘", "’"};
    for (unsigned i = 0; i < ARRAY_SIZE(typographic); i++) {
        if (memmem(l.p, l.len, typographic[i], 3))
            return say(h, l, at, "the quote that opens here has no end; %s is not a plain quote",
                       typographic[i]);
    }
    return say(h, l, at, "the quote that opens here has no end; write the closing quote");
}

static bool rule_quotes(struct hint *h)
{
    if (context_is(h, "quoted scalar") && problem_is(h, "found unexpected"))
        return say_open_quote(h, h->context, line_byte(h->context, h->parser->context_mark.column));
    if (!problem_is(h, "expected key") && !problem_is(h, "'-' indicator") && !problem_is(h, "','"))
        return false;
    size_t before = h->column;
    while (before && h->at.len >= before && h->at.p[before - 1] == ' ')
        before--;
    if (!before || before > h->at.len || !json_is_one_of(h->at.p[before - 1], "\"'"))
        return false;

    /* A string ended here. If it began on a line above, that line's quote was meant to close. */
    struct line l = h->at;
    for (unsigned i = 0; i < 20 && (l = line_before(&h->lines, l)).number; i++) {
        size_t at = line_open_quote(l);
        if (at < l.len)
            return say_open_quote(h, l, at);
    }
    return say(h, h->at, h->column,
               "\"%.*s\" stands after the closing quote; put the whole value in quotes, with a "
               "quote inside it written as %s",
               line_shown(h->at, h->column), h->at.p + h->column,
               h->at.p[before - 1] == '"' ? "\\\"" : "''");
}

static bool rule_brackets(struct hint *h)
{
    const yaml_parser_t *p = h->parser;
    struct line open = h->context;
    size_t at = line_byte(open, p->context_mark.column);
    if (problem_is(h, "expected node content") && context_is(h, "flow") && h->column >= h->at.len &&
        p->marks.top > p->marks.start) {
        /* The text ends where a value should be. libyaml names no bracket, but has it at hand. */
        open = line_of(&h->lines, p->marks.top[-1].line + 1);
        at = line_byte(open, p->marks.top[-1].column);
        if (at >= open.len || !json_is_one_of(open.p[at], "[{"))
            return false;
    } else if (!problem_is(h, "expected ',' or")) {
        return false;
    }
    const char *close = at < open.len && open.p[at] == '[' ? "]" : "}";
    if (h->at.number == open.number && h->column < h->at.len)
        return say(h, h->at, h->column,
                   "write a comma between the elements, or \"%s\" after the last", close);
    if (h->at.len && h->at.indent > open.indent)
        return say(h, h->at, h->at.indent,
                   "write a comma at the end of the line above, or \"%s\" if "
                   "nothing follows",
                   close);
    return say(h, open, at, "the \"%c\" here is never closed; write its \"%s\"",
               *close == ']' ? '[' : '{', close);
}

/* %YAML 1.1, and the document without its marker. */
static bool rule_directive(struct hint *h)
{
    struct line above = line_before(&h->lines, h->at);
    if (!problem_is(h, "<document start>") || !above.len || above.p[0] != '%')
        return false;
    return say(h, above, 0,
               "\"%.*s\" is a directive; write \"---\" on a line of its own between it and its "
               "document",
               line_shown(above, 0), above.p);
}

static bool rule_block(struct hint *h)
{
    if (problem_is(h, "block sequence entries"))
        return say(h, h->at, h->column,
                   "a list cannot start on the line of its key; write the \"-\" on the next line");
    if (problem_is(h, "expected key") && h->column < h->at.len && h->at.p[h->column] == ':')
        return say(h, h->at, h->column, "there is no key in front of the \":\"");
    if (context_is(h, "block scalar") && problem_is(h, "comment or line break"))
        return say(h, h->at, h->column,
                   "the text of a block starts on the line after its \"|\" or \">\"");
    return false;
}

/* key: a: b */
static bool rule_second_colon(struct hint *h)
{
    if (!problem_is(h, "mapping values"))
        return false;
    size_t end = line_key_end(h->at);
    if (end >= h->column || end + 2 > h->at.len)
        return false;
    return say(h, h->at, end + 2, "a value with \": \" in it must be in quotes: \"%.*s\"",
               line_shown(h->at, end + 2), h->at.p + end + 2);
}

/* key value */
static bool rule_no_colon(struct hint *h)
{
    struct line l = h->context;
    if (problem_is(h, "mapping values"))
        l = line_before(&h->lines, h->at);
    else if (!problem_is(h, "expected ':'"))
        return false;
    if (!l.len || line_key_end(l) < l.len || json_is_one_of(l.p[l.body], "\"'&*!|>[{"))
        return false;
    const char *blank = memchr(l.p + l.body, ' ', (size_t)line_shown(l, l.body));
    size_t key = blank ? (size_t)(blank - l.p) - l.body : (size_t)line_shown(l, l.body);
    if (!blank)
        return say(h, l, l.body, "\"%.*s\" has no \":\"; write \"%.*s: VALUE\", or remove it",
                   (int)key, l.p + l.body, (int)key, l.p + l.body);
    size_t value = l.body + key + 1;
    return say(h, l, l.body, "\"%.*s\" has no \":\" after the key; write \"%.*s: %.*s\"",
               line_shown(l, l.body), l.p + l.body, (int)key, l.p + l.body, line_shown(l, value),
               l.p + value);
}

static int key_shown(struct line l, size_t from)
{
    size_t end = line_key_end(l);
    int most = line_shown(l, from);
    return end > from && end - from < (size_t)most ? (int)(end - from) : most;
}

/* A line that is indented unlike the lines it belongs to. */
static bool rule_indent(struct hint *h)
{
    struct line l = h->at, above = line_before(&h->lines, l);
    bool deeper = problem_is(h, "mapping values");
    if (!l.len || !above.number ||
        (!deeper && !problem_is(h, "expected key") && !problem_is(h, "'-' indicator")))
        return false;
    bool item = l.body > l.indent || l.p[l.indent] == '-';
    if (deeper) {
        if (l.body <= above.body || line_key_end(above) >= above.len)
            return false;
        return say(
            h, l, l.body,
            "\"%.*s\" is indented by %zu spaces, deeper than \"%.*s\" above it, which has a value "
            "already; indent both the same",
            key_shown(l, l.body), l.p + l.body, l.body, key_shown(above, above.body),
            above.p + above.body);
    }
    if (h->column != l.indent)
        return false;
    /* The nearest line above that looks like a sibling: an item for an item, a key for a key. */
    for (struct line s = above; s.number; s = line_before(&h->lines, s)) {
        bool s_item = s.body > s.indent;
        size_t column = item ? s.indent : s.body;
        if ((item && !s_item) || (!item && line_key_end(s) == s.len) || column <= l.indent)
            continue;
        return say(
            h, l, l.indent,
            "\"%.*s\" is indented by %zu, \"%.*s\" in line %u by %zu spaces; indent both the same",
            key_shown(l, l.indent), l.p + l.indent, l.indent, key_shown(s, column), s.p + column,
            json_pos_add(h->base, (struct json_pos){s.number, 1}).line, column);
    }
    if (item)
        return say(h, l, l.indent,
                   "a list item among keys; indent it below the key that it belongs to");
    if (problem_is(h, "'-' indicator"))
        return say(
            h, l, l.indent,
            "a key among list items; write \"- %.*s\", or indent it as the list's own key is",
            line_shown(l, l.indent), l.p + l.indent);
    return false;
}

static bool rule_libyaml(struct hint *h)
{
    const yaml_parser_t *p = h->parser;
    return say(h, h->at, h->column, "%s%s%s", p->problem ? p->problem : "not YAML",
               p->context ? " " : "", p->context ? p->context : "");
}

void json_yaml_hint(const yaml_parser_t *parser, const char *text, size_t len, struct json_pos base,
                    struct json_pos *ret_pos, struct err *e)
{
    static bool (*const rules[])(struct hint *) = {
        rule_encoding,     rule_tab,      rule_first_character, rule_comment,  rule_conflict,
        rule_directive,    rule_no_space, rule_quotes,          rule_brackets, rule_block,
        rule_second_colon, rule_no_colon, rule_indent,          rule_libyaml,
    };
    struct hint h = {.parser = parser, .lines = {text, len}, .base = base, .pos = ret_pos, .e = e};
    h.at = line_of(&h.lines, parser->problem_mark.line + 1);
    h.context = line_of(&h.lines, parser->context_mark.line + 1);
    h.column = line_byte(h.at, parser->problem_mark.column);
    for (unsigned i = 0; !rules[i](&h); i++)
        ;
}
