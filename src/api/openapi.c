#include "api/openapi.h"

#include "api/format.h"

/* What a quantity looks like, for API servers; the exact rules are in base/quantity.h. */
#define QUANTITY_PATTERN                                                                           \
    "^[+-]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$"

/* What the schema is for. */
struct form {
    bool v2;
    bool patch; /* says how strategic merge goes about it, which is for Kubernetes' own kinds */
};

static json_t *object_schema(const struct form *form, const struct api_field *fields,
                             const struct api_message_field *message, bool keep);

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

static json_t *reference(const struct api_field *fields)
{
    for (const struct api_openapi_shared *s = api_openapi_shared(); fields && s->name; s++) {
        if (s->fields == fields)
            return json_pack("{s:o}", "$ref", json_sprintf("#/definitions/%s", s->name));
    }
    return NULL;
}

/* The schema of one value of the field. */
static json_t *value_schema(const struct form *form, const struct api_field *field,
                            const struct api_message_field *message)
{
    json_t *schema;
    switch (field->type) {
    case API_OBJECT:
        schema = form->v2 ? reference(field->fields) : NULL;
        return schema ? schema
                      : object_schema(form, field->fields, message, field->flags & API_KEEP);
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
        if (form->v2) /* in which a string may be written without quotes */
            return json_pack("{s:s}", "type", "string");
        schema = int_or_string();
        json_object_set_new(schema, "pattern",
                            json_string(field->flags & API_REQUIRED || field->shape != API_ONE
                                            ? QUANTITY_PATTERN
                                            : "^$|" QUANTITY_PATTERN));
        return schema;
    case API_INT_OR_STRING:
        return form->v2 ? json_pack("{s:s,s:s}", "type", "string", "format", "int-or-string")
                        : int_or_string();
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

/* How strategic merge goes about the field. */
static void add_patch(const struct api_field *field, json_t *schema)
{
    bool merge = field->shape == API_LIST && (field->merge_key || field->flags & API_SET);
    bool retain = field->flags & API_RETAIN_KEYS;
    if (field->shape == API_LIST && field->merge_key)
        json_object_set_new(schema, "x-kubernetes-patch-merge-key", json_string(field->merge_key));
    if (merge || retain || field->flags & API_REPLACE)
        json_object_set_new(schema, "x-kubernetes-patch-strategy",
                            json_string(merge && retain ? "merge,retainKeys"
                                        : merge         ? "merge"
                                        : retain        ? "retainKeys"
                                                        : "replace"));
}

static json_t *field_schema(const struct form *form, const struct api_field *field,
                            const struct api_message_field *message)
{
    json_t *schema = value_schema(form, field, message);
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
    else if (!form->v2 && !(field->flags & API_REQUIRED) &&
             (field->type == API_OBJECT || field->type == API_TIME))
        json_object_set_new(schema, "nullable", json_true());
    if (form->patch)
        add_patch(field, schema);
    return schema;
}

static void add_property(const struct form *form, json_t *properties, const char *name,
                         const struct api_field *field, const struct api_message_field *message)
{
    json_t *schema = field_schema(form, field, message);
    if (!field->doc) {
        json_object_set_new(properties, name, schema);
        return;
    }
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

/* What the message has beyond the table. */
static void add_untold(const struct form *form, json_t *properties, const struct api_field *fields,
                       const struct api_message_field *message)
{
    for (const struct api_message_field *m = message; m && m->number; m++) {
        if (m->kind == API_MESSAGE_INLINE) {
            add_untold(form, properties, fields, m->fields);
        } else if (!api_field_find(fields, m->name)) {
            const struct api_field field = api_message_as_field(m);
            add_property(form, properties, m->name, &field, m->fields);
        }
    }
}

static json_t *object_schema(const struct form *form, const struct api_field *fields,
                             const struct api_message_field *message, bool keep)
{
    json_t *schema = json_pack("{s:s}", "type", "object");
    if (!message && (keep || !fields))
        json_object_set_new(schema, "x-kubernetes-preserve-unknown-fields", json_true());
    if (!message && !fields)
        return schema;
    json_t *properties = json_object();
    for (const struct api_field *f = fields; f && f->name; f++) {
        const struct api_message_field *member = api_message_member(message, f->name);
        const struct api_message_field *inside = member ? member->fields : NULL;
        add_property(form, properties, f->name, f, inside);
        for (const char *const *alias = f->aliases; alias && *alias; alias++)
            add_property(form, properties, *alias, f, inside);
    }
    add_untold(form, properties, fields, message);
    add_required(schema, fields);
    json_object_set_new(schema, "properties", properties);
    return schema;
}

/* The schema that a user's definition has for the kind; what goes without saying is added. */
static json_t *defined_schema(const struct form *form, const struct api_kind *kind)
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
        add_property(form, properties, f->name, f, NULL);
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

static json_t *kind_schema(const struct form *form, const struct api_kind *kind)
{
    if (kind->schema)
        return defined_schema(form, kind);
    json_t *schema = json_object();
    json_object_set_new(schema, "description", json_string(kind->doc));
    json_auto_t *rest = object_schema(form, kind->fields, api_kind_message(kind), false);
    json_object_update(schema, rest);
    return schema;
}

json_t *api_openapi_schema(const struct api_kind *kind)
{
    const struct form form = {.patch = kind->flags & API_BUILTIN};
    return kind_schema(&form, kind);
}

/*
 * kubectl validates what has no PATCH by v2, whatever its age, and what is applied may be a part of an
 * object: it is the server that says what of the whole must be there.
 */
static void drop_required_of_all(json_t *schema)
{
    static const char *const names[] = {"apiVersion", "kind", "metadata", "spec", NULL};
    json_t *required = json_object_get(schema, "required");
    for (size_t i = json_array_size(required); i > 0; i--) {
        if (str_in(json_string_value(json_array_get(required, i - 1)), names))
            json_array_remove(required, i - 1);
    }
    if (!json_array_size(required))
        json_object_del(schema, "required");
}

json_t *api_openapi_schema_v2(const struct api_kind *kind)
{
    const struct form form = {.v2 = true, .patch = kind->flags & API_BUILTIN};
    json_t *schema = kind_schema(&form, kind);
    /* One that keeps what it does not name cannot name anything in v2, not even metadata. */
    if (!json_is_true(json_object_get(schema, "x-kubernetes-preserve-unknown-fields"))) {
        api_openapi_to_v2(schema);
        if (!kind->schema)
            drop_required_of_all(schema);
        return schema;
    }
    json_decref(schema);
    return json_pack("{s:s}", "type", "object");
}

json_t *api_openapi_shared_schema(const struct api_openapi_shared *s)
{
    const struct form form = {.v2 = true, .patch = true};
    json_t *schema = object_schema(&form, s->fields, s->message, false);
    api_openapi_to_v2(schema);
    return schema;
}
