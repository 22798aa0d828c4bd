#include "k8s/apiserver/authn.h"

#include "base/vec.h"
#include "k8s/apiserver/serve_impl.h"

/* Whoever reaches plain HTTP is on this machine; it is for tests. */
static const struct apiserver_user unsecured = {
    .name = "system:unsecured",
    .groups = (const char *const[]){"system:masters", "system:authenticated", NULL},
};

json_t *apiserver_core_object(struct apiserver *a, const char *kind, const char *namespace,
                              const char *name)
{
    struct apiserver_request r = {.kind = api_kind_find("v1", kind, NULL), .namespace = namespace};
    _cleanup_(str_done) struct str collection = {0}, key = {0};
    apiserver_collection(r.kind, &collection);
    apiserver_key(&r, name, &key);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
        apiserver_store_get(a->registry.store, str_get(&collection), str_get(&key));
    return o ? json_parse(o->bytes, o->size, NULL, NULL) : NULL;
}

/* NULL when it names nobody. */
static const struct apiserver_user *user_of_certificate(const struct http_certificate *shown)
{
    json_auto_t *name = shown->common_name ? json_string(shown->common_name) : NULL;
    if (shown->state != HTTP_CERTIFICATE_VALID || !name || !json_string_length(name))
        return NULL; /* names are text */
    VEC(const char *) groups = {0};
    for (const char *const *o = shown->organizations; *o; o++) {
        json_auto_t *text = json_string(*o);
        if (text)
            vec_push(&groups, *o);
    }
    vec_push(&groups, "system:authenticated");
    vec_push(&groups, NULL);
    json_t *extra = json_pack("{s:[o]}", "authentication.kubernetes.io/credential-id",
                              json_sprintf("X509SHA256=%s", shown->fingerprint));
    const struct apiserver_user *user =
        apiserver_user_new(shown->common_name, NULL, groups.p, extra);
    vec_done(&groups);
    return user;
}

/* Those of `wanted` that are in `offered`; NULL when there is none. */
static json_t *common(const json_t *wanted, const json_t *offered)
{
    json_auto_t *both = json_array();
    size_t i, j;
    json_t *x, *y;
    json_array_foreach(wanted, i, x) {
        json_array_foreach(offered, j, y) {
            if (json_equal(x, y)) {
                json_array_append(both, x);
                break;
            }
        }
    }
    return json_array_size(both) ? json_incref(both) : NULL;
}

const struct apiserver_user *apiserver_authenticate_token(struct apiserver *a, const char *token,
                                                          const json_t *audiences,
                                                          json_t **ret_audiences, struct err *e)
{
    json_auto_t *own = json_pack("[s]", APISERVER_AUDIENCE), *offered = NULL;
    _cleanup_(apiserver_user_unrefp) const struct apiserver_user *user = NULL;
    if (a->token_file)
        user = apiserver_token_file_find(a->token_file, token);
    if (!user)
        user = apiserver_account_find(a, token, &offered);
    if (!user)
        user = apiserver_bootstrap_find(a, token);
    /* Tokens that are for no audience in particular are for the API. */
    json_auto_t *both =
        user ? common(json_array_size(audiences) ? audiences : own, offered ? offered : own) : NULL;
    if (!both) {
        err_set(e, ERR_UNAUTHENTICATED, "Unauthorized", "%s",
                user ? "token is not valid for the audiences" : "invalid bearer token");
        return NULL;
    }
    if (ret_audiences)
        *ret_audiences = json_incref(both);
    return TAKE_PTR(user);
}

/* What is behind "Bearer"; NULL when there is no such header. */
static const char *bearer_token(const struct call *c)
{
    static const char scheme[] = "Bearer ";
    const char *header = http_request_header(c->http, "Authorization");
    if (!header || strncasecmp(header, scheme, sizeof(scheme) - 1) != 0)
        return NULL;
    header += sizeof(scheme) - 1;
    header += strspn(header, " ");
    return *header ? header : NULL;
}

int apiserver_authenticate(struct call *c)
{
    struct http_certificate shown = http_request_certificate(c->http);
    const char *token = bearer_token(c);
    c->user = user_of_certificate(&shown);
    if (!c->user && token)
        c->user = apiserver_authenticate_token(c->server, token, NULL, NULL, NULL);
    else if (!c->user && shown.state == HTTP_CERTIFICATE_NONE)
        c->user = c->server->plain_http ? &unsecured : &apiserver_anonymous;
    if (!c->user)
        return err_set(&c->err, ERR_UNAUTHENTICATED, "Unauthorized", "Unauthorized");
    return apiserver_impersonate(c);
}
