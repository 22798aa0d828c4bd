/*
 * The questions that authentication answers: whose token is this, and who am I.
 */
#include "k8s/apiserver/authn.h"
#include "k8s/apiserver/serve_impl.h"

int review_self(struct call *c, json_t *review)
{
    json_object_set_new(review, "status",
                        json_pack("{s:o}", "userInfo", apiserver_user_json(c->user)));
    return 0;
}

int review_token(struct call *c, json_t *review)
{
    const json_t *spec = json_object_get(review, "spec");
    const json_t *audiences = json_object_get(spec, "audiences");
    const char *token = json_str(spec, "token");
    if (!token || !*token)
        return call_bad_request(c, "token is required for TokenReview in authentication");
    if (!call_is_list_of_strings(audiences))
        return call_bad_request(c, "spec.audiences must be a list of strings");
    struct err why = {0};
    json_auto_t *valid_for = NULL;
    _cleanup_(apiserver_user_unrefp) const struct apiserver_user *user =
        apiserver_authenticate_token(c->server, token, audiences, &valid_for, &why);
    json_t *status = user ? json_pack("{s:b,s:o,s:O}", "authenticated", 1, "user",
                                      apiserver_user_json(user), "audiences", valid_for)
                          : json_pack("{s:{},s:s}", "user", "error", why.msg);
    json_object_set_new(review, "status", status);
    return 0;
}
