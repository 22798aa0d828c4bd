#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const names[] = {
    [ERR_OK] = "OK",
    [ERR_CANCELLED] = "CANCELLED",
    [ERR_UNKNOWN] = "UNKNOWN",
    [ERR_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [ERR_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [ERR_NOT_FOUND] = "NOT_FOUND",
    [ERR_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [ERR_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [ERR_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [ERR_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [ERR_ABORTED] = "ABORTED",
    [ERR_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [ERR_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [ERR_INTERNAL] = "INTERNAL",
    [ERR_UNAVAILABLE] = "UNAVAILABLE",
    [ERR_DATA_LOSS] = "DATA_LOSS",
    [ERR_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

static const struct {
    int errnum;
    enum err_code code;
    const char *reason;
} from_errno[] = {
    {ENOENT, ERR_NOT_FOUND, "NotFound"},
    {ENODEV, ERR_NOT_FOUND, "NotFound"},
    {ENXIO, ERR_NOT_FOUND, "NotFound"},
    {ESRCH, ERR_NOT_FOUND, "NotFound"},
    {EEXIST, ERR_ALREADY_EXISTS, "AlreadyExists"},
    {EACCES, ERR_PERMISSION_DENIED, "Forbidden"},
    {EPERM, ERR_PERMISSION_DENIED, "Forbidden"},
    {EROFS, ERR_FAILED_PRECONDITION, "ReadOnly"},
    {ENOSPC, ERR_RESOURCE_EXHAUSTED, "NoSpace"},
    {EDQUOT, ERR_RESOURCE_EXHAUSTED, "NoSpace"},
    {EMFILE, ERR_RESOURCE_EXHAUSTED, "TooManyFiles"},
    {ENFILE, ERR_RESOURCE_EXHAUSTED, "TooManyFiles"},
    {ENOMEM, ERR_RESOURCE_EXHAUSTED, "NoMemory"},
    {EINVAL, ERR_INVALID_ARGUMENT, "Invalid"},
    {ENAMETOOLONG, ERR_INVALID_ARGUMENT, "Invalid"},
    {ENOTDIR, ERR_FAILED_PRECONDITION, "NotADirectory"},
    {EISDIR, ERR_FAILED_PRECONDITION, "IsADirectory"},
    {ENOTEMPTY, ERR_FAILED_PRECONDITION, "NotEmpty"},
    {EBUSY, ERR_UNAVAILABLE, "Busy"},
    {EAGAIN, ERR_UNAVAILABLE, "TryAgain"},
    {ECONNREFUSED, ERR_UNAVAILABLE, "ConnectionRefused"},
    {ECONNRESET, ERR_UNAVAILABLE, "ConnectionReset"},
    {EPIPE, ERR_UNAVAILABLE, "ConnectionReset"},
    {EHOSTUNREACH, ERR_UNAVAILABLE, "Unreachable"},
    {ENETUNREACH, ERR_UNAVAILABLE, "Unreachable"},
    {ETIMEDOUT, ERR_DEADLINE_EXCEEDED, "Timeout"},
    {ECANCELED, ERR_CANCELLED, "Cancelled"},
    {EIO, ERR_DATA_LOSS, "InputOutputError"},
    {ENOSYS, ERR_UNIMPLEMENTED, "NotSupported"},
    {EOPNOTSUPP, ERR_UNIMPLEMENTED, "NotSupported"},
};

/* Sets the message; one that does not fit is marked, so that nobody takes half for the whole. */
static void set_message(struct err *e, const char *text)
{
    size_t n = strlen(text);
    if (n < sizeof(e->msg)) {
        memcpy(e->msg, text, n + 1);
        return;
    }
    n = str_cut(text, sizeof(e->msg) - sizeof("..."));
    memcpy(e->msg, text, n);
    memcpy(e->msg + n, "...", sizeof("..."));
}

int err_vset(struct err *e, enum err_code code, const char *reason, const char *fmt, va_list ap)
{
    if (!e)
        return -1;
    /* Not straight into the message: the arguments may point into it. */
    char text[sizeof(e->msg) + 1] = "";
    vsnprintf(text, sizeof(text), fmt, ap);
    e->code = code;
    e->reason = reason;
    set_message(e, text);
    return -1;
}

int err_set(struct err *e, enum err_code code, const char *reason, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(e, code, reason, fmt, ap);
    va_end(ap);
    return -1;
}

int err_errno(struct err *e, int errnum, const char *fmt, ...)
{
    enum err_code code = ERR_INTERNAL;
    const char *reason = "SystemError";
    for (size_t i = 0; i < ARRAY_SIZE(from_errno); i++) {
        if (from_errno[i].errnum == errnum) {
            code = from_errno[i].code;
            reason = from_errno[i].reason;
        }
    }

    char what[sizeof(e->msg)];
    char text[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(e, code, reason, "%s: %s", what, strerror_r(errnum, text, sizeof(text)));
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    if (!e)
        return -1;
    char what[sizeof(e->msg)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);

    char whole[2 * sizeof(e->msg) + 2];
    snprintf(whole, sizeof(whole), "%s: %s", what, e->msg);
    set_message(e, whole);
    return -1;
}

const char *err_code_name(enum err_code code)
{
    if ((unsigned)code >= ARRAY_SIZE(names))
        return names[ERR_UNKNOWN];
    return names[code];
}

bool err_is_infeasible(enum err_code code)
{
    return code == ERR_INVALID_ARGUMENT || code == ERR_OUT_OF_RANGE || code == ERR_NOT_FOUND ||
           code == ERR_FAILED_PRECONDITION;
}
