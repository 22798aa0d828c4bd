/*
 * Requests about objects: one function for each verb.
 */
#include "apiserver/serve_impl.h"
#include "apiserver/status.h"

/* A write: its answer is ready and kept back until the disk has it, and an error if it has not. */

static void hold_answer(void *http)
{
    http_hold(http);
}

static void release_answer(void *http, const struct err *failure)
{
    if (failure) {
        unsigned code;
        struct str text = {0};
        json_auto_t *status = apiserver_status(failure, NULL, NULL, &code);
        json_format(status, &text);
        size_t size = text.len;
        char *bytes = str_take(&text);
        http_overrule(http, code, "application/json", bytes, size, free, bytes);
    }
    http_release(http);
}

static const struct apiserver_pledge pledge = {hold_answer, release_answer};

static struct apiserver_request request_of(const struct call *c)
{
    const char *dry_run = http_request_query(c->http, "dryRun");
    const char *validation = http_request_query(c->http, "fieldValidation");
    struct apiserver_request r = {
        .user = c->user,
        .kind = c->path.kind,
        .gv = c->path.gv,
        .subresource = c->path.subresource,
        .namespace = *c->path.namespace ? c->path.namespace : NULL,
        .name = *c->path.name ? c->path.name : NULL,
        .dry_run = dry_run && str_eq(dry_run, "All"),
        .unknown = API_UNKNOWN_WARN,
        .pledge = &pledge,
        .pledged = c->http,
    };
    if (validation && str_eq(validation, "Strict"))
        r.unknown = API_UNKNOWN_ERROR;
    else if (validation && str_eq(validation, "Ignore"))
        r.unknown = API_UNKNOWN_IGNORE;
    return r;
}

static void unref_object(void *object)
{
    apiserver_object_unref(object);
}

/* Answers with the object and gives up the reference. */
static void reply_object(struct call *c, unsigned status, struct apiserver_object *o)
{
    if (!o) {
        call_fail(c);
        return;
    }
    struct form form;
    if (call_form(c, &form) < 0) {
        apiserver_object_unref(o);
        call_fail(c);
    } else if (form_is_stored(&form)) {
        http_reply(c->http, status, "application/json", o->bytes, o->size, unref_object, o);
    } else {
        struct str text = {0};
        form_append(&form, o, true, &text);
        apiserver_object_unref(o);
        call_reply_text(c, status, "application/json", &text);
    }
}

static void get(struct call *c)
{
    struct apiserver_request r = request_of(c);
    _cleanup_(str_done) struct str collection = {0}, key = {0};
    apiserver_collection(r.kind, &collection);
    apiserver_key(&r, c->path.name, &key);
    struct apiserver_object *o =
        apiserver_store_get(c->server->registry.store, str_get(&collection), str_get(&key));
    if (!o)
        err_set(&c->err, ERR_NOT_FOUND, "NotFound", "%s \"%s\" not found", r.kind->plural,
                c->path.name);
    reply_object(c, 200, o);
}

/* The body as an object of the kind that the path names; NULL with BadRequest. */
static json_t *body_object(struct call *c)
{
    struct err e = {0};
    json_auto_t *object = json_parse(c->http->body, c->http->body_size, NULL, &e);
    if (!object) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "the body is no JSON: %s", e.msg);
        return NULL;
    }
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

static void create(struct call *c)
{
    struct apiserver_request r = request_of(c);
    json_auto_t *object = body_object(c);
    reply_object(c, 201,
                 object ? apiserver_create(&c->server->registry, &r, object, &c->report, &c->err)
                        : NULL);
}

static void update(struct call *c)
{
    struct apiserver_request r = request_of(c);
    json_auto_t *object = body_object(c);
    struct apiserver_object *o = NULL;
    if (object && c->path.subresource == APISERVER_STATUS)
        o = apiserver_update_status(&c->server->registry, &r, object, &c->report, &c->err);
    else if (object)
        o = apiserver_update(&c->server->registry, &r, object, &c->report, &c->err);
    reply_object(c, 200, o);
}

static const struct {
    const char *content_type;
    enum apiserver_patch_type type;
} patch_types[] = {
    {"application/json-patch+json", APISERVER_JSON_PATCH},
    {"application/merge-patch+json", APISERVER_MERGE_PATCH},
    {"application/strategic-merge-patch+json", APISERVER_STRATEGIC_PATCH},
};

