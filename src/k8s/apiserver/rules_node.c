/*
 * What a node may write of Kubernetes' kinds, beyond what the table of api/access.h says: which labels
 * and taints, and which Pods it may make. The words are those of Kubernetes' NodeRestriction.
 *
 * A Pod that a node makes, a mirror Pod, refers to nothing: no Secret, ConfigMap, account or claim. It
 * stays a mirror Pod for as long as it lives, and nobody gets Secrets or tokens on its behalf
 * (authz_node.c), so a node can only have what somebody else gave to a Pod that runs there.
 */
#include "api/format.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/rules.h"
#include "k8s/kinds/kinds.h"
#include "kinds/access.h"

#define PREFIX "system:node:"
#define LEASES "kube-node-lease"
#define MIRROR API_ACCESS_MIRROR

enum { REFERENCE_DEPTH = 16 };

bool rules_is_node(const struct apiserver_user *user, const char **ret_node)
{
    *ret_node = NULL;
    if (!user || !apiserver_user_in(user, "system:nodes") ||
        apiserver_user_in(user, "system:masters"))
        return false;
    if (str_starts_with(user->name, PREFIX) &&
        !api_dns_subdomain.check(user->name + sizeof(PREFIX) - 1))
        *ret_node = user->name + sizeof(PREFIX) - 1;
    return true;
}

static int forbid(struct err *e, const char *fmt, const char *node)
    __attribute__((format(printf, 2, 0)));

static int forbid(struct err *e, const char *fmt, const char *node)
{
    _cleanup_free_ char *text = mem_printf(fmt, node);
    return err_set(e, ERR_PERMISSION_DENIED, "Forbidden", "%s", text);
}

static bool runs_on(const json_t *pod, const char *node)
{
    const char *name = json_str(json_object_get(pod, "spec"), "nodeName");
    return name && str_eq(name, node);
}

/* Labels of Kubernetes' own that a node may give itself. */
static bool is_own_label(const char *key)
{
    static const char *const fine[] = {"kubernetes.io/hostname",
                                       "kubernetes.io/arch",
                                       "kubernetes.io/os",
                                       "beta.kubernetes.io/arch",
                                       "beta.kubernetes.io/instance-type",
                                       "beta.kubernetes.io/os",
                                       "topology.kubernetes.io/region",
                                       "topology.kubernetes.io/zone",
                                       "node.kubernetes.io/instance-type",
                                       NULL};
    const char *slash = strchr(key, '/');
    if (!slash)
        return true;
    _cleanup_free_ char *domain = mem_strndup(key, (size_t)(slash - key));
    bool reserved = str_eq(domain, "kubernetes.io") || str_ends_with(domain, ".kubernetes.io") ||
                    str_eq(domain, "k8s.io") || str_ends_with(domain, ".k8s.io");
    bool allowed = str_eq(domain, "kubelet.kubernetes.io") ||
                   str_ends_with(domain, ".kubelet.kubernetes.io") ||
                   str_eq(domain, "node.kubernetes.io") ||
                   str_ends_with(domain, ".node.kubernetes.io");
    return !reserved || allowed || str_in(key, fine);
}

/* Appends the keys of `labels` that are not the node's to set and differ from `others`. */
static void find_foreign(const json_t *labels, const json_t *others, bool both, struct str *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)labels, key, value) {
        const json_t *other = json_object_get(others, key);
        bool differs = both ? !json_equal(value, other) : !other;
        if (differs && !is_own_label(key))
            str_appendf(out, "%s%s", out->len ? ", " : "", key);
    }
}

