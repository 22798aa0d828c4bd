#include "k8s/apiserver/jwt.h"

#include "base/base64.h"

static void append_part(const json_t *value, struct str *out)
{
    _cleanup_(str_done) struct str text = {0};
    json_format(value, &text);
    base64_format(text.p, text.len, BASE64_URL, out);
}

int apiserver_jwt_sign(const struct pki_key *key, const json_t *claims, struct str *ret_token,
                       struct err *e)
{
    _cleanup_(pki_wipe) struct str token = {0};
    uint8_t signature[PKI_SIGNATURE];
    json_auto_t *header = json_pack("{s:s,s:s}", "alg", "ES256", "kid", pki_key_id(key));
    append_part(header, &token);
    str_append_c(&token, '.');
    append_part(claims, &token);
    if (pki_key_sign(key, token.p, token.len, signature, e) < 0)
        return -1;
    str_append_c(&token, '.');
    base64_format(signature, sizeof(signature), BASE64_URL, &token);
    str_append(ret_token, token.p);
    return 0;
}

static json_t *parse_part(const char *from, const char *until)
{
    _cleanup_(str_done) struct str text = {0};
    if (!base64_parse(from, (size_t)(until - from), BASE64_URL, &text))
        return NULL;
    json_t *value = json_parse(str_get(&text), text.len, NULL, NULL);
    if (json_is_object(value))
        return value;
    json_decref(value);
    return NULL;
}

/* The signature is checked before the claims are even parsed. */
static json_t *verify(const struct pki_key *key, const char *token)
{
    size_t size = strnlen(token, APISERVER_JWT_MAX + 1);
    const char *first = strchr(token, '.');
    const char *second = first ? strchr(first + 1, '.') : NULL;
    if (size > APISERVER_JWT_MAX || !second)
        return NULL;
    json_auto_t *header = parse_part(token, first);
    const char *alg = json_str(header, "alg"), *kid = json_str(header, "kid");
    if (!alg || !str_eq(alg, "ES256") || json_object_get(header, "crit") ||
        (kid && !str_eq(kid, pki_key_id(key))))
        return NULL;
    _cleanup_(str_done) struct str signature = {0};
    if (!base64_parse(second + 1, size - (size_t)(second + 1 - token), BASE64_URL, &signature) ||
        signature.len != PKI_SIGNATURE ||
        !pki_key_verify(key, token, (size_t)(second - token), (const uint8_t *)signature.p))
        return NULL;
    return parse_part(first + 1, second);
}

json_t *apiserver_jwt_verify(const struct pki_key *key, const char *token, struct err *e)
{
    json_t *claims = verify(key, token);
    if (!claims)
        err_set(e, ERR_UNAUTHENTICATED, "Unauthorized", "invalid bearer token");
    return claims;
}
