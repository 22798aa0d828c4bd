/*
 * Tokens for service accounts: POST .../serviceaccounts/NAME/token.
 */
#include "base/rfc3339.h"
#include "k8s/apiserver/authn.h"
#include "k8s/apiserver/rules.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/apiserver/status.h"
#include "k8s/kinds/kinds.h"

static const int64_t least_seconds = 600, most_seconds = (int64_t)1 << 32, usual_seconds = 3600;

/* The body, or NULL with BadRequest; {} when there is none. */
static json_t *request_body(struct call *c)
{
    if (!c->http->body_size)
        return json_object();
    json_auto_t *body = call_body(c);
    const char *kind = json_str(body, "kind"), *version = json_str(body, "apiVersion");
    if (!body)
        return NULL;
    if (json_is_object(body) && (!kind || !*kind || str_eq(kind, "TokenRequest")) &&
        (!version || !*version || str_eq(version, "authentication.k8s.io/v1")))
        return json_incref(body);
    call_bad_request(c, "the body must be a TokenRequest of authentication.k8s.io/v1");
    return NULL;
}

static int invalid(struct call *c, const char *field, const json_t *value, const char *message)
{
    api_problem(&c->report, API_KEY(API_KEY(NULL, "spec"), field), API_INVALID, value, "%s",
                message);
    return err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid", "%s", message);
}

static int take_spec(struct call *c, const json_t *spec, struct apiserver_account_token *ret_token)
{
    const json_t *audiences = json_object_get(spec, "audiences");
    const json_t *seconds = json_object_get(spec, "expirationSeconds");
    if (!call_is_list_of_strings(audiences))
        return call_bad_request(c, "spec.audiences must be a list of strings");
    if (json_array_size(audiences))
        ret_token->audiences = audiences;
    ret_token->seconds = usual_seconds;
    if (!seconds || json_is_null(seconds))
        return 0;
    if (!json_is_integer(seconds))
        return call_bad_request(c, "spec.expirationSeconds must be an integer");
    ret_token->seconds = json_integer_value(seconds);
    if (ret_token->seconds < least_seconds)
        return invalid(c, "expirationSeconds", seconds,
                       "may not specify a duration less than 10 minutes");
    if (ret_token->seconds > most_seconds)
        return invalid(c, "expirationSeconds", seconds,
                       "may not specify a duration larger than 2^32 seconds");
    return 0;
}

/* The pod runs as this account. */
static int check_pod(struct call *c, const json_t *pod)
{
    const char *account = json_str(json_object_get(pod, "spec"), "serviceAccountName");
    if (str_eq(account && *account ? account : "default", c->path.name))
        return 0;
    return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                   "cannot bind token for serviceaccount \"%s\" to pod running with different "
                   "serviceaccount name.",
                   c->path.name);
}

/*
 * The object that the token is to be bound to: a new reference in *ret_bound, NULL for none. If it
 * is the matter, *about is it.
 */
static int find_bound(struct call *c, const json_t *reference, struct apiserver_about *about,
                      const char **ret_kind, json_t **ret_bound)
{
    static const struct api_kind *const kinds[] = {&api_pod, &api_secret, &api_node};
    if (!reference || json_is_null(reference))
        return 0;
    const char *kind = json_str(reference, "kind"), *name = json_str(reference, "name");
    const char *version = json_str(reference, "apiVersion"), *uid = json_str(reference, "uid");
    size_t i = 0;
    while (i < ARRAY_SIZE(kinds) && !(kind && str_eq(kind, kinds[i]->kind)))
        i++;
    if (i == ARRAY_SIZE(kinds) || (version && *version && !str_eq(version, "v1")) || !name)
        return invalid(c, "boundObjectRef", reference,
                       "cannot bind token to it: name a Pod, Secret or Node of v1");
    bool namespaced = !(kinds[i]->flags & API_CLUSTER_SCOPED);
    json_auto_t *object = apiserver_core_object(c->server, kinds[i]->kind,
                                                namespaced ? c->path.namespace : NULL, name);
    const char *own = json_str(json_object_get(object, "metadata"), "uid");
    *about = (struct apiserver_about){kinds[i], NULL, name};
    if (!object)
        return err_set(&c->err, ERR_NOT_FOUND, "NotFound", "%s \"%s\" not found", kinds[i]->plural,
                       name);
    if (uid && *uid && own && !str_eq(uid, own))
        return err_set(&c->err, ERR_ABORTED, "Conflict",
                       "the UID in the bound object reference (%s) does not match the UID in "
                       "record. The object might have been deleted and then recreated",
                       uid);
    if (kinds[i] == &api_pod && check_pod(c, object) < 0)
        return -1;
    *ret_kind = kinds[i]->kind;
    *ret_bound = json_incref(object);
    return 0;
}

