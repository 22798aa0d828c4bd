/*
 * The ValidatingWebhookConfiguration: when an API server asks us, and what it does without an answer.
 *
 *     webhook              asked for                                     no answer
 *     pools.orlop.io       new CStorPoolClusters, changes of a spec      refused
 *     kinds.orlop.io       all else that is written of our kinds         goes on
 *     deletion.orlop.io    deletions of pools                            goes on
 *     access.orlop.io      what nodes, pools, targets write and delete   refused
 *
 * The first is about what people do by hand. The last is asked only about programs of ours that are held to
 * what is their own (api/access.h); they try again until there is an answer. The rules follow from the
 * tables of kinds, so a kind that is added is asked about. It belongs to the namespace of the
 * installation: when that is deleted, the cluster removes it, too.
 */
#include "admission/impl.h"
#include "base/base64.h"
#include "kinds/access.h"
#include "kinds/kinds.h"
#include "kube/resource.h"

enum { TIMEOUT_SECONDS = 5, TRIES = 5 };

/* A namespace with this label is not asked about. */
#define OPT_OUT "orlop.io/admission"

static bool is_ours(const struct api_kind *kind)
{
    return !(kind->flags & (API_BUILTIN | API_REVIEW));
}

/* Adds a word that is not there yet. */
static void add_word(json_t *words, const char *word)
{
    size_t i;
    json_t *each;
    json_array_foreach(words, i, each) {
        if (str_eq(json_string_value(each), word))
            return;
    }
    json_array_append_new(words, json_string(word));
}

enum part { OBJECT = 1, STATUS = 2 };

/* Groups, versions and resources of a kind: its objects, their status, or both. */
static json_t *rule_of(const struct api_kind *kind, const char *const *operations, unsigned parts)
{
    json_auto_t *groups = json_array(), *versions = json_array(), *resources = json_array();
    json_t *all = json_array();
    for (const struct api_group_version *gv = kind->versions; gv->group; gv++) {
        add_word(groups, gv->group);
        add_word(versions, gv->version);
    }
    if (parts & OBJECT)
        json_array_append_new(resources, json_string(kind->plural));
    if (parts & STATUS && kind->flags & API_STATUS)
        json_array_append_new(resources, json_sprintf("%s/status", kind->plural));
    for (; *operations; operations++)
        json_array_append_new(all, json_string(*operations));
    return json_pack("{s:o, s:O, s:O, s:O, s:s}", "operations", all, "apiGroups", groups,
                     "apiVersions", versions, "resources", resources, "scope",
                     kind->flags & API_CLUSTER_SCOPED ? "Cluster" : "Namespaced");
}

static json_t *client_of(const struct admission_options *o, const char *bundle)
{
    _cleanup_(str_done) struct str encoded = {0};
    base64_format(bundle, strlen(bundle), BASE64_STD, &encoded);
    json_t *client = json_pack("{s:s}", "caBundle", str_get(&encoded));
    if (o->url)
        json_object_set_new(client, "url", json_sprintf("%s/validate", o->url));
    else
        json_object_set_new(client, "service",
                            json_pack("{s:s, s:s, s:s, s:i}", "namespace", o->ns, "name",
                                      o->service, "path", "/validate", "port", 443));
    return client;
}

static json_t *webhook(const struct admission_options *o, const char *bundle, const char *name,
                       const char *policy, json_t *rules)
{
    return json_pack("{s:s, s:o, s:o, s:s, s:s, s:s, s:i, s:[s], s:{s:[{s:s, s:s, s:[s]}]}}",
                     "name", name, "clientConfig", client_of(o, bundle), "rules", rules,
                     "failurePolicy", policy, "matchPolicy", "Equivalent", "sideEffects",
                     "NoneOnDryRun", "timeoutSeconds", TIMEOUT_SECONDS, "admissionReviewVersions",
                     "v1", "namespaceSelector", "matchExpressions", "key", OPT_OUT, "operator",
                     "NotIn", "values", "off");
}

/* Of whom the table of api/access.h speaks: no namespace is left out. */
static json_t *access_webhook(const struct admission_options *o, const char *bundle, json_t *rules)
{
    json_t *hook = webhook(o, bundle, "access.orlop.io", "Fail", rules);
    json_object_del(hook, "namespaceSelector");
    json_object_set_new(
        hook, "matchConditions",
        json_pack("[{s:s, s:s}]", "name", "programs-of-orlop", "expression",
                  "(has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups) || "
                  "request.userInfo.username.matches('" API_ACCESS_ACCOUNTS "')"));
    return hook;
}

