#include "apiserver/certificates.h"

#include <pthread.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/vec.h"

enum { RETRY_SECONDS = 60, HOST_NAME_BYTES = 256 };

struct apiserver_certificates {
    char *kubeconfig, *address;
    bool plain_http;
    const struct clock *clock;
    struct pki_key *token_key;
    VEC(const char *) names; /* of the server, each owned; NULL behind them */

    pthread_mutex_t lock; /* of all that follows */
    struct pki_authority *authority;
    struct pki_leaf server, admin;
    struct http_server *http; /* NULL: not yet, or no longer */
    uint64_t generation;
    bool untold; /* something was renewed and not everybody has it yet */
    int64_t due; /* when the tick has something to do */
};

static int64_t now_of(const struct apiserver_certificates *c)
{
    return clock_real_ns(c->clock) / CLOCK_SECOND;
}

static void add_name(struct apiserver_certificates *c, const char *name)
{
    vec_for_each(&c->names, there) {
        if (str_eq(*there, name))
            return;
    }
    vec_push(&c->names, mem_strdup(name));
}

static bool is_wildcard(const char *address)
{
    return str_eq(address, "0.0.0.0") || str_eq(address, "::");
}

static void set_names(struct apiserver_certificates *c, const char *const *more)
{
    static const char *const always[] = {"localhost",
                                         "127.0.0.1",
                                         "::1",
                                         "kubernetes",
                                         "kubernetes.default",
                                         "kubernetes.default.svc",
                                         "kubernetes.default.svc.cluster.local",
                                         NULL};
    char host[HOST_NAME_BYTES] = "";
    for (const char *const *name = always; *name; name++)
        add_name(c, *name);
    if (gethostname(host, sizeof(host) - 1) == 0 && pki_name_is_valid(host))
        add_name(c, host);
    if (!is_wildcard(c->address))
        add_name(c, c->address);
    for (; more && *more; more++)
        add_name(c, *more);
    vec_push(&c->names, NULL);
}

/* Renews everything that is due. With the lock. */
static int renew(struct apiserver_certificates *c, bool *ret_changed, struct err *e)
{
    static const char *const masters[] = {"system:masters", NULL};
    const struct pki_request server = {
        .use = PKI_SERVER, .common_name = "orlop-apiserver", .names = c->names.p};
    const struct pki_request admin = {
        .use = PKI_CLIENT, .common_name = "kubernetes-admin", .organizations = masters};
    bool authority, a, b;
    *ret_changed = false;
    if (pki_authority_renew(c->authority, &authority, e) < 0)
        return -1;
    if (authority)
        c->generation++;
    if (pki_authority_leaf(c->authority, "apiserver", &server, &c->server, &a, e) < 0 ||
        pki_authority_leaf(c->authority, "admin", &admin, &c->admin, &b, e) < 0)
        return -1;
    *ret_changed = authority || a || b;
    c->due = pki_authority_due(c->authority);
    if (c->due > c->server.due)
        c->due = c->server.due;
    if (c->due > c->admin.due)
        c->due = c->admin.due;
    return 0;
}

int apiserver_certificates_open(const struct apiserver_certificates_options *o,
                                struct apiserver_certificates **ret_certificates, struct err *e)
{
    struct apiserver_certificates *c = NEW(struct apiserver_certificates);
    bool changed;
    c->kubeconfig = o->kubeconfig ? mem_strdup(o->kubeconfig) : NULL;
    c->address = mem_strdup(o->address ? o->address : "127.0.0.1");
    c->plain_http = o->plain_http;
    c->clock = o->clock;
    pthread_mutex_init(&c->lock, NULL);
    set_names(c, o->names);
    if (pki_authority_open(o->folder, o->clock, &c->authority, e) < 0 ||
        pki_authority_key(c->authority, "service-accounts", &c->token_key, e) < 0 ||
        renew(c, &changed, e) < 0) {
        apiserver_certificates_close(c);
        return -1;
    }
    *ret_certificates = c;
    return 0;
}

void apiserver_certificates_close(struct apiserver_certificates *c)
{
    if (!c)
        return;
    pki_leaf_done(&c->server);
    pki_leaf_done(&c->admin);
    pki_key_free(c->token_key);
    pki_authority_free(c->authority);
    vec_for_each(&c->names, name)
        free((char *)(uintptr_t)*name);
    vec_done(&c->names);
    pthread_mutex_destroy(&c->lock);
    free(c->kubeconfig);
    free(c->address);
    free(c);
}

