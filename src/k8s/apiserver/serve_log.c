/*
 * One line for each request, when it is over.
 *
 *     warn    what failed on our side (5xx)
 *     info    writes, refusals of who asks, and whatever took longer than a second
 *     debug   other reads; watches, at their end
 *
 * At most LINES_PER_SECOND lines of one second are written; the next line says how many were not.
 * Nothing of a request but its path is shown: neither headers nor bodies, which may hold secrets.
 */
#include "base/clock.h"
#include "base/log.h"
#include "k8s/apiserver/serve_impl.h"

enum { LINES_PER_SECOND = 200, AGENT_MAX = 200 };

static bool is_mutating(const char *method)
{
    return !str_eq(method, "GET") && !str_eq(method, "HEAD");
}

void call_begin(struct call *c)
{
    c->start = clock_mono_ns(clock_system());
    http_reply_header(c->http, "Cache-Control", "no-cache, private");
    apiserver_metrics_inflight(c->server->metrics, is_mutating(c->http->method), 1);
}

void call_end(struct call *c)
{
    apiserver_metrics_inflight(c->server->metrics, is_mutating(c->http->method), -1);
    if (c->streaming)
        return;
    struct call_record r = call_record(c);
    r.status = c->http->status;
    r.bytes = c->http->reply_size;
    call_record_finish(&r);
}

struct call_record call_record(const struct call *c)
{
    const char *type = http_request_header(c->http, "Content-Type");
    const char *dry_run = http_request_query(c->http, "dryRun");
    struct call_record r = {
        .server = c->server,
        .path = &c->path,
        .known = c->known,
        .apply = c->path.verb == APISERVER_PATCH && type &&
                 str_starts_with(type, "application/apply-patch"),
        .dry_run = dry_run && str_eq(dry_run, "All"),
        .method = c->http->method,
        .uri = c->http->path,
        .user = c->user ? c->user->name : NULL,
        .agent = http_request_header(c->http, "User-Agent"),
        .start = c->start,
    };
    http_request_peer(c->http, r.peer);
    memcpy(r.id, c->audit.id, sizeof(r.id));
    return r;
}

void call_record_own(struct call_record *r)
{
    const char **const texts[] = {&r->method, &r->uri, &r->user, &r->agent};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        *texts[i] = *texts[i] ? mem_strdup(*texts[i]) : NULL;
    r->owned = true;
}

static bool may_log(struct apiserver *a)
{
    int64_t now = clock_mono_ns(clock_system()) / CLOCK_SECOND, second = a->log.second;
    if (now != second && atomic_compare_exchange_strong(&a->log.second, &second, now))
        a->log.lines = 0;
    if (atomic_fetch_add(&a->log.lines, 1) < LINES_PER_SECOND)
        return true;
    atomic_fetch_add(&a->log.dropped, 1);
    return false;
}

static enum log_level level_of(const struct call_record *r, int64_t ns, bool watch)
{
    if (r->status >= 500)
        return LOG_LEVEL_WARN;
    if (watch)
        return LOG_LEVEL_DEBUG;
    bool refused = r->status == 401 || r->status == 403;
    return is_mutating(r->method) || refused || ns > CLOCK_SECOND ? LOG_LEVEL_INFO
                                                                  : LOG_LEVEL_DEBUG;
}

static void write_line(const struct call_record *r, int64_t ns, bool watch)
{
    enum log_level level = level_of(r, ns, watch);
    if (!log_enabled(level) || !may_log(r->server))
        return;
    char agent[AGENT_MAX + 1] = "";
    if (r->agent)
        memcpy(agent, r->agent, str_cut(r->agent, AGENT_MAX));
    unsigned dropped = atomic_exchange(&r->server->log.dropped, 0);
    const struct log_field fields[] = {
        LOG_S("method", r->method), LOG_S("path", r->uri),  LOG_S("user", r->user),
        LOG_S("peer", r->peer),     LOG_S("agent", agent),  LOG_U("code", r->status),
        LOG_U("bytes", r->bytes),   LOG_I("us", ns / 1000), LOG_S("audit", r->id),
        LOG_U("dropped", dropped), /* left out when none were */
    };
    log_write(level, watch ? "watch" : "request", fields, ARRAY_SIZE(fields) - (dropped ? 0 : 1));
}

void call_record_finish(struct call_record *r)
{
    int64_t ns = clock_mono_ns(clock_system()) - r->start;
    bool watch = r->known && r->path->verb == APISERVER_WATCH;
    apiserver_metrics_done(r->server->metrics, &(struct apiserver_metrics_request){
                                                   .path = r->path,
                                                   .parsed = r->known,
                                                   .method = r->method,
                                                   .apply = r->apply,
                                                   .dry_run = r->dry_run,
                                                   .status = r->status,
                                                   .ns = ns,
                                               });
    write_line(r, ns, watch);
    if (!r->owned)
        return;
    const char *const texts[] = {r->method, r->uri, r->user, r->agent};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free((char *)(uintptr_t)texts[i]);
}

void call_headers(struct call *c)
{
    if (c->path.kind && c->path.kind->warning)
        apiserver_notes_warn(&c->notes, "%s", c->path.kind->warning);
    vec_for_each(&c->report.problems, p) {
        if (p->warning && p->cause == API_UNKNOWN)
            apiserver_notes_warn(&c->notes, "unknown field \"%s\"", p->path);
        else if (p->warning)
            apiserver_notes_warn(&c->notes, "%s: %s", p->path, p->message);
    }
    vec_for_each(&c->notes.warnings, text) {
        _cleanup_(str_done) struct str header = {0};
        apiserver_notes_header(*text, &header);
        http_reply_header(c->http, "Warning", str_get(&header));
    }
}
