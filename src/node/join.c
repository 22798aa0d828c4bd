#include "node/join.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/log.h"
#include "json/yaml.h"
#include "kube/client.h"
#include "kube/condition.h"
#include "pki/cert.h"
#include "pki/csr.h"
#include "pki/key.h"

enum { FILE_MAX = 1 << 20 };

#define SIGNER     "kubernetes.io/kube-apiserver-client-kubelet"
#define LOOK_AGAIN (CLOCK_SECOND / 20)
#define PATIENCE   (30 * CLOCK_SECOND)

static int64_t seconds(const struct clock *clock)
{
    return clock_real_ns(clock ? clock : clock_system()) / CLOCK_SECOND;
}

/* After two thirds of its life. */
static int64_t due_of(const struct pki_facts *facts)
{
    return facts->from + (facts->until - facts->from) / 3 * 2;
}

static json_t *encoded(const char *text)
{
    _cleanup_(str_done) struct str out = {0};
    base64_format(text, text ? strlen(text) : 0, BASE64_STD, &out);
    return json_string(str_get(&out));
}

static int write_kubeconfig(const struct node_join_options *o, const struct kube_config *c,
                            struct err *e)
{
    json_auto_t *config =
        json_pack("{s:s,s:s,s:s,s:[{s:s,s:{s:s,s:o}}],s:[{s:s,s:{s:s,s:s}}],s:[{s:s,s:{s:o,s:o}}]}",
                  "apiVersion", "v1", "kind", "Config", "current-context", "orlop", "clusters",
                  "name", "orlop", "cluster", "server", c->server, "certificate-authority-data",
                  encoded(c->ca), "contexts", "name", "orlop", "context", "cluster", "orlop",
                  "user", "node", "users", "name", "node", "user", "client-certificate-data",
                  encoded(c->certificate), "client-key-data", encoded(c->key));
    _cleanup_(pki_wipe) struct str text = {0};
    json_yaml_format(config, &text);
    return file_replace(o->kubeconfig, text.p, text.len, 0600, e);
}

/* What became of the request; *ret_cert stays empty while nobody has decided. */
static int look(struct kube_client *client, const struct kube_resource *requests, const char *name,
                struct str *ret_cert, struct err *e)
{
    json_auto_t *request = kube_get(client, requests, NULL, name, e);
    if (!request)
        return -1;
    const json_t *denied = kube_condition_get(request, "Denied");
    const json_t *failed = kube_condition_get(request, "Failed");
    const char *cert = json_str(json_object_get(request, "status"), "certificate");
    if (denied || failed) {
        const char *message = json_str(denied ? denied : failed, "message");
        return err_set(e, ERR_PERMISSION_DENIED, "CertificateDenied",
                       "the cluster issues no certificate for this node (request %s): %s", name,
                       message ? message : "it does not say why");
    }
    if (!cert || !*cert)
        return 0;
    return base64_parse(cert, strlen(cert), BASE64_STD, ret_cert)
               ? 0
               : err_set(e, ERR_INTERNAL, "BadCertificate", "the certificate of request %s is none",
                         name);
}

