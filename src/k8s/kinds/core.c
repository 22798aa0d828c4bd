/*
 * The small kinds of the core group: namespaces, configuration, accounts and limits.
 */
#include "base/base64.h"
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field namespace_spec[] = {
    {"finalizers", API_STRING, API_LIST, .doc = "Who has to clean up before the namespace goes."},
    {0},
};

static const struct api_field namespace_status[] = {
    {"phase", API_STRING, .doc = "Active, or Terminating once deletion was asked for."},
    API_CONDITIONS,
    {0},
};

static const struct api_field namespace_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .fields = namespace_spec, .doc = "How the namespace behaves."},
    {"status", API_OBJECT, .fields = namespace_status, .doc = "Whether the namespace is in use."},
    {0},
};

static const struct api_column namespace_columns[] = {
    {"Status", "string", ".status.phase", "Active or Terminating"},
    API_AGE,
    {0},
};

/* A namespace's name is part of DNS names and hence a single label. */
static void validate_namespace(const json_t *object, struct api_report *report)
{
    const char *name = json_string_value(json_at(object, "metadata", "name"));
    const char *why = name && *name ? api_dns_label.check(name) : NULL;
    if (why)
        api_problem(report, API_KEY(API_KEY(NULL, "metadata"), "name"), API_INVALID,
                    json_at(object, "metadata", "name"), "%s", why);
}

static const struct api_field config_map_fields[] = {
    API_TYPE_AND_META,
    {"immutable", API_BOOL, .doc = "Whether the data can no longer be changed."},
    {"data", API_STRING, API_MAP, .keys = &api_data_key, .doc = "Text by key."},
    {"binaryData", API_STRING, API_MAP, .keys = &api_data_key, .format = &api_base64,
     .doc = "Bytes by key, in base64."},
    {0},
};

static const struct api_field secret_fields[] = {
    API_TYPE_AND_META,
    {"immutable", API_BOOL, .doc = "Whether the data can no longer be changed."},
    {"data", API_STRING, API_MAP, .keys = &api_data_key, .format = &api_base64,
     .doc = "Bytes by key, in base64."},
    {"stringData", API_STRING, API_MAP, .keys = &api_data_key,
     .doc = "Text by key, which the server moves into data when it is written."},
    {"type", API_STRING, .def = "\"Opaque\"", .doc = "What the secret is for."},
    {0},
};

/* What is written as text is kept as bytes, in place of what the key had. */
static void normalize_secret(json_t *object, struct api_report *report)
{
    (void)report;
    json_t *texts = json_object_get(object, "stringData"), *data = json_object_get(object, "data");
    const char *key;
    json_t *text;
    if (!json_is_object(texts) || (data && !json_is_object(data) && !json_is_null(data)))
        return;
    json_object_foreach(texts, key, text) {
        if (!json_is_string(text))
            return; /* its structure is wrong */
    }
    if (!json_is_object(data) && json_object_size(texts)) {
        data = json_object();
        json_object_set_new(object, "data", data);
    }
    json_object_foreach(texts, key, text) {
        _cleanup_(str_done) struct str encoded = {0};
        base64_format(json_string_value(text), json_string_length(text), BASE64_STD, &encoded);
        json_object_set_new(data, key, json_string(str_get(&encoded)));
    }
    json_object_del(object, "stringData");
}

static const struct api_column secret_columns[] = {
    {"Type", "string", ".type", "What the secret is for"},
    {"Data", "string", NULL, "How many keys it has", 0, api_cell_data},
    API_AGE,
    {0},
};

static const struct api_column config_map_columns[] = {
    {"Data", "string", NULL, "How many keys it has", 0, api_cell_data},
    API_AGE,
    {0},
};

static const struct api_column account_columns[] = {
    {"Secrets", "string", NULL, "How many secrets it has", 0, api_cell_secrets},
    API_AGE,
    {0},
};

static const struct api_column quota_columns[] = {
    {"Request", "string", NULL, "What is used of each, and may be", 0, api_cell_quota_requests},
    {"Limit", "string", NULL, "The same of limits", 0, api_cell_quota_limits},
    API_AGE,
    {0},
};

static const struct api_field service_account_fields[] = {
    API_TYPE_AND_META,
    {"secrets", API_OBJECT, API_LIST, API_ATOMIC_ITEMS, .fields = api_object_reference,
     .merge_key = "name", .doc = "Secrets that pods of this account may use."},
    {"imagePullSecrets", API_OBJECT, API_LIST, .fields = api_local_reference,
     .doc = "Secrets for fetching the images of pods of this account."},
    {"automountServiceAccountToken", API_BOOL,
     .doc = "Whether pods of this account get its token mounted."},
    {0},
};

static const struct api_field scope_expression[] = {
    {"scopeName", API_STRING, .flags = API_REQUIRED, .doc = "The scope."},
    {"operator", API_STRING, .flags = API_REQUIRED, .doc = "In, NotIn, Exists or DoesNotExist."},
    {"values", API_STRING, API_LIST, API_ATOMIC, .doc = "Names of classes, for In and NotIn."},
    {0},
};

