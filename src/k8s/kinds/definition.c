/*
 * CustomResourceDefinition: kinds that the API is taught while it runs. What is checked here is what
 * one definition can say of itself; whether its names are free is up to whoever serves them.
 */
#include <ctype.h>

#include "base/map.h"
#include "k8s/kinds/kinds.h"
#include "k8s/schema/schema.h"

enum { MAX_SELECTABLE = 8 };

static const struct api_field names_fields[] = {
    {"plural", API_STRING, .flags = API_REQUIRED, .doc = "The plural, as in paths."},
    {"singular", API_STRING, .doc = "The singular, for people; the kind in small letters."},
    {"shortNames", API_STRING, API_LIST, .doc = "Short forms, for people."},
    {"kind", API_STRING, .flags = API_REQUIRED, .doc = "The kind."},
    {"listKind", API_STRING, .doc = "The kind of its lists; the kind and List."},
    {"categories", API_STRING, API_LIST, .doc = "Groups of kinds, such as all."},
    {0},
};

static const struct api_field column_fields[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Head of the column."},
    {"type", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("boolean", "date", "integer", "number", "string"),
     .doc = "OpenAPI type of its values."},
    {"jsonPath", API_STRING, .flags = API_REQUIRED, .doc = "Where its values come from."},
    {"format", API_STRING, .doc = "OpenAPI format of its values."},
    {"description", API_STRING, .doc = "What it shows."},
    {"priority", API_INT, .min = INT32_MIN, .max = INT32_MAX,
     .doc = "Above 0: only in wide output."},
    {0},
};

static const struct api_field scale_fields[] = {
    {"specReplicasPath", API_STRING, .flags = API_REQUIRED,
     .doc = "Where the wanted number is, below .spec."},
    {"statusReplicasPath", API_STRING, .flags = API_REQUIRED,
     .doc = "Where the present number is, below .status."},
    {"labelSelectorPath", API_STRING,
     .doc = "Where the selector of its pods is as text, below .spec or .status."},
    {0},
};

static const struct api_field subresources_fields[] = {
    {"status", API_OBJECT, .flags = API_KEEP, .doc = "Whether it has /status."},
    {"scale", API_OBJECT, .fields = scale_fields, .doc = "What its /scale is about."},
    {0},
};

static const struct api_field schema_fields[] = {
    {"openAPIV3Schema", API_OBJECT, .flags = API_KEEP, .doc = "The structural schema."},
    {0},
};

static const struct api_field selectable_fields[] = {
    {"jsonPath", API_STRING, .flags = API_REQUIRED, .doc = "Where the field is."},
    {0},
};

static const struct api_field version_fields[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "The version, such as v1."},
    {"served", API_BOOL, .flags = API_REQUIRED, .doc = "Whether it can be used."},
    {"storage", API_BOOL, .flags = API_REQUIRED, .doc = "Whether objects are kept in it; one is."},
    {"deprecated", API_BOOL, .doc = "Whether users are warned."},
    {"deprecationWarning", API_STRING, .doc = "What they are told."},
    {"schema", API_OBJECT, .fields = schema_fields, .doc = "Its OpenAPI schema."},
    {"subresources", API_OBJECT, .fields = subresources_fields,
     .doc = "Whether it has status and scale."},
    {"additionalPrinterColumns", API_OBJECT, API_LIST, .fields = column_fields,
     .doc = "Columns that kubectl get shows."},
    {"selectableFields", API_OBJECT, API_LIST, .fields = selectable_fields,
     .doc = "Fields to select by."},
    {0},
};

static const struct api_field conversion_webhook[] = {
    {"clientConfig", API_OBJECT, .fields = api_webhook_client, .doc = "Where it is."},
    {"conversionReviewVersions", API_STRING, API_LIST, API_REQUIRED,
     .doc = "Versions of ConversionReview that it understands."},
    {0},
};

