/*
 * /scale: the number of replicas of anything that has one, as an autoscaling/v1 Scale. The kind's
 * table says where the numbers are.
 *
 *     object ── paths ──> Scale ── PUT, PATCH ──> Scale ── spec.replicas ──> object
 */
#include "json/patch.h"
#include "k8s/apiserver/conversion.h"
#include "k8s/apiserver/jsonpath.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

enum { TRIES = 5 };

/* For a Status about the Scale. */
static const struct api_kind scale_kind = {
    .kind = "Scale",
    .plural = "scales",
    .singular = "scale",
    .versions = API_VERSION("autoscaling", "v1"),
};

static json_int_t number_at(const json_t *object, const char *path)
{
    return path ? json_integer_value(apiserver_jsonpath(object, path)) : 0;
}

static void add_selector(json_t *status, const json_t *value)
{
    struct api_selector selector = {0};
    if (json_is_string(value)) {
        json_object_set_new(status, "selector", json_copy((json_t *)value));
    } else if (json_is_object(value) && api_selector_from_json(value, &selector, NULL) == 0) {
        _cleanup_(str_done) struct str text = {0};
        api_selector_format(&selector, &text);
        json_object_set_new(status, "selector", json_string(str_get(&text)));
    }
    api_selector_done(&selector);
}

static json_t *scale_of(const struct api_kind *kind, const json_t *object)
{
    static const char *const shared[] = {
        "name", "namespace", "uid", "resourceVersion", "creationTimestamp", NULL};
    json_t *metadata = json_object(), *status = json_object();
    for (const char *const *key = shared; *key; key++) {
        json_t *value = json_object_get(json_object_get(object, "metadata"), *key);
        if (value)
            json_object_set(metadata, *key, value);
    }
    json_object_set_new(status, "replicas", json_integer(number_at(object, kind->scale_status)));
    if (kind->scale_selector)
        add_selector(status, apiserver_jsonpath(object, kind->scale_selector));
    return json_pack("{s:s,s:s,s:o,s:{s:I},s:o}", "kind", "Scale", "apiVersion", "autoscaling/v1",
                     "metadata", metadata, "spec", "replicas", number_at(object, kind->scale_spec),
                     "status", status);
}

/* Sets what a dotted path names, making the objects on the way. */
static int set_at(json_t *object, const char *path, json_int_t number)
{
    while (*path == '.') {
        size_t n = strcspn(++path, ".");
        _cleanup_free_ char *key = mem_strndup(path, n);
        path += n;
        if (!*path)
            return json_object_set_new(object, key, json_integer(number));
        json_t *next = json_object_at(object, key);
        object = next;
    }
    return -1;
}

static int bad_request(struct call *c, const char *why)
{
    return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "the Scale cannot be read: %s",
                   why);
}

/* The number that a Scale asks for; none is zero, which clients leave out. */
static int check_scale(struct call *c, const json_t *scale, json_int_t *ret_replicas)
{
    const char *kind = json_str(scale, "kind"), *version = json_str(scale, "apiVersion");
    const json_t *spec = json_object_get(scale, "spec");
    const json_t *replicas = json_object_get(spec, "replicas");
    if (!json_is_object(scale) || (kind && !str_eq(kind, "Scale")) ||
        (version && !str_eq(version, "autoscaling/v1")))
        return bad_request(c, "it must be a Scale of autoscaling/v1");
    if ((spec && !json_is_object(spec)) ||
        (replicas && !json_is_null(replicas) && !json_is_integer(replicas)))
        return bad_request(c, "spec.replicas must be an integer");
    *ret_replicas = json_integer_value(replicas);
    if (*ret_replicas > INT32_MAX || *ret_replicas < INT32_MIN)
        return bad_request(c, "spec.replicas must be an integer of 32 bits");
    if (*ret_replicas < 0) {
        api_problem(&c->report, API_KEY(API_KEY(NULL, "spec"), "replicas"), API_INVALID, replicas,
                    "must be greater than or equal to 0");
        c->path.kind = &scale_kind;
        c->path.gv = scale_kind.versions;
        return err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid", "spec.replicas is negative");
    }
    return 0;
}

