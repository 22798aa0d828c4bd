/*
 * What a node may read that no role can say: the Secrets that pods bound to it mention, and no
 * others.
 */
#include "api/kinds/kinds.h"
#include "apiserver/authz.h"
#include "apiserver/rules.h"
#include "apiserver/self.h"
#include "apiserver/serve_impl.h"

enum { DEPTH = 16 };

struct search {
    const char *node, *name;
    bool found;
};

static bool is_text(const json_t *value, const char *text)
{
    const char *is = json_string_value(value);
    return is && str_eq(is, text);
}

/*
 * Whether a part of a pod's spec names the Secret: as secretName, or as the name of something that
 * is called secret, secretRef, secretKeyRef, imagePullSecrets, nodePublishSecretRef, ...
 */
static bool mentions(const json_t *value, const char *name, bool secret, unsigned depth)
{
    const char *key;
    json_t *member;
    size_t i;
    if (depth > DEPTH)
        return false;
    json_array_foreach((json_t *)value, i, member) {
        if (mentions(member, name, secret, depth + 1))
            return true;
    }
    json_object_foreach((json_t *)value, key, member) {
        bool of_secret = strstr(key, "secret") || strstr(key, "Secret");
        if (is_text(member, name) && (str_eq(key, "secretName") || (secret && str_eq(key, "name"))))
            return true;
        if (mentions(member, name, of_secret, depth + 1))
            return true;
    }
    return false;
}

static void look(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    struct search *s = context;
    (void)kind;
    if (s->found || !strstr(o->bytes, s->node) || !strstr(o->bytes, s->name))
        return; /* cheaper than reading the object */
    json_auto_t *pod = self_parse(o);
    const json_t *spec = json_object_get(pod, "spec");
    s->found =
        is_text(json_object_get(spec, "nodeName"), s->node) && mentions(spec, s->name, false, 0);
}

bool authz_node_allows(struct apiserver *a, const struct apiserver_user *user,
                       const struct apiserver_attributes *attributes)
{
    static const char *const reads[] = {"get", "list", "watch", NULL};
    struct search s = {.name = attributes->name};
    const char *resource = attributes->resource, *group = attributes->group;
    if (attributes->path || !resource || !str_eq(resource, "secrets") || (group && *group) ||
        (attributes->subresource && *attributes->subresource) || !s.name || !*s.name ||
        !attributes->namespace || !*attributes->namespace || !str_in(attributes->verb, reads) ||
        !rules_is_node(user, &s.node) || !s.node)
        return false;
    self_each(&a->registry, &api_pod, attributes->namespace, look, &s);
    return s.found;
}