static const struct api_field conversion_fields[] = {
    {"strategy", API_STRING, .flags = API_REQUIRED, .words = API_WORDS("None", "Webhook"),
     .doc = "None: only apiVersion changes. Webhook: a webhook converts objects."},
    {"webhook", API_OBJECT, .fields = conversion_webhook, .doc = "Who converts."},
    {0},
};

static const struct api_field spec_fields[] = {
    {"group", API_STRING, .flags = API_REQUIRED, .format = &api_dns_subdomain,
     .doc = "The API group."},
    {"names", API_OBJECT, .flags = API_REQUIRED, .fields = names_fields,
     .doc = "What it is called."},
    {"scope", API_STRING, .flags = API_REQUIRED, .words = API_WORDS("Namespaced", "Cluster"),
     .doc = "Whether its objects belong to a namespace."},
    {"versions", API_OBJECT, API_LIST, API_REQUIRED, .fields = version_fields,
     .doc = "The versions that it has."},
    {"conversion", API_OBJECT, .fields = conversion_fields, .def = "{\"strategy\": \"None\"}",
     .doc = "How objects go from one version to another."},
    {"preserveUnknownFields", API_BOOL, .doc = "Obsolete; must be false."},
    {0},
};

/* Strategic merge replaces its conditions, other than most kinds'. */
static const struct api_field status_fields[] = {
    {"conditions", API_OBJECT, API_LIST, .fields = api_conditions,
     .doc = "Whether the kind can be used."},
    {"acceptedNames", API_OBJECT, .flags = API_KEEP, .doc = "Names that are in force."},
    {"storedVersions", API_STRING, API_LIST, .doc = "Versions in which objects were ever kept."},
    {"observedGeneration", API_INT, .doc = "The metadata.generation that this was said of."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = spec_fields, .doc = "The kind."},
    {"status", API_OBJECT, .fields = status_fields, .doc = "Whether it can be used."},
    {0},
};

static const struct api_column columns[] = {
    API_CREATED_AT,
    {0},
};

#define SPEC     API_KEY(NULL, "spec")
#define NAMES    API_KEY(SPEC, "names")
#define VERSIONS API_KEY(SPEC, "versions")

/* The name of the version in which objects are kept; NULL. */
static const char *storage_version(const json_t *object)
{
    size_t i;
    json_t *version;
    const json_t *versions = json_at(object, "spec", "versions");
    json_array_foreach(versions, i, version) {
        if (json_is_true(json_object_get(version, "storage")))
            return json_str(version, "name");
    }
    return NULL;
}

/* Remembers in which versions objects may have been written: only people take one off the list. */
static void record_stored_version(json_t *object)
{
    const char *name = storage_version(object);
    json_t *status = json_object_get(object, "status");
    json_t *stored = json_object_get(status, "storedVersions");
    if (!name || (status && !json_is_object(status)) || (stored && !json_is_array(stored)))
        return;
    if (!status) {
        status = json_object();
        json_object_set_new(object, "status", status);
    }
    if (!stored) {
        stored = json_array();
        json_object_set_new(status, "storedVersions", stored);
    }
    size_t i;
    json_t *it;
    json_array_foreach(stored, i, it) {
        if (json_is_string(it) && str_eq(json_string_value(it), name))
            return;
    }
    json_array_append_new(stored, json_string(name));
}

/* Names that follow from the kind. */
static void normalize(json_t *object, struct api_report *report)
{
    (void)report;
    json_t *names = (json_t *)json_at(object, "spec", "names");
    const char *kind = json_str(names, "kind");
    if (kind && *kind) {
        if (!json_object_get(names, "listKind"))
            json_object_set_new(names, "listKind", json_sprintf("%sList", kind));
        if (!json_object_get(names, "singular")) {
            _cleanup_free_ char *singular = mem_strdup(kind);
            for (char *c = singular; *c; c++)
                *c = (char)tolower((unsigned char)*c);
            json_object_set_new(names, "singular", json_string(singular));
        }
    }
    record_stored_version(object);
}

