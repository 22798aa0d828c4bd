/*
 * Tokens of service accounts: what they claim and when that is still true. A token is good only as
 * long as its account, and the object that it is bound to, are those that it was made for.
 */
#include "base/rfc3339.h"
#include "base/uuid.h"
#include "base/vec.h"
#include "k8s/apiserver/authn.h"
#include "k8s/apiserver/serve_impl.h"

/* An object that is being deleted vouches for nobody after this time. */
enum { LEEWAY_SECONDS = 60 };
/* Tokens begin in the past: who has one does not ask for another when the clock is set back. */
enum { EARLIER_SECONDS = 2 * 24 * 60 * 60 };

static int64_t now_of(const struct apiserver *a)
{
    return clock_real_ns(a->registry.clock) / CLOCK_SECOND;
}

/* {name, uid} */
static json_t *reference(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    return json_pack("{s:s,s:s}", "name", json_str(metadata, "name"), "uid",
                     json_str(metadata, "uid"));
}

static json_t *private_claims(const struct apiserver_account_token *t)
{
    static const struct {
        const char *kind, *claim;
    } claims[] = {{"Pod", "pod"}, {"Secret", "secret"}, {"Node", "node"}};
    json_t *own = json_pack("{s:s,s:o}", "namespace",
                            json_str(json_object_get(t->account, "metadata"), "namespace"),
                            "serviceaccount", reference(t->account));
    for (size_t i = 0; t->bound && i < ARRAY_SIZE(claims); i++) {
        if (str_eq(claims[i].kind, t->bound_kind))
            json_object_set_new(own, claims[i].claim, reference(t->bound));
    }
    if (t->node)
        json_object_set_new(own, "node", reference(t->node));
    return own;
}

int apiserver_account_token(struct apiserver *a, const struct apiserver_account_token *t,
                            struct str *ret_token, int64_t *ret_until, struct err *e)
{
    int64_t now = now_of(a);
    struct uuid uuid = uuid_random();
    char id[UUID_TEXT_MAX];
    const json_t *metadata = json_object_get(t->account, "metadata");
    *ret_until = now + t->seconds;
    json_auto_t *claims = json_pack(
        "{s:O,s:I,s:I,s:s,s:s,s:o,s:I,s:o}", "aud", t->audiences, "exp", (json_int_t)*ret_until,
        "iat", (json_int_t)now, "iss", APISERVER_AUDIENCE, "jti", uuid_format(&uuid, id),
        "kubernetes.io", private_claims(t), "nbf", (json_int_t)(now - EARLIER_SECONDS), "sub",
        json_sprintf("system:serviceaccount:%s:%s", json_str(metadata, "namespace"),
                     json_str(metadata, "name")));
    return apiserver_jwt_sign(apiserver_certificates_token_key(a->certificates), claims, ret_token,
                              e);
}

/* The object that a claim {name, uid} names is there, is still that one, and stays. */
static bool holds(struct apiserver *a, const char *kind, const char *namespace, const json_t *claim)
{
    const char *name = json_str(claim, "name"), *uid = json_str(claim, "uid");
    if (!name || !uid)
        return false;
    json_auto_t *object = apiserver_core_object(a, kind, namespace, name);
    const json_t *metadata = json_object_get(object, "metadata");
    const char *own = json_str(metadata, "uid");
    const char *deleted = json_str(metadata, "deletionTimestamp");
    struct timespec at;
    if (!own || !str_eq(own, uid))
        return false;
    return !deleted ||
           (rfc3339_parse(deleted, &at, NULL) == 0 && at.tv_sec + LEEWAY_SECONDS > now_of(a));
}

static bool all_hold(struct apiserver *a, const json_t *own, const char *namespace)
{
    const json_t *pod = json_object_get(own, "pod"), *secret = json_object_get(own, "secret");
    const json_t *node = json_object_get(own, "node");
    return holds(a, "ServiceAccount", namespace, json_object_get(own, "serviceaccount")) &&
           (!pod || holds(a, "Pod", namespace, pod)) &&
           (!secret || holds(a, "Secret", namespace, secret)) &&
           (!node || pod || holds(a, "Node", NULL, node)); /* a pod's node is only told */
}

/* What reviews and authorizers are told of the token. */
static json_t *extra_of(const json_t *claims, const json_t *own)
{
    static const char *const kinds[] = {"node", "pod", NULL};
    json_t *extra = json_object();
    const char *id = json_str(claims, "jti");
    if (id)
        json_object_set_new(extra, "authentication.kubernetes.io/credential-id",
                            json_pack("[o]", json_sprintf("JTI=%s", id)));
    for (const char *const *kind = kinds; *kind; kind++) {
        json_t *claim = json_object_get(own, *kind);
        static const char *const parts[] = {"name", "uid", NULL};
        for (const char *const *part = parts; claim && *part; part++) {
            _cleanup_free_ char *key =
                mem_printf("authentication.kubernetes.io/%s-%s", *kind, *part);
            json_object_set_new(extra, key, json_pack("[O]", json_object_get(claim, *part)));
        }
    }
    return extra;
}

static bool is_in_time(const json_t *claims, int64_t now)
{
    const json_t *from = json_object_get(claims, "nbf"), *until = json_object_get(claims, "exp");
    return json_is_integer(from) && json_is_integer(until) && json_integer_value(from) <= now &&
           now < json_integer_value(until);
}

const struct apiserver_user *apiserver_account_find(struct apiserver *a, const char *token,
                                                    json_t **ret_token_audiences)
{
    const struct pki_key *key = apiserver_certificates_token_key(a->certificates);
    json_auto_t *claims = apiserver_jwt_cache_verify(&a->tokens, key, token, NULL);
    const json_t *own = json_object_get(claims, "kubernetes.io");
    const json_t *account = json_object_get(own, "serviceaccount");
    const char *issuer = json_str(claims, "iss"), *subject = json_str(claims, "sub");
    const char *namespace = json_str(own, "namespace"), *name = json_str(account, "name");
    if (!issuer || !str_eq(issuer, APISERVER_AUDIENCE) || !subject || !namespace || !name ||
        !is_in_time(claims, now_of(a)) || !all_hold(a, own, namespace))
        return NULL;
    _cleanup_free_ char *user = mem_printf("system:serviceaccount:%s:%s", namespace, name);
    _cleanup_free_ char *group = mem_printf("system:serviceaccounts:%s", namespace);
    if (!str_eq(user, subject))
        return NULL;
    const char *const groups[] = {"system:serviceaccounts", group, "system:authenticated", NULL};
    *ret_token_audiences = json_incref(json_object_get(claims, "aud"));
    return apiserver_user_new(user, json_str(account, "uid"), groups, extra_of(claims, own));
}
