#include "k8s/apiserver/status.h"

#include "k8s/kinds/kinds.h"

/* The reason of errors for which the API has none; it is left out. */
#define UNKNOWN "Unknown"

/* The reasons that the API has. */
static const struct {
    const char *reason;
    unsigned code;
} reasons[] = {
    {"BadRequest", 400},
    {"Unauthorized", 401},
    {"Forbidden", 403},
    {"NotFound", 404},
    {"MethodNotAllowed", 405},
    {"NotAcceptable", 406},
    {"AlreadyExists", 409},
    {"Conflict", 409},
    {"Gone", 410},
    {"Expired", 410},
    {"RequestEntityTooLarge", 413},
    {"UnsupportedMediaType", 415},
    {"Invalid", 422},
    {"TooManyRequests", 429},
    {"InternalError", 500},
    {"ServerTimeout", 500},
    {"ServiceUnavailable", 503},
    {"Timeout", 504},
    {UNKNOWN, 500},
};

/* For errors with a reason of their own; index is the gRPC code. */
static const char *const by_code[] = {
    [ERR_OK] = "InternalError", /* no error is one that nobody set */
    [ERR_CANCELLED] = "Timeout",
    [ERR_UNKNOWN] = "InternalError",
    [ERR_INVALID_ARGUMENT] = "BadRequest",
    [ERR_DEADLINE_EXCEEDED] = "Timeout",
    [ERR_NOT_FOUND] = "NotFound",
    [ERR_ALREADY_EXISTS] = "AlreadyExists",
    [ERR_PERMISSION_DENIED] = "Forbidden",
    [ERR_RESOURCE_EXHAUSTED] = "TooManyRequests",
    [ERR_FAILED_PRECONDITION] = "Conflict",
    [ERR_ABORTED] = "Conflict",
    [ERR_OUT_OF_RANGE] = "BadRequest",
    [ERR_UNIMPLEMENTED] = "MethodNotAllowed",
    [ERR_INTERNAL] = "InternalError",
    [ERR_UNAVAILABLE] = "ServiceUnavailable",
    [ERR_DATA_LOSS] = "InternalError",
    [ERR_UNAUTHENTICATED] = "Unauthorized",
};

enum { RETRY_AFTER = 1 }; /* seconds */

unsigned apiserver_status_code(const struct err *error, const char **ret_reason)
{
    const char *own = error->reason ? error->reason : "";
    size_t code = (size_t)error->code;
    const char *fallback = code < ARRAY_SIZE(by_code) ? by_code[code] : "InternalError";
    if (str_eq(own, "NoSpace")) /* asking again later helps, asking less often does not */
        fallback = "ServiceUnavailable";
    unsigned fallback_status = 500;
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (str_eq(reasons[i].reason, own)) {
            if (ret_reason)
                *ret_reason = reasons[i].reason;
            return reasons[i].code;
        }
        if (str_eq(reasons[i].reason, fallback))
            fallback_status = reasons[i].code;
    }
    if (ret_reason)
        *ret_reason = fallback;
    return fallback_status;
}

/* A string for JSON of text that may hold anything. */
static json_t *safe_string(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    struct err clean;
    err_set(&clean, ERR_UNKNOWN, "", "%s", text);
    json_clean_message(&clean);
    return json_string(clean.msg);
}

static const struct api_group_version *version_of(const struct apiserver_about *about)
{
    return about->gv ? about->gv : api_kind_canonical(about->kind);
}

/* "gadgets.example.test", "pods", "Gadget.example.test" */
static void append_qualified(struct str *s, const struct apiserver_about *about, const char *word)
{
    const char *group = version_of(about)->group;
    str_appendf(s, "%s%s%s", word, *group ? "." : "", group);
}

static bool is_unknown(const struct api_problem *p)
{
    return !p->warning && p->cause == API_UNKNOWN;
}