/* The node that a bound pod runs on, for the token to tell. */
static json_t *node_of(struct call *c, const char *kind, const json_t *bound)
{
    const char *name = json_str(json_object_get(bound, "spec"), "nodeName");
    return kind && str_eq(kind, "Pod") && name && *name
               ? apiserver_core_object(c->server, "Node", NULL, name)
               : NULL;
}

/* Says what is wrong with the request of the TokenRequest, all else of whom it is about. */
static void fail(struct call *c, const struct apiserver_about *about)
{
    struct apiserver_about request = {&api_token_request, NULL, c->path.name};
    unsigned code;
    json_auto_t *status = apiserver_status(
        &c->err, &c->report, str_eq(c->err.reason, "Invalid") ? &request : about, &code);
    call_reply_json(c, code, status);
}

static json_t *reply_of(const struct call *c, const struct apiserver_account_token *t,
                        const json_t *reference, const char *token, int64_t until)
{
    char now[RFC3339_MAX], end[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(c->server->registry.clock)), RFC3339_SECONDS, now);
    rfc3339_format((struct timespec){.tv_sec = until}, RFC3339_SECONDS, end);
    json_t *reply =
        json_pack("{s:s,s:s,s:{s:s,s:s,s:s},s:{s:O,s:I},s:{s:s,s:s}}", "kind", "TokenRequest",
                  "apiVersion", "authentication.k8s.io/v1", "metadata", "name", c->path.name,
                  "namespace", c->path.namespace, "creationTimestamp", now, "spec", "audiences",
                  t->audiences, "expirationSeconds", (json_int_t)t->seconds, "status", "token",
                  token, "expirationTimestamp", end);
    if (reference)
        json_object_set_new(json_object_get(reply, "spec"), "boundObjectRef",
                            json_deep_copy(reference));
    return reply;
}

void call_token(struct call *c)
{
    json_auto_t *body = request_body(c), *own = json_pack("[s]", APISERVER_AUDIENCE);
    json_auto_t *account =
        apiserver_core_object(c->server, "ServiceAccount", c->path.namespace, c->path.name);
    json_auto_t *bound = NULL;
    const json_t *spec = json_object_get(body, "spec");
    const json_t *reference = json_object_get(spec, "boundObjectRef");
    struct apiserver_account_token t = {.account = account, .audiences = own};
    struct apiserver_about about = {c->path.kind, c->path.gv, c->path.name};
    if (body && !account)
        err_set(&c->err, ERR_NOT_FOUND, "NotFound", "serviceaccounts \"%s\" not found",
                c->path.name);
    if (!body || !account || take_spec(c, spec, &t) < 0 ||
        find_bound(c, reference, &about, &t.bound_kind, &bound) < 0 ||
        rules_node_token(c->user, t.bound_kind, bound, reference, &c->err) < 0) {
        fail(c, &about);
        return;
    }
    json_auto_t *node = node_of(c, t.bound_kind, bound);
    t.bound = bound;
    t.node = node;
    _cleanup_(pki_wipe) struct str token = {0};
    int64_t until;
    if (apiserver_account_token(c->server, &t, &token, &until, &c->err) < 0) {
        fail(c, &about);
        return;
    }
    json_auto_t *reply = reply_of(c, &t, reference, token.p, until);
    call_reply_json(c, 201, reply);
}