static int ask(struct kube_client *client, const char *name, const struct pki_key *key,
               struct str *ret_cert, struct err *e)
{
    static const char *const organizations[] = {"system:nodes", NULL};
    struct kube_resource requests =
        kube_resource("certificates.k8s.io/v1", "CertificateSigningRequest");
    _cleanup_free_ char *common_name = mem_printf("system:node:%s", name);
    _cleanup_(str_done) struct str pem = {0};
    if (pki_csr_make(key, common_name, organizations, &pem, e) < 0)
        return -1;
    json_auto_t *object = json_pack(
        "{s:s,s:s,s:{s:s},s:{s:o,s:s,s:[s,s]}}", "apiVersion", requests.api_version, "kind",
        requests.kind, "metadata", "generateName", "node-csr-", "spec", "request", encoded(pem.p),
        "signerName", SIGNER, "usages", "digital signature", "client auth");
    json_auto_t *made = kube_create(client, &requests, object, NULL, e);
    if (!made)
        return -1;
    const char *request = kube_name(made);
    int64_t until = clock_mono_ns(clock_system()) + PATIENCE;
    while (look(client, &requests, request, ret_cert, e) == 0) {
        if (ret_cert->len)
            return 0;
        if (clock_mono_ns(clock_system()) > until)
            return err_set(
                e, ERR_DEADLINE_EXCEEDED, "CertificatePending",
                "nobody has approved the request for a certificate: `kubectl certificate "
                "approve %s` does",
                request);
        struct timespec moment = {.tv_nsec = LOOK_AGAIN};
        nanosleep(&moment, NULL); /* a watch would be no sooner: the first look finds it */
    }
    return -1;
}

/* Gets a certificate with what the config has: a token, or the certificate of now. */
static int renew(const struct node_join_options *o, struct kube_config *config, struct err *e)
{
    struct kube_client_options options = {.config = config, .field_manager = "orlop-node"};
    _cleanup_(kube_client_freep) struct kube_client *client = kube_client_new(&options, e);
    _cleanup_(pki_key_freep) struct pki_key *key = NULL;
    _cleanup_(str_done) struct str cert = {0};
    _cleanup_(pki_wipe) struct str key_text = {0};
    if (!client || pki_key_generate(&key, e) < 0 || ask(client, o->name, key, &cert, e) < 0)
        return -1;
    pki_key_format(key, &key_text);
    struct kube_config own = {
        .server = config->server, .ca = config->ca, .certificate = cert.p, .key = key_text.p};
    return write_kubeconfig(o, &own, e);
}

/* The kubeconfig that is there, if it is one for this cluster that will do for a while. */
static bool is_good(const struct node_join_options *o, const struct kube_config *now)
{
    struct pki_facts facts;
    return now->certificate && pki_cert_read(now->certificate, &facts, NULL) == 0 &&
           seconds(o->clock) < due_of(&facts) && seconds(o->clock) + 60 > facts.from;
}

/* The first time. */
static int join(const struct node_join_options *o, struct err *e)
{
    _cleanup_(str_done) struct str ca = {0};
    if (o->ca)
        str_append(&ca, o->ca);
    else if (node_join_trust(o->url, o->token, o->ca_hash, &ca, e) < 0)
        return -1;
    if (!o->token)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "joining needs a token");
    struct kube_config config = {0};
    config.server = mem_strdup(o->url);
    config.ca = mem_strdup(str_get(&ca));
    config.token = mem_strdup(o->token);
    config.ns = mem_strdup("default");
    int status = renew(o, &config, e);
    kube_config_done(&config);
    return status;
}

/* Whether there is another text now; NULL is none. */
static bool replace(char **text, const char *other)
{
    if (!other || (*text && str_eq(*text, other)))
        return false;
    free(*text);
    *text = mem_strdup(other);
    return true;
}

int node_join(const struct node_join_options *o, bool *ret_changed, struct err *e)
{
    struct kube_config now = {0};
    struct err none = {0};
    bool changed = true;
    int status;
    if (kube_config_load(o->kubeconfig, NULL, &now, &none) < 0 || !now.certificate) {
        status = join(o, e);
    } else {
        /* The same cluster elsewhere, or with another authority: the certificate is still ours. */
        bool moved = replace(&now.server, o->url), trusts = replace(&now.ca, o->ca);
        changed = moved || trusts || !is_good(o, &now);
        status = moved || trusts ? write_kubeconfig(o, &now, e) : 0;
        if (status == 0 && !is_good(o, &now))
            status = renew(o, &now, e);
    }
    kube_config_done(&now);
    if (ret_changed)
        *ret_changed = status == 0 && changed;
    return status;
}
