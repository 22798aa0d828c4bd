/*
 * URLs: absolute ones, and absolute paths.
 *
 *     scheme://user@host:port/path?query#fragment
 */
#include <ctype.h>

#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

struct cel_url {
    struct cel_bytes text, scheme, host, hostname, port, path, query;
};

static bool check_escapes(const struct cel_bytes *s)
{
    for (size_t i = 0; i < s->n; i++) {
        unsigned char c = (unsigned char)s->p[i];
        if (c < 0x20 || c == 0x7f)
            return false;
        if (c == '%' && (i + 2 >= s->n || !isxdigit((unsigned char)s->p[i + 1]) ||
                         !isxdigit((unsigned char)s->p[i + 2])))
            return false;
    }
    return true;
}

/* host, [address], and a port behind a colon. */
static bool split_host(struct cel_url *u)
{
    const char *p = u->host.p, *end = p + u->host.n;
    const char *close = u->host.n && *p == '[' ? memchr(p, ']', u->host.n) : NULL;
    if (u->host.n && *p == '[' && !close)
        return false;
    const char *colon = memchr(close ? close : p, ':', (size_t)(end - (close ? close : p)));
    if (close && close + 1 != end && close + 1 != colon)
        return false;
    u->hostname = close ? (struct cel_bytes){p + 1, (size_t)(close - p - 1)}
                        : (struct cel_bytes){p, (size_t)((colon ? colon : end) - p)};
    u->port = colon ? (struct cel_bytes){colon + 1, (size_t)(end - colon - 1)}
                    : (struct cel_bytes){"", 0};
    for (size_t i = 0; i < u->port.n; i++) {
        if (!isdigit((unsigned char)u->port.p[i]))
            return false;
    }
    for (size_t i = 0; i < u->hostname.n; i++) {
        if (strchr(" \"<>\\^`{|}", u->hostname.p[i]))
            return false;
    }
    return true;
}

static bool parse(const struct cel_bytes *text, struct cel_url *u)
{
    static const struct cel_bytes empty = {"", 0};
    const char *at = text->p;
    *u = (struct cel_url){*text, empty, empty, empty, empty, empty, empty};
    if (memchr(text->p, '\0', text->n) || !check_escapes(text))
        return false;
    if (*at != '/') {
        size_t n = 0;
        while (isalnum((unsigned char)at[n]) || strchr("+-.", at[n] ? at[n] : ' '))
            n++;
        if (!n || !isalpha((unsigned char)*at) || at[n] != ':')
            return false;
        u->scheme = (struct cel_bytes){at, n};
        at += n + 1;
    }
    if (u->scheme.n && at[0] == '/' && at[1] == '/') {
        size_t n = strcspn(at + 2, "/?#");
        const char *user = memrchr(at + 2, '@', n);
        const char *host = user ? user + 1 : at + 2;
        u->host = (struct cel_bytes){host, (size_t)(at + 2 + n - host)};
        at += 2 + n;
    }
    u->path = (struct cel_bytes){at, strcspn(at, "?#")};
    at += u->path.n;
    if (*at == '?')
        u->query = (struct cel_bytes){at + 1, strcspn(at + 1, "#")};
    return split_host(u);
}

bool cel_url_equal(const struct cel_url *a, const struct cel_url *b)
{
    return a->text.n == b->text.n && memcmp(a->text.p, b->text.p, a->text.n) == 0;
}

FUNCTION(to_url)
{
    (void)n;
    struct cel_url *u = arena_new(&r->arena, struct cel_url);
    if (!cel_spend_bytes(r, args[0].text.n))
        return false;
    if (!parse(&args[0].text, u))
        return cel_fail(r,
                        "URL parse error during conversion from string: parse \"%.200s\": invalid "
                        "URI for request",
                        args[0].text.p);
    *ret = (struct cel_value){.type = CEL_URL, .url = u};
    return true;
}

FUNCTION(is_url)
{
    (void)n;
    struct cel_url u;
    *ret = cel_make_bool(parse(&args[0].text, &u));
    return cel_spend_bytes(r, args[0].text.n);
}

#define PART(name)                                                                                 \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        (void)n;                                                                                   \
        *ret = cel_make_string(r, args[0].url->name.p, args[0].url->name.n);                       \
        return true;                                                                               \
    }

PART(scheme)
PART(host)
PART(hostname)
PART(port)
PART(path)

/* A part of a query, decoded. */
static struct cel_value decode(struct cel_run *r, const char *p, size_t n)
{
    char *out = arena_alloc(&r->arena, n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '%' && i + 2 < n) {
            const char hex[] = {p[i + 1], p[i + 2], '\0'};
            out[len++] = (char)strtoul(hex, NULL, 16);
            i += 2;
        } else {
            out[len++] = p[i] == '+' ? ' ' : p[i];
        }
    }
    return (struct cel_value){.type = CEL_STRING, .text = {out, len}};
}

/* A map of lists: a name can be there more than once. */
FUNCTION(query)
{
    (void)n;
    const struct cel_bytes *q = &args[0].url->query;
    struct cel_pair *pairs = arena_alloc(&r->arena, (q->n + 1) * sizeof(*pairs));
    struct cel_map *m = arena_new(&r->arena, struct cel_map);
    *m = (struct cel_map){.pairs = pairs, .decl = &cel_decls[CEL_MAP]};
    for (size_t at = 0, size; at < q->n; at += size + 1) {
        const char *p = q->p + at, *amp = memchr(p, '&', q->n - at);
        size = amp ? (size_t)(amp - p) : q->n - at;
        const char *equals = memchr(p, '=', size);
        size_t name = equals ? (size_t)(equals - p) : size;
        if (!cel_spend(r, 1 + size))
            return false;
        if (!size)
            continue;
        struct cel_value key = decode(r, p, name), there;
        struct cel_value value = equals ? decode(r, equals + 1, size - name - 1) : decode(r, "", 0);
        int found = cel_map_find(r, m, &key, &there);
        if (found < 0)
            return false;
        size_t i = 0;
        while (found && !cel_equal(r, &pairs[i].key, &key))
            i++;
        struct cel_value one = cel_make_list(r, &value, 1);
        if (!found)
            pairs[m->n++] = (struct cel_pair){key, one};
        else if (!cel_merge_lists(r, there.list, one.list, &pairs[i].value))
            return false;
    }
    *ret = (struct cel_value){.type = CEL_MAP, .map = m};
    return true;
}

const struct cel_function cel_url_functions[] = {
    {"url", "Us", to_url},
    {"isURL", "bs", is_url},
    {"getScheme", "sU", scheme, true},
    {"getHost", "sU", host, true},
    {"getHostname", "sU", hostname, true},
    {"getPort", "sU", port, true},
    {"getEscapedPath", "sU", path, true},
    {"getQuery", "MU", query, true},
    {0},
};
