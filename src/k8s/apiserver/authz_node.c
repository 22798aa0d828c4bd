/*
 * What a node may read that no role can say, as Kubernetes' node authorizer does: the Secrets, ConfigMaps
 * and claims that pods bound to it mention, the volumes of such claims, and no others. A mirror Pod, which
 * the node made itself, mentions nothing.
 */
#include "k8s/apiserver/authz.h"
#include "k8s/apiserver/rules.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

#define TRUST "kube-root-ca.crt"

enum { DEPTH = 16 };

/* How a pod's spec names an object of a resource. */
struct reference {
    const char *resource;
    const char *in[2]; /* parts of the keys of members that name one */
    const char *as[2]; /* the keys that have the name in it */
};

static const struct reference references[] = {
    {"secrets", {"secret", "Secret"}, {"secretName", "name"}},
    {"configmaps", {"configMap", "configMap"}, {"name", "name"}},
    {"persistentvolumeclaims",
     {"persistentVolumeClaim", "persistentVolumeClaim"},
     {"claimName", "claimName"}},
};

struct search {
    struct apiserver_registry *registry;
    const struct reference *reference;
    const char *node, *name;
    bool found;
};

static bool is_text(const json_t *value, const char *text)
{
    const char *is = json_string_value(value);
    return is && str_eq(is, text);
}

/*
 * Whether a part of a pod's spec names the object: as secretName, or as the name of something that is
 * called secret, secretRef, secretKeyRef, imagePullSecrets, nodePublishSecretRef, ...
 */
static bool mentions(const struct search *s, const json_t *value, bool inside, unsigned depth)
{
    const struct reference *r = s->reference;
    const char *key;
    json_t *member;
    size_t i;
    if (depth > DEPTH)
        return false;
    json_array_foreach((json_t *)value, i, member) {
        if (mentions(s, member, inside, depth + 1))
            return true;
    }
    json_object_foreach((json_t *)value, key, member) {
        if (is_text(member, s->name) && inside && (str_eq(key, r->as[0]) || str_eq(key, r->as[1])))
            return true;
        if (mentions(s, member, strstr(key, r->in[0]) || strstr(key, r->in[1]), depth + 1))
            return true;
    }
    return false;
}

/* A claim that a pod has by a template is named after both. */
static bool makes_claim(const struct search *s, const json_t *pod)
{
    size_t i;
    json_t *volume;
    const char *name = json_str(json_object_get(pod, "metadata"), "name");
    json_array_foreach(json_at(pod, "spec", "volumes"), i, volume) {
        const char *part = json_str(volume, "name");
        if (!part || !name || !json_object_get(volume, "ephemeral"))
            continue;
        _cleanup_free_ char *claim = mem_printf("%s-%s", name, part);
        if (str_eq(claim, s->name))
            return true;
    }
    return false;
}

static void look(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    struct search *s = context;
    (void)kind;
    if (s->found || !strstr(o->bytes, s->node))
        return; /* cheaper than reading the object */
    json_auto_t *pod = self_parse(o);
    const json_t *spec = json_object_get(pod, "spec");
    bool claims = str_eq(s->reference->resource, "persistentvolumeclaims");
    /* Whom to trust is in every pod that has a token, also where its spec does not say so. */
    bool trust = str_eq(s->reference->resource, "configmaps") && str_eq(s->name, TRUST);
    s->found = is_text(json_object_get(spec, "nodeName"), s->node) && !rules_is_mirror(pod) &&
               (trust || mentions(s, spec, false, 0) || (claims && makes_claim(s, pod)));
}

/* Whether a pod of the node names the object. */
static bool is_mentioned(struct apiserver_registry *g, const char *node, const char *resource,
                         const char *namespace, const char *name)
{
    struct search s = {.registry = g, .node = node, .name = name};
    for (size_t i = 0; i < ARRAY_SIZE(references); i++) {
        if (str_eq(resource, references[i].resource))
            s.reference = &references[i];
    }
    if (!s.reference || !namespace || !*namespace)
        return false;
    self_each(g, &api_pod, namespace, look, &s);
    return s.found;
}

/* A volume, by the claim that it is bound to. */
static bool is_mounted(struct apiserver_registry *g, const char *node, const char *name)
{
    json_auto_t *volume = rules_get(g, &api_persistent_volume, NULL, name);
    const json_t *claim = json_at(volume, "spec", "claimRef");
    const char *ns = json_str(claim, "namespace"), *of = json_str(claim, "name");
    return of && is_mentioned(g, node, "persistentvolumeclaims", ns, of);
}

bool authz_node_allows(struct apiserver *a, const struct apiserver_user *user,
                       const struct apiserver_attributes *attributes)
{
    static const char *const reads[] = {"get", "list", "watch", NULL};
    const char *resource = attributes->resource, *group = attributes->group, *node;
    const char *name = attributes->name;
    if (attributes->path || !resource || (group && *group) ||
        (attributes->subresource && *attributes->subresource) || !name || !*name ||
        !str_in(attributes->verb, reads) || !rules_is_node(user, &node) || !node)
        return false;
    if (str_eq(resource, "persistentvolumes"))
        return is_mounted(&a->registry, node, name);
    return is_mentioned(&a->registry, node, resource, attributes->namespace, name);
}
