/*
 * Forms: what a client wants to see of an object. As it is, in one of the kind's versions; as rows
 * of a Table; or only its metadata. The Accept header says which; of several the first that there
 * is counts.
 */
#include <inttypes.h>

#include "api/convert.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/apiserver/span.h"

#define PARTIAL                                                                                    \
    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":"

/* A parameter of a media type that ends at `end`: ";as=Table". */
static bool has_parameter(const char *type, const char *end, const char *parameter)
{
    size_t n = strlen(parameter);
    for (const char *p = type; (p = memchr(p, ';', (size_t)(end - p)));) {
        p++;
        p += strspn(p, " ");
        if ((size_t)(end - p) >= n && strncmp(p, parameter, n) == 0 &&
            (p + n == end || p[n] == ';' || p[n] == ' '))
            return true;
    }
    return false;
}

static enum form_what form_asked(const char *accept)
{
    for (const char *end; *accept; accept = *end ? end + 1 : end) {
        accept += strspn(accept, " ");
        end = accept + strcspn(accept, ",");
        if (strncmp(accept, "application/json", strlen("application/json")) != 0)
            continue;
        bool transformed = false;
        for (const char *p = accept; p < end && !transformed; p++)
            transformed = strncmp(p, ";as=", 4) == 0;
        if (!transformed)
            return FORM_OBJECT;
        if (!has_parameter(accept, end, "g=meta.k8s.io") || !has_parameter(accept, end, "v=v1"))
            continue;
        if (has_parameter(accept, end, "as=Table"))
            return FORM_TABLE;
        if (has_parameter(accept, end, "as=PartialObjectMetadata") ||
            has_parameter(accept, end, "as=PartialObjectMetadataList"))
            return FORM_METADATA;
    }
    return FORM_OBJECT;
}

int call_form(struct call *c, struct form *ret_form)
{
    const char *accept = http_request_header(c->http, "Accept");
    *ret_form = (struct form){
        .what = accept ? form_asked(accept) : FORM_OBJECT,
        .gv = c->path.gv,
        .table = {.kind = c->path.kind, .clock = c->server->registry.clock},
    };
    if (ret_form->what != FORM_TABLE)
        return 0;
    return apiserver_include_parse(http_request_query(c->http, "includeObject"),
                                   &ret_form->table.include, &c->err);
}

bool form_is_stored(const struct form *f, const struct apiserver_object *o)
{
    const struct api_kind *kind = f->table.kind;
    const struct api_group_version *stored = api_kind_stored(kind);
    return f->what == FORM_OBJECT && str_eq(f->gv->version, stored->version) &&
           str_eq(f->gv->group, stored->group) && (!kind->schema || o->revision > kind->since);
}

/* The object in the version that was asked for; NULL when it is damaged. */
static json_t *object_of(const struct form *f, const struct apiserver_object *o)
{
    const struct api_kind *kind = f->table.kind;
    json_auto_t *stored = json_parse(o->bytes, o->size, NULL, NULL);
    if (!stored)
        return NULL;
    if (!kind->schema && f->gv == &kind->versions[kind->published]) {
        struct api_report warnings = {0};
        json_t *published = api_convert(kind, stored, API_FORM_PUBLISHED, &warnings);
        api_report_done(&warnings);
        return published;
    }
    char text[128];
    json_t *object = kind->schema ? api_read(kind, stored) : json_incref(stored);
    json_object_set_new(object, "apiVersion", json_string(api_version_text(f->gv, text)));
    return object;
}

static void append_version(const struct form *f, const struct apiserver_object *o, struct str *out)
{
    struct form plain = *f;
    plain.what = FORM_OBJECT;
    if (form_is_stored(&plain, o)) {
        str_append_n(out, o->bytes, o->size);
        return;
    }
    json_auto_t *object = object_of(f, o);
    if (object)
        json_format(object, out);
    else
        str_append(out, "null");
}

static void append_metadata(const struct apiserver_object *o, struct str *out)
{
    struct apiserver_span metadata = apiserver_span_member(o->bytes, o->size, "metadata");
    str_append(out, PARTIAL);
    if (metadata.p)
        str_append_n(out, metadata.p, metadata.size);
    else
        str_append(out, "{}");
    str_append_c(out, '}');
}

/* Adds a top-level member of the stored object, unless it is there. */
static void take_member(json_t *object, const struct apiserver_object *o, const char *key)
{
    if (json_object_get(object, key))
        return;
    struct apiserver_span text = apiserver_span_member(o->bytes, o->size, key);
    json_t *value = text.p ? json_parse(text.p, text.size, NULL, NULL) : NULL;
    if (value)
        json_object_set_new(object, key, value);
}

