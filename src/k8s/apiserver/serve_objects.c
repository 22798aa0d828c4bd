/*
 * Requests about objects: one function for each verb.
 */
#include "json/doc.h"
#include "k8s/apiserver/conversion.h"
#include "k8s/apiserver/delete_options.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/apiserver/status.h"

struct apiserver_request call_request(struct call *c)
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
        .manager = c->manager,
        .unknown = API_UNKNOWN_WARN,
        .notes = &c->notes,
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

void call_reply_object(struct call *c, unsigned status, struct apiserver_object *o)
{
    o = apiserver_convert_one(c->path.kind, o, &c->err);
    if (!o) {
        call_fail(c);
        return;
    }
    struct form form;
    if (call_form(c, &form) < 0) {
        apiserver_object_unref(o);
        call_fail(c);
    } else if (form.what == FORM_OBJECT && call_wants_protobuf(c)) {
        _cleanup_(str_done) struct str text = {0};
        form_append(&form, o, true, &text);
        apiserver_object_unref(o);
        json_auto_t *object = json_parse(text.p, text.len, NULL, NULL);
        call_reply_value(c, status, object);
    } else if (form_is_stored(&form, o)) {
        call_headers(c);
        call_reply_bytes(c, status, "application/json", o->bytes, o->size, unref_object, o);
    } else {
        struct str text = {0};
        form_append(&form, o, true, &text);
        apiserver_object_unref(o);
        call_reply_text(c, status, "application/json", &text);
    }
}

static void get(struct call *c)
{
    struct apiserver_request r = call_request(c);
    _cleanup_(str_done) struct str collection = {0}, key = {0};
    apiserver_collection(r.kind, &collection);
    apiserver_key(&r, c->path.name, &key);
    struct apiserver_object *o =
        apiserver_store_get(c->server->registry.store, str_get(&collection), str_get(&key));
    if (!o)
        err_set(&c->err, ERR_NOT_FOUND, "NotFound", "%s \"%s\" not found", r.kind->plural,
                c->path.name);
    call_reply_object(c, 200, o);
}

/* For the Status of a failure and the audit log: a new object's name is not in the path. */
static void set_name(struct call *c, const json_t *object, const struct apiserver_object *o)
{
    const char *slash = o ? strrchr(o->key, '/') : NULL;
    const char *name = json_str(json_object_get(object, "metadata"), "name");
    if (o)
        name = slash ? slash + 1 : o->key; /* it may have been made up */
    if (name && strlen(name) < sizeof(c->path.name))
        memcpy(c->path.name, name, strlen(name) + 1);
}

static void create(struct call *c)
{
    struct apiserver_request r = call_request(c);
    json_auto_t *object = call_body_object(c);
    struct apiserver_object *o =
        object ? apiserver_create(&c->server->registry, &r, object, &c->report, &c->err) : NULL;
    set_name(c, object, o);
    call_reply_object(c, 201, o);
}

static void update(struct call *c)
{
    struct apiserver_request r = call_request(c);
    json_auto_t *object = call_body_object(c);
    struct apiserver_object *o = NULL;
    if (object && apiserver_is_status(c->path.subresource))
        o = apiserver_update_status(&c->server->registry, &r, object, &c->report, &c->err);
    else if (object)
        o = apiserver_update(&c->server->registry, &r, object, &c->report, &c->err);
    call_reply_object(c, 200, o);
}

static const struct {
    const char *content_type;
    enum apiserver_patch_type type;
} patch_types[] = {
    {"application/json-patch+json", APISERVER_JSON_PATCH},
    {"application/merge-patch+json", APISERVER_MERGE_PATCH},
    {"application/strategic-merge-patch+json", APISERVER_STRATEGIC_PATCH},
    {"application/apply-patch+yaml", APISERVER_APPLY_PATCH},
};

/* The body of an apply: one document, YAML or JSON. */
static json_t *body_config(struct call *c)
{
    struct err e = {0};
    struct json_stream *stream = json_stream_new_text(c->http->body, c->http->body_size);
    struct json_doc doc = {0};
    json_t *object = NULL;
    int found = json_stream_next(stream, &doc, &e);
    if (found > 0) {
        json_auto_t *value = json_incref(doc.value);
        found = json_stream_next(stream, &doc, &e);
        if (found == 0)
            object = call_typed_object(c, value);
        else if (found > 0)
            err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                    "error decoding YAML: there is more than one document; apply them one by one");
    } else if (found == 0) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "error decoding YAML: it is empty");
    }
    if (found < 0)
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "error decoding YAML: %s", e.msg);
    json_doc_done(&doc);
    json_stream_free(stream);
    return object;
}

static void apply(struct call *c, const struct apiserver_request *r)
{
    bool created = false;
    json_auto_t *config = body_config(c);
    struct apiserver_object *o = config ? apiserver_apply(&c->server->registry, r, config,
                                                          apiserver_is_status(c->path.subresource),
                                                          &created, &c->report, &c->err)
                                        : NULL;
    call_reply_object(c, created ? 201 : 200, o);
}

