/*
 * Bodies of requests, as JSON or protobuf.
 */
#include "apiserver/protobuf.h"
#include "apiserver/serve_impl.h"

json_t *call_body(struct call *c)
{
    const char *type = http_request_header(c->http, "Content-Type");
    if (type && str_starts_with(type, APISERVER_PROTOBUF_TYPE))
        return apiserver_protobuf_decode(c->http->body, c->http->body_size, &c->err);
    struct err e = {0};
    json_t *value = json_parse(c->http->body, c->http->body_size, NULL, &e);
    if (!value)
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "the body is no JSON: %s", e.msg);
    return value;
}

json_t *call_body_object(struct call *c)
{
    json_auto_t *object = call_body(c);
    if (!object)
        return NULL;
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
