/*
 * From the server's Status to our errors. Its reason decides where a code has two meanings; else the
 * code does, since proxies in front of the server answer without a Status.
 */
#include <stdio.h>

#include "kube/client_impl.h"

static const char *const reasons[] = {
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
};

static const char *literal(const char *reason)
{
    for (size_t i = 0; reason && i < ARRAY_SIZE(reasons); i++) {
        if (str_eq(reasons[i], reason))
            return reasons[i];
    }
    return "Unknown";
}

static enum err_code code_of(unsigned status, const char *reason)
{
    static const struct {
        unsigned status;
        enum err_code code;
    } table[] = {
        {401, ERR_UNAUTHENTICATED},    {403, ERR_PERMISSION_DENIED},
        {404, ERR_NOT_FOUND},          {405, ERR_FAILED_PRECONDITION},
        {408, ERR_DEADLINE_EXCEEDED},  {409, ERR_ABORTED},
        {410, ERR_OUT_OF_RANGE},       {412, ERR_FAILED_PRECONDITION},
        {429, ERR_RESOURCE_EXHAUSTED}, {504, ERR_DEADLINE_EXCEEDED},
    };
    if (status == 409 && str_eq(reason, "AlreadyExists"))
        return ERR_ALREADY_EXISTS;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (table[i].status == status)
            return table[i].code;
    }
    /* A redirect is one that we do not follow: the server is another than was meant. */
    return status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID_ARGUMENT;
}

int kube_status_json_error(const json_t *status, unsigned code, struct err *e)
{
    const char *reason = literal(json_str(status, "reason")),
               *message = json_str(status, "message");
    json_int_t own = json_integer_value(json_object_get(status, "code"));
    if (own >= 300 && own <= 599)
        code = (unsigned)own;
    if (message && *message)
        err_set(e, code_of(code, reason), reason, "%s", message);
    else
        err_set(e, code_of(code, reason), reason, "the server answered %u %s", code, reason);
    json_clean_message(e);
    return -1;
}

int kube_status_error(unsigned status, const char *body, size_t size, struct err *e)
{
    struct err ignored;
    json_auto_t *value = json_parse(body, size, NULL, &ignored);
    if (str_eq(json_text(value, "kind"), "Status"))
        return kube_status_json_error(value, status, e);
    /* Not the API's words: as much of them as a person needs to see who answered. */
    int shown = (int)str_cut(body, size < 200 ? size : 200);
    err_set(e, code_of(status, ""), "Unknown", "the server answered %u: %.*s", status, shown, body);
    json_clean_message(e);
    return -1;
}
