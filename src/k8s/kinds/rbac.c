/*
 * The group rbac.authorization.k8s.io: who may do what.
 */
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field policy_rule[] = {
    {"verbs", API_STRING, API_LIST, API_REQUIRED, .doc = "What may be done; * is everything."},
    {"apiGroups", API_STRING, API_LIST, .doc = "API groups; the empty one is the core group."},
    {"resources", API_STRING, API_LIST, .doc = "Resources, in the plural; * is every one."},
    {"resourceNames", API_STRING, API_LIST, .doc = "Only objects of these names."},
    {"nonResourceURLs", API_STRING, API_LIST, .doc = "Paths that are no resources."},
    {0},
};

static const struct api_field aggregation_rule[] = {
    {"clusterRoleSelectors", API_OBJECT, API_LIST, .fields = api_label_selector,
     .doc = "Roles whose rules are added to this one."},
    {0},
};

static const struct api_field role_fields[] = {
    API_TYPE_AND_META,
    {"rules", API_OBJECT, API_LIST, .fields = policy_rule, .doc = "What is allowed."},
    {0},
};

static const struct api_field cluster_role_fields[] = {
    API_TYPE_AND_META,
    {"rules", API_OBJECT, API_LIST, .fields = policy_rule, .doc = "What is allowed."},
    {"aggregationRule", API_OBJECT, .fields = aggregation_rule,
     .doc = "Makes the rules from those of other roles."},
    {0},
};

static const struct api_field subject[] = {
    {"kind", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("User", "Group", "ServiceAccount"), .doc = "What the subject is."},
    {"apiGroup", API_STRING, .doc = "Its API group; empty for a ServiceAccount."},
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Its name."},
    {"namespace", API_STRING, .doc = "Its namespace, for a ServiceAccount."},
    {0},
};

static const struct api_field role_ref[] = {
    {"apiGroup", API_STRING, .def = "\"rbac.authorization.k8s.io\"", .doc = "Its API group."},
    {"kind", API_STRING, .flags = API_REQUIRED, .words = API_WORDS("Role", "ClusterRole"),
     .doc = "Role or ClusterRole."},
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Its name."},
    {0},
};

static const struct api_field binding_fields[] = {
    API_TYPE_AND_META,
    {"subjects", API_OBJECT, API_LIST, .fields = subject, .doc = "Who is given the role."},
    {"roleRef", API_OBJECT, .flags = API_REQUIRED | API_IMMUTABLE | API_ATOMIC, .fields = role_ref,
     .doc = "The role."},
    {0},
};

static const struct api_column role_columns[] = {
    API_CREATED_AT,
    {0},
};

static const struct api_column binding_columns[] = {
    {"Role", "string", NULL, "The role that is given", 0, api_cell_role},
    API_AGE,
    {"Users", "string", NULL, "Users who get it", 1, api_cell_users},
    {"Groups", "string", NULL, "Groups that get it", 1, api_cell_groups},
    {"ServiceAccounts", "string", NULL, "Service accounts that get it", 1, api_cell_accounts},
    {0},
};

/* A rule is about resources or about paths. */
static void validate_role(const json_t *object, struct api_report *report)
{
    size_t i;
    json_t *rule;
    json_array_foreach(json_object_get(object, "rules"), i, rule) {
        const struct api_path *at = API_AT(API_KEY(NULL, "rules"), i);
        bool paths = json_array_size(json_object_get(rule, "nonResourceURLs")) > 0;
        if (paths)
            continue;
        if (json_array_size(json_object_get(rule, "apiGroups")) == 0)
            api_problem(
                report, API_KEY(at, "apiGroups"), API_MISSING, NULL,
                "resource rules must supply at least one API group; \"\" is the core group");
        if (json_array_size(json_object_get(rule, "resources")) == 0)
            api_problem(report, API_KEY(at, "resources"), API_MISSING, NULL,
                        "resource rules must supply at least one resource");
    }
}

static void validate_binding(const json_t *object, struct api_report *report)
{
    size_t i;
    json_t *who;
    json_array_foreach(json_object_get(object, "subjects"), i, who) {
        bool account = str_eq(json_str(who, "kind"), "ServiceAccount");
        if (account && json_string_length(json_object_get(who, "namespace")) == 0)
            api_problem(report, API_KEY(API_AT(API_KEY(NULL, "subjects"), i), "namespace"),
                        API_MISSING, NULL, "say which namespace the ServiceAccount is in");
    }
}

static void validate_cluster_binding(const json_t *object, struct api_report *report)
{
    const json_t *kind = json_at(object, "roleRef", "kind");
    if (!str_eq(json_string_value(kind), "ClusterRole"))
        api_problem(report, API_KEY(API_KEY(NULL, "roleRef"), "kind"), API_UNSUPPORTED, kind,
                    "supported values: \"ClusterRole\"");
    validate_binding(object, report);
}

#define RBAC API_VERSION("rbac.authorization.k8s.io", "v1")

const struct api_kind api_role = {
    .kind = "Role",
    .plural = "roles",
    .singular = "role",
    .versions = RBAC,
    .flags = API_BUILTIN | API_LOOSE_NAME,
    .fields = role_fields,
    .columns = role_columns,
    .validate = validate_role,
    .doc = "Permissions in a namespace.",
};

const struct api_kind api_role_binding = {
    .kind = "RoleBinding",
    .plural = "rolebindings",
    .singular = "rolebinding",
    .versions = RBAC,
    .flags = API_BUILTIN | API_LOOSE_NAME,
    .fields = binding_fields,
    .columns = binding_columns,
    .validate = validate_binding,
    .doc = "Gives the permissions of a role in a namespace.",
};

const struct api_kind api_cluster_role = {
    .kind = "ClusterRole",
    .plural = "clusterroles",
    .singular = "clusterrole",
    .versions = RBAC,
    .flags = API_BUILTIN | API_LOOSE_NAME | API_CLUSTER_SCOPED,
    .fields = cluster_role_fields,
    .columns = role_columns,
    .validate = validate_role,
    .doc = "Permissions in the whole cluster, or for use in any namespace.",
};

const struct api_kind api_cluster_role_binding = {
    .kind = "ClusterRoleBinding",
    .plural = "clusterrolebindings",
    .singular = "clusterrolebinding",
    .versions = RBAC,
    .flags = API_BUILTIN | API_LOOSE_NAME | API_CLUSTER_SCOPED,
    .fields = binding_fields,
    .columns = binding_columns,
    .validate = validate_cluster_binding,
    .doc = "Gives the permissions of a role in the whole cluster.",
};
