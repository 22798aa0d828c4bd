/*
 * Match conditions: a webhook is asked when all hold. One that is false decides, whatever becomes of
 * the others.
 */
#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/webhook_impl.h"
#include "k8s/schema/match.h"

/* What all conditions of one webhook may cost together, as in the original. */
enum { CONDITIONS_COST = 2500000 };

/* Whether who asks, or an account that is named, may do something else as well. */
static bool allowed(const void *context, const struct cel_access *access, struct str *reason)
{
    const struct apiserver_admission *a = context;
    const struct apiserver_user *user = a->request->user ? a->request->user : &apiserver_self;
    _cleanup_(apiserver_user_unrefp) const struct apiserver_user *other = NULL;
    if (access->account_name) {
        _cleanup_free_ char *name = mem_printf("system:serviceaccount:%s:%s",
                                               access->account_namespace, access->account_name);
        _cleanup_free_ char *group =
            mem_printf("system:serviceaccounts:%s", access->account_namespace);
        const char *const groups[] = {"system:serviceaccounts", group, "system:authenticated",
                                      NULL};
        user = other = apiserver_user_new(name, NULL, groups, NULL);
    }
    if (!a->registry->rbac || user == &apiserver_self)
        return true;
    const struct apiserver_attributes attributes = {
        .verb = access->verb,
        .group = access->group,
        .resource = access->resource,
        .subresource = access->subresource,
        .namespace = access->namespace,
        .name = access->name,
        .path = access->path,
    };
    return apiserver_user_in(user, "system:masters") ||
           apiserver_rbac_allows(a->registry->rbac, user, &attributes, reason);
}

int webhook_conditions(const struct webhook *h, const struct apiserver_admission *a,
                       const json_t *review, struct err *e)
{
    const json_t *request = json_object_get(review, "request");
    const struct cel_access own = {
        .group = json_str(json_object_get(request, "requestResource"), "group"),
        .resource = json_str(json_object_get(request, "requestResource"), "resource"),
        .subresource = json_str(request, "requestSubResource"),
        .namespace = json_str(request, "namespace"),
        .name = json_str(request, "name"),
    };
    const struct cel_authorizer authorizer = {allowed, a, &own};
    const struct cel_input inputs[] = {
        [API_MATCH_OBJECT] = {.json = json_object_get(request, "object")},
        [API_MATCH_OLD] = {.json = json_object_get(request, "oldObject")},
        [API_MATCH_REQUEST] = {.json = request},
        [API_MATCH_AUTHORIZER] = {.authorizer = &authorizer},
    };
    long budget = CONDITIONS_COST;
    int result = 1;
    vec_for_each(&h->conditions, c) {
        bool holds = false;
        struct err why = c->err;
        if (c->program && cel_test(c->program, inputs, &budget, &holds, &why) == 0) {
            if (!holds)
                return 0;
        } else {
            result = err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                             "the match condition \"%s\" of the admission webhook \"%s\" cannot be "
                             "evaluated: %s",
                             c->name ? c->name : "", h->name, why.msg);
        }
    }
    return result;
}
