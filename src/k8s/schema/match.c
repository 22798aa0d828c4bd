#include "k8s/schema/match.h"

#define STRING &cel_decls[CEL_STRING]
#define OBJECT(list)                                                                               \
    {                                                                                              \
        CEL_MAP, .object = true, .fields = list, .n_fields = ARRAY_SIZE(list)                      \
    }

static const struct cel_decl strings = {CEL_LIST, .element = STRING};
static const struct cel_decl lists = {CEL_MAP, .key = STRING, .element = &strings};

static const struct cel_field kind_fields[] = {
    {"group", "group", STRING}, {"kind", "kind", STRING}, {"version", "version", STRING}};
static const struct cel_field resource_fields[] = {
    {"group", "group", STRING}, {"resource", "resource", STRING}, {"version", "version", STRING}};
static const struct cel_field user_fields[] = {{"extra", "extra", &lists},
                                               {"groups", "groups", &strings},
                                               {"uid", "uid", STRING},
                                               {"username", "username", STRING}};
static const struct cel_decl kind = OBJECT(kind_fields), resource = OBJECT(resource_fields),
                             user = OBJECT(user_fields);

/* Of an AdmissionRequest; sorted. */
static const struct cel_field request_fields[] = {
    {"dryRun", "dryRun", &cel_decls[CEL_BOOL]},
    {"kind", "kind", &kind},
    {"name", "name", STRING},
    {"namespace", "namespace", STRING},
    {"operation", "operation", STRING},
    {"options", "options", &cel_decls[CEL_DYN]},
    {"requestKind", "requestKind", &kind},
    {"requestResource", "requestResource", &resource},
    {"requestSubResource", "requestSubResource", STRING},
    {"resource", "resource", &resource},
    {"subResource", "subResource", STRING},
    {"uid", "uid", STRING},
    {"userInfo", "userInfo", &user},
};
static const struct cel_decl request = OBJECT(request_fields);

const struct cel_variable api_match_variables[] = {
    [API_MATCH_OBJECT] = {"object", &cel_decls[CEL_DYN]},
    [API_MATCH_OLD] = {"oldObject", &cel_decls[CEL_DYN]},
    [API_MATCH_REQUEST] = {"request", &request},
    [API_MATCH_AUTHORIZER] = {"authorizer", &cel_decls[CEL_AUTHORIZER]},
    {0},
};
