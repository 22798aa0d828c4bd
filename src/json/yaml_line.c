#include "json/yaml_line.h"

#include "json/internal.h"

enum { SHOWN = 60 }; /* bytes of source in a message */

/* The line that starts at p. */
static struct line line_at(const struct lines *t, const char *p, size_t number)
{
    const char *end = t->text + t->len, *newline = memchr(p, '\n', (size_t)(end - p));
    struct line l = {.number = (unsigned)number, .p = p};
    l.len = (size_t)((newline ? newline : end) - p);
    while (l.len && json_is_one_of(l.p[l.len - 1], " \t\r"))
        l.len--;
    while (l.indent < l.len && json_is_one_of(l.p[l.indent], " \t"))
        l.indent++;
    l.body = l.indent;
    while (l.body + 1 < l.len && l.p[l.body] == '-' && l.p[l.body + 1] == ' ') {
        for (l.body += 2; l.body < l.len && l.p[l.body] == ' ';)
            l.body++;
    }
    return l;
}

struct line line_of(const struct lines *t, size_t number)
{
    const char *p = t->text, *end = t->text + t->len;
    for (size_t n = 1; n < number; n++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p) /* a line break that only YAML knows */
            return line_at(t, end, number);
        p++;
    }
    return line_at(t, p, number);
}

struct line line_before(const struct lines *t, struct line l)
{
    while (l.p > t->text && l.number > 1) {
        const char *start = l.p - 1;
        while (start > t->text && start[-1] != '\n')
            start--;
        l = line_at(t, start, l.number - 1);
        if (l.len && l.p[l.indent] != '#')
            return l;
    }
    return (struct line){0};
}

size_t line_byte(struct line l, size_t column)
{
    size_t i = 0;
    for (; i < l.len && column; column--) {
        for (i++; i < l.len && ((unsigned char)l.p[i] & 0xc0) == 0x80;)
            i++;
    }
    return i;
}

int line_shown(struct line l, size_t from)
{
    size_t n = l.len > from ? l.len - from : 0;
    for (size_t i = from; i + 1 < l.len; i++) {
        if (l.p[i] == ' ' && l.p[i + 1] == '#') {
            n = i - from;
            break;
        }
    }
    if (n > SHOWN) {
        for (n = SHOWN; n && ((unsigned char)l.p[from + n] & 0xc0) == 0x80;)
            n--;
    }
    while (n && l.p[from + n - 1] == ' ')
        n--;
    return (int)n;
}

size_t line_key_end(struct line l)
{
    size_t i = l.body;
    if (i < l.len && (l.p[i] == '"' || l.p[i] == '\'')) {
        const char *close = memchr(l.p + i + 1, l.p[i], l.len - i - 1);
        i = close ? (size_t)(close - l.p) : l.len;
    }
    for (; i < l.len; i++) {
        if (l.p[i] == ':' && (i + 1 == l.len || l.p[i + 1] == ' '))
            return i;
        if (l.p[i] == '#' && i && l.p[i - 1] == ' ')
            break;
    }
    return l.len;
}

size_t line_open_quote(struct line l)
{
    for (size_t i = l.body; i < l.len; i++) {
        char quote = l.p[i];
        bool starts = i == l.body || json_is_one_of(l.p[i - 1], " [{,");
        if (!starts || (quote != '"' && quote != '\''))
            continue;
        size_t start = i;
        for (i++; i < l.len && l.p[i] != quote; i++)
            i += l.p[i] == '\\' && quote == '"';
        if (i >= l.len)
            return start;
    }
    return l.len;
}