static struct http_tls_options tls_of(const struct apiserver_certificates *c)
{
    return (struct http_tls_options){
        .chain = str_get(&c->server.chain),
        .key = str_get(&c->server.key),
        .client_ca = pki_authority_bundle(c->authority),
    };
}

static void append_data(struct str *out, const char *key, const char *pem)
{
    str_appendf(out, "    %s: ", key);
    base64_format(pem, strlen(pem), BASE64_STD, out);
    str_append_c(out, '\n');
}

/* With the lock. */
static int write_kubeconfig(const struct apiserver_certificates *c, struct err *e)
{
    if (!c->kubeconfig || !c->http)
        return 0;
    const char *address = c->address;
    if (is_wildcard(address))
        address = strchr(address, ':') ? "::1" : "127.0.0.1";
    bool v6 = strchr(address, ':');
    _cleanup_(pki_wipe) struct str out = {0};
    str_appendf(&out,
                "apiVersion: v1\nkind: Config\nclusters:\n- name: orlop\n  cluster:\n"
                "    server: %s://%s%s%s:%u\n",
                c->plain_http ? "http" : "https", v6 ? "[" : "", address, v6 ? "]" : "",
                http_server_port(c->http));
    if (!c->plain_http)
        append_data(&out, "certificate-authority-data", pki_authority_bundle(c->authority));
    str_append(&out, "users:\n- name: kubernetes-admin\n  user:\n");
    append_data(&out, "client-certificate-data", str_get(&c->admin.chain));
    append_data(&out, "client-key-data", str_get(&c->admin.key));
    str_append(&out, "contexts:\n- name: kubernetes-admin@orlop\n  context:\n    cluster: orlop\n"
                     "    user: kubernetes-admin\ncurrent-context: kubernetes-admin@orlop\n");
    return file_replace(c->kubeconfig, out.p, out.len, 0600, e);
}

int apiserver_certificates_start_http(struct apiserver_certificates *c,
                                      const struct http_server_options *o,
                                      struct http_server **ret_server, struct err *e)
{
    pthread_mutex_lock(&c->lock);
    struct http_tls_options tls = tls_of(c);
    struct http_server_options options = *o;
    options.tls = c->plain_http ? NULL : &tls;
    int r = http_server_start(&options, &c->http, e);
    if (r == 0 && write_kubeconfig(c, e) < 0) {
        http_server_stop(c->http);
        c->http = NULL;
        r = -1;
    }
    if (r == 0)
        *ret_server = c->http;
    pthread_mutex_unlock(&c->lock);
    return r;
}

void apiserver_certificates_leave_http(struct apiserver_certificates *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->http = NULL;
    pthread_mutex_unlock(&c->lock);
}

/* Renews what is due and tells the server and the administrator. With the lock. */
static int renew_and_tell(struct apiserver_certificates *c, struct err *e)
{
    bool changed = false;
    int r = renew(c, &changed, e);
    c->untold |= changed;
    if (r < 0 || !c->untold)
        return r;
    struct http_tls_options tls = tls_of(c);
    if ((c->http && !c->plain_http && http_server_set_tls(c->http, &tls, e) < 0) ||
        write_kubeconfig(c, e) < 0)
        return -1;
    c->untold = false;
    return 0;
}

int apiserver_certificates_tick(struct apiserver_certificates *c, struct err *e)
{
    int r = 0;
    pthread_mutex_lock(&c->lock);
    if (now_of(c) >= c->due) {
        r = renew_and_tell(c, e);
        if (r < 0)
            c->due = now_of(c) + RETRY_SECONDS;
    }
    pthread_mutex_unlock(&c->lock);
    return r;
}

void apiserver_certificates_bundle(struct apiserver_certificates *c, struct str *ret_bundle,
                                   uint64_t *ret_generation)
{
    pthread_mutex_lock(&c->lock);
    str_append(ret_bundle, pki_authority_bundle(c->authority));
    if (ret_generation)
        *ret_generation = c->generation;
    pthread_mutex_unlock(&c->lock);
}

uint64_t apiserver_certificates_generation(struct apiserver_certificates *c)
{
    pthread_mutex_lock(&c->lock);
    uint64_t generation = c->generation;
    pthread_mutex_unlock(&c->lock);
    return generation;
}

const struct pki_key *apiserver_certificates_token_key(const struct apiserver_certificates *c)
{
    return c->token_key;
}