static int check_node(const struct apiserver_admission *a, const char *node, struct err *e)
{
    const char *name = rules_name(a);
    if (!str_eq(name, node))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "node \"%s\" is not allowed to modify node \"%s\"", node, name);
    if (!a->object || a->request->subresource != APISERVER_MAIN)
        return 0;
    const json_t *taints = json_at(a->object, "spec", "taints");
    if (a->old && !json_equal(taints, json_at(a->old, "spec", "taints")) &&
        (json_array_size(taints) || json_array_size(json_at(a->old, "spec", "taints"))))
        return forbid(e, "node \"%s\" is not allowed to modify taints", node);
    const json_t *labels = json_at(a->object, "metadata", "labels");
    const json_t *before = json_at(a->old, "metadata", "labels");
    _cleanup_(str_done) struct str foreign = {0};
    find_foreign(labels, before, true, &foreign);
    find_foreign(before, labels, false, &foreign);
    if (!foreign.len)
        return 0;
    return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                   a->old ? "is not allowed to modify labels: %s"
                          : "is not allowed to set the following labels: %s",
                   foreign.p);
}

bool rules_is_mirror(const json_t *pod)
{
    return json_at(pod, "metadata", "annotations", MIRROR);
}

/* What a member of a pod's spec refers to, by its key; NULL: to nothing outside of the pod. */
static const char *referred_by(const char *key)
{
    static const struct {
        const char *key, *what;
    } others[] = {
        {"configMap", "configmaps"},
        {"configMapRef", "configmaps"},
        {"configMapKeyRef", "configmaps"},
        {"persistentVolumeClaim", "persistentvolumeclaims"},
        {"ephemeral", "persistentvolumeclaims"},
        {"projected", "projected volumes"},
        {"csi", "csi volumes"},
        {"serviceAccountName", "a service account"},
        {"serviceAccount", "a service account"},
        {"resourceClaims", "resourceclaims"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (str_eq(key, others[i].key))
            return others[i].what;
    }
    return strstr(key, "secret") || strstr(key, "Secret") ? "secrets" : NULL;
}

/* The first thing that a part of a pod's spec refers to; NULL. */
static const char *find_reference(const json_t *value, unsigned depth)
{
    const char *key, *what = NULL;
    json_t *member;
    size_t i;
    if (depth > REFERENCE_DEPTH)
        return "what is nested too deeply";
    json_array_foreach((json_t *)value, i, member) {
        if (!what)
            what = find_reference(member, depth + 1);
    }
    json_object_foreach((json_t *)value, key, member) {
        bool is_empty =
            json_is_null(member) || (json_is_string(member) && !json_string_length(member));
        if (!what && !is_empty)
            what = referred_by(key);
        if (!what)
            what = find_reference(member, depth + 1);
    }
    return what;
}

/* Whoever owns it would decide when it goes: that can only be the node. */
static bool is_owned_by_others(const json_t *pod, const char *node)
{
    const json_t *owners = json_at(pod, "metadata", "ownerReferences");
    const json_t *owner = json_array_get(owners, 0);
    const char *kind = json_str(owner, "kind"), *name = json_str(owner, "name");
    return json_array_size(owners) > 1 ||
           (owner && !(kind && name && str_eq(kind, "Node") && str_eq(name, node)));
}

static int check_mirror(const json_t *pod, const char *node, struct err *e)
{
    if (!rules_is_mirror(pod))
        return forbid(e,
                      "pod does not have \"" MIRROR
                      "\" annotation, node \"%s\" can only create mirror pods",
                      node);
    if (!runs_on(pod, node))
        return forbid(e, "node \"%s\" can only create pods with spec.nodeName set to itself", node);
    if (is_owned_by_others(pod, node))
        return forbid(e, "node \"%s\" can only create pods with an owner reference set to itself",
                      node);
    const char *what = find_reference(json_object_get(pod, "spec"), 0);
    return what ? err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                          "node \"%s\" can not create pods that reference %s", node, what)
                : 0;
}

static int check_pod(const struct apiserver_admission *a, const char *node, struct err *e)
{
    if (a->operation == APISERVER_OP_CREATE)
        return check_mirror(a->object, node, e);
    if (runs_on(a->old, node))
        return 0;
    return forbid(e,
                  a->operation == APISERVER_OP_DELETE
                      ? "node \"%s\" can only delete pods with spec.nodeName set to itself"
                      : "node \"%s\" can only update pod status for pods with spec.nodeName set to "
                        "itself",
                  node);
}