static void patch(struct call *c)
{
    struct apiserver_request r = call_request(c);
    const char *content_type = http_request_header(c->http, "Content-Type");
    size_t i = 0;
    while (i < ARRAY_SIZE(patch_types) &&
           !(content_type && str_starts_with(content_type, patch_types[i].content_type)))
        i++;
    if (i == ARRAY_SIZE(patch_types)) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/strategic-merge-patch+json, application/apply-patch+yaml");
        call_fail(c);
        return;
    }
    bool applies = patch_types[i].type == APISERVER_APPLY_PATCH;
    if (call_check_apply(c, applies, &r.force) < 0) {
        call_fail(c);
        return;
    }
    if (applies) {
        apply(c, &r);
        return;
    }
    json_auto_t *body = call_json(c, "patch");
    struct apiserver_object *o = NULL;
    if (body)
        o = apiserver_patch(&c->server->registry, &r, patch_types[i].type, body,
                            apiserver_is_status(c->path.subresource), &c->report, &c->err);
    call_reply_object(c, 200, o);
}

/* Deletes one object; *ret_uid, to be freed, is what it had. */
static struct apiserver_object *delete_one(struct call *c, const struct apiserver_request *r,
                                           bool *ret_gone, char **ret_uid)
{
    struct apiserver_object *o = apiserver_delete(&c->server->registry, r, ret_gone, &c->err);
    json_auto_t *object = o ? json_parse(o->bytes, o->size, NULL, NULL) : NULL;
    *ret_uid = mem_strdup(json_text(object, "metadata", "uid"));
    return o;
}

/* What the request says of how to delete; on failure it has been answered. */
static int delete_options(struct call *c, struct apiserver_request *r,
                          struct delete_options *ret_options)
{
    if (delete_options_parse(c->http, r, ret_options, &c->report, &c->err) == 0)
        return 0;
    if (c->report.errors) {
        c->path.kind = &delete_options_kind;
        c->path.gv = delete_options_kind.versions;
        c->path.name[0] = '\0';
    }
    call_fail(c);
    return -1;
}

static void delete (struct call *c)
{
    struct apiserver_request r = call_request(c);
    _cleanup_(delete_options_done) struct delete_options options = {0};
    if (delete_options(c, &r, &options) < 0)
        return;
    bool gone;
    _cleanup_free_ char *uid = NULL;
    struct apiserver_object *o = delete_one(c, &r, &gone, &uid);
    if (!o || !gone) {
        call_reply_object(c, options.accepted ? 202 : 200, o);
        return;
    }
    apiserver_object_unref(o);
    struct apiserver_about about = {r.kind, c->path.gv, c->path.name, NULL};
    json_auto_t *status = apiserver_status_deleted(&about, uid);
    call_reply_json(c, 200, status);
}

/* Deletes what is selected, up to the first failure; what is gone meanwhile is gone. */
static int delete_selected(struct call *c, struct apiserver_request *r,
                           const struct selection *selection, const struct apiserver_list *list)
{
    vec_for_each(&list->objects, o) {
        if (!selection_matches(selection, *o))
            continue;
        const char *slash = strrchr((*o)->key, '/');
        bool gone;
        _cleanup_free_ char *uid = NULL, *ns = NULL;
        if (slash && !(r->kind->flags & API_CLUSTER_SCOPED))
            ns = mem_strndup((*o)->key, (size_t)(slash - (*o)->key));
        r->namespace = ns;
        r->name = ns ? slash + 1 : (*o)->key;
        struct apiserver_object *deleted = delete_one(c, r, &gone, &uid);
        r->namespace = NULL;
        apiserver_object_unref(deleted);
        if (!deleted && c->err.code != ERR_NOT_FOUND)
            return -1;
    }
    return 0;
}

static void delete_collection(struct call *c)
{
    struct apiserver_request r = call_request(c);
    _cleanup_(delete_options_done) struct delete_options options = {0};
    struct selection selection;
    if (delete_options(c, &r, &options) < 0)
        return;
    if (call_selection(c, &selection) < 0) {
        call_fail(c);
        return;
    }
    _cleanup_(str_done) struct str collection = {0}, prefix = {0};
    call_collection(c, &collection, &prefix);
    struct apiserver_list list;
    struct apiserver_list_options all = {.prefix = prefix.len ? prefix.p : NULL};
    apiserver_store_list(c->server->registry.store, str_get(&collection), &all, &list, NULL);
    int status = delete_selected(c, &r, &selection, &list);
    apiserver_list_done(&list);
    selection_done(&selection);
    if (status < 0) {
        call_fail(c);
        return;
    }
    struct apiserver_about about = {r.kind, c->path.gv, NULL, NULL};
    json_auto_t *answer = apiserver_status_deleted(&about, NULL);
    call_reply_json(c, 200, answer);
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
        [APISERVER_SCALE] = call_scale,     [APISERVER_TOKEN] = call_token,
        [APISERVER_LOG] = call_log,         [APISERVER_FINALIZE] = call_finalize,
        [APISERVER_BINDING] = call_binding,
    };
    if (call_manager(c) < 0)
        call_fail(c);
    else if (c->path.kind->flags & API_REVIEW)
        call_review(c);
    else if (subresources[c->path.subresource])
        subresources[c->path.subresource](c);
    else
        verbs[c->path.verb](c);
}