static void patch(struct call *c)
{
    struct apiserver_request r = request_of(c);
    const char *content_type = http_request_header(c->http, "Content-Type");
    size_t i = 0;
    while (i < ARRAY_SIZE(patch_types) &&
           !(content_type && str_starts_with(content_type, patch_types[i].content_type)))
        i++;
    if (i == ARRAY_SIZE(patch_types)) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/strategic-merge-patch+json");
        call_fail(c);
        return;
    }
    struct err e = {0};
    json_auto_t *body = json_parse(c->http->body, c->http->body_size, NULL, &e);
    struct apiserver_object *o = NULL;
    if (!body)
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "the patch is no JSON: %s", e.msg);
    else
        o = apiserver_patch(&c->server->registry, &r, patch_types[i].type, body,
                            c->path.subresource == APISERVER_STATUS, &c->report, &c->err);
    reply_object(c, 200, o);
}

/* Deletes one object; *ret_uid, to be freed, is what it had. */
static struct apiserver_object *delete_one(struct call *c, const struct apiserver_request *r,
                                           bool *ret_gone, char **ret_uid)
{
    struct apiserver_object *o = apiserver_delete(&c->server->registry, r, ret_gone, &c->err);
    json_auto_t *object = o ? json_parse(o->bytes, o->size, NULL, NULL) : NULL;
    const char *uid = json_str(json_at(object, "metadata"), "uid");
    *ret_uid = mem_strdup(uid ? uid : "");
    return o;
}

static void delete (struct call *c)
{
    struct apiserver_request r = request_of(c);
    json_auto_t *options =
        c->http->body_size ? json_parse(c->http->body, c->http->body_size, NULL, NULL) : NULL;
    r.uid = json_str(json_at(options, "preconditions"), "uid");
    const char *revision = json_str(json_at(options, "preconditions"), "resourceVersion");
    r.revision = revision ? strtoull(revision, NULL, 10) : 0;
    bool gone;
    _cleanup_free_ char *uid = NULL;
    struct apiserver_object *o = delete_one(c, &r, &gone, &uid);
    if (!o || !gone) {
        reply_object(c, 200, o);
        return;
    }
    apiserver_object_unref(o);
    struct apiserver_about about = {r.kind, c->path.gv, c->path.name};
    json_auto_t *status = apiserver_status_deleted(&about, uid);
    call_reply_json(c, 200, status);
}

static void delete_collection(struct call *c)
{
    struct selection selection;
    if (call_selection(c, &selection) < 0) {
        call_fail(c);
        return;
    }
    _cleanup_(str_done) struct str collection = {0}, prefix = {0};
    call_collection(c, &collection, &prefix);
    struct apiserver_list list;
    struct apiserver_list_options all = {.prefix = prefix.len ? prefix.p : NULL};
    apiserver_store_list(c->server->registry.store, str_get(&collection), &all, &list, NULL);
    struct apiserver_request r = request_of(c);
    vec_for_each(&list.objects, o) {
        if (!selection_matches(&selection, *o))
            continue;
        const char *slash = strrchr((*o)->key, '/');
        bool gone;
        _cleanup_free_ char *uid = NULL;
        r.name = slash ? slash + 1 : (*o)->key;
        apiserver_object_unref(delete_one(c, &r, &gone, &uid)); /* gone meanwhile is gone */
    }
    apiserver_list_done(&list);
    selection_done(&selection);
    struct apiserver_about about = {r.kind, c->path.gv, NULL};
    json_auto_t *status = apiserver_status_deleted(&about, NULL);
    call_reply_json(c, 200, status);
}

static void missing(struct call *c)
{
    err_set(&c->err, ERR_NOT_FOUND, "NotFound", "the server could not find the requested resource");
    call_fail(c);
}

void call_objects(struct call *c)
{
    static void (*const verbs[])(struct call *) = {
        [APISERVER_GET] = get,          [APISERVER_LIST] = call_list,
        [APISERVER_WATCH] = call_watch, [APISERVER_CREATE] = create,
        [APISERVER_UPDATE] = update,    [APISERVER_PATCH] = patch,
        [APISERVER_DELETE] = delete,    [APISERVER_DELETE_COLLECTION] = delete_collection,
    };
    static void (*const subresources[APISERVER_SUBRESOURCES])(struct call *) = {
        [APISERVER_SCALE] = missing,
        [APISERVER_TOKEN] = missing,
        [APISERVER_LOG] = missing,
        [APISERVER_FINALIZE] = missing,
    };
    if (c->path.kind->flags & API_REVIEW)
        missing(c);
    else if (subresources[c->path.subresource])
        subresources[c->path.subresource](c);
    else
        verbs[c->path.verb](c);
}
