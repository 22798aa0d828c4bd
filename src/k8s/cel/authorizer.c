/*
 * authorizer: who asks may do what else?
 *
 *     authorizer.group('apps').resource('deployments').namespace('a').name('b').check('delete')
 *     authorizer.path('/healthz').check('get')
 *     authorizer.serviceAccount('namespace', 'name')...
 *     authorizer.requestResource.check('custom')
 *
 * What the decision is, and why, is asked with .allowed(), .reason() and .errored().
 */
#include "k8s/cel/eval.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

enum { CHECK_COST = 350000 }; /* what the original takes it for; most of what one call may cost */

struct cel_check {
    const struct cel_authorizer *authorizer;
    struct cel_access access;
    bool allowed;
    const char *reason;
};

struct cel_value cel_make_authorizer(struct cel_run *r, const struct cel_authorizer *a)
{
    struct cel_check *c = arena_new(&r->arena, struct cel_check);
    *c = (struct cel_check){.authorizer = a, .reason = ""};
    return (struct cel_value){.type = CEL_AUTHORIZER, .check = c};
}

bool eval_request_resource(struct cel_run *r, const struct cel_value *authorizer,
                           struct cel_value *ret)
{
    const struct cel_authorizer *a = authorizer->check->authorizer;
    *ret = cel_make_authorizer(r, a);
    ret->type = CEL_RESOURCE_CHECK;
    if (!a->request)
        return cel_fail(r, "no such key: requestResource");
    struct cel_check *c = arena_new(&r->arena, struct cel_check);
    *c = *ret->check;
    c->access = *a->request;
    ret->check = c;
    return true;
}

/* A copy to change; what comes of it has this type. */
static struct cel_access *next(struct cel_run *r, const struct cel_value *on, enum cel_type type,
                               struct cel_value *ret)
{
    struct cel_check *c = arena_new(&r->arena, struct cel_check);
    *c = *on->check;
    *ret = (struct cel_value){.type = type, .check = c};
    return &c->access;
}

#define STEP(name, member, type)                                                                   \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        (void)n;                                                                                   \
        next(r, &args[0], type, ret)->member = args[1].text.p;                                     \
        return true;                                                                               \
    }

STEP(group, group, CEL_GROUP_CHECK)
STEP(path, path, CEL_PATH_CHECK)
STEP(subresource, subresource, CEL_RESOURCE_CHECK)
STEP(namespace, namespace, CEL_RESOURCE_CHECK)
STEP(name, name, CEL_RESOURCE_CHECK)

FUNCTION(resource)
{
    (void)n;
    if (strspn(args[1].text.p, " ") == args[1].text.n)
        return cel_fail(r, "resource must not be empty");
    next(r, &args[0], CEL_RESOURCE_CHECK, ret)->resource = args[1].text.p;
    return true;
}

FUNCTION(service_account)
{
    (void)n;
    struct cel_access *access = next(r, &args[0], CEL_AUTHORIZER, ret);
    access->account_namespace = args[1].text.p;
    access->account_name = args[2].text.p;
    return true;
}

FUNCTION(check)
{
    (void)n;
    _cleanup_(str_done) struct str reason = {0};
    struct cel_access *access = next(r, &args[0], CEL_DECISION, ret);
    struct cel_check *c = container_of(access, struct cel_check, access);
    if (!cel_spend(r, CHECK_COST))
        return false;
    access->verb = args[1].text.p;
    c->allowed = c->authorizer->allowed(c->authorizer->context, access, &reason);
    c->reason = arena_strdup(&r->arena, str_get(&reason));
    return true;
}

FUNCTION(allowed)
{
    (void)r, (void)n;
    *ret = cel_make_bool(args[0].check->allowed);
    return true;
}

FUNCTION(reason)
{
    (void)n;
    *ret = cel_make_string(r, args[0].check->reason, strlen(args[0].check->reason));
    return true;
}

/* A decision here is never an error. */
FUNCTION(errored)
{
    (void)r, (void)args, (void)n;
    *ret = cel_make_bool(false);
    return true;
}

FUNCTION(error)
{
    (void)args, (void)n;
    *ret = cel_make_string(r, "", 0);
    return true;
}

const struct cel_function cel_authorizer_functions[] = {
    {"group", "GZs", group, true},
    {"path", "PZs", path, true},
    {"serviceAccount", "ZZss", service_account, true},
    {"resource", "RGs", resource, true},
    {"subresource", "RRs", subresource, true},
    {"namespace", "RRs", namespace, true},
    {"name", "RRs", name, true},
    {"check", "XRs", check, true},
    {"check", "XPs", check, true},
    {"allowed", "bX", allowed, true},
    {"reason", "sX", reason, true},
    {"errored", "bX", errored, true},
    {"error", "sX", error, true},
    {0},
};
