/*
 * A line is built in a buffer on the stack. `room` is where writing stops while a field is added;
 * behind it is kept what the end of the line needs, so that a cut line is still a whole one.
 *
 *     |2026-... INFO  msg key=value ke...| cut=true\n|
 *     line                             room          LOG_LINE_MAX
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rfc3339.h"
#include "base/str.h"

static const struct {
    const char *name, *text, *coloured;
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", "ERROR", "\033[31mERROR\033[0m"},
    [LOG_LEVEL_WARN] = {"warn", "WARN ", "\033[33mWARN \033[0m"},
    [LOG_LEVEL_INFO] = {"info", "INFO ", "\033[32mINFO \033[0m"},
    [LOG_LEVEL_DEBUG] = {"debug", "DEBUG", "\033[36mDEBUG\033[0m"},
};

_Atomic int log_threshold = LOG_LEVEL_INFO;

static _Atomic int out_fd = STDERR_FILENO;
static _Atomic int out_format = LOG_FORMAT_TEXT;
static atomic_bool out_coloured;
static const struct clock *_Atomic out_clock;

void log_init(int fd, enum log_format format, enum log_level level)
{
    atomic_store(&out_fd, fd);
    atomic_store(&out_format, format);
    atomic_store(&out_coloured, isatty(fd) == 1);
    log_set_level(level);
}

void log_set_level(enum log_level level)
{
    atomic_store(&log_threshold, (int)level);
}

void log_set_clock(const struct clock *clock)
{
    atomic_store(&out_clock, clock);
}

enum { VALUE_MAX = 1536 }; /* of one string, as written: no value may push out all others */

struct line {
    enum log_format format;
    bool cut;
    size_t len, room;
    char p[LOG_LINE_MAX];
};

static const char json_end[] = ",\"cut\":true}\n";
static const char text_end[] = " cut=true\n";

/* All of it or nothing. */
static bool put(struct line *l, const char *text, size_t n)
{
    if (n > l->room - l->len)
        return false;
    memcpy(l->p + l->len, text, n);
    l->len += n;
    return true;
}

static bool put_text(struct line *l, const char *text)
{
    return put(l, text, strlen(text));
}

/*
 * What could act rather than be read: controls of ASCII and of Latin-1, line separators, and marks
 * that turn the direction of writing.
 */
static bool must_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

