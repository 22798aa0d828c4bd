#include "k8s/apiserver/csr.h"

#include "api/format.h"
#include "base/base64.h"
#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/rules.h"
#include "k8s/kinds/kinds.h"
#include "pki/csr.h"

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    json_t *value;
    json_array_foreach((json_t *)list, i, value) {
        const char *is = json_string_value(value);
        if (is && str_eq(is, text))
            return true;
    }
    return false;
}

int csr_parse(const json_t *object, struct pki_csr *ret_csr, struct err *e)
{
    const char *text = json_str(json_object_get(object, "spec"), "request");
    _cleanup_(str_done) struct str pem = {0};
    if (!text || strlen(text) > 2 * (size_t)PKI_CSR_BYTES ||
        !base64_parse(text, strlen(text), BASE64_STD, &pem))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidRequest", "it is too long, or no base64");
    return pki_csr_parse(str_get(&pem), pem.len, ret_csr, e);
}

/* Whether every usage is one of the words. */
static bool only_usages(const json_t *usages, const char *const *words)
{
    size_t i;
    json_t *value;
    json_array_foreach((json_t *)usages, i, value) {
        const char *text = json_string_value(value);
        if (!text || !str_in(text, words))
            return false;
    }
    return true;
}

const char *csr_is_node(const json_t *object, const struct pki_csr *csr)
{
    static const char *const usages[] = {"digital signature", "key encipherment", "client auth",
                                         NULL};
    const json_t *wanted = json_at(object, "spec", "usages");
    const char *const *o = csr->organizations;
    if (!o[0] || o[1] || !str_eq(o[0], "system:nodes"))
        return "subject organization is not system:nodes";
    if (csr->has_names)
        return "DNS, email, IP and URI subject alternative names are not allowed";
    if (csr->other_subject)
        return "the subject may have a common name and an organization only";
    if (!str_starts_with(csr->common_name, "system:node:") || !csr->common_name[12])
        return "subject common name does not begin with system:node:";
    if (api_dns_subdomain.check(csr->common_name + 12))
        return "what follows system:node: in the subject common name is no name of a node";
    if (!only_usages(wanted, usages) || !has_text(wanted, "client auth") ||
        !has_text(wanted, "digital signature"))
        return "usages did not match [digital signature, client auth], with or without key "
               "encipherment";
    return NULL;
}

static const char *signer_of(const json_t *object)
{
    return json_text(object, "spec", "signerName");
}

/* Who asks is known by their credentials, whatever they say. */
static void set_requester(json_t *spec, const struct apiserver_user *user)
{
    static const char *const keys[] = {"uid", "groups", "extra", NULL};
    json_auto_t *who = apiserver_user_json(user ? user : &apiserver_self);
    json_object_set(spec, "username", json_object_get(who, "username"));
    for (const char *const *key = keys; *key; key++) {
        json_t *value = json_object_get(who, *key);
        if (value)
            json_object_set(spec, *key, value);
        else
            json_object_del(spec, *key);
    }
}

static bool is_decision(const json_t *condition)
{
    const char *type = json_str(condition, "type");
    return type && (str_eq(type, "Approved") || str_eq(type, "Denied"));
}

/* Appends those conditions that are decisions, or those that are none. */
static void append_conditions(json_t *list, const json_t *from, bool decisions)
{
    size_t i;
    json_t *value;
    json_array_foreach((json_t *)from, i, value) {
        if (is_decision(value) == decisions)
            json_array_append_new(list, json_deep_copy(value));
    }
}