/* The object with the number that the Scale asks for, written; NULL with c->err. */
static struct apiserver_object *write_scale(struct call *c, json_t *object, const json_t *scale)
{
    static const char *const named[] = {"name", "uid", "resourceVersion", NULL};
    struct apiserver_request r = call_request(c);
    const char *path = c->path.kind->scale_spec;
    json_int_t replicas = 0;
    if (check_scale(c, scale, &replicas) < 0)
        return NULL;
    if (!path || set_at(object, path, replicas) < 0) {
        err_set(&c->err, ERR_INTERNAL, "InternalError", "no replicas at %s",
                path ? path : "(none)");
        return NULL;
    }
    for (const char *const *key = named; *key; key++) {
        const char *text = json_str(json_object_get(scale, "metadata"), *key);
        if (text && *text)
            json_object_set_new(json_object_get(object, "metadata"), *key, json_string(text));
    }
    return apiserver_update(&c->server->registry, &r, object, &c->report, &c->err);
}

static json_t *apply(struct call *c, const json_t *scale, const json_t *body)
{
    const char *type = http_request_header(c->http, "Content-Type");
    struct err e = {0};
    json_t *patched = NULL;
    if (type && str_starts_with(type, "application/json-patch+json"))
        patched = json_patch_apply(scale, body, &e);
    else if (type && (str_starts_with(type, "application/merge-patch+json") ||
                      str_starts_with(type, "application/strategic-merge-patch+json")))
        patched = json_merge_patch(scale, body, &e); /* a Scale has no lists to merge otherwise */
    else
        err_set(&c->err, ERR_INVALID_ARGUMENT, "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/strategic-merge-patch+json");
    if (!patched && !c->err.code)
        bad_request(c, e.msg);
    return patched;
}

static struct apiserver_object *current(struct call *c, json_t **ret_object)
{
    struct apiserver_request r = call_request(c);
    _cleanup_(str_done) struct str collection = {0}, key = {0};
    apiserver_collection(r.kind, &collection);
    apiserver_key(&r, c->path.name, &key);
    struct apiserver_object *o =
        apiserver_store_get(c->server->registry.store, str_get(&collection), str_get(&key));
    if (!o)
        err_set(&c->err, ERR_NOT_FOUND, "NotFound", "not found");
    o = apiserver_convert_one(r.kind, o, &c->err);
    *ret_object = o ? json_parse(o->bytes, o->size, NULL, &c->err) : NULL;
    return o;
}

/* One try: NULL with c->err. *ret_named: the client says which revision it means. */
static struct apiserver_object *change(struct call *c, const json_t *body, bool *ret_named)
{
    json_t *stored = NULL;
    apiserver_object_unref(current(c, &stored));
    json_auto_t *object = stored;
    if (!object)
        return NULL;
    const struct api_kind *kind = c->path.kind;
    json_auto_t *before = scale_of(kind, object);
    json_auto_t *scale =
        c->path.verb == APISERVER_PATCH ? apply(c, before, body) : json_incref((json_t *)body);
    *ret_named = json_str(json_object_get(body, "metadata"), "resourceVersion") != NULL;
    json_auto_t *own = json_deep_copy(object);
    return scale ? write_scale(c, own, scale) : NULL;
}

static void reply_scale(struct call *c, struct apiserver_object *o)
{
    o = apiserver_convert_one(c->path.kind, o, &c->err);
    json_auto_t *object = o ? json_parse(o->bytes, o->size, NULL, &c->err) : NULL;
    apiserver_object_unref(o);
    if (!object) {
        call_fail(c);
        return;
    }
    json_auto_t *scale = scale_of(c->path.kind, object);
    call_reply_json(c, 200, scale);
}

void call_scale(struct call *c)
{
    if (c->path.verb == APISERVER_GET) {
        json_t *object;
        struct apiserver_object *o = current(c, &object);
        json_decref(object);
        reply_scale(c, o);
        return;
    }
    json_auto_t *body = call_body(c);
    if (!body) {
        call_fail(c);
        return;
    }
    for (int tries = TRIES;; tries--) {
        bool named = true;
        c->err = (struct err){0};
        api_report_clear(&c->report);
        struct apiserver_object *o = change(c, body, &named);
        if (o || !tries || named || !str_eq(c->err.reason, "Conflict")) {
            reply_scale(c, o);
            return;
        }
    }
}
