#include "api/openapi.h"

#include "api/format.h"

/* What a quantity looks like, for API servers; the exact rules are in base/quantity.h. */
#define QUANTITY_PATTERN                                                                           \
    "^[+-]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$"

static json_t *object_schema(const struct api_field *fields, bool keep);

/* {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true} */
static json_t *int_or_string(void)
{
    return json_pack("{s:[{s:s},{s:s}],s:b}", "anyOf", "type", "integer", "type", "string",
                     "x-kubernetes-int-or-string", 1);
}

static void add_string_rules(const struct api_field *field, json_t *schema)
{
    if (field->words) {
        json_t *words = json_array();
        for (const char *const *word = field->words; *word; word++)
            json_array_append_new(words, json_string(*word));
        for (const struct api_synonym *s = field->synonyms; s && s->from; s++)
            json_array_append_new(words, json_string(s->from));
        json_object_set_new(schema, "enum", words);
    }
    if (!field->format)
        return;
    if (field->format->max)
        json_object_set_new(schema, "maxLength", json_integer((json_int_t)field->format->max));
    if (field->format->pattern && field->flags & API_REQUIRED)
        json_object_set_new(schema, "pattern", json_string(field->format->pattern));
    else if (field->format->pattern) /* an optional string may also be empty */
        json_object_set_new(schema, "pattern", json_sprintf("^$|%s", field->format->pattern));
}

/* The schema of one value of the field. */
static json_t *value_schema(const struct api_field *field)
{
    json_t *schema;
    switch (field->type) {
    case API_OBJECT:
        return object_schema(field->fields, field->flags & API_KEEP);
    case API_STRING:
        schema = json_pack("{s:s}", "type", "string");
        add_string_rules(field, schema);
        return schema;
    case API_TIME:
        return json_pack("{s:s,s:s}", "type", "string", "format", "date-time");
    case API_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case API_INT:
        schema = json_pack("{s:s,s:s}", "type", "integer", "format", "int64");
        if (field->min < field->max) {
            json_object_set_new(schema, "minimum", json_integer(field->min));
            if (field->max != INT64_MAX)
                json_object_set_new(schema, "maximum", json_integer(field->max));
        }
        return schema;
    case API_NUMBER:
        return json_pack("{s:s}", "type", "number");
    case API_QUANTITY:
        schema = int_or_string();
        json_object_set_new(schema, "pattern",
                            json_string(field->flags & API_REQUIRED || field->shape != API_ONE
                                            ? QUANTITY_PATTERN
                                            : "^$|" QUANTITY_PATTERN));
        return schema;
    case API_INT_OR_STRING:
        return int_or_string();
    case API_BOOL_OR_STRING:
    case API_ANY:
        break;
    }
    return json_pack("{s:b}", "x-kubernetes-preserve-unknown-fields", 1);
}

/* What tells the elements of a list apart. */
static json_t *map_keys(const struct api_field *field)
{
    json_t *keys = json_array();
    for (const char *const *key = field->map_keys; key && *key; key++)
        json_array_append_new(keys, json_string(*key));
    if (!json_array_size(keys))
        json_array_append_new(keys, json_string(field->merge_key));
    return keys;
}

static json_t *field_schema(const struct api_field *field)
{
    json_t *schema = value_schema(field);
    if (field->flags & API_ATOMIC_ITEMS)
        json_object_set_new(schema, "x-kubernetes-map-type", json_string("atomic"));
    if (field->shape == API_LIST) {
        schema = json_pack("{s:s,s:o}", "type", "array", "items", schema);
        if (field->flags & API_REQUIRED)
            json_object_set_new(schema, "minItems", json_integer(1));
        if (field->flags & API_SET) {
            json_object_set_new(schema, "x-kubernetes-list-type", json_string("set"));
        } else if (api_field_is_list_map(field)) {
            json_object_set_new(schema, "x-kubernetes-list-type", json_string("map"));
            json_object_set_new(schema, "x-kubernetes-list-map-keys", map_keys(field));
        }
    } else if (field->shape == API_MAP) {
        schema = json_pack("{s:s,s:o}", "type", "object", "additionalProperties", schema);
        if (field->flags & API_REQUIRED)
            json_object_set_new(schema, "minProperties", json_integer(1));
    } else if (field->type == API_STRING && field->flags & API_REQUIRED) {
        json_object_set_new(schema, "minLength", json_integer(1));
    }
    if (field->flags & API_ATOMIC)
        json_object_set_new(
            schema, field->shape == API_LIST ? "x-kubernetes-list-type" : "x-kubernetes-map-type",
            json_string("atomic"));
    if (field->def)
        json_object_set_new(schema, "default", json_loads(field->def, JSON_DECODE_ANY, NULL));
    else if (!(field->flags & API_REQUIRED) &&
             (field->type == API_OBJECT || field->type == API_TIME))
        json_object_set_new(schema, "nullable", json_true());
    return schema;
}

