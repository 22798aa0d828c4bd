#include "k8s/apiserver/certificates.h"

#include <pthread.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/vec.h"

enum { RETRY_SECONDS = 60, HOST_NAME_BYTES = 256 };

/* Who gets a kubeconfig. */
static const struct client {
    const char *file; /* of the key, in the pki folder */
    const char *user;
    const char *const *organizations;
} clients[] = {
    {"admin", "kubernetes-admin", (const char *const[]){"system:masters", NULL}},
    {"controller", "system:orlop-controller", NULL},
};
enum { ADMIN, CONTROLLER, CLIENTS };

struct apiserver_certificates {
    char *kubeconfigs[CLIENTS]; /* paths; NULL: none is written */
    char *address;
    char *advertised; /* where others find it */
    bool plain_http;
    const struct clock *clock;
    struct pki_key *token_key;
    VEC(const char *) names; /* of the server, each owned; NULL behind them */

    pthread_mutex_t lock; /* of all that follows */
    struct pki_authority *authority;
    struct pki_leaf server, clients[CLIENTS];
    struct http_server *http; /* NULL: not yet, or no longer */
    uint64_t generation;
    bool untold;      /* something was renewed and not everybody has it yet */
    int64_t due;      /* when the tick has something to do */
    int64_t retry_ns; /* monotonic: not before that, when it has failed */
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
    c->advertised = mem_strdup(is_wildcard(c->address) && more && *more ? *more : c->address);
    for (; more && *more; more++)
        add_name(c, *more);
    vec_push(&c->names, NULL);
}

/* Renews what somebody shows, and moves c->due. With the lock. */
static int renew_leaf(struct apiserver_certificates *c, const char *file,
                      const struct pki_request *request, struct pki_leaf *leaf, bool *changed,
                      struct err *e)
{
    bool is_new;
    if (pki_authority_leaf(c->authority, file, request, leaf, &is_new, e) < 0)
        return -1;
    *changed |= is_new;
    if (c->due > leaf->due)
        c->due = leaf->due;
    return 0;
}

/* Renews everything that is due. With the lock. */
static int renew(struct apiserver_certificates *c, bool *ret_changed, struct err *e)
{
    const struct pki_request server = {
        .use = PKI_SERVER, .common_name = "orlop-apiserver", .names = c->names.p};
    *ret_changed = false;
    if (pki_authority_renew(c->authority, ret_changed, e) < 0)
        return -1;
    if (*ret_changed)
        c->generation++;
    c->due = pki_authority_due(c->authority);
    if (renew_leaf(c, "apiserver", &server, &c->server, ret_changed, e) < 0)
        return -1;
    for (size_t i = 0; i < CLIENTS; i++) {
        const struct pki_request client = {.use = PKI_CLIENT,
                                           .common_name = clients[i].user,
                                           .organizations = clients[i].organizations};
        if (c->kubeconfigs[i] &&
            renew_leaf(c, clients[i].file, &client, &c->clients[i], ret_changed, e) < 0)
            return -1;
    }
    return 0;
}