/* How the character that s begins with is written; returns how many bytes of s it took. */
static size_t escape(enum log_format format, const char *s, size_t n, bool quoted, char ret_text[8])
{
    uint32_t c;
    size_t len = str_utf8(s, n, &c);
    if (len == 0 && format == LOG_FORMAT_JSON)
        snprintf(ret_text, 8, "\xef\xbf\xbd");
    else if (len == 0)
        snprintf(ret_text, 8, "\\x%02x", (unsigned char)*s);
    else if ((c == '"' && quoted) || c == '\\')
        snprintf(ret_text, 8, "\\%c", (char)c);
    else if (c == '\n' || c == '\t' || c == '\r')
        snprintf(ret_text, 8, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    else if (must_escape(c))
        snprintf(ret_text, 8, "\\u%04x", (unsigned)c & 0xffff);
    else
        snprintf(ret_text, 8, "%.*s", (int)len, s);
    return len ? len : 1;
}

/* The string escaped; what does not fit is replaced by "...". */
static bool put_escaped(struct line *l, const char *s, bool quoted)
{
    enum { DOTS = 3 };
    size_t begin = l->len, fits = l->len; /* up to `fits` there would still be room for the dots */
    size_t end = l->room - begin < VALUE_MAX ? l->room : begin + VALUE_MAX;
    for (size_t n = strlen(s); n > 0;) {
        char text[8];
        size_t taken = escape(l->format, s, n, quoted, text);
        if (l->len + strlen(text) > end) {
            l->cut = true;
            l->len = fits;
            return put(l, "...", DOTS);
        }
        put_text(l, text);
        if (l->len + DOTS <= end)
            fits = l->len;
        s += taken;
        n -= taken;
    }
    return true;
}

/* In text a value goes without quotes when nobody can mistake where it ends. */
static bool is_plain(const char *s)
{
    if (*s == '\0')
        return false;
    for (size_t n = strlen(s); n > 0;) {
        uint32_t c;
        size_t len = str_utf8(s, n, &c);
        if (len == 0 || c == ' ' || c == '"' || c == '=' || c == '\\' || must_escape(c))
            return false;
        s += len;
        n -= len;
    }
    return true;
}

static bool put_string(struct line *l, const char *s)
{
    if (!s)
        return put_text(l, "null");
    if (l->format == LOG_FORMAT_TEXT && is_plain(s))
        return put_escaped(l, s, false);
    /* The closing quote must find room whatever was cut. */
    if (!put(l, "\"", 1) || l->room == l->len)
        return false;
    l->room--;
    bool ok = put_escaped(l, s, true);
    l->room++;
    return ok && put(l, "\"", 1);
}

static bool put_key(struct line *l, const char *key)
{
    if (l->format == LOG_FORMAT_JSON)
        return put(l, ",", 1) && put_string(l, key) && put(l, ":", 1);
    return put(l, " ", 1) && put_escaped(l, key, false) && put(l, "=", 1);
}

static bool put_number(struct line *l, const struct log_field *f)
{
    char text[32];
    if (f->type == LOG_INT)
        snprintf(text, sizeof(text), "%" PRId64, f->i);
    else
        snprintf(text, sizeof(text), "%" PRIu64, f->u);
    return put_text(l, text);
}

static bool put_value(struct line *l, const struct log_field *f)
{
    switch (f->type) {
    case LOG_STRING:
        return put_string(l, f->s);
    case LOG_INT:
    case LOG_UINT:
        return put_number(l, f);
    case LOG_BOOL:
        return put_text(l, f->b ? "true" : "false");
    case LOG_ERROR:
        return put_string(l, f->e->msg);
    case LOG_REDACTED:
        return put_string(l, "[redacted]");
    }
    return false;
}

/* The whole field, possibly with a shortened string, or nothing of it. */
static void put_field(struct line *l, const struct log_field *f)
{
    size_t begin = l->len;
    if (!put_key(l, f->key) || !put_value(l, f)) {
        l->len = begin;
        l->cut = true;
    }
}

static void put_fields(struct line *l, const struct log_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct log_field *f = &fields[i];
        if (f->type == LOG_ERROR) {
            if (!f->e)
                continue;
            put_field(l, &LOG_S("code", err_code_name(f->e->code)));
            put_field(l, &LOG_S("reason", f->e->reason));
        }
        put_field(l, f);
    }
}

static void put_head(struct line *l, const char *ts, enum log_level level, const char *msg)
{
    if (l->format == LOG_FORMAT_JSON) {
        put_text(l, "{\"ts\":\"");
        put_text(l, ts);
        put_text(l, "\",\"level\":\"");
        put_text(l, levels[level].name);
        put_text(l, "\",\"msg\":");
        put_string(l, msg);
        return;
    }
    put_text(l, ts);
    put_text(l, " ");
    put_text(l, atomic_load(&out_coloured) ? levels[level].coloured : levels[level].text);
    put_text(l, " ");
    put_escaped(l, msg, false);
}

/* The room that was kept is enough for either end. */
static void put_end(struct line *l)
{
    const char *end = l->format == LOG_FORMAT_JSON ? json_end : text_end;
    if (!l->cut)
        end = l->format == LOG_FORMAT_JSON ? "}\n" : "\n";
    l->room = sizeof(l->p);
    put_text(l, end);
}

/*
 * One call; only a full disk or a signal in the middle makes a second one necessary. A pipe that
 * nobody empties and that does not block takes no line rather than half of one.
 */
static void write_line(const struct line *l)
{
    int fd = atomic_load(&out_fd);
    for (size_t done = 0; done < l->len;) {
        ssize_t n = write(fd, l->p + done, l->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        done += (size_t)n;
    }
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields, size_t n)
{
    int errnum = errno;
    const struct clock *clock = atomic_load(&out_clock);
    char ts[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(clock ? clock : clock_system())), RFC3339_MILLI,
                   ts);

    struct line l;
    l.format = (enum log_format)atomic_load(&out_format);
    l.cut = false;
    l.len = 0;
    l.room = sizeof(l.p) - sizeof(json_end);
    put_head(&l, ts, level, msg);
    put_fields(&l, fields, n);
    put_end(&l);
    write_line(&l);
    errno = errnum;
}
