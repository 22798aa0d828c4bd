#include "k8s/apiserver/authz.h"

#include <ctype.h>
#include <stdio.h>

#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/serve_impl.h"

bool apiserver_authorized(struct apiserver *a, const struct apiserver_user *user,
                          const struct apiserver_attributes *attributes, struct str *ret_reason)
{
    return apiserver_user_in(user, "system:masters") || authz_node_allows(a, user, attributes) ||
           apiserver_rbac_allows(a->registry.rbac, user, attributes, ret_reason);
}

/*
 * The name that a list or a watch is limited to counts as that of a get, so that who may only see one
 * object can still wait for it.
 */
static const char *selected_name(struct call *c, struct api_field_selector *fields)
{
    const char *text = http_request_query(c->http, "fieldSelector");
    bool one = c->path.verb == APISERVER_LIST || c->path.verb == APISERVER_WATCH;
    if (*c->path.name)
        return c->path.name;
    if (!one || !text || api_field_selector_parse(text, fields, NULL) < 0)
        return "";
    const char *name = api_field_selector_exact(fields, "metadata.name");
    return name ? name : "";
}

static int forbid(struct call *c, const struct apiserver_attributes *a)
{
    _cleanup_(str_done) struct str what = {0};
    if (a->path) {
        str_appendf(&what, "path \"%.300s\"", a->path);
        c->path.kind = NULL; /* the Status is about no resource */
    } else {
        bool part = a->subresource && *a->subresource;
        str_appendf(&what, "resource \"%s%s%s\" in API group \"%s\" ", a->resource, part ? "/" : "",
                    part ? a->subresource : "", a->group);
        if (a->namespace && *a->namespace)
            str_appendf(&what, "in the namespace \"%s\"", a->namespace);
        else
            str_append(&what, "at the cluster scope");
    }
    return err_set(&c->err, ERR_PERMISSION_DENIED, "Forbidden",
                   "%sUser \"%.300s\" cannot %s %s%s%s", a->path ? "forbidden: " : "",
                   c->user->name, a->verb, str_get(&what), c->reason.len ? ": " : "",
                   str_get(&c->reason));
}

int apiserver_authorize(struct call *c)
{
    char method[16];
    size_t n = 0;
    for (const char *m = c->http->method; *m && n < sizeof(method) - 1; m++)
        method[n++] = (char)tolower((unsigned char)*m);
    method[n] = '\0';
    struct api_field_selector fields = {0};
    struct apiserver_attributes a = {.verb = method, .path = c->http->path};
    if (c->known && c->path.asked == APISERVER_ASKED_OBJECTS)
        a = (struct apiserver_attributes){
            .verb = apiserver_verb_text(c->path.verb),
            .group = c->path.gv->group,
            .resource = c->path.kind->plural,
            .subresource = apiserver_subresource_text(c->path.subresource),
            /* A Namespace is in itself, so that a role in it can be about it. */
            .namespace = str_eq(c->path.kind->plural, "namespaces") && !*c->path.gv->group
                             ? c->path.name
                             : c->path.namespace,
            .name = selected_name(c, &fields),
        };
    c->decided = true;
    c->allowed = apiserver_authorized(c->server, c->user, &a, &c->reason);
    int status = c->allowed ? 0 : forbid(c, &a);
    api_field_selector_done(&fields);
    return status;
}
