/*
 * The follower that approves what needs no person, signs what is approved, and takes away requests
 * that are over.
 *
 * Approved without a person is what a machine asks for that joins with a bootstrap token, or a node
 * that renews its own: whoever may "create" certificatesigningrequests/nodeclient, or /selfnodeclient
 * for their own name, as in Kubernetes.
 */
#include "base/base64.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "k8s/apiserver/authz.h"
#include "k8s/apiserver/csr.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"
#include "pki/csr.h"

enum { CLEAN_SECONDS = 60, DECIDED_SECONDS = 60 * 60, PENDING_SECONDS = 24 * 60 * 60 };

static const struct api_kind *const kind = &api_certificate_signing_request;

/* Who asked. */
static const struct apiserver_user *requester(const json_t *spec)
{
    VEC(const char *) groups = {0};
    const char *name = json_str(spec, "username");
    size_t i;
    json_t *value;
    json_array_foreach(json_object_get(spec, "groups"), i, value) {
        if (json_is_string(value))
            vec_push(&groups, json_string_value(value));
    }
    vec_push(&groups, NULL);
    const struct apiserver_user *user =
        apiserver_user_new(name ? name : "", json_str(spec, "uid"), groups.p, NULL);
    vec_done(&groups);
    return user;
}

/* Why it is approved without a person; NULL when it is not. */
static const char *reason_to_approve(struct apiserver *a, const json_t *object,
                                     const struct pki_csr *csr)
{
    const json_t *spec = json_object_get(object, "spec");
    const char *signer = json_str(spec, "signerName"), *name = json_str(spec, "username");
    if (!signer || !str_eq(signer, CSR_KUBELET) || csr_is_node(object, csr))
        return NULL;
    _cleanup_(apiserver_user_unrefp) const struct apiserver_user *user = requester(spec);
    struct apiserver_attributes attributes = {.verb = "create",
                                              .group = "certificates.k8s.io",
                                              .resource = "certificatesigningrequests",
                                              .subresource = "selfnodeclient"};
    if (name && str_eq(name, csr->common_name) && apiserver_authorized(a, user, &attributes, NULL))
        return "Auto approving self kubelet client certificate after SubjectAccessReview.";
    attributes.subresource = "nodeclient";
    return apiserver_authorized(a, user, &attributes, NULL)
               ? "Auto approving kubelet client certificate after SubjectAccessReview."
               : NULL;
}

/* Writes the request with another condition, or its certificate. */
static void write_back(struct apiserver *a, const struct apiserver_object *o, json_t *object,
                       enum apiserver_subresource subresource)
{
    if (self_update(&a->registry, kind, o, object, subresource) == SELF_AGAIN)
        a->requests.pending = true;
}

static void add_condition(json_t *object, const char *type, const char *reason, const char *message)
{
    json_t *status = json_object_at(object, "status");
    json_t *list = json_array_at(status, "conditions");
    json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s}", "type", type, "status", "True",
                                          "reason", reason, "message", message));
}

/* Why it cannot be signed; NULL when it can. */
static const char *unfit(const json_t *object, const struct pki_csr *csr)
{
    static const char *const fine[] = {"digital signature", "key encipherment", "client auth",
                                       NULL};
    const json_t *spec = json_object_get(object, "spec");
    bool client = false;
    size_t i;
    json_t *usage;
    if (str_eq(json_str(spec, "signerName"), CSR_KUBELET))
        return csr_is_node(object, csr);
    json_array_foreach(json_object_get(spec, "usages"), i, usage) {
        const char *text = json_string_value(usage);
        if (!text || !str_in(text, fine))
            return "invalid usages: only digital signature, key encipherment and client auth are "
                   "issued by this signer";
        client |= str_eq(text, "client auth");
    }
    if (!client)
        return "invalid usages: client auth is required";
    return *csr->common_name ? NULL : "the subject needs a common name, which becomes the user";
}

