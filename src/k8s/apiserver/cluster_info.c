/*
 * The ConfigMap cluster-info in kube-public: by it a machine that has nothing but a bootstrap token
 * learns which authority to trust, as with kubeadm.
 *
 *     kubeconfig             where the server is, and its authorities
 *     jws-kubeconfig-ID      a signature of that by the secret of token ID, without the payload
 *
 * Everybody may read it. Who has the token can tell whether it was made by somebody who has it too.
 * Also takes away bootstrap tokens that are over.
 */
#include "base/base64.h"
#include "base/log.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"
#include "pki/key.h"

enum { CHECK_SECONDS = 10, ID = 7, SECRET = 17 };

#define TOKENS "kube-system/bootstrap-token-"
#define PLACE  "kube-public"
#define NAME   "cluster-info"

struct making {
    struct apiserver *server;
    const char *kubeconfig;
    json_t *data;
};

/* "header..signature": HS256 over header and payload. */
static json_t *detached(const char *kubeconfig, const char *id, const char *secret)
{
    uint8_t mac[PKI_DIGEST];
    _cleanup_free_ char *header = mem_printf("{\"alg\":\"HS256\",\"kid\":\"%s\"}", id);
    _cleanup_(str_done) struct str text = {0};
    base64_format(header, strlen(header), BASE64_URL, &text);
    size_t n = text.len;
    str_append_c(&text, '.');
    base64_format(kubeconfig, strlen(kubeconfig), BASE64_URL, &text);
    pki_hmac(secret, strlen(secret), text.p, text.len, mac);
    str_truncate(&text, n);
    str_append(&text, "..");
    base64_format(mac, sizeof(mac), BASE64_URL, &text);
    return json_string(text.p);
}

static void add_signature(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    struct making *m = context;
    char id[ID], secret[SECRET];
    if (!str_starts_with(o->key, TOKENS))
        return;
    json_auto_t *object = self_parse(o);
    if (apiserver_bootstrap_is_over(m->server, object)) {
        self_delete(&m->server->registry, kind, o, APISERVER_PROPAGATE_AS_IS);
        return;
    }
    if (!apiserver_bootstrap_is(m->server, object, "signing", id, secret))
        return;
    _cleanup_free_ char *key = mem_printf("jws-kubeconfig-%s", id);
    json_object_set_new(m->data, key, detached(m->kubeconfig, id, secret));
}

/* Makes it what it should be; false when that is to be tried again. */
static bool ensure(struct apiserver *a)
{
    _cleanup_(str_done) struct str kubeconfig = {0};
    if (!apiserver_certificates_cluster(a->certificates, &kubeconfig))
        return a->plain_http;
    json_auto_t *data = json_pack("{s:s}", "kubeconfig", kubeconfig.p);
    struct making m = {a, kubeconfig.p, data};
    self_each(&a->registry, &api_secret, "kube-system", add_signature, &m);
    json_auto_t *object = apiserver_core_object(a, "ConfigMap", PLACE, NAME);
    bool update = object;
    if (json_equal(json_object_get(object, "data"), data))
        return true;
    if (!object)
        object = json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
                           "name", NAME);
    json_object_set(object, "data", data);
    struct apiserver_request r = {
        .kind = &api_config_map, .namespace = PLACE, .name = update ? NAME : NULL};
    struct api_report report = {0};
    struct err e = {0};
    struct apiserver_object *o = update ? apiserver_update(&a->registry, &r, object, &report, &e)
                                        : apiserver_create(&a->registry, &r, object, &report, &e);
    api_report_done(&report);
    apiserver_object_unref(o);
    if (!o)
        log_warn("cannot write " PLACE "/" NAME, LOG_ERR(&e));
    return o;
}

static void resync(struct apiserver *a)
{
    a->cluster_info.stale = true;
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    const struct apiserver_object *o = event->object;
    if ((str_eq(o->collection, "/secrets") && str_starts_with(o->key, TOKENS)) ||
        (str_eq(o->collection, "/configmaps") && str_eq(o->key, PLACE "/" NAME)))
        a->cluster_info.stale = true;
}

/* Times pass and authorities change without anybody writing: it is compared now and then. */
static void tick(struct apiserver *a)
{
    int64_t now = clock_mono_ns(a->registry.clock);
    if (!a->cluster_info.stale && now - a->cluster_info.checked < CHECK_SECONDS * CLOCK_SECOND)
        return;
    a->cluster_info.checked = now;
    a->cluster_info.stale = !ensure(a);
}

const struct apiserver_follower cluster_info_follower = {
    .name = "cluster-info",
    .resync = resync,
    .changed = changed,
    .tick = tick,
};
