/*
 * CertificateSigningRequest: somebody asks for a certificate, somebody else says yes or no, and a
 * signer issues it.
 */
#include "base/age.h"
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

enum { NANO = 1000000000 };

static const char *check_signer(const char *text)
{
    const char *slash = strchr(text, '/');
    if (!slash || slash == text || !slash[1])
        return "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    _cleanup_free_ char *domain = mem_strndup(text, (size_t)(slash - text));
    const char *why = strchr(domain, '.') ? api_dns_subdomain.check(domain)
                                          : "should be a domain with at least two segments "
                                            "separated by dots";
    return why ? why : api_dns_subdomain.check(slash + 1);
}

static const struct api_format signer_name = {.name = "signer", .max = 571, .check = check_signer};

static const struct api_field spec[] = {
    {"request", API_STRING, .flags = API_REQUIRED, .format = &api_base64,
     .doc = "The request, PKCS#10 in PEM, in base64."},
    {"signerName", API_STRING, .flags = API_REQUIRED, .format = &signer_name,
     .doc = "Who is to issue it, such as kubernetes.io/kube-apiserver-client."},
    {"expirationSeconds", API_INT, .min = 600, .max = INT32_MAX,
     .doc = "How long the certificate should be valid; the signer may choose less."},
    {"usages", API_STRING, API_LIST, API_ATOMIC,
     .words =
         API_WORDS("signing", "digital signature", "content commitment", "key encipherment",
                   "key agreement", "data encipherment", "cert sign", "crl sign", "encipher only",
                   "decipher only", "any", "server auth", "client auth", "code signing",
                   "email protection", "s/mime", "ipsec end system", "ipsec tunnel", "ipsec user",
                   "timestamping", "ocsp signing", "microsoft sgc", "netscape sgc"),
     .doc = "What the key is to be used for."},
    {"username", API_STRING, .doc = "Who asks; the server says it."},
    {"uid", API_STRING, .doc = "Their uid; the server says it."},
    {"groups", API_STRING, API_LIST, API_ATOMIC, .doc = "Their groups; the server says it."},
    {"extra", API_ANY, API_MAP, .doc = "What else is known of them; the server says it."},
    {0},
};

static const struct api_field condition[] = {
    {"type", API_STRING, .flags = API_REQUIRED, .doc = "Approved, Denied or Failed."},
    {"status", API_STRING, .words = API_WORDS("True", "False", "Unknown"), .def = "\"True\"",
     .doc = "Whether it holds."},
    {"reason", API_STRING, .doc = "One CamelCase word for why."},
    {"message", API_STRING, .doc = "Why, for people."},
    {"lastUpdateTime", API_TIME, .doc = "When it was last written."},
    {"lastTransitionTime", API_TIME, .doc = "When the status last changed."},
    {0},
};

static const struct api_field status[] = {
    {"conditions", API_OBJECT, API_LIST, .fields = condition, .map_keys = API_KEYS("type"),
     .doc = "Whether it is approved, denied or failed."},
    {"certificate", API_STRING, .format = &api_base64,
     .doc = "The certificate and those that it was issued by, PEM in base64."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = spec, .doc = "What is asked for."},
    {"status", API_OBJECT, .fields = status, .def = "{}", .doc = "What came of it."},
    {0},
};

static json_t *cell_duration(const json_t *object, int64_t now)
{
    (void)now;
    const json_t *seconds = json_at(object, "spec", "expirationSeconds");
    char text[AGE_MAX];
    return json_is_integer(seconds)
               ? json_string(age_format(json_integer_value(seconds) * NANO, text))
               : json_string("<none>");
}

bool api_csr_has(const json_t *object, const char *type)
{
    size_t i;
    json_t *value;
    json_array_foreach((json_t *)json_at(object, "status", "conditions"), i, value) {
        const char *is = json_str(value, "type"), *holds = json_str(value, "status");
        if (is && str_eq(is, type) && (!holds || str_eq(holds, "True")))
            return true;
    }
    return false;
}

static json_t *cell_condition(const json_t *object, int64_t now)
{
    (void)now;
    const json_t *certificate = json_at(object, "status", "certificate");
    const char *decision = "Pending";
    if (api_csr_has(object, "Approved"))
        decision = "Approved";
    if (api_csr_has(object, "Denied"))
        decision = "Denied";
    return json_sprintf("%s%s%s", decision, api_csr_has(object, "Failed") ? ",Failed" : "",
                        json_string_length(certificate) > 0 ? ",Issued" : "");
}

static const struct api_column columns[] = {
    API_AGE,
    {"SignerName", "string", ".spec.signerName", "Who is to issue it"},
    {"Requestor", "string", ".spec.username", "Who asked"},
    {"RequestedDuration", "string", NULL, "How long it should be valid", 0, cell_duration},
    {"Condition", "string", NULL, "What came of it", 0, cell_condition},
    {0},
};

static void validate(const json_t *object, struct api_report *report)
{
    const struct api_path *at = API_KEY(NULL, "spec");
    if (json_array_size(json_at(object, "spec", "usages")) == 0)
        api_problem(report, API_KEY(at, "usages"), API_MISSING, NULL,
                    "say what the key is for, such as \"client auth\"");
    const struct api_path *list = API_KEY(API_KEY(NULL, "status"), "conditions");
    size_t i;
    json_t *value;
    json_array_foreach((json_t *)json_at(object, "status", "conditions"), i, value) {
        const char *holds = json_str(value, "status");
        if (holds && !str_eq(holds, "True"))
            api_problem(report, API_KEY(API_AT(list, i), "status"), API_INVALID,
                        json_object_get(value, "status"),
                        "Approved, Denied and Failed conditions may only be True");
    }
    if (api_csr_has(object, "Approved") && api_csr_has(object, "Denied"))
        api_problem(report, list, API_INVALID, NULL,
                    "Approved and Denied conditions are mutually exclusive");
}

static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    static const char *const lasting[] = {"Approved", "Denied", "Failed", NULL};
    const struct api_path *status_at = API_KEY(NULL, "status");
    if (!json_equal(json_object_get(old, "spec"), json_object_get(object, "spec")))
        api_problem(report, API_KEY(NULL, "spec"), API_INVALID, NULL, "field is immutable");
    for (const char *const *type = lasting; *type; type++) {
        if (api_csr_has(old, *type) && !api_csr_has(object, *type))
            api_problem(report, API_KEY(status_at, "conditions"), API_FORBIDDEN, NULL,
                        "updates may not remove a condition of type \"%s\"", *type);
    }
    const json_t *was = json_at(old, "status", "certificate");
    if (json_string_length(was) > 0 && !json_equal(was, json_at(object, "status", "certificate")))
        api_problem(report, API_KEY(status_at, "certificate"), API_FORBIDDEN, NULL,
                    "updates may not change an existing certificate");
}

const struct api_kind api_certificate_signing_request = {
    .kind = "CertificateSigningRequest",
    .plural = "certificatesigningrequests",
    .singular = "certificatesigningrequest",
    .short_names = API_WORDS("csr"),
    .versions = API_VERSION("certificates.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_STATUS | API_APPROVAL | API_LOOSE_NAME,
    .fields = fields,
    .columns = columns,
    .validate = validate,
    .validate_update = validate_update,
    .doc = "A request for a certificate, and the certificate.",
};
