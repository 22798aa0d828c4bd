#include "http/target.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_utf8(const char *s, size_t n)
{
    uint32_t c;
    for (size_t len; n; s += len, n -= len) {
        len = str_utf8(s, n, &c);
        if (len == 0)
            return false;
    }
    return true;
}

/* The n bytes decoded, NULL when that is not possible; plus: '+' is a space. */
static const char *decode(struct arena *a, const char *s, size_t n, bool plus, struct err *e)
{
    char *text = arena_alloc(a, n + 1), *end = text;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '%') {
            *end++ = plus && s[i] == '+' ? ' ' : s[i];
            continue;
        }
        int high = n - i > 2 ? hex(s[i + 1]) : -1;
        int low = high >= 0 ? hex(s[i + 2]) : -1;
        if (low < 0) {
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                    "the target has a '%%' that two hexadecimal digits do not follow: write %%25");
            return NULL;
        }
        if (high == 0 && low == 0) {
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the target contains NUL (%%00)");
            return NULL;
        }
        *end++ = (char)(high << 4 | low);
        i += 2;
    }
    *end = '\0';
    if (!is_utf8(text, (size_t)(end - text))) {
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the target is no UTF-8 once decoded");
        return NULL;
    }
    return text;
}

static size_t count(const char *s, char c)
{
    size_t n = 0;
    for (; (s = strchr(s, c)); s++)
        n++;
    return n;
}

static int parse_path(struct arena *a, struct http_target *t, struct err *e)
{
    const char *s = t->path;
    t->segments = arena_alloc(a, (count(s, '/') + 1) * sizeof(*t->segments));
    if (str_eq(s, "/") || str_eq(s, "*"))
        return 0;
    while (*s == '/') {
        size_t n = strcspn(++s, "/");
        const char *segment = decode(a, s, n, false, e);
        if (!segment)
            return -1;
        t->segments[t->n_segments++] = segment;
        s += n;
    }
    return 0;
}

static int parse_query(struct arena *a, const char *s, struct http_target *t, struct err *e)
{
    t->params = arena_alloc(a, (count(s, '&') + 1) * sizeof(*t->params));
    for (size_t n; *s; s += n, s += *s == '&') {
        n = strcspn(s, "&");
        if (n == 0)
            continue;
        const char *equals = memchr(s, '=', n);
        size_t name_len = equals ? (size_t)(equals - s) : n;
        struct http_param *p = &t->params[t->n_params];
        p->name = decode(a, s, name_len, true, e);
        p->value = equals ? decode(a, equals + 1, n - name_len - 1, true, e) : "";
        if (!p->name || !p->value)
            return -1;
        t->n_params++;
    }
    return 0;
}

/* The path of an absolute target; that of any other is all of it. */
static const char *skip_authority(const char *text)
{
    for (size_t i = 0; i < 2; i++) {
        const char *scheme = i ? "https://" : "http://";
        if (strncasecmp(text, scheme, strlen(scheme)) == 0) {
            text += strlen(scheme);
            return text + strcspn(text, "/?");
        }
    }
    return text;
}

int http_target_parse(struct arena *a, const char *text, struct http_target *ret_target,
                      struct err *e)
{
    struct http_target t = {0};
    const char *path = skip_authority(text);
    size_t n = strcspn(path, "?");
    /* "http://host" and "http://host?x" mean its root */
    t.path = n == 0 && path != text ? "/" : arena_strndup(a, path, n);
    if (t.path[0] != '/' && !str_eq(t.path, "*"))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                       "the target of the request is no path: it must begin with '/'");
    if (parse_path(a, &t, e) < 0 || (path[n] && parse_query(a, path + n + 1, &t, e) < 0))
        return -1;
    *ret_target = t;
    return 0;
}

const char *http_target_param(const struct http_target *t, const char *name)
{
    for (size_t i = 0; i < t->n_params; i++) {
        if (str_eq(t->params[i].name, name))
            return t->params[i].value;
    }
    return NULL;
}

bool http_is_token(const char *s)
{
    static const char also[] = "!#$%&'*+-.^_`|~";
    if (!*s)
        return false;
    for (; *s; s++) {
        bool alnum = (*s >= '0' && *s <= '9') || ((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z');
        if (!alnum && !strchr(also, *s))
            return false;
    }
    return true;
}

bool http_has_control(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return true;
    }
    return false;
}
