/*
 * Authorization: may they.
 *
 * Members of system:masters may do everything; all others what roles say (rbac.h). Nobody asks for
 * what the server does of its own accord.
 */
#pragma once

#include "base/str.h"
#include "k8s/apiserver/user.h"

struct apiserver;
struct call;

/* What somebody wants to do. NULL and "" are the same. */
struct apiserver_attributes {
    const char *verb; /* "list"; of a path that is no resource its HTTP method, in lower case */
    const char *group, *resource, *subresource;
    const char *namespace; /* "": in all, or of a kind of the whole cluster */
    const char *name;
    const char *path; /* of what is no resource; NULL: it is one */
};

/* authz_node.c: Secrets, ConfigMaps and claims of the pods of a node. */
bool authz_node_allows(struct apiserver *a, const struct apiserver_user *user,
                       const struct apiserver_attributes *attributes);
/* Forbidden unless the call's user may do what its path says. */
int apiserver_authorize(struct call *c);
/*
 * Whether a user may do something, as of the last change that anybody has heard of. ret_reason, if
 * given, gets the binding that allows it, or what stood in the way, where there is more to say than
 * yes or no.
 */
bool apiserver_authorized(struct apiserver *a, const struct apiserver_user *user,
                          const struct apiserver_attributes *attributes, struct str *ret_reason);