/* Each way of writing writes its own part: decisions by /approval, the rest by /status. */
static void keep_other_part(struct apiserver_admission *a)
{
    json_t *status = json_object_get(a->object, "status");
    bool approval = a->request->subresource == APISERVER_APPROVAL;
    const json_t *old = json_object_get(a->old, "status");
    json_t *conditions = json_array(), *value;
    append_conditions(conditions, json_object_get(approval ? status : old, "conditions"), true);
    append_conditions(conditions, json_object_get(approval ? old : status, "conditions"), false);
    json_t *merged = approval ? json_deep_copy(old) : json_deep_copy(status);
    if (!json_is_object(merged)) {
        json_decref(merged);
        merged = json_object();
    }
    char now[RFC3339_MAX];
    size_t i;
    registry_now(a->registry, now);
    json_array_foreach(conditions, i, value) {
        static const char *const times[] = {"lastUpdateTime", "lastTransitionTime", NULL};
        for (const char *const *key = times; *key; key++) {
            if (json_is_object(value) && !json_is_string(json_object_get(value, *key)))
                json_object_set_new(value, *key, json_string(now));
        }
    }
    if (json_array_size(conditions))
        json_object_set(merged, "conditions", conditions);
    else
        json_object_del(merged, "conditions");
    json_decref(conditions);
    json_object_set_new(a->object, "status", merged);
}

int csr_fill(struct apiserver_admission *a, struct err *e)
{
    (void)e;
    json_t *spec = json_object_get(a->object, "spec");
    if (a->request->kind != &api_certificate_signing_request || !a->object)
        return 0;
    if (a->operation == APISERVER_OP_CREATE) {
        if (json_is_object(spec))
            set_requester(spec, a->request->user);
        return 0;
    }
    json_object_set_new(a->object, "spec", json_deep_copy(json_object_get(a->old, "spec")));
    if (apiserver_is_status(a->request->subresource))
        keep_other_part(a);
    return 0;
}

/* "example.com/a" is covered by that name and by "example.com/" followed by a star. */
static bool may(const struct apiserver_admission *a, const char *verb, const char *signer)
{
    const struct apiserver_user *user = a->request->user;
    if (!user || !a->registry->rbac || apiserver_user_in(user, "system:masters"))
        return true;
    _cleanup_free_ char *all = mem_printf("%.*s/*", (int)strcspn(signer, "/"), signer);
    struct apiserver_attributes attributes = {.verb = verb,
                                              .group = "certificates.k8s.io",
                                              .resource = "signers",
                                              .namespace = "",
                                              .name = signer};
    if (apiserver_rbac_allows(a->registry->rbac, user, &attributes, NULL))
        return true;
    attributes.name = all;
    return apiserver_rbac_allows(a->registry->rbac, user, &attributes, NULL);
}

static int check_new(const struct apiserver_admission *a, struct err *e)
{
    const struct api_path *at = API_KEY(API_KEY(NULL, "spec"), "request");
    struct pki_csr csr = {0};
    struct err why = {0};
    if (csr_parse(a->object, &csr, &why) < 0) {
        api_problem(a->report, at, API_INVALID, NULL, "%s", why.msg);
        return 0;
    }
    bool masters = str_in("system:masters", csr.organizations);
    pki_csr_done(&csr);
    if (masters && str_eq(signer_of(a->object), CSR_CLIENT))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "use of " CSR_CLIENT " signer with system:masters group is not allowed");
    return 0;
}

int csr_check(struct apiserver_admission *a, struct err *e)
{
    if (a->request->kind != &api_certificate_signing_request)
        return 0;
    if (a->operation == APISERVER_OP_CREATE)
        return check_new(a, e);
    if (a->operation != APISERVER_OP_UPDATE || a->request->subresource == APISERVER_MAIN)
        return 0;
    const char *signer = signer_of(a->old);
    bool approval = a->request->subresource == APISERVER_APPROVAL;
    bool signs =
        !json_equal(json_object_get(a->old, "status"), json_object_get(a->object, "status"));
    if (approval && !may(a, "approve", signer))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "user not permitted to approve requests with signerName \"%s\"", signer);
    if (!approval && signs && !may(a, "sign", signer))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "user not permitted to sign requests with signerName \"%s\"", signer);
    return 0;
}
