#include "k8s/apiserver/table.h"

#include <inttypes.h>

#include "base/age.h"
#include "k8s/apiserver/jsonpath.h"

int apiserver_include_parse(const char *text, enum apiserver_include *ret_include, struct err *e)
{
    if (!text || !*text || str_eq(text, "Metadata"))
        *ret_include = APISERVER_INCLUDE_METADATA;
    else if (str_eq(text, "Object"))
        *ret_include = APISERVER_INCLUDE_OBJECT;
    else if (str_eq(text, "None"))
        *ret_include = APISERVER_INCLUDE_NONE;
    else
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                       "includeObject: \"%.*s\" is none of Metadata, Object, None",
                       (int)str_cut(text, 80), text);
    return 0;
}

/* What Go's types have where nothing was said. */
static json_t *zero(const char *type)
{
    if (str_eq(type, "integer"))
        return json_integer(0);
    return str_eq(type, "boolean") ? json_false()
                                   : json_string(str_eq(type, "date") ? "<unknown>" : "");
}

/* The value as the column's type has it; null for what is not there or has another type. */
static json_t *cell(const struct apiserver_table *t, const char *type, const json_t *value)
{
    char age[AGE_MAX];
    if (!value || json_is_null(value))
        return t->kind->flags & API_BUILTIN ? zero(type) : json_null();
    if (str_eq(type, "string")) {
        if (json_is_string(value))
            return json_incref((json_t *)value);
        _cleanup_(str_done) struct str text = {0};
        json_format(value, &text);
        return json_stringn(str_get(&text), text.len);
    }
    if (str_eq(type, "date"))
        return json_is_string(value)
                   ? json_string(age_since(json_string_value(value), clock_real_ns(t->clock), age))
                   : json_null();
    if (str_eq(type, "boolean"))
        return json_is_boolean(value) ? json_incref((json_t *)value) : json_null();
    if (!json_is_number(value))
        return json_null();
    json_int_t whole;
    if (str_eq(type, "integer") && json_is_real(value))
        return json_real_is_whole(json_real_value(value), &whole) ? json_integer(whole)
                                                                  : json_null();
    return json_incref((json_t *)value);
}

static json_t *column(const char *name, const char *type, const char *format, const char *doc,
                      int priority)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:i}", "name", name, "type", type, "format", format,
                     "description", doc, "priority", priority);
}

/* The name comes first, unless the kind has a place for it. */
static bool places_name(const struct api_kind *kind)
{
    for (const struct api_column *c = kind->columns; c && c->name; c++) {
        if (str_eq(c->name, "Name"))
            return true;
    }
    return false;
}

/* In Kubernetes' own kinds an age is text; only those with a definition have dates. */
static const char *type_shown(const struct api_kind *kind, const char *type)
{
    return kind->flags & API_BUILTIN && str_eq(type, "date") ? "string" : type;
}

static json_t *columns(const struct api_kind *kind)
{
    json_t *list = json_array();
    if (!places_name(kind))
        json_array_append_new(list, column("Name", "string", "name",
                                           api_field_find(api_object_meta, "name")->doc, 0));
    for (const struct api_column *c = kind->columns; c && c->name; c++)
        json_array_append_new(list, column(c->name, type_shown(kind, c->type),
                                           str_eq(c->name, "Name") ? "name" : "",
                                           c->doc ? c->doc : "", c->priority));
    return list;
}

void apiserver_table_begin(const struct apiserver_table *t, struct str *out)
{
    json_auto_t *metadata = json_object();
    json_auto_t *headers = t->no_headers ? json_null() : columns(t->kind);
    if (t->revision)
        json_object_set_new(metadata, "resourceVersion", json_sprintf("%" PRIu64, t->revision));
    if (t->continue_token)
        json_object_set_new(metadata, "continue", json_string(t->continue_token));
    if (t->continue_token && t->remaining)
        json_object_set_new(metadata, "remainingItemCount", json_integer((json_int_t)t->remaining));
    str_append(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
    json_format(metadata, out);
    str_append(out, ",\"columnDefinitions\":");
    json_format(headers, out);
    str_append(out, ",\"rows\":[");
}

void apiserver_table_end(struct str *out)
{
    str_append(out, "]}");
}

void apiserver_table_cells(const struct apiserver_table *t, const json_t *object, struct str *out)
{
    json_auto_t *cells = json_array();
    json_t *name = json_object_get(json_object_get(object, "metadata"), "name");
    if (!places_name(t->kind))
        json_array_append_new(cells, name ? json_incref(name) : json_null());
    for (const struct api_column *c = t->kind->columns; c && c->name; c++)
        json_array_append_new(cells, c->cell
                                         ? c->cell(object, clock_real_ns(t->clock))
                                         : cell(t, c->type, apiserver_jsonpath(object, c->path)));
    str_append(out, "{\"cells\":");
    json_format(cells, out);
}

static void append_metadata(const json_t *object, struct str *out)
{
    const json_t *metadata = json_object_get(object, "metadata");
    str_append(out, ",\"object\":{\"kind\":\"PartialObjectMetadata\","
                    "\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
    if (metadata)
        json_format(metadata, out);
    else
        str_append(out, "{}");
    str_append_c(out, '}');
}

void apiserver_table_row(const struct apiserver_table *t, const json_t *object, const json_t *shown,
                         struct str *out)
{
    apiserver_table_cells(t, object, out);
    if (t->include == APISERVER_INCLUDE_METADATA)
        append_metadata(shown ? shown : object, out);
    if (t->include == APISERVER_INCLUDE_OBJECT) {
        str_append(out, ",\"object\":");
        json_format(shown ? shown : object, out);
    }
    str_append_c(out, '}');
}

int apiserver_table(const struct apiserver_table *t, struct apiserver_object *const *objects,
                    size_t n, struct str *out, struct err *e)
{
    size_t before = out->len;
    apiserver_table_begin(t, out);
    for (size_t i = 0; i < n; i++) {
        json_auto_t *object = json_parse(objects[i]->bytes, objects[i]->size, NULL, e);
        if (!object) {
            if (e)
                e->code = ERR_DATA_LOSS;
            str_truncate(out, before);
            return err_prefix(e, "%s \"%s\" as it is stored", objects[i]->collection,
                              objects[i]->key);
        }
        str_append(out, i ? "," : "");
        if (t->include != APISERVER_INCLUDE_OBJECT) {
            apiserver_table_row(t, object, NULL, out);
            continue;
        }
        apiserver_table_cells(t, object, out); /* the object needs no encoding, it is there */
        str_append(out, ",\"object\":");
        str_append_n(out, objects[i]->bytes, objects[i]->size);
        str_append_c(out, '}');
    }
    apiserver_table_end(out);
    return 0;
}