int apiserver_certificates_open(const struct apiserver_certificates_options *o,
                                struct apiserver_certificates **ret_certificates, struct err *e)
{
    struct apiserver_certificates *c = NEW(struct apiserver_certificates);
    bool changed;
    c->kubeconfigs[ADMIN] = o->kubeconfig ? mem_strdup(o->kubeconfig) : NULL;
    c->kubeconfigs[CONTROLLER] = o->controller ? mem_strdup(o->controller) : NULL;
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
    for (size_t i = 0; i < CLIENTS; i++) {
        pki_leaf_done(&c->clients[i]);
        free(c->kubeconfigs[i]);
    }
    pki_key_free(c->token_key);
    pki_authority_free(c->authority);
    vec_for_each(&c->names, name)
        free((char *)(uintptr_t)*name);
    vec_done(&c->names);
    pthread_mutex_destroy(&c->lock);
    free(c->advertised);
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

static void append_server(const struct apiserver_certificates *c, const char *address,
                          struct str *out)
{
    if (is_wildcard(address))
        address = strchr(address, ':') ? "::1" : "127.0.0.1";
    bool v6 = strchr(address, ':');
    str_appendf(out, "    server: %s://%s%s%s:%u\n", c->plain_http ? "http" : "https",
                v6 ? "[" : "", address, v6 ? "]" : "", http_server_port(c->http));
}

/* With the lock. */
static int write_kubeconfig(const struct apiserver_certificates *c, size_t i, struct err *e)
{
    if (!c->kubeconfigs[i])
        return 0;
    const char *user = clients[i].user;
    _cleanup_(pki_wipe) struct str out = {0};
    str_append(&out, "apiVersion: v1\nkind: Config\nclusters:\n- name: orlop\n  cluster:\n");
    append_server(c, c->address, &out);
    if (!c->plain_http)
        append_data(&out, "certificate-authority-data", pki_authority_bundle(c->authority));
    str_appendf(&out, "users:\n- name: %s\n  user:\n", user);
    append_data(&out, "client-certificate-data", str_get(&c->clients[i].chain));
    append_data(&out, "client-key-data", str_get(&c->clients[i].key));
    str_appendf(&out,
                "contexts:\n- name: %s@orlop\n  context:\n    cluster: orlop\n"
                "    user: %s\ncurrent-context: %s@orlop\n",
                user, user, user);
    return file_replace(c->kubeconfigs[i], out.p, out.len, 0600, e);
}

/* With the lock. */
static int write_kubeconfigs(const struct apiserver_certificates *c, struct err *e)
{
    for (size_t i = 0; c->http && i < CLIENTS; i++) {
        if (write_kubeconfig(c, i, e) < 0)
            return -1;
    }
    return 0;
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
    if (r == 0 && write_kubeconfigs(c, e) < 0) {
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
        write_kubeconfigs(c, e) < 0)
        return -1;
    c->untold = false;
    return 0;
}

int apiserver_certificates_tick(struct apiserver_certificates *c, struct err *e)
{
    int r = 0;
    pthread_mutex_lock(&c->lock);
    int64_t mono = clock_mono_ns(c->clock);
    if (now_of(c) >= c->due && mono >= c->retry_ns) {
        r = renew_and_tell(c, e);
        if (r < 0) {
            c->due = INT64_MIN; /* at any time, also if the clock is set back */
            c->retry_ns = mono + RETRY_SECONDS * CLOCK_SECOND;
        }
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

int apiserver_certificates_sign(struct apiserver_certificates *c, const struct pki_csr *csr,
                                int64_t seconds, struct str *ret_chain, struct err *e)
{
    pthread_mutex_lock(&c->lock);
    int r = pki_authority_sign(c->authority, csr, seconds, ret_chain, e);
    pthread_mutex_unlock(&c->lock);
    return r;
}

bool apiserver_certificates_cluster(struct apiserver_certificates *c, struct str *ret_kubeconfig)
{
    pthread_mutex_lock(&c->lock);
    bool known = c->http && !c->plain_http;
    if (known) {
        str_append(ret_kubeconfig, "apiVersion: v1\nclusters:\n- cluster:\n");
        append_data(ret_kubeconfig, "certificate-authority-data",
                    pki_authority_bundle(c->authority));
        append_server(c, c->advertised, ret_kubeconfig);
        str_append(ret_kubeconfig, "  name: \"\"\ncontexts: null\ncurrent-context: \"\"\n"
                                   "kind: Config\npreferences: {}\nusers: null\n");
    }
    pthread_mutex_unlock(&c->lock);
    return known;
}

const struct pki_key *apiserver_certificates_token_key(const struct apiserver_certificates *c)
{
    return c->token_key;
}
