/*
 * Which requests go into the audit log, and as what.
 */
#include "base/uuid.h"
#include "k8s/apiserver/serve_impl.h"

/* An identity that the client gave is kept, if it is one. */
static bool take_id(const char *given, char id[APISERVER_AUDIT_ID_MAX])
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = given ? strlen(given) : 0;
    if (n == 0 || n >= APISERVER_AUDIT_ID_MAX || strspn(given, allowed) != n)
        return false;
    memcpy(id, given, n + 1);
    return true;
}

void call_audit_begin(struct call *c)
{
    c->audit.received = clock_real_ns(c->server->registry.clock);
    if (!take_id(http_request_header(c->http, "Audit-ID"), c->audit.id)) {
        struct uuid uuid = uuid_random();
        uuid_format(&uuid, c->audit.id);
    }
    http_reply_header(c->http, "Audit-Id", c->audit.id);
}

static bool is_write(const struct call *c)
{
    static const bool writes[] = {
        [APISERVER_CREATE] = true,
        [APISERVER_UPDATE] = true,
        [APISERVER_PATCH] = true,
        [APISERVER_DELETE] = true,
        [APISERVER_DELETE_COLLECTION] = true,
    };
    return c->known && c->path.asked == APISERVER_ASKED_OBJECTS && c->path.kind &&
           !(c->path.kind->flags & API_REVIEW) && writes[c->path.verb];
}

void call_audit_end(struct call *c)
{
    struct apiserver_audit *audit = c->server->audit;
    unsigned code = c->http->status;
    bool refused = code == 401 || code == 403;
    enum apiserver_audit_level level = apiserver_audit_level(audit);
    if (level == APISERVER_AUDIT_OFF ||
        (level == APISERVER_AUDIT_WRITES && !is_write(c) && !refused))
        return;
    char peer[HTTP_PEER_MAX];
    struct apiserver_audit_record r = {
        .call = &c->audit,
        .answered = clock_real_ns(c->server->registry.clock),
        .goes_on = c->known && c->path.verb == APISERVER_WATCH && code == 200,
        .method = c->http->method,
        .target = c->http->target,
        .user_agent = http_request_header(c->http, "User-Agent"),
        .peer = http_request_peer(c->http, peer),
        .user = c->real ? c->real : c->user,
        .impersonated = c->real ? c->user : NULL,
        .path = c->known ? &c->path : NULL,
        .code = code ? code : 500,
        .decided = c->decided,
        .allowed = c->allowed,
        .reason = str_get(&c->reason),
    };
    struct str line = {0};
    apiserver_audit_format(&r, &line);
    apiserver_audit_line(audit, &line);
}
