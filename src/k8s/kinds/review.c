/*
 * The questions of authentication.k8s.io: whose token is this, and who am I. They are answered and
 * never stored.
 */
#include "k8s/kinds/kinds.h"

static const struct api_field user_info[] = {
    {"username", API_STRING, .doc = "The name that tells the user from all others."},
    {"uid", API_STRING, .doc = "Tells apart users who have the same name one after the other."},
    {"groups", API_STRING, API_LIST, .doc = "The groups that the user is in."},
    {"extra", API_ANY, API_MAP, .doc = "What else the credentials say, lists of strings by key."},
    {0},
};

static const struct api_field token_review_spec[] = {
    {"token", API_STRING, .doc = "The bearer token."},
    {"audiences", API_STRING, API_LIST,
     .doc = "For whom the token must be meant, one of them at least; the API itself if not given."},
    {0},
};

static const struct api_field token_review_status[] = {
    {"authenticated", API_BOOL, .doc = "Whether the token is valid."},
    {"user", API_OBJECT, .fields = user_info, .doc = "Whose token it is."},
    {"audiences", API_STRING, API_LIST, .doc = "Those of the audiences for whom it is meant."},
    {"error", API_STRING, .doc = "Why it could not be checked, or is not valid."},
    {0},
};

static const struct api_field token_review_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = token_review_spec,
     .doc = "The question."},
    {"status", API_OBJECT, .fields = token_review_status, .doc = "The answer."},
    {0},
};

static const struct api_field self_review_status[] = {
    {"userInfo", API_OBJECT, .fields = user_info, .doc = "The user who asks."},
    {0},
};

static const struct api_field self_review_fields[] = {
    API_TYPE_AND_META,
    {"status", API_OBJECT, .fields = self_review_status, .doc = "The answer."},
    {0},
};

static const struct api_field token_request_spec[] = {
    {"audiences", API_STRING, API_LIST,
     .doc = "For whom the token is meant; the API itself if not given."},
    {"expirationSeconds", API_INT, .doc = "How long it is valid: 3600 if not given, at least 600."},
    {"boundObjectRef", API_OBJECT, .fields = api_object_reference,
     .doc = "A Pod, Secret or Node; the token is valid only while that object is there."},
    {0},
};

static const struct api_field token_request_status[] = {
    {"token", API_STRING, .doc = "The token."},
    {"expirationTimestamp", API_TIME, .doc = "Until when it is valid."},
    {0},
};

static const struct api_field token_request_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = token_request_spec,
     .doc = "What the token is to be like."},
    {"status", API_OBJECT, .fields = token_request_status, .doc = "The token."},
    {0},
};

static const struct api_column no_columns[] = {{0}};

const struct api_kind api_token_review = {
    .kind = "TokenReview",
    .plural = "tokenreviews",
    .singular = "tokenreview",
    .versions = API_VERSION("authentication.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_REVIEW,
    .fields = token_review_fields,
    .columns = no_columns,
    .doc = "Asks whose token this is, and whether it is valid.",
};

const struct api_kind api_self_subject_review = {
    .kind = "SelfSubjectReview",
    .plural = "selfsubjectreviews",
    .singular = "selfsubjectreview",
    .versions = API_VERSION("authentication.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_REVIEW,
    .fields = self_review_fields,
    .columns = no_columns,
    .doc = "Asks who the server takes the client for.",
};

/* Not among api_kinds: it is what /token of a ServiceAccount takes and gives. */
const struct api_kind api_token_request = {
    .kind = "TokenRequest",
    .plural = "tokenrequests",
    .singular = "tokenrequest",
    .versions = API_VERSION("authentication.k8s.io", "v1"),
    .flags = API_BUILTIN | API_REVIEW,
    .fields = token_request_fields,
    .columns = no_columns,
    .doc = "Asks for a token of a service account.",
};
