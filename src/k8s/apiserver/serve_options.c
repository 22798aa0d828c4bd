/*
 * The query of lists and watches: which state is asked for, how much of it, for how long. What goes
 * with what, and the words for what does not, are Kubernetes'.
 */
#include <errno.h>
#include <inttypes.h>

#include "k8s/apiserver/serve_impl.h"

static const char *given(const struct call *c, const char *name)
{
    const char *value = http_request_query(c->http, name);
    return value && *value ? value : NULL;
}

static bool is_true(const char *value)
{
    return value && (str_eq(value, "true") || str_eq(value, "1"));
}

static int invalid(struct call *c, const char *field, const char *why)
{
    return err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid",
                   "ListOptions.meta.k8s.io \"\" is invalid: %s: %s", field, why);
}

static int parse_match(struct call *c, struct list_options *o)
{
    const char *match = given(c, "resourceVersionMatch");
    if (!match)
        return 0;
    if (str_eq(match, "Exact"))
        o->match = MATCH_EXACT;
    else if (str_eq(match, "NotOlderThan"))
        o->match = MATCH_NOT_OLDER;
    else
        return err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid",
                       "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported "
                       "value: \"%.*s\": supported values: %s",
                       (int)str_cut(match, 80), match,
                       o->watch ? "\"NotOlderThan\"" : "\"Exact\", \"NotOlderThan\", \"\"");
    return 0;
}

static int check_list(struct call *c, const struct list_options *o)
{
    static const char match[] = "resourceVersionMatch";
    if (o->match && !o->given)
        return invalid(c, match,
                       "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is "
                       "provided");
    if (o->match && o->continued)
        return invalid(c, match,
                       "Forbidden: resourceVersionMatch is forbidden when continue is provided");
    if (o->match == MATCH_EXACT && !o->revision)
        return invalid(c, match,
                       "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion "
                       "\"0\"");
    if (o->initial != INITIAL_UNSET)
        return invalid(c, "sendInitialEvents",
                       "Forbidden: sendInitialEvents is forbidden for list");
    if (o->continued && o->revision)
        return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                       "specifying resource version is not allowed when using continue");
    return 0;
}

static int check_watch(struct call *c, const struct list_options *o)
{
    static const char match[] = "resourceVersionMatch";
    if (o->initial != INITIAL_UNSET && o->match != MATCH_NOT_OLDER)
        return invalid(c, match,
                       "Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                       "NotOlderThan");
    if (o->match && o->initial == INITIAL_UNSET)
        return invalid(c, match,
                       "Forbidden: resourceVersionMatch is forbidden for watch unless "
                       "sendInitialEvents is provided");
    if (o->match && o->continued)
        return invalid(c, match,
                       "Forbidden: resourceVersionMatch is forbidden when continue is provided");
    return 0;
}

/* A number that the parameter must be; 0 when it is not there. */
static int parse_number(struct call *c, const char *name, uint64_t *ret_number)
{
    const char *text = given(c, name);
    *ret_number = 0;
    if (!text)
        return 0;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9')
        return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                       "%s: Invalid value: \"%.*s\": write a whole number", name,
                       (int)str_cut(text, 80), text);
    *ret_number = value;
    return 0;
}

int call_list_options(struct call *c, bool watch, struct list_options *ret_options)
{
    struct list_options o = {.watch = watch, .given = given(c, "resourceVersion") != NULL};
    const char *token = given(c, "continue"), *initial = given(c, "sendInitialEvents");
    uint64_t limit;
    o.continued = token != NULL;
    o.bookmarks = is_true(given(c, "allowWatchBookmarks"));
    if (initial)
        o.initial = is_true(initial) ? INITIAL_SEND : INITIAL_SKIP;
    if (parse_match(c, &o) < 0 || parse_number(c, "resourceVersion", &o.revision) < 0 ||
        parse_number(c, "limit", &limit) < 0 ||
        parse_number(c, "timeoutSeconds", &o.timeout_seconds) < 0 ||
        (watch ? check_watch(c, &o) : check_list(c, &o)) < 0 ||
        (token && apiserver_token_parse(token, &o.token, &c->err) < 0))
        return -1;
    o.limit = (size_t)limit;
    *ret_options = o;
    return 0;
}
