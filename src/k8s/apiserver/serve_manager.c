/*
 * Who makes a change, for managedFields: what the request says, or else what the client calls
 * itself.
 */
#include "k8s/apiserver/serve_impl.h"

/* Neither a control character nor a separator other than a space. */
static bool is_printable(uint32_t c)
{
    return c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0) && c != 0xad && c != 0x2028 &&
           c != 0x2029;
}

/* The part of a User-Agent before the first slash, as far as there is room for it. */
static void from_user_agent(const char *agent, char manager[MANAGED_NAME_MAX + 1])
{
    size_t used = 0, left = strcspn(agent, "/");
    while (left) {
        uint32_t c = 0;
        size_t n = str_utf8(agent, left, &c);
        if (n && used + n > MANAGED_NAME_MAX)
            break;
        if (n && is_printable(c)) {
            memcpy(manager + used, agent, n);
            used += n;
        }
        agent += n ? n : 1;
        left -= n ? n : 1;
    }
    manager[used] = '\0';
}

static int invalid_option(struct call *c, const char *what)
{
    const char *options = c->path.verb == APISERVER_CREATE   ? "CreateOptions"
                          : c->path.verb == APISERVER_UPDATE ? "UpdateOptions"
                                                             : "PatchOptions";
    return err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid", "%s.meta.k8s.io \"\" is invalid: %s",
                   options, what);
}

int call_manager(struct call *c)
{
    if (c->path.verb != APISERVER_CREATE && c->path.verb != APISERVER_UPDATE &&
        c->path.verb != APISERVER_PATCH)
        return 0;
    const char *given = http_request_query(c->http, "fieldManager");
    if (given && *given) {
        size_t n = strlen(given);
        if (n > MANAGED_NAME_MAX)
            return invalid_option(c, "fieldManager: Too long: may not be more than 128 bytes");
        for (size_t i = 0; i < n;) {
            uint32_t letter = 0;
            size_t size = str_utf8(given + i, n - i, &letter);
            if (!size || !is_printable(letter))
                return invalid_option(c, "fieldManager: Invalid value: should only contain "
                                         "printable characters");
            i += size;
        }
        memcpy(c->manager, given, n + 1);
        return 0;
    }
    const char *agent = http_request_header(c->http, "User-Agent");
    from_user_agent(agent ? agent : "", c->manager);
    if (!*c->manager)
        memcpy(c->manager, "unknown", sizeof("unknown"));
    return 0;
}

int call_check_apply(struct call *c, bool apply, bool *ret_force)
{
    const char *force = http_request_query(c->http, "force");
    const char *given = http_request_query(c->http, "fieldManager");
    *ret_force = force && (str_eq(force, "true") || str_eq(force, "1"));
    if (!apply && force && *force)
        return invalid_option(c, "force: Forbidden: may not be specified for non-apply patch");
    if (apply && !(given && *given))
        return invalid_option(c, "fieldManager: Required value: is required for apply patch");
    return 0;
}
