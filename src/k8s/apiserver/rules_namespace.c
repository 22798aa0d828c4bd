/*
 * Namespaces: objects are created only in one that exists and is not being deleted.
 *
 * A namespace that is found empty after it was marked as deleted stays empty: whoever creates an
 * object shares a lock from looking at the namespace until the object is visible, and marking a
 * namespace takes that lock alone.
 */
#include "k8s/apiserver/rules.h"
#include "k8s/apiserver/span.h"
#include "k8s/kinds/kinds.h"

static const char finalizer[] = "kubernetes";
static const char name_label[] = "kubernetes.io/metadata.name";

static bool creates_in_namespace(const struct apiserver_admission *a)
{
    return a->registry->rules && a->operation == APISERVER_OP_CREATE && a->request->namespace &&
           !(a->request->kind->flags & (API_CLUSTER_SCOPED | API_REVIEW));
}

int rules_namespace_exists(struct apiserver_admission *a, struct err *e)
{
    if (!creates_in_namespace(a))
        return 0;
    const char *name = a->request->namespace;
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *namespace =
        rules_find(a->registry, &api_namespace, NULL, name);
    if (!namespace)
        return err_set(e, ERR_NOT_FOUND, "NamespaceNotFound", "namespaces \"%s\" not found", name);
    struct apiserver_span metadata =
        apiserver_span_member(namespace->bytes, namespace->size, "metadata");
    if (apiserver_span_member(metadata.p, metadata.size, "deletionTimestamp").p)
        return err_set(e, ERR_PERMISSION_DENIED, "NamespaceTerminating",
                       "unable to create new content in namespace %s because it is being "
                       "terminated",
                       name);
    return 0;
}

/* What is the server's in a namespace: its label, its phase, and who has to empty it. */
int rules_namespace_fill(struct apiserver_admission *a, struct err *e)
{
    (void)e;
    if (a->request->kind != &api_namespace || !a->object)
        return 0;
    json_t *metadata = json_object_get(a->object, "metadata");
    const char *name = json_str(metadata, "name");
    if (name)
        json_object_set_new(json_object_at(metadata, "labels"), name_label, json_string(name));
    if (a->operation == APISERVER_OP_CREATE) {
        json_object_set_new(json_object_at(a->object, "spec"), "finalizers",
                            json_pack("[s]", finalizer));
        json_object_set_new(a->object, "status", json_pack("{s:s}", "phase", "Active"));
    } else if (a->request->subresource != APISERVER_FINALIZE) {
        json_t *kept = json_deep_copy(json_at(a->old, "spec", "finalizers"));
        if (kept)
            json_object_set_new(json_object_at(a->object, "spec"), "finalizers", kept);
        else
            json_object_del(json_object_get(a->object, "spec"), "finalizers");
    }
    return 0;
}

int rules_namespace_deletable(struct apiserver_admission *a, struct err *e)
{
    static const char *const lasting[] = {"default", "kube-system", "kube-public",
                                          "kube-node-lease", NULL};
    if (a->request->kind == &api_namespace && a->operation == APISERVER_OP_DELETE &&
        str_in(rules_name(a), lasting))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden", "this namespace may not be deleted");
    return 0;
}

int rules_namespace_hold(struct apiserver_admission *a, struct err *e)
{
    struct apiserver_rules *rules = a->registry->rules;
    if (rules && a->request->kind == &api_namespace && a->operation == APISERVER_OP_DELETE) {
        pthread_rwlock_wrlock(&rules->namespaces);
        a->namespaces_held = true;
    } else if (creates_in_namespace(a)) {
        pthread_rwlock_rdlock(&rules->namespaces);
        a->namespaces_held = true;
        return rules_namespace_exists(a, e); /* it may have gone meanwhile */
    }
    return 0;
}

void rules_namespace_release(struct apiserver_admission *a)
{
    if (a->namespaces_held)
        pthread_rwlock_unlock(&a->registry->rules->namespaces);
    a->namespaces_held = false;
}
