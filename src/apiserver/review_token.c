/*
 * The questions that authentication answers: whose token is this, and who am I.
 */
#include "apiserver/authn.h"
#include "apiserver/serve_impl.h"

static int bad_request(struct call *c, const char *message)
{
    return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "%s", message);
}

static bool is_list_of_strings(const json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item) {
        if (!json_is_string(item))
            return false;
    }
    return !value || json_is_null(value) || json_is_array(value);
}

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
        return bad_request(c, "token is required for TokenReview in authentication");
    if (!is_list_of_strings(audiences))
        return bad_request(c, "spec.audiences must be a list of strings");
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