/* As much of the object as its columns show: most of it is mostly not shown. */
static json_t *parse_shown(const struct form *f, const struct apiserver_object *o)
{
    if (f->table.kind->schema && o->revision <= f->table.kind->since)
        return object_of(f, o); /* as the schema has it now */
    json_t *object = json_object();
    take_member(object, o, "metadata");
    for (const struct api_column *c = f->table.kind->columns; c && c->name; c++) {
        char key[64];
        size_t n = c->path && c->path[0] == '.' ? strcspn(c->path + 1, ".[\\") : 0;
        if (n == 0 || n >= sizeof(key) || c->path[n + 1] == '\\' || c->cell) {
            json_decref(object);
            return json_parse(o->bytes, o->size, NULL, NULL);
        }
        memcpy(key, c->path + 1, n);
        key[n] = '\0';
        take_member(object, o, key);
    }
    return object;
}

static void append_row(const struct form *f, const struct apiserver_object *o, struct str *out)
{
    json_auto_t *object = parse_shown(f, o);
    apiserver_table_cells(&f->table, object, out);
    if (f->table.include != APISERVER_INCLUDE_NONE)
        str_append(out, ",\"object\":");
    if (f->table.include == APISERVER_INCLUDE_METADATA)
        append_metadata(o, out);
    if (f->table.include == APISERVER_INCLUDE_OBJECT)
        append_version(f, o, out);
    str_append_c(out, '}');
}

void form_append_item(const struct form *f, const struct apiserver_object *o, struct str *out)
{
    switch (f->what) {
    case FORM_OBJECT:
        append_version(f, o, out);
        return;
    case FORM_METADATA:
        append_metadata(o, out);
        return;
    case FORM_TABLE:
        append_row(f, o, out);
        return;
    }
}

void form_append(const struct form *f, const struct apiserver_object *o, bool headers,
                 struct str *out)
{
    if (f->what != FORM_TABLE) {
        form_append_item(f, o, out);
        return;
    }
    struct apiserver_table t = f->table;
    t.revision = o->revision;
    t.no_headers = !headers;
    apiserver_table_begin(&t, out);
    append_row(f, o, out);
    apiserver_table_end(out);
}

void form_append_begin(const struct form *f, const struct apiserver_list *list, const char *token,
                       struct str *out)
{
    if (f->what == FORM_TABLE) {
        struct apiserver_table t = f->table;
        t.revision = list->revision;
        t.continue_token = token;
        t.remaining = list->remaining;
        apiserver_table_begin(&t, out);
        return;
    }
    char version[128];
    bool partial = f->what == FORM_METADATA;
    const char *own_kind = f->table.kind->list_kind;
    str_appendf(
        out,
        "{\"kind\":\"%s%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%" PRIu64
        "\"",
        partial    ? "PartialObjectMetadata"
        : own_kind ? own_kind
                   : f->table.kind->kind,
        !partial && own_kind ? "" : "List",
        partial ? "meta.k8s.io/v1" : api_version_text(f->gv, version), list->revision);
    if (token)
        str_appendf(out, ",\"continue\":\"%s\"", token);
    if (token && list->remaining)
        str_appendf(out, ",\"remainingItemCount\":%zu", list->remaining);
    str_append(out, "},\"items\":[");
}

void form_append_end(const struct form *f, struct str *out)
{
    if (f->what == FORM_TABLE)
        apiserver_table_end(out);
    else
        str_append(out, "]}");
    str_append_c(out, '\n');
}

void form_append_bookmark(const struct form *f, uint64_t revision, bool initial_end, bool headers,
                          struct str *out)
{
    _cleanup_(str_done) struct str metadata = {0};
    char version[128];
    str_appendf(&metadata, "{\"resourceVersion\":\"%" PRIu64 "\"%s}", revision,
                initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
    if (f->what == FORM_OBJECT) {
        str_appendf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":%s}",
                    f->table.kind->kind, api_version_text(f->gv, version), str_get(&metadata));
        return;
    }
    if (f->what == FORM_METADATA) {
        str_appendf(out, PARTIAL "%s}", str_get(&metadata));
        return;
    }
    struct apiserver_table t = f->table;
    t.revision = revision;
    t.no_headers = !headers;
    apiserver_table_begin(&t, out);
    if (initial_end) /* the row's object carries the annotation */
        str_appendf(out, "{\"cells\":[],\"object\":" PARTIAL "%s}}", str_get(&metadata));
    apiserver_table_end(out);
}
