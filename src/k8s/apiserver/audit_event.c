/*
 * The form of a line of the audit log.
 */
#include <ctype.h>

#include "base/rfc3339.h"
#include "json/json.h"
#include "k8s/apiserver/audit.h"

enum { TEXT_MAX = 2048 }; /* bytes of anything that a client chooses */

/*
 * A line is written as text at once: every request has one, and a tree of values would cost more than
 * the rest of it. Members of an object are separated by what stands before them.
 */
static void begin_member(struct str *out, const char *key)
{
    if (out->p[out->len - 1] != '{')
        str_append_c(out, ',');
    str_append_c(out, '"');
    str_append(out, key);
    str_append(out, "\":");
}

/* Text that may hold anything, and any amount of it. */
static void put_text(struct str *out, const char *text)
{
    json_format_string(text, str_cut(text, TEXT_MAX), out);
}

static void set(struct str *out, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    begin_member(out, key);
    put_text(out, text);
}

static void set_time(struct str *out, const char *key, int64_t ns)
{
    char text[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(ns), RFC3339_MICRO, text);
    set(out, key, text);
}

/* Whether the value of a parameter of that name could be a credential. */
static bool is_secret(const char *name, size_t n)
{
    static const char *const words[] = {"token", "secret", "password", "credential"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t size = strlen(words[i]);
        for (size_t at = 0; at + size <= n; at++) {
            if (strncasecmp(name + at, words[i], size) == 0)
                return true;
        }
    }
    return false;
}

/* The target as it came, without the values of what may be credentials. */
static void append_target(const char *target, struct str *out)
{
    size_t path = strcspn(target, "?");
    str_append_n(out, target, path);
    for (const char *at = target + path; *at;) {
        str_append_c(out, *at++); /* ? or & */
        size_t whole = strcspn(at, "&"), name = strcspn(at, "=&");
        bool hide = name < whole && is_secret(at, name);
        str_append_n(out, at, hide ? name + 1 : whole);
        if (hide)
            str_append(out, "[redacted]");
        at += whole;
    }
}

static void set_user(struct str *out, const char *key, const struct apiserver_user *user)
{
    if (!user)
        return;
    begin_member(out, key);
    str_append_c(out, '{');
    set(out, "username", user->name);
    set(out, "uid", user->uid);
    for (const char *const *group = user->groups; group && *group; group++) {
        if (group == user->groups)
            begin_member(out, "groups");
        str_append_c(out, group == user->groups ? '[' : ',');
        put_text(out, *group);
        if (!group[1])
            str_append_c(out, ']');
    }
    if (json_object_size(user->extra)) {
        begin_member(out, "extra");
        json_format(user->extra, out);
    }
    str_append_c(out, '}');
}

static void set_reference(struct str *out, const struct apiserver_path *path)
{
    begin_member(out, "objectRef");
    str_append_c(out, '{');
    set(out, "resource", path->kind->plural);
    set(out, "namespace", path->namespace);
    set(out, "name", path->name);
    set(out, "apiGroup", path->gv->group);
    set(out, "apiVersion", path->gv->version);
    set(out, "subresource", apiserver_subresource_text(path->subresource));
    str_append_c(out, '}');
}

static void set_verb(struct str *out, const struct apiserver_audit_record *r, bool objects)
{
    char method[16];
    size_t n = 0;
    for (const char *m = r->method; *m && n < sizeof(method) - 1; m++)
        method[n++] = (char)tolower((unsigned char)*m);
    method[n] = '\0';
    set(out, "verb", objects ? apiserver_verb_text(r->path->verb) : method);
}

static void set_response(struct str *out, const struct apiserver_audit_record *r)
{
    begin_member(out, "responseStatus");
    str_append(out, "{\"metadata\":{}");
    if (r->call->why) {
        set(out, "status", "Failure");
        set(out, "reason", r->call->why);
    }
    str_appendf(out, ",\"code\":%u}", r->code);
}

static void set_decision(struct str *out, const struct apiserver_audit_record *r)
{
    begin_member(out, "annotations");
    str_append_c(out, '{');
    set(out, "authorization.k8s.io/decision", r->allowed ? "allow" : "forbid");
    begin_member(out, "authorization.k8s.io/reason");
    put_text(out, r->reason ? r->reason : "");
    str_append_c(out, '}');
}

void apiserver_audit_format(const struct apiserver_audit_record *r, struct str *out)
{
    bool objects = r->path && r->path->asked == APISERVER_ASKED_OBJECTS && r->path->kind;
    _cleanup_(str_done) struct str target = {0};
    append_target(r->target, &target);
    str_append(out,
               "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"Metadata\"");
    set(out, "auditID", r->call->id);
    set(out, "stage", r->goes_on ? "ResponseStarted" : "ResponseComplete");
    set(out, "requestURI", str_get(&target));
    set_verb(out, r, objects);
    set_user(out, "user", r->user);
    set_user(out, "impersonatedUser", r->impersonated);
    if (r->peer && *r->peer) {
        begin_member(out, "sourceIPs");
        str_append_c(out, '[');
        put_text(out, r->peer);
        str_append_c(out, ']');
    }
    set(out, "userAgent", r->user_agent);
    if (objects)
        set_reference(out, r->path);
    set_response(out, r);
    set_time(out, "requestReceivedTimestamp", r->call->received);
    set_time(out, "stageTimestamp", r->answered);
    if (r->decided)
        set_decision(out, r);
    str_append(out, "}\n");
}