/* Its webhooks; a new reference. */
static json_t *make_webhooks(const struct admission_options *o, const char *bundle)
{
    static const char *const writes[] = {"CREATE", "UPDATE", NULL};
    static const char *const deletes[] = {"DELETE", NULL};
    static const char *const all[] = {"CREATE", "UPDATE", "DELETE", NULL};
    const struct api_kind *pools = &api_cstor_pool_cluster;
    json_auto_t *kinds = json_array(), *deletion = json_array();
    json_t *access = json_array();
    for (const struct api_kind *const *kind = api_kinds; *kind; kind++) {
        if (!is_ours(*kind))
            continue;
        json_array_append_new(access, rule_of(*kind, all, OBJECT | STATUS));
        unsigned status = (*kind)->validate || (*kind)->validate_update ? STATUS : 0;
        json_array_append_new(kinds,
                              rule_of(*kind, writes, status | (*kind == pools ? 0 : OBJECT)));
        if ((*kind)->among)
            json_array_append_new(deletion, rule_of(*kind, deletes, OBJECT));
    }
    json_t *first = webhook(o, bundle, "pools.orlop.io", "Fail",
                            json_pack("[o]", rule_of(pools, writes, OBJECT)));
    json_object_set_new(
        first, "matchConditions",
        json_pack("[{s:s, s:s}]", "name", "spec-changes", "expression",
                  "request.operation == 'CREATE' || object.spec != oldObject.spec"));
    return json_pack("[o, o, o, o]", first,
                     webhook(o, bundle, "kinds.orlop.io", "Ignore", json_incref(kinds)),
                     webhook(o, bundle, "deletion.orlop.io", "Ignore", json_incref(deletion)),
                     access_webhook(o, bundle, access));
}

/* Whether `is` has everything that is wanted; the server adds defaults to it. */
static bool has(const json_t *is, const json_t *wanted)
{
    const char *key;
    size_t i;
    json_t *value;
    if (json_is_object(wanted)) {
        json_object_foreach((json_t *)wanted, key, value) {
            if (!has(json_object_get(is, key), value))
                return false;
        }
        return json_is_object(is);
    }
    if (!json_is_array(wanted))
        return is && json_equal(is, wanted);
    json_array_foreach(wanted, i, value) {
        if (!has(json_array_get(is, i), value))
            return false;
    }
    return json_array_size(is) == json_array_size(wanted);
}

/* The namespace as an owner, so that nothing is left when it goes; NULL: it cannot be read. */
static json_t *owner_of(struct kube_client *client, const char *ns)
{
    const struct kube_resource r = kube_resource("v1", "Namespace");
    json_auto_t *namespace = kube_get(client, &r, NULL, ns, NULL);
    return namespace ? json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "v1", "kind", "Namespace",
                                 "name", ns, "uid", kube_uid(namespace))
                     : NULL;
}

static struct kube_resource configurations(void)
{
    return kube_resource("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
}

static int write_once(struct kube_client *client, const struct admission_options *o,
                      const json_t *wanted, bool *ret_changed, struct err *e)
{
    const struct kube_resource r = configurations();
    struct err why = {0};
    json_auto_t *is = kube_get(client, &r, NULL, o->name, &why), *written = NULL;
    if (!is && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    *ret_changed = !has(json_object_get(is, "webhooks"), json_object_get(wanted, "webhooks"));
    if (!*ret_changed)
        return 0;
    json_auto_t *now = json_deep_copy(is ? is : wanted);
    json_object_set(now, "webhooks", json_object_get(wanted, "webhooks"));
    json_t *owner = is ? NULL : owner_of(client, o->ns);
    if (owner)
        json_object_set_new(json_object_get(now, "metadata"), "ownerReferences", owner);
    written = is ? kube_update(client, &r, now, NULL, e) : kube_create(client, &r, now, NULL, e);
    return written ? 0 : -1;
}

int admission_configure(struct kube_client *client, const struct admission_options *o,
                        const char *bundle, bool *ret_changed, struct err *e)
{
    const struct kube_resource r = configurations();
    json_auto_t *wanted =
        json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:o}", "apiVersion", r.api_version, "kind", r.kind,
                  "metadata", "name", o->name, "labels", "app.kubernetes.io/part-of", "orlop",
                  "webhooks", make_webhooks(o, bundle));
    for (int tries = TRIES;; tries--) {
        struct err why = {0};
        if (write_once(client, o, wanted, ret_changed, &why) == 0)
            return 0;
        if (!tries || (why.code != ERR_ABORTED && why.code != ERR_ALREADY_EXISTS)) {
            *e = why;
            return -1;
        }
    }
}

int admission_unconfigure(struct kube_client *client, const struct admission_options *o,
                          struct err *e)
{
    const struct kube_resource r = configurations();
    return kube_delete(client, &r, NULL, o->name, NULL, e);
}
