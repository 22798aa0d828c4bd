#include "kube/config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "kube/config_impl.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

void kube_config_done(struct kube_config *c)
{
    if (c->key)
        explicit_bzero(c->key, strlen(c->key));
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    char *const all[] = {c->server, c->ca,         c->certificate, c->key,
                         c->token,  c->token_file, c->ns,          c->address};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        free(all[i]);
    *c = (struct kube_config){0};
}

char *config_read(const char *path, size_t limit, struct err *e)
{
    struct str text = {0};
    if (file_read(path, limit, &text, e) < 0)
        return NULL;
    while (text.len && strchr(" \t\r\n", text.p[text.len - 1]))
        str_truncate(&text, text.len - 1);
    if (text.len != strlen(str_get(&text))) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidFile", "%s is no text: it has a NUL byte", path);
        str_done(&text);
        return NULL;
    }
    return str_take(&text);
}

int config_check_token(const char *token, struct err *e)
{
    if (!*token)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidToken", "the token is empty");
    for (const char *p = token; *p; p++) {
        if (*p <= ' ' || *p > '~')
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidToken",
                           "the token has a character that none has: a blank, a line end or the "
                           "like");
    }
    return 0;
}

/* What a URL consists of; host without brackets. */
struct parts {
    bool tls, v6;
    char host[256];
    unsigned port;
};

static int bad_server(const char *server, const char *why, struct err *e)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidServer",
                   "the server '%s' cannot be used: %s; write https://HOST:PORT", server, why);
}

static int parse_port(const char *text, const char *server, unsigned *ret_port, struct err *e)
{
    unsigned port = 0;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9' || (port = port * 10 + (unsigned)(*p - '0')) > 65535)
            return bad_server(server, "its port is no number up to 65535", e);
    }
    *ret_port = port;
    return port ? 0 : bad_server(server, "its port is empty or 0", e);
}

/* server has no slash at its end. */
static int parse_server(const char *server, struct parts *ret, struct err *e)
{
    *ret = (struct parts){.tls = str_starts_with(server, "https://")};
    if (!ret->tls && !str_starts_with(server, "http://"))
        return bad_server(server, "it is neither https:// nor http://", e);
    const char *host = strstr(server, "://") + 3, *end, *port;
    for (const char *p = host; *p; p++) {
        if (*p <= ' ' || *p > '~' || strchr("@/?#%\\", *p))
            return bad_server(server, "it has more than a host and a port", e);
    }
    ret->v6 = *host == '[';
    end = ret->v6 ? strchr(host, ']') : host + strcspn(host, ":");
    if (!end)
        return bad_server(server, "its address has no ']'", e);
    host += ret->v6;
    port = end + ret->v6;
    if (end == host || (size_t)(end - host) >= sizeof(ret->host))
        return bad_server(server, "it has no host, or one that is too long", e);
    memcpy(ret->host, host, (size_t)(end - host));
    if (*port && *port != ':')
        return bad_server(server, "what follows the host is no port", e);
    if (*port)
        return parse_port(port + 1, server, &ret->port, e);
    ret->port = ret->tls ? 443 : 80;
    return 0;
}

static bool is_numeric(const char *host)
{
    struct in6_addr a;
    return inet_pton(AF_INET, host, &a) == 1 || inet_pton(AF_INET6, host, &a) == 1;
}

static bool is_loopback(const char *host)
{
    struct in_addr a;
    return str_eq(host, "localhost") || str_eq(host, "::1") ||
           (inet_pton(AF_INET, host, &a) == 1 && ntohl(a.s_addr) >> 24 == 127);
}

int config_set_server(struct kube_config *c, const char *server, const char *name, struct err *e)
{
    size_t n = strlen(server);
    while (n && server[n - 1] == '/')
        n--;
    _cleanup_free_ char *text = mem_strndup(server, n);
    struct parts parts;
    if (parse_server(text, &parts, e) < 0)
        return -1;
    if (!parts.tls && !is_loopback(parts.host))
        return bad_server(text, "without TLS, credentials and data are everybody's to read", e);
    if (!name) {
        c->server = TAKE_PTR(text);
        return 0;
    }
    const char *address = str_eq(parts.host, "localhost") ? "127.0.0.1" : parts.host;
    if (!is_numeric(address))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidServer",
                       "with tls-server-name '%s' the server '%s' must be given by its address, "
                       "not by a name",
                       name, text);
    c->server = mem_printf("http%s://%s:%u", parts.tls ? "s" : "", name, parts.port);
    c->address = mem_strdup(address);
    return parse_server(c->server, &parts, e);
}

int kube_config_in_cluster(const char *folder, struct kube_config *ret_config, struct err *e)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    *ret_config = (struct kube_config){0};
    if (!host || !*host || !port || !*port)
        return err_set(e, ERR_NOT_FOUND, "NotInCluster",
                       "this is no Pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
                       "not set; name a kubeconfig");
    if (!folder)
        folder = ACCOUNT;
    bool v6 = strchr(host, ':');
    _cleanup_free_ char *server =
        mem_printf("https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    _cleanup_free_ char *ca = mem_printf("%s/ca.crt", folder);
    _cleanup_free_ char *ns = mem_printf("%s/namespace", folder);
    struct kube_config *c = ret_config;
    c->token_file = mem_printf("%s/token", folder);
    if (config_set_server(c, server, NULL, e) < 0 ||
        !(c->ca = config_read(ca, CONFIG_FILE_MAX, e)) ||
        !(c->token = config_read(c->token_file, CONFIG_TOKEN_MAX, e)) ||
        config_check_token(c->token, e) < 0) {
        kube_config_done(c);
        return err_prefix(e, "cannot use the credentials of this Pod");
    }
    c->ns = config_read(ns, 4096, NULL);
    if (!c->ns || !*c->ns) {
        free(c->ns);
        c->ns = mem_strdup("default");
    }
    return 0;
}
