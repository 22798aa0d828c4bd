/*
 * The form of a line of the audit log.
 */
#include <ctype.h>

#include "apiserver/audit.h"
#include "base/rfc3339.h"
#include "json/json.h"

enum { TEXT_MAX = 2048 }; /* bytes of anything that a client chooses */

/* Text that may hold anything, and any amount of it. */
static json_t *safe_text(const char *text)
{
    size_t n = str_cut(text, TEXT_MAX);
    json_t *value = json_stringn(text, n);
    if (value)
        return value;
    char *clean = mem_strndup(text, n);
    for (char *c = clean; *c; c++) {
        if (*c & 0x80)
            *c = '?';
    }
    value = json_string(clean);
    free(clean);
    return value;
}

static void set(json_t *object, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(object, key, safe_text(text));
}

static void set_time(json_t *object, const char *key, int64_t ns)
{
    char text[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(ns), RFC3339_MICRO, text);
    json_object_set_new(object, key, json_string(text));
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

static json_t *user_object(const struct apiserver_user *user)
{
    json_t *object = json_object(), *groups = json_array();
    set(object, "username", user->name);
    set(object, "uid", user->uid);
    for (const char *const *group = user->groups; group && *group; group++)
        json_array_append_new(groups, safe_text(*group));
    if (json_array_size(groups))
        json_object_set(object, "groups", groups);
    json_decref(groups);
    if (json_object_size(user->extra))
        json_object_set(object, "extra", (json_t *)user->extra);
    return object;
}

static json_t *reference(const struct apiserver_path *path)
{
    json_t *object = json_object();
    set(object, "resource", path->kind->plural);
    set(object, "namespace", path->namespace);
    set(object, "name", path->name);
    set(object, "apiGroup", path->gv->group);
    set(object, "apiVersion", path->gv->version);
    set(object, "subresource", apiserver_subresource_text(path->subresource));
    return object;
}

static void set_verb(json_t *event, const struct apiserver_audit_record *r, bool objects)
{
    char method[16];
    size_t n = 0;
    for (const char *m = r->method; *m && n < sizeof(method) - 1; m++)
        method[n++] = (char)tolower((unsigned char)*m);
    method[n] = '\0';
    set(event, "verb", objects ? apiserver_verb_text(r->path->verb) : method);
}

static json_t *response_status(const struct apiserver_audit_record *r)
{
    json_t *status = json_pack("{s:{}}", "metadata");
    if (r->call->why) {
        set(status, "status", "Failure");
        set(status, "reason", r->call->why);
    }
    json_object_set_new(status, "code", json_integer(r->code));
    return status;
}

void apiserver_audit_format(const struct apiserver_audit_record *r, struct str *out)
{
    bool objects = r->path && r->path->asked == APISERVER_ASKED_OBJECTS && r->path->kind;
    _cleanup_(str_done) struct str target = {0};
    append_target(r->target, &target);
    json_auto_t *event = json_pack("{s:s,s:s,s:s}", "kind", "Event", "apiVersion",
                                   "audit.k8s.io/v1", "level", "Metadata");
    set(event, "auditID", r->call->id);
    set(event, "stage", r->goes_on ? "ResponseStarted" : "ResponseComplete");
    set(event, "requestURI", str_get(&target));
    set_verb(event, r, objects);
    if (r->user)
        json_object_set_new(event, "user", user_object(r->user));
    if (r->impersonated)
        json_object_set_new(event, "impersonatedUser", user_object(r->impersonated));
    if (r->peer && *r->peer)
        json_object_set_new(event, "sourceIPs", json_pack("[s]", r->peer));
    set(event, "userAgent", r->user_agent);
    if (objects)
        json_object_set_new(event, "objectRef", reference(r->path));
    json_object_set_new(event, "responseStatus", response_status(r));
    set_time(event, "requestReceivedTimestamp", r->call->received);
    set_time(event, "stageTimestamp", r->answered);
    if (r->decided) {
        json_t *annotations =
            json_pack("{s:s}", "authorization.k8s.io/decision", r->allowed ? "allow" : "forbid");
        json_object_set_new(annotations, "authorization.k8s.io/reason",
                            safe_text(r->reason ? r->reason : ""));
        json_object_set_new(event, "annotations", annotations);
    }
    json_format(event, out);
    str_append_c(out, '\n');
}
