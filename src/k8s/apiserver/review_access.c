/*
 * authorization.k8s.io: may I, may they, and what may I. The answer is that of the authorizer that
 * requests go through.
 */
#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/serve_impl.h"

static struct apiserver_attributes attributes_of(const json_t *spec)
{
    const json_t *resource = json_object_get(spec, "resourceAttributes");
    const json_t *path = json_object_get(spec, "nonResourceAttributes");
    if (path) {
        return (struct apiserver_attributes){.verb = json_str(path, "verb"),
                                             .path = json_text(path, "path")};
    }
    return (struct apiserver_attributes){
        .verb = json_str(resource, "verb"),
        .group = json_str(resource, "group"),
        .resource = json_str(resource, "resource"),
        .subresource = json_str(resource, "subresource"),
        .namespace = json_str(resource, "namespace"),
        .name = json_str(resource, "name"),
    };
}

static int answer(struct call *c, json_t *object, const struct apiserver_user *user)
{
    struct apiserver_attributes attributes = attributes_of(json_object_get(object, "spec"));
    _cleanup_(str_done) struct str reason = {0};
    bool allowed = apiserver_authorized(c->server, user, &attributes, &reason);
    json_t *status = json_pack("{s:b}", "allowed", allowed);
    if (reason.len)
        json_object_set_new(status, "reason", json_string(reason.p));
    json_object_set_new(object, "status", status);
    return 0;
}

int review_self_access(struct call *c, json_t *object)
{
    return answer(c, object, c->user);
}

int review_access(struct call *c, json_t *object)
{
    const json_t *spec = json_object_get(object, "spec");
    const json_t *list = json_object_get(spec, "groups");
    const char *name = json_str(spec, "user");
    const char **groups = mem_zalloc((json_array_size(list) + 1) * sizeof(*groups));
    size_t i;
    json_t *group;
    json_array_foreach((json_t *)list, i, group)
        groups[i] = json_string_value(group);
    struct apiserver_user user = {
        .name = name ? name : "",
        .uid = json_str(spec, "uid"),
        .groups = groups,
        .extra = json_object_get(spec, "extra"),
    };
    int status = answer(c, object, &user);
    free(groups);
    return status;
}

int review_local_access(struct call *c, json_t *object)
{
    json_t *spec = json_object_get(object, "spec");
    json_t *resource = json_object_get(spec, "resourceAttributes");
    const struct api_path *at = API_KEY(API_KEY(NULL, "spec"), "resourceAttributes");
    const char *namespace = json_str(resource, "namespace");
    if (!resource)
        api_problem(&c->report, at, API_MISSING, NULL,
                    "a LocalSubjectAccessReview is about a resource in its namespace");
    else if (namespace && *namespace && !str_eq(namespace, c->path.namespace))
        api_problem(&c->report, API_KEY(at, "namespace"), API_INVALID,
                    json_object_get(resource, "namespace"), "must match the namespace %s",
                    c->path.namespace);
    if (c->report.errors)
        return err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid", "the review is not valid");
    json_object_set_new(resource, "namespace", json_string(c->path.namespace));
    return review_access(c, object);
}

int review_self_rules(struct call *c, json_t *object)
{
    const char *namespace = json_str(json_object_get(object, "spec"), "namespace");
    if (!namespace || !*namespace)
        return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                       "no namespace on request: set spec.namespace");
    _cleanup_(str_done) struct str error = {0};
    json_t *resources = json_array(), *paths = json_array();
    apiserver_rbac_rules(c->server->registry.rbac, c->user, namespace, resources, paths, &error);
    json_t *status = json_pack("{s:o,s:o,s:b}", "resourceRules", resources, "nonResourceRules",
                               paths, "incomplete", (int)(error.len > 0));
    if (error.len)
        json_object_set_new(status, "evaluationError", json_string(error.p));
    json_object_set_new(object, "status", status);
    return 0;
}
