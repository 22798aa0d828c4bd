#include "http/url.h"

#include <string.h>

#include "base/str.h"
#include "http/resolve.h"

static const char host_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789.-_";

static int refuse(const char *text, const char *why, struct err *e)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidURL", "%.*s is no URL to ask: %s",
                   (int)str_cut(text, 200), *text ? text : "''", why);
}

/* Where the host ends; NULL when there is none. */
static const char *parse_host(const char *at, struct http_url *u)
{
    bool six = *at == '[';
    size_t n = six ? strcspn(++at, "]") : strspn(at, host_letters);
    if (n == 0 || n >= sizeof(u->host) || (six && at[n] != ']'))
        return NULL;
    memcpy(u->host, at, n);
    u->host[n] = '\0';
    if (six && !(strchr(u->host, ':') && http_is_address(u->host)))
        return NULL;
    return at + n + six;
}

static const char *parse_port(const char *at, uint16_t *port)
{
    unsigned value = 0, digits = 0;
    if (*at != ':')
        return at;
    for (at++; *at >= '0' && *at <= '9' && digits < 6; at++, digits++)
        value = value * 10 + (unsigned)(*at - '0');
    if (value == 0 || value > UINT16_MAX)
        return NULL;
    *port = (uint16_t)value;
    return at;
}

int http_url_parse(const char *text, struct http_url *ret_url, struct err *e)
{
    struct http_url u = {0};
    const char *at = text;
    if (strncasecmp(at, "http://", 7) == 0) {
        at += 7;
    } else if (strncasecmp(at, "https://", 8) == 0) {
        at += 8;
        u.tls = true;
    } else {
        return refuse(text, "it must begin with http:// or https://", e);
    }
    u.port = u.tls ? 443 : 80;
    if (!(at = parse_host(at, &u)))
        return refuse(text, "there is no valid host in it", e);
    if (!(at = parse_port(at, &u.port)))
        return refuse(text, "its port is none", e);
    if (*at && !strchr("/?#", *at))
        return refuse(text, "there is no valid host in it", e);
    u.target = at;
    u.target_size = strcspn(at, "#");
    for (size_t i = 0; i < u.target_size; i++) {
        if ((unsigned char)at[i] <= ' ' || at[i] == 0x7f)
            return refuse(text, "spaces and control characters must be written as %XX", e);
    }
    *ret_url = u;
    return 0;
}