static const struct api_field scope_selector[] = {
    {"matchExpressions", API_OBJECT, API_LIST, API_ATOMIC, .fields = scope_expression,
     .doc = "Scopes, all of which an object must be in."},
    {0},
};

static const struct api_field quota_spec[] = {
    {"hard", API_QUANTITY, API_MAP, .doc = "Limit for each resource, by name."},
    {"scopes", API_STRING, API_LIST, .doc = "Only objects in all of these scopes are counted."},
    {"scopeSelector", API_OBJECT, .fields = scope_selector,
     .doc = "Only objects that this selector finds are counted."},
    {0},
};

static const struct api_field quota_status[] = {
    {"hard", API_QUANTITY, API_MAP, .doc = "Limits that are in force."},
    {"used", API_QUANTITY, API_MAP, .doc = "What is in use of each."},
    {0},
};

static const struct api_field quota_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .fields = quota_spec, .doc = "The limits that are wanted."},
    {"status", API_OBJECT, .fields = quota_status, .doc = "The limits and what is used."},
    {0},
};

static const struct api_field limit[] = {
    {"type", API_STRING, .flags = API_REQUIRED,
     .doc = "What is limited: Container, Pod or PersistentVolumeClaim."},
    {"max", API_QUANTITY, API_MAP, .doc = "The most, by resource name."},
    {"min", API_QUANTITY, API_MAP, .doc = "The least, by resource name."},
    {"default", API_QUANTITY, API_MAP, .doc = "Limits for those that give none."},
    {"defaultRequest", API_QUANTITY, API_MAP, .doc = "Requests for those that give none."},
    {"maxLimitRequestRatio", API_QUANTITY, API_MAP, .doc = "How far a limit may exceed a request."},
    {0},
};

static const struct api_field limit_range_spec[] = {
    {"limits", API_OBJECT, API_LIST, API_REQUIRED, .fields = limit, .doc = "The limits."},
    {0},
};

static const struct api_field limit_range_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .fields = limit_range_spec, .doc = "The limits of each single object."},
    {0},
};

static const struct api_column created_columns[] = {
    API_CREATED_AT,
    {0},
};

const struct api_kind api_namespace = {
    .kind = "Namespace",
    .plural = "namespaces",
    .singular = "namespace",
    .short_names = API_WORDS("ns"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_STATUS | API_FINALIZE,
    .fields = namespace_fields,
    .columns = namespace_columns,
    .validate = validate_namespace,
    .doc = "A space of names, to keep objects of different users or purposes apart.",
};

/* What was declared immutable stays so, and so does what it holds. */
static void update_data(const json_t *old, const json_t *object, struct api_report *report)
{
    static const char *const fixed[] = {"immutable", "data", "binaryData", NULL};
    if (!json_is_true(json_object_get(old, "immutable")))
        return;
    for (const char *const *key = fixed; *key; key++) {
        const json_t *was = json_object_get(old, *key), *is = json_object_get(object, *key);
        bool empty = !json_object_size(was) && !json_object_size(is) && !json_is_true(was);
        if (!empty && !(was && is && json_equal(was, is)))
            api_problem(report, API_KEY(NULL, *key), API_FORBIDDEN, NULL,
                        "field is immutable when `immutable` is set");
    }
}

const struct api_kind api_config_map = {
    .kind = "ConfigMap",
    .plural = "configmaps",
    .singular = "configmap",
    .short_names = API_WORDS("cm"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN,
    .fields = config_map_fields,
    .validate_update = update_data,
    .columns = config_map_columns,
    .doc = "Configuration for pods, by key.",
};

const struct api_kind api_secret = {
    .kind = "Secret",
    .plural = "secrets",
    .singular = "secret",
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN,
    .fields = secret_fields,
    .columns = secret_columns,
    .normalize = normalize_secret,
    .validate_update = update_data,
    .doc = "Passwords, keys and the like, by key.",
};

const struct api_kind api_service_account = {
    .kind = "ServiceAccount",
    .plural = "serviceaccounts",
    .singular = "serviceaccount",
    .short_names = API_WORDS("sa"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_TOKEN,
    .fields = service_account_fields,
    .columns = account_columns,
    .doc = "The identity with which processes in pods speak to the API.",
};

const struct api_kind api_resource_quota = {
    .kind = "ResourceQuota",
    .plural = "resourcequotas",
    .singular = "resourcequota",
    .short_names = API_WORDS("quota"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_STATUS,
    .fields = quota_fields,
    .columns = quota_columns,
    .validate = api_quota_validate,
    .doc = "How much a namespace may use in all.",
};

const struct api_kind api_limit_range = {
    .kind = "LimitRange",
    .plural = "limitranges",
    .singular = "limitrange",
    .short_names = API_WORDS("limits"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN,
    .fields = limit_range_fields,
    .columns = created_columns,
    .doc = "How much a single object of a namespace may use.",
};