/* A label that begins with a letter; of a kind, whatever the letters' case. */
static void check_name(const json_t *value, const struct api_path *at, bool mixed,
                       struct api_report *report)
{
    const char *text = json_string_value(value);
    if (!text)
        return;
    _cleanup_free_ char *folded = mem_strdup(text);
    for (char *c = folded; mixed && *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (strlen(text) > api_dns_label.max || api_dns_label.check(folded) ||
        !islower((unsigned char)*folded))
        api_problem(report, at, API_INVALID, value,
                    "%sa DNS-1035 label must consist of lower case alphanumeric characters or "
                    "'-', start with an alphabetic character, and end with an alphanumeric "
                    "character (e.g. 'my-name',  or 'abc-123')",
                    mixed ? "may have mixed case, but should otherwise match: " : "");
}

static void check_name_list(const json_t *names, const char *key, struct api_report *report)
{
    size_t i;
    json_t *value;
    json_array_foreach(json_object_get(names, key), i, value)
        check_name(value, API_AT(API_KEY(NAMES, key), i), false, report);
}

static void validate_names(const json_t *object, struct api_report *report)
{
    const json_t *name = json_at(object, "metadata", "name"),
                 *names = json_at(object, "spec", "names");
    const json_t *group = json_at(object, "spec", "group");
    _cleanup_free_ char *expected =
        mem_printf("%s.%s", json_str(names, "plural"), json_string_value(group));
    if (name && !str_eq(json_string_value(name), expected))
        api_problem(report, API_KEY(API_KEY(NULL, "metadata"), "name"), API_INVALID, name,
                    "must be spec.names.plural+\".\"+spec.group: \"%s\"", expected);
    if (!strchr(json_string_value(group), '.'))
        api_problem(report, API_KEY(SPEC, "group"), API_INVALID, group,
                    "should be a domain with at least one dot");
    check_name(json_object_get(names, "plural"), API_KEY(NAMES, "plural"), false, report);
    check_name(json_object_get(names, "singular"), API_KEY(NAMES, "singular"), false, report);
    check_name(json_object_get(names, "kind"), API_KEY(NAMES, "kind"), true, report);
    check_name(json_object_get(names, "listKind"), API_KEY(NAMES, "listKind"), true, report);
    check_name_list(names, "shortNames", report);
    check_name_list(names, "categories", report);
    const json_t *list_kind = json_object_get(names, "listKind");
    if (list_kind && json_equal(list_kind, json_object_get(names, "kind")))
        api_problem(report, API_KEY(NAMES, "listKind"), API_INVALID, list_kind,
                    "kind and listKind may not be the same");
}

/* Groups that Kubernetes keeps for itself. */
static void validate_group(const json_t *object, struct api_report *report)
{
    static const char key[] = "api-approved.kubernetes.io";
    const char *group = json_string_value(json_at(object, "spec", "group"));
    bool reserved = str_ends_with(group, ".k8s.io") || str_ends_with(group, ".kubernetes.io") ||
                    str_eq(group, "k8s.io") || str_eq(group, "kubernetes.io");
    if (reserved && !json_at(object, "metadata", "annotations", key))
        api_problem(report, API_KEY(API_KEY(API_KEY(NULL, "metadata"), "annotations"), key),
                    API_MISSING, NULL,
                    "protected groups must have approval annotation \"%s\", see "
                    "https://github.com/kubernetes/enhancements/pull/1111",
                    key);
}

/* A dotted path below one of the roots. */
static void check_scale_path(const json_t *scale, const char *key, const struct api_path *at,
                             bool spec, bool status, struct api_report *report)
{
    const json_t *value = json_object_get(scale, key);
    const char *path = json_string_value(value);
    if (!path || (!*path && str_eq(key, "labelSelectorPath")))
        return;
    bool fits =
        (spec && str_starts_with(path, ".spec.")) || (status && str_starts_with(path, ".status."));
    if (!fits || strpbrk(path, "[]*\"'()@ ") || strstr(path, "..") || str_ends_with(path, "."))
        api_problem(report, API_KEY(at, key), API_INVALID, value,
                    "must be a json path in the dot notation under %s",
                    spec && status ? "either .spec or .status"
                    : spec         ? ".spec"
                                   : ".status");
}

static void validate_columns(const json_t *version, const struct api_path *at,
                             struct api_report *report)
{
    size_t i;
    json_t *column;
    json_array_foreach(json_object_get(version, "additionalPrinterColumns"), i, column) {
        const json_t *path = json_object_get(column, "jsonPath");
        if (*json_string_value(path) != '.' && *json_string_value(path) != '[')
            api_problem(report,
                        API_KEY(API_AT(API_KEY(at, "additionalPrinterColumns"), i), "jsonPath"),
                        API_INVALID, path, "must be a simple json path starting with .");
    }
}

static void validate_selectable(const json_t *version, const struct api_schema *schema,
                                const struct api_path *at, struct api_report *report)
{
    static const char *const types[] = {"string", "boolean", "integer", NULL};
    const json_t *list = json_object_get(version, "selectableFields");
    const struct api_path *here = API_KEY(at, "selectableFields");
    if (json_array_size(list) > MAX_SELECTABLE) {
        json_auto_t *n = json_integer((json_int_t)json_array_size(list));
        api_problem(report, here, API_TOO_MANY, n, "must have at most %d items", MAX_SELECTABLE);
    }
    size_t i;
    json_t *field;
    json_array_foreach(list, i, field) {
        const json_t *path = json_object_get(field, "jsonPath");
        const char *type = schema ? api_schema_type_at(schema, json_string_value(path)) : "string";
        if (!type || !str_in(type, types))
            api_problem(report, API_KEY(API_AT(here, i), "jsonPath"), API_INVALID, path,
                        "must point to a field of type string, boolean or integer in the schema");
    }
}

static void validate_version(const json_t *version, const struct api_path *at,
                             struct api_schema_set *set, struct api_report *report)
{
    check_name(json_object_get(version, "name"), API_KEY(at, "name"), false, report);
    const struct api_path *schema_at = API_KEY(API_KEY(at, "schema"), "openAPIV3Schema");
    const json_t *schema = json_at(version, "schema", "openAPIV3Schema");
    const struct api_schema *compiled = NULL;
    if (schema)
        compiled = api_schema_compile(set, schema, schema_at, report);
    else
        api_problem(report, schema_at, API_MISSING, NULL, "schemas are required");
    const json_t *warning = json_object_get(version, "deprecationWarning");
    if (warning && !json_is_true(json_object_get(version, "deprecated")))
        api_problem(report, API_KEY(at, "deprecationWarning"), API_INVALID, warning,
                    "can only be set for deprecated versions");
    const struct api_path *scale_at = API_KEY(API_KEY(at, "subresources"), "scale");
    const json_t *scale = json_at(version, "subresources", "scale");
    check_scale_path(scale, "specReplicasPath", scale_at, true, false, report);
    check_scale_path(scale, "statusReplicasPath", scale_at, false, true, report);
    check_scale_path(scale, "labelSelectorPath", scale_at, true, true, report);
    validate_columns(version, at, report);
    validate_selectable(version, compiled, at, report);
}

static bool has_version(const json_t *object, const char *name)
{
    size_t i;
    json_t *version;
    const json_t *versions = json_at(object, "spec", "versions");
    json_array_foreach(versions, i, version) {
        if (str_eq(json_str(version, "name"), name))
            return true;
    }
    return false;
}

static void validate_versions(const json_t *object, struct api_report *report)
{
    unsigned stored = 0;
    size_t i, j;
    json_t *version;
    const json_t *versions = json_at(object, "spec", "versions");
    struct map names = {0};
    bool unique = true;
    _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
    json_array_foreach(versions, i, version) {
        stored += json_is_true(json_object_get(version, "storage"));
        unique &= !map_set(&names, json_str(version, "name"), version);
        validate_version(version, API_AT(VERSIONS, i), set, report);
    }
    map_done(&names);
    if (!unique)
        api_problem(report, VERSIONS, API_INVALID, NULL, "must contain unique version names");
    if (stored != 1)
        api_problem(report, VERSIONS, API_INVALID, NULL,
                    "must have exactly one version marked as storage version");
    const json_t *list = json_at(object, "status", "storedVersions");
    json_array_foreach(list, j, version) {
        if (!has_version(object, json_string_value(version)))
            api_problem(report, API_AT(API_KEY(API_KEY(NULL, "status"), "storedVersions"), j),
                        API_INVALID, version,
                        "missing from spec.versions; objects may be stored in this version: write "
                        "them all again, then take it off status.storedVersions");
    }
}

static void validate_conversion(const json_t *conversion, struct api_report *report)
{
    const struct api_path *at = API_KEY(API_KEY(SPEC, "conversion"), "webhook");
    const char *strategy = json_str(conversion, "strategy");
    const json_t *webhook = json_object_get(conversion, "webhook");
    const json_t *client = json_object_get(webhook, "clientConfig");
    const json_t *versions = json_object_get(webhook, "conversionReviewVersions");
    if (!strategy || !str_eq(strategy, "Webhook")) {
        if (webhook)
            api_problem(report, at, API_FORBIDDEN, NULL,
                        "should not be set when strategy is not set to Webhook");
        return;
    }
    if (!client)
        api_problem(report, API_KEY(at, "clientConfig"), API_MISSING, NULL,
                    "required when strategy is set to Webhook");
    else
        api_check_webhook_client(client, API_KEY(at, "clientConfig"), report);
    size_t i;
    json_t *version;
    json_array_foreach(versions, i, version) {
        if (str_eq(json_string_value(version), "v1") ||
            str_eq(json_string_value(version), "v1beta1"))
            return;
    }
    if (webhook)
        api_problem(report, API_KEY(at, "conversionReviewVersions"), API_INVALID, versions,
                    "must include at least one of v1, v1beta1");
}

static void validate(const json_t *object, struct api_report *report)
{
    validate_names(object, report);
    validate_group(object, report);
    validate_versions(object, report);
    validate_conversion(json_at(object, "spec", "conversion"), report);
    const json_t *preserve = json_at(object, "spec", "preserveUnknownFields");
    if (json_is_true(preserve))
        api_problem(report, API_KEY(SPEC, "preserveUnknownFields"), API_INVALID, preserve,
                    "must be false; use x-kubernetes-preserve-unknown-fields in the schema");
}

static bool is_established(const json_t *object)
{
    size_t i;
    json_t *condition;
    const json_t *conditions = json_at(object, "status", "conditions");
    json_array_foreach(conditions, i, condition) {
        if (str_eq(json_str(condition, "type"), "Established"))
            return str_eq(json_str(condition, "status"), "True");
    }
    return false;
}

static void check_fixed(const json_t *was, const json_t *is, const struct api_path *at,
                        struct api_report *report)
{
    if (was && !json_equal(was, is))
        api_problem(report, at, API_INVALID, is, "field is immutable");
}

static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    check_fixed(json_at(old, "spec", "group"), json_at(object, "spec", "group"),
                API_KEY(SPEC, "group"), report);
    check_fixed(json_at(old, "spec", "names", "plural"), json_at(object, "spec", "names", "plural"),
                API_KEY(NAMES, "plural"), report);
    if (!is_established(old))
        return;
    check_fixed(json_at(old, "spec", "scope"), json_at(object, "spec", "scope"),
                API_KEY(SPEC, "scope"), report);
    check_fixed(json_at(old, "spec", "names", "kind"), json_at(object, "spec", "names", "kind"),
                API_KEY(NAMES, "kind"), report);
}

const struct api_kind api_custom_resource_definition = {
    .kind = "CustomResourceDefinition",
    .plural = "customresourcedefinitions",
    .singular = "customresourcedefinition",
    .short_names = API_WORDS("crd", "crds"),
    .versions = API_VERSION("apiextensions.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_STATUS,
    .fields = fields,
    .columns = columns,
    .cleanup = "customresourcecleanup.apiextensions.k8s.io",
    .normalize = normalize,
    .validate = validate,
    .validate_update = validate_update,
    .doc = "A kind that the API is taught.",
};