static void add_property(json_t *properties, const char *name, const struct api_field *field)
{
    json_t *schema = field_schema(field);
    if (name != field->name)
        json_object_del(schema, "default"); /* or both names would be set */
    json_auto_t *doc = name == field->name
                           ? json_string(field->doc)
                           : json_sprintf("Another name of %s. %s", field->name, field->doc);
    json_auto_t *rest = schema;
    json_t *with_doc = json_object(); /* the description first: it is read by people */
    json_object_set(with_doc, "description", doc);
    json_object_update(with_doc, rest);
    json_object_set_new(properties, name, with_doc);
}

/* "required", or for a field with several names that one of them is there. */
static void add_required(json_t *schema, const struct api_field *fields)
{
    json_t *required = json_array(), *one_of_names = json_array();
    for (const struct api_field *f = fields; f && f->name; f++) {
        if (!(f->flags & API_REQUIRED))
            continue;
        if (!f->aliases) {
            json_array_append_new(required, json_string(f->name));
            continue;
        }
        json_t *any = json_pack("[{s:[s]}]", "required", f->name);
        for (const char *const *alias = f->aliases; *alias; alias++)
            json_array_append_new(any, json_pack("{s:[s]}", "required", *alias));
        json_array_append_new(one_of_names, json_pack("{s:o}", "anyOf", any));
    }
    if (json_array_size(required))
        json_object_set(schema, "required", required);
    if (json_array_size(one_of_names))
        json_object_set(schema, "allOf", one_of_names);
    json_decref(required);
    json_decref(one_of_names);
}

static json_t *object_schema(const struct api_field *fields, bool keep)
{
    json_t *schema = json_pack("{s:s}", "type", "object");
    if (keep || !fields)
        json_object_set_new(schema, "x-kubernetes-preserve-unknown-fields", json_true());
    if (!fields)
        return schema;
    json_t *properties = json_object();
    for (const struct api_field *f = fields; f->name; f++) {
        add_property(properties, f->name, f);
        for (const char *const *alias = f->aliases; alias && *alias; alias++)
            add_property(properties, *alias, f);
    }
    add_required(schema, fields);
    json_object_set_new(schema, "properties", properties);
    return schema;
}

/* The schema that a user's definition has for the kind; what goes without saying is added. */
static json_t *defined_schema(const struct api_kind *kind)
{
    json_auto_t *definition = json_parse(kind->source, kind->source_size, NULL, NULL);
    json_t *schema = NULL, *version;
    size_t i;
    json_array_foreach(json_at(definition, "spec", "versions"), i, version) {
        const char *name = json_str(version, "name");
        if (name && str_eq(name, api_kind_canonical(kind)->version))
            schema = json_object_get(json_object_get(version, "schema"), "openAPIV3Schema");
    }
    schema = schema ? json_incref(schema) : json_object();
    json_t *properties = json_object();
    for (const struct api_field *f = api_type_and_meta; f->name; f++)
        add_property(properties, f->name, f);
    json_t *given = json_object_get(schema, "properties");
    const char *key;
    json_t *value;
    json_object_foreach(given, key, value) {
        if (!api_field_find(api_type_and_meta, key))
            json_object_set(properties, key, value);
    }
    json_object_set_new(schema, "properties", properties);
    return schema;
}

json_t *api_openapi_schema(const struct api_kind *kind)
{
    if (kind->schema)
        return defined_schema(kind);
    json_t *schema = json_object();
    json_object_set_new(schema, "description", json_string(kind->doc));
    json_auto_t *rest = object_schema(kind->fields, kind->flags & API_BUILTIN);
    json_object_update(schema, rest);
    return schema;
}