/* What a strict decoder says: only the fields that do not exist, whatever else is wrong. */
static bool strict_message(const struct apiserver_about *about, const struct api_report *report,
                           struct str *message)
{
    size_t n = 0;
    vec_for_each(&report->problems, p) {
        if (!is_unknown(p))
            continue;
        if (n++ == 0)
            str_appendf(message,
                        "%s in version \"%s\" cannot be handled as a %s: strict decoding error: ",
                        about->kind->kind, version_of(about)->version, about->kind->kind);
        else
            str_append(message, ", ");
        str_appendf(message, "unknown field \"%s\"", p->path);
    }
    return n > 0;
}

/* "Gadget.example.test "x" is invalid: spec.size: Required value: ..." or [a, b] */
static void invalid_message(const struct apiserver_about *about, const struct api_report *report,
                            struct str *message)
{
    append_qualified(message, about, about->kind->kind);
    str_appendf(message, " \"%s\" is invalid: %s", about->name ? about->name : "",
                report->errors > 1 ? "[" : "");
    size_t n = 0;
    vec_for_each(&report->problems, p) {
        if (!p->warning)
            str_appendf(message, "%s%s: %s", n++ ? ", " : "", p->path, p->message);
    }
    if (report->errors > n)
        str_appendf(message, ", and %zu more", report->errors - n);
    str_append(message, report->errors > 1 ? "]" : "");
}

static bool is_owned(const struct api_report *report)
{
    return report && report->problems.len && report->problems.p[0].cause == API_OWNED;
}

/* Conflicts of an apply, by manager; the report has those of one manager in a row. */
static void owned_message(const struct api_report *report, struct str *message)
{
    const char *manager = "";
    str_appendf(message, "Apply failed with %u conflict%s: ", report->errors,
                report->errors == 1 ? "" : "s");
    vec_for_each(&report->problems, p) {
        const char *own = p->message + strlen("conflict");
        if (report->errors == 1) {
            str_appendf(message, "%s: %s", p->message, p->path);
            return;
        }
        if (!str_eq(own, manager))
            str_appendf(message, "%sconflicts%s:", *manager ? "\n" : "", own);
        str_appendf(message, "\n- %s", p->path);
        manager = own;
    }
    if (report->errors > report->problems.len)
        str_appendf(message, "\nand %zu more", report->errors - report->problems.len);
}

static json_t *causes(const struct api_report *report)
{
    json_t *list = json_array();
    vec_for_each(&report->problems, p) {
        if (p->warning)
            continue;
        json_t *cause = json_pack("{s:s}", "reason", api_cause_reason(p->cause));
        json_object_set_new(cause, "message", safe_string(p->message));
        json_object_set_new(cause, "field", safe_string(p->path));
        json_array_append_new(list, cause);
    }
    return list;
}

/* The words of the API for errors that say no more than their reason. */
static void common_message(const struct err *error, const char *reason,
                           const struct apiserver_about *about, struct str *message)
{
    static const struct {
        const char *reason, *tail; /* after: plural.group "name" */
    } named[] = {
        {"NotFound", " not found"},
        {"AlreadyExists", " already exists"},
        {"Forbidden", " is forbidden: "},
    };
    static const char conflict[] = "Operation cannot be fulfilled on ";
    if (str_eq(reason, "Forbidden") && about && (!about->name || !*about->name)) {
        append_qualified(message, about, about->kind->plural);
        str_appendf(message, " is forbidden: %s", error->msg);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
        if (!about || !about->name || !str_eq(named[i].reason, reason))
            continue;
        append_qualified(message, about, about->kind->plural);
        str_appendf(message, " \"%s\"%s%s", about->name, named[i].tail,
                    str_eq(reason, "Forbidden") ? error->msg : "");
        return;
    }
    if (about && about->name && str_eq(reason, "Conflict")) {
        const char *tail = strstr(error->msg, "\": "); /* when it begins with these words already */
        bool worded = str_starts_with(error->msg, conflict) && tail;
        str_append(message, conflict);
        append_qualified(message, about, about->kind->plural);
        str_appendf(message, " \"%s\": %s", about->name, worded ? tail + 3 : error->msg);
        return;
    }
    if (str_eq(reason, "InternalError"))
        str_append(message, "Internal error occurred: ");
    str_append(message, error->msg);
}