/* Whether a node made it is written once: whoever could change that could give it what it names. */
static void keep_mirror(const struct apiserver_admission *a)
{
    if (a->operation != APISERVER_OP_UPDATE ||
        json_equal(json_at(a->object, "metadata", "annotations", MIRROR),
                   json_at(a->old, "metadata", "annotations", MIRROR)) ||
        (!rules_is_mirror(a->object) && !rules_is_mirror(a->old)))
        return;
    api_problem(a->report, API_KEY(API_KEY(API_KEY(NULL, "metadata"), "annotations"), MIRROR),
                API_FORBIDDEN, NULL, "may not add, remove or update mirror pod annotation");
}

static bool is_same(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "key"), json_object_get(b, "key")) &&
           json_equal(json_object_get(a, "effect"), json_object_get(b, "effect"));
}

/*
 * Since when a taint that ends pods is there is written down, so that whoever ends them counts from
 * the same time, also after a restart.
 */
int rules_node_fill(struct apiserver_admission *a, struct err *e)
{
    char now[RFC3339_MAX];
    size_t i, j;
    json_t *taint, *old;
    (void)e;
    if (!a->object || !rules_concern(a, &api_node))
        return 0;
    registry_now(a->registry, now);
    json_array_foreach((json_t *)json_at(a->object, "spec", "taints"), i, taint) {
        const char *effect = json_str(taint, "effect"), *since = now;
        if (!effect || !str_eq(effect, "NoExecute") || json_object_get(taint, "timeAdded"))
            continue;
        json_array_foreach((json_t *)json_at(a->old, "spec", "taints"), j, old) {
            const char *before = json_str(old, "timeAdded");
            if (is_same(taint, old) && before)
                since = before;
        }
        json_object_set_new(taint, "timeAdded", json_string(since));
    }
    return 0;
}

int rules_node_check(struct apiserver_admission *a, struct err *e)
{
    const char *node;
    const struct api_kind *kind = a->request->kind;
    if (kind == &api_pod)
        keep_mirror(a);
    if (!rules_is_node(a->request->user, &node))
        return 0;
    if (!node)
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "could not determine node from user \"%s\"", a->request->user->name);
    if (kind == &api_node)
        return check_node(a, node, e);
    if (kind == &api_pod)
        return check_pod(a, node, e);
    if (kind == &api_lease && !str_eq(a->request->namespace, LEASES))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "can only access leases in the \"" LEASES "\" system namespace");
    if (kind == &api_lease && !str_eq(rules_name(a), node))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "can only access node lease with the same name as the requesting node");
    if (kind == &api_csi_node && !str_eq(rules_name(a), node))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "can only access CSINode with the same name as the requesting node");
    return 0;
}

int rules_node_token(const struct apiserver_user *user, const char *bound_kind, const json_t *bound,
                     const json_t *reference, struct err *e)
{
    const char *node, *uid = json_str(reference, "uid");
    if (!rules_is_node(user, &node)) {
        struct api_actor actor;
        api_actor_init(&actor, user->name, false, NULL);
        bool other = actor.who == API_WHO_OTHER || apiserver_user_in(user, "system:masters");
        api_actor_done(&actor);
        return other ? 0
                     : err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                               "programs of Orlop that are no nodes get no tokens of others");
    }
    if (!bound_kind || !str_eq(bound_kind, "Pod"))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "node requested token not bound to a pod");
    if (!uid || !*uid)
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "node requested token with a pod binding without a uid");
    if (!node || !runs_on(bound, node))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "node requested token bound to a pod scheduled on a different node");
    if (rules_is_mirror(bound))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "node requested token bound to a mirror pod, which a node made itself");
    return 0;
}
