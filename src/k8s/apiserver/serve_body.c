/*
 * Bodies, of requests and of answers, as JSON or protobuf.
 */
#include "k8s/apiserver/protobuf.h"
#include "k8s/apiserver/serve_impl.h"

int call_bad_request(struct call *c, const char *message)
{
    return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "%s", message);
}

bool call_is_list_of_strings(const json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item) {
        if (!json_is_string(item))
            return false;
    }
    return !value || json_is_null(value) || json_is_array(value);
}

/* What is in a body twice, for a strict decoder to complain of. */
struct twice {
    struct apiserver_notes *notes;
    enum api_unknown unknown;
    struct str text;
};

static void add_twice(void *context, const char *path)
{
    enum { MOST = 600 }; /* an error has no more room */
    struct twice *t = context;
    if (t->unknown == API_UNKNOWN_WARN)
        apiserver_notes_warn(t->notes, "duplicate field \"%s\"", path);
    else if (t->unknown == API_UNKNOWN_ERROR && t->text.len < MOST)
        str_appendf(&t->text, "%sduplicate field \"%s\"", t->text.len ? ", " : "", path);
}

json_t *call_json(struct call *c, const char *what)
{
    struct err e = {0};
    struct twice twice = {.notes = &c->notes, .unknown = call_request(c).unknown};
    const char *kind = c->path.kind->kind;
    json_t *value = json_parse_last(c->http->body, c->http->body_size, add_twice, &twice, &e);
    if (!value) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "the %s is no JSON: %s", what, e.msg);
    } else if (twice.text.len) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                "%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s", kind,
                c->path.gv->version, kind, str_get(&twice.text));
        json_decref(value);
        value = NULL;
    }
    str_done(&twice.text);
    return value;
}

json_t *call_body(struct call *c)
{
    const char *type = http_request_header(c->http, "Content-Type");
    if (type && str_starts_with(type, APISERVER_PROTOBUF_TYPE))
        return apiserver_protobuf_parse(c->http->body, c->http->body_size, &c->err);
    return call_json(c, "body");
}

json_t *call_typed_object(struct call *c, json_t *object)
{
    if (!json_is_object(object)) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "the body must be an object");
        return NULL;
    }
    const char *kind = json_str(object, "kind"), *version = json_str(object, "apiVersion");
    char text[128];
    api_version_text(c->path.gv, text);
    if ((kind && *kind && !str_eq(kind, c->path.kind->kind)) ||
        (version && *version && !str_eq(version, text))) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                "the object in the body is a %s of %s, the path is for a %s of %s",
                kind ? kind : "?", version ? version : "?", c->path.kind->kind, text);
        return NULL;
    }
    json_object_set_new(object, "kind", json_string(c->path.kind->kind));
    json_object_set_new(object, "apiVersion", json_string(text));
    return json_incref(object);
}

json_t *call_body_object(struct call *c)
{
    json_auto_t *object = call_body(c);
    return object ? call_typed_object(c, object) : NULL;
}

/* Others get JSON, and the type of the answer says so. */
bool call_wants_protobuf(const struct call *c)
{
    const char *accept = http_request_header(c->http, "Accept");
    char version[128];
    return accept && api_message_find(api_version_text(c->path.gv, version), c->path.kind->kind) &&
           strstr(accept, APISERVER_PROTOBUF_TYPE) && !strstr(accept, "application/json") &&
           !strstr(accept, "*/*") && !strstr(accept, "application/*");
}

void call_reply_value(struct call *c, unsigned status, const json_t *object)
{
    if (!call_wants_protobuf(c)) {
        call_reply_json(c, status, object);
        return;
    }
    struct str text = {0};
    if (apiserver_protobuf_format(object, &text, &c->err) < 0) {
        str_done(&text);
        call_fail(c);
        return;
    }
    call_reply_text(c, status, APISERVER_PROTOBUF_TYPE, &text);
}