/* {name, group, kind}; what is empty is left out. */
static json_t *details_of(const struct apiserver_about *about, const char *kind)
{
    json_t *details = json_object();
    if (!about || !about->kind)
        return details;
    if (about->name && *about->name)
        json_object_set_new(details, "name", safe_string(about->name));
    if (*version_of(about)->group)
        json_object_set_new(details, "group", json_string(version_of(about)->group));
    json_object_set_new(details, "kind", json_string(kind));
    return details;
}

static json_t *failure(const char *message, const char *reason, json_t *details, unsigned code)
{
    json_t *status = json_pack("{s:s,s:s,s:{},s:s}", "kind", "Status", "apiVersion", "v1",
                               "metadata", "status", "Failure");
    json_object_set_new(status, "message", safe_string(message));
    if (!str_eq(reason, UNKNOWN))
        json_object_set_new(status, "reason", json_string(reason));
    if (json_object_size(details) || str_eq(reason, "Forbidden")) /* there even if it is empty */
        json_object_set(status, "details", details);
    json_decref(details);
    json_object_set_new(status, "code", json_integer(code));
    return status;
}

static void add_terminating(json_t *details, const char *namespace)
{
    _cleanup_free_ char *message = mem_printf("namespace %s is being terminated", namespace);
    json_t *cause =
        json_pack("{s:s,s:s}", "reason", "NamespaceTerminating", "field", "metadata.namespace");
    json_object_set_new(cause, "message", safe_string(message));
    json_object_set_new(details, "causes", json_pack("[o]", cause));
}

json_t *apiserver_status(const struct err *error, const struct api_report *report,
                         const struct apiserver_about *about, unsigned *ret_code)
{
    const char *own = error->reason ? error->reason : "";
    if (about && about->namespace && str_eq(own, "NamespaceNotFound")) {
        struct apiserver_about namespace = {.kind = &api_namespace, .name = about->namespace};
        struct err missing = *error;
        missing.reason = "NotFound";
        return apiserver_status(&missing, NULL, &namespace, ret_code);
    }
    static const char *const detailed[] = {"NotFound", "AlreadyExists", "Conflict", "Forbidden",
                                           NULL};
    static const char *const repeatable[] = {"TooManyRequests", "Timeout", "ServerTimeout", NULL};
    const char *reason;
    *ret_code = apiserver_status_code(error, &reason);
    about = about && about->kind ? about : NULL;
    _cleanup_(str_done) struct str message = {0};
    if (str_eq(reason, "Invalid") && about && report && report->errors) {
        if (strict_message(about, report, &message)) {
            *ret_code = 400;
            return failure(str_get(&message), "BadRequest", json_object(), 400);
        }
        invalid_message(about, report, &message);
        json_t *details = details_of(about, about->kind->kind);
        json_object_set_new(details, "causes", causes(report));
        return failure(str_get(&message), reason, details, *ret_code);
    }
    if (str_eq(reason, "Conflict") && is_owned(report)) {
        owned_message(report, &message);
        return failure(str_get(&message), reason, json_pack("{s:o}", "causes", causes(report)),
                       *ret_code);
    }
    common_message(error, reason, about, &message);
    json_t *details = json_object();
    if (about && about->name && str_in(reason, detailed)) {
        json_decref(details);
        details = details_of(about, about->kind->plural);
    }
    if (about && about->namespace && str_eq(own, "NamespaceTerminating"))
        add_terminating(details, about->namespace);
    if (str_in(reason, repeatable))
        json_object_set_new(details, "retryAfterSeconds", json_integer(RETRY_AFTER));
    return failure(str_get(&message), reason, details, *ret_code);
}

json_t *apiserver_status_deleted(const struct apiserver_about *about, const char *uid)
{
    json_t *details = details_of(about, about->kind->plural);
    if (uid)
        json_object_set_new(details, "uid", safe_string(uid));
    return json_pack("{s:s,s:s,s:{},s:s,s:o}", "kind", "Status", "apiVersion", "v1", "metadata",
                     "status", "Success", "details", details);
}
