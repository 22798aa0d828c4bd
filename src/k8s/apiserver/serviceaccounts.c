/*
 * What every namespace has: the ServiceAccount "default", and the ConfigMap kube-root-ca.crt with
 * the authorities by which pods know this server. They are made when the namespace is, and again when
 * somebody takes them away; the ConfigMap follows the authorities.
 *
 * Also the tick for the certificates themselves, since whoever renews them has to tell here.
 */
#include "k8s/apiserver/serviceaccounts.h"

#include "base/log.h"
#include "k8s/apiserver/serve_impl.h"

static const char account_name[] = "default", bundle_name[] = "kube-root-ca.crt";

static bool is_there(struct apiserver *a, const char *kind, const char *namespace, const char *name)
{
    json_auto_t *object = apiserver_core_object(a, kind, namespace, name);
    return object;
}

/*
 * Creates, or with a name updates that one; what exists, or is gone meanwhile, is fine. The name is
 * not the object's own, which the registry changes.
 */
static bool write_object(struct apiserver *a, const char *kind, const char *namespace,
                         const char *name, json_t *object)
{
    struct apiserver_request r = {
        .kind = api_kind_find("v1", kind, NULL), .namespace = namespace, .name = name};
    struct api_report report = {0};
    struct err e = {0};
    struct apiserver_object *o = name ? apiserver_update(&a->registry, &r, object, &report, &e)
                                      : apiserver_create(&a->registry, &r, object, &report, &e);
    api_report_done(&report);
    apiserver_object_unref(o);
    if (o || e.code == ERR_ALREADY_EXISTS || e.code == ERR_NOT_FOUND)
        return true;
    log_warn("cannot write what every namespace has", LOG_S("namespace", namespace),
             LOG_S("kind", kind), LOG_ERR(&e));
    return false;
}

static bool ensure_account(struct apiserver *a, const char *namespace)
{
    if (is_there(a, "ServiceAccount", namespace, account_name))
        return true;
    json_auto_t *object = json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind",
                                    "ServiceAccount", "metadata", "name", account_name);
    return write_object(a, "ServiceAccount", namespace, NULL, object);
}

static bool ensure_bundle(struct apiserver *a, const char *namespace)
{
    _cleanup_(str_done) struct str bundle = {0};
    apiserver_certificates_bundle(a->certificates, &bundle, NULL);
    json_auto_t *object = apiserver_core_object(a, "ConfigMap", namespace, bundle_name);
    const char *is = json_str(json_object_get(object, "data"), "ca.crt");
    if (is && str_eq(is, bundle.p))
        return true;
    bool update = object;
    if (!object)
        object =
            json_pack("{s:s,s:s,s:{s:s,s:{s:s}}}", "apiVersion", "v1", "kind", "ConfigMap",
                      "metadata", "name", bundle_name, "annotations", "kubernetes.io/description",
                      "The authorities by which clients in the cluster know the API server.");
    json_object_set_new(object, "data", json_pack("{s:s}", "ca.crt", bundle.p));
    return write_object(a, "ConfigMap", namespace, update ? bundle_name : NULL, object);
}

/* The namespace has what it should, or is on its way out. */
static void ensure(struct apiserver *a, const char *namespace)
{
    json_auto_t *object = apiserver_core_object(a, "Namespace", NULL, namespace);
    if (!object || json_at(object, "metadata", "deletionTimestamp"))
        return;
    bool account = ensure_account(a, namespace), bundle = ensure_bundle(a, namespace);
    if (!account || !bundle)
        a->accounts.pending = true;
}

static void resync(struct apiserver *a)
{
    struct apiserver_list list;
    struct apiserver_list_options all = {0};
    _cleanup_(str_done) struct str collection = {0};
    a->accounts.pending = false;
    a->accounts.generation = apiserver_certificates_generation(a->certificates);
    apiserver_collection(api_kind_find("v1", "Namespace", NULL), &collection);
    if (apiserver_store_list(a->registry.store, str_get(&collection), &all, &list, NULL) < 0)
        return;
    vec_for_each(&list.objects, o)
        ensure(a, (*o)->key);
    apiserver_list_done(&list);
}

static bool is_of(const struct apiserver_event *event, const char *kind)
{
    _cleanup_(str_done) struct str collection = {0};
    apiserver_collection(api_kind_find("v1", kind, NULL), &collection);
    return str_eq(event->object->collection, str_get(&collection));
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    const char *key = event->object->key, *slash = strchr(key, '/');
    if (!slash) {
        if (event->change == APISERVER_CREATED && is_of(event, "Namespace"))
            ensure(a, key);
        return;
    }
    bool account = str_eq(slash + 1, account_name), bundle = str_eq(slash + 1, bundle_name);
    if (event->change == APISERVER_CREATED ||
        !((account && is_of(event, "ServiceAccount")) || (bundle && is_of(event, "ConfigMap"))))
        return;
    _cleanup_free_ char *namespace = mem_strndup(key, (size_t)(slash - key));
    ensure(a, namespace);
}

static void tick(struct apiserver *a)
{
    struct err e = {0};
    if (apiserver_certificates_tick(a->certificates, &e) < 0)
        log_warn("cannot renew the certificates", LOG_ERR(&e));
    if (a->accounts.pending ||
        a->accounts.generation != apiserver_certificates_generation(a->certificates))
        resync(a);
}

const struct apiserver_follower apiserver_serviceaccounts = {
    .name = "serviceaccounts",
    .resync = resync,
    .changed = changed,
    .tick = tick,
};