static void sign(struct apiserver *a, const struct apiserver_object *o, json_t *object,
                 const struct pki_csr *csr)
{
    const char *why = unfit(object, csr);
    if (why) {
        add_condition(object, "Failed", "SignerValidationFailure", why);
        write_back(a, o, object, APISERVER_STATUS);
        return;
    }
    const json_t *seconds = json_at(object, "spec", "expirationSeconds");
    _cleanup_(str_done) struct str chain = {0}, encoded = {0};
    struct err e = {0};
    if (apiserver_certificates_sign(a->certificates, csr, json_integer_value(seconds), &chain, &e) <
        0) {
        log_warn("cannot sign a certificate", LOG_S("name", o->key), LOG_ERR(&e));
        a->requests.pending = true;
        return;
    }
    base64_format(chain.p, chain.len, BASE64_STD, &encoded);
    json_t *status = json_object_get(object, "status");
    json_object_set_new(status, "certificate", json_string(encoded.p));
    write_back(a, o, object, APISERVER_STATUS);
}

static void look(struct apiserver *a, const struct apiserver_object *o)
{
    json_auto_t *object = self_parse(o);
    const char *signer = json_str(json_object_get(object, "spec"), "signerName");
    struct pki_csr csr = {0};
    struct err e = {0};
    if (!signer || !(str_eq(signer, CSR_CLIENT) || str_eq(signer, CSR_KUBELET)) ||
        json_at(object, "metadata", "deletionTimestamp") || api_csr_has(object, "Denied") ||
        api_csr_has(object, "Failed") || json_at(object, "status", "certificate"))
        return;
    if (csr_parse(object, &csr, &e) < 0)
        return; /* none was let in */
    const char *why = reason_to_approve(a, object, &csr);
    if (api_csr_has(object, "Approved")) {
        sign(a, o, object, &csr);
    } else if (why) {
        add_condition(object, "Approved", "AutoApproved", why);
        write_back(a, o, object, APISERVER_APPROVAL);
    }
    pki_csr_done(&csr);
}

static void look_at(void *context, const struct api_kind *of, struct apiserver_object *o)
{
    (void)of;
    look(context, o);
}

static void resync(struct apiserver *a)
{
    a->requests.pending = false;
    self_each(&a->registry, kind, NULL, look_at, a);
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    if (event->change != APISERVER_DELETED &&
        str_eq(event->object->collection, "certificates.k8s.io/certificatesigningrequests"))
        look(a, event->object);
}

/* Seconds since a time that is written down. */
static int64_t since(const struct apiserver *a, const char *time)
{
    struct timespec t;
    if (!time || rfc3339_parse(time, &t, NULL) < 0)
        return 0;
    return (clock_real_ns(a->registry.clock) - rfc3339_to_ns(t)) / CLOCK_SECOND;
}

/* Takes away what was decided an hour ago, or waits since a day. */
static void clean(void *context, const struct api_kind *of, struct apiserver_object *o)
{
    struct apiserver *a = context;
    json_auto_t *object = self_parse(o);
    const json_t *first = json_array_get(json_at(object, "status", "conditions"), 0);
    const char *made = json_str(json_object_get(object, "metadata"), "creationTimestamp");
    bool over = first ? since(a, json_str(first, "lastUpdateTime")) > DECIDED_SECONDS
                      : since(a, made) > PENDING_SECONDS;
    if (over)
        self_delete(&a->registry, of, o, APISERVER_PROPAGATE_AS_IS);
}

static void tick(struct apiserver *a)
{
    int64_t now = clock_mono_ns(a->registry.clock);
    if (a->requests.pending)
        resync(a);
    if (now - a->requests.cleaned < CLEAN_SECONDS * CLOCK_SECOND)
        return;
    a->requests.cleaned = now;
    self_each(&a->registry, kind, NULL, clean, a);
}

const struct apiserver_follower csr_follower = {
    .name = "certificate requests",
    .resync = resync,
    .changed = changed,
    .tick = tick,
};
