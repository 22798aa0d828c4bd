/*
 * Whom to trust, from somebody who is not trusted yet: the ConfigMap cluster-info is read without
 * looking at the server's certificate, and believed when it carries a signature by the secret half of
 * our token, which only the cluster and we know. A pin is asked for beside that, not in place of it.
 */
#include <string.h>

#include "base/base64.h"
#include "http/client.h"
#include "json/doc.h"
#include "node/join.h"
#include "pki/cert.h"
#include "pki/key.h"

enum { TOKEN_ID = 6, TOKEN_SECRET = 16, INFO_MAX = 1 << 20 };

#define TIMEOUT (20 * CLOCK_SECOND)

static bool is_token(const char *token)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    return strspn(token, letters) == TOKEN_ID && token[TOKEN_ID] == '.' &&
           strspn(token + TOKEN_ID + 1, letters) == TOKEN_SECRET &&
           !token[TOKEN_ID + 1 + TOKEN_SECRET];
}

static json_t *fetch_info(const char *url, struct err *e)
{
    struct http_client_options o = {.any_server = true};
    _cleanup_(http_client_freep) struct http_client *client = http_client_new(&o, e);
    _cleanup_free_ char *path =
        mem_printf("%s/api/v1/namespaces/kube-public/configmaps/cluster-info", url);
    struct http_exchange x = {.url = path, .timeout_ns = TIMEOUT, .limit = INFO_MAX};
    _cleanup_(http_response_done) struct http_response r = {0};
    if (!client || http_client_send(client, &x, &r, e) < 0)
        return NULL;
    if (r.status == 200)
        return json_parse(str_get(&r.body), r.body.len, NULL, e);
    err_set(e, ERR_UNAVAILABLE, "NoClusterInfo",
            "%s does not say whom to trust (status %u): is it the API of an Orlop or kubeadm "
            "cluster? If so, give its authority with --ca-file",
            url, r.status);
    return NULL;
}

/* "header..signature" over header and the text, by the secret. */
static bool is_signed(const char *jws, const char *text, const char *secret)
{
    const char *dots = strstr(jws, "..");
    if (!dots)
        return false;
    _cleanup_(str_done) struct str signed_text = {0}, wanted = {0};
    uint8_t mac[PKI_DIGEST];
    str_append_n(&signed_text, jws, (size_t)(dots - jws) + 1);
    base64_format(text, strlen(text), BASE64_URL, &signed_text);
    pki_hmac(secret, strlen(secret), signed_text.p, signed_text.len, mac);
    base64_format(mac, sizeof(mac), BASE64_URL, &wanted);
    return pki_equal(wanted.p, dots + 2);
}

/* Whether one of the authorities has the key that was pinned. */
static int check_pin(const char *ca, const char *ca_hash, struct err *e)
{
    _cleanup_(str_done) struct str cert = {0}, hash = {0};
    for (const char *at = ca; pki_cert_next(&at, &cert); str_clear(&cert)) {
        str_clear(&hash);
        if (pki_cert_pin(cert.p, &hash, e) == 0 && str_eq(str_get(&hash), ca_hash))
            return 0;
    }
    return err_set(e, ERR_UNAUTHENTICATED, "WrongAuthority",
                   "the cluster's authority is not the one with the public key %s: somebody else "
                   "answers there, or the pin is of another cluster",
                   ca_hash);
}

/* The authority of the only cluster in a kubeconfig that has neither users nor contexts. */
static int read_authority(const char *kubeconfig, struct str *ret_ca, struct err *e)
{
    struct json_stream *stream = json_stream_new_text(kubeconfig, strlen(kubeconfig));
    struct json_doc doc = {0};
    int found = json_stream_next(stream, &doc, e);
    const json_t *first = json_array_get(json_object_get(doc.value, "clusters"), 0);
    const char *ca = json_str(json_at(first, "cluster"), "certificate-authority-data");
    int status = found;
    if (found >= 0)
        status = ca && base64_parse(ca, strlen(ca), BASE64_STD, ret_ca) && ret_ca->len
                     ? 0
                     : err_set(e, ERR_FAILED_PRECONDITION, "NoAuthority",
                               "the cluster names no authority; give it with --ca-file");
    json_doc_done(&doc);
    json_stream_free(stream);
    return status;
}

int node_join_trust(const char *url, const char *token, const char *ca_hash, struct str *ret_ca,
                    struct err *e)
{
    if (!token || !is_token(token))
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "a token to join with looks like abcdef.0123456789abcdef");
    json_auto_t *info = fetch_info(url, e);
    if (!info)
        return -1;
    const json_t *data = json_object_get(info, "data");
    const char *kubeconfig = json_str(data, "kubeconfig");
    _cleanup_free_ char *key = mem_printf("jws-kubeconfig-%.*s", TOKEN_ID, token);
    const char *jws = json_str(data, key);
    if (!kubeconfig || !jws)
        return err_set(
            e, ERR_UNAVAILABLE, "UnknownToken",
            "the cluster does not know the token %.*s..., or not yet: tokens are good for "
            "a short time only; make a new one",
            TOKEN_ID, token);
    if (!is_signed(jws, kubeconfig, token + TOKEN_ID + 1))
        return err_set(
            e, ERR_UNAUTHENTICATED, "WrongToken",
            "what %s says is not signed with this token: somebody else answers there, or "
            "the token is mistyped",
            url);
    _cleanup_(str_done) struct str ca = {0};
    if (read_authority(kubeconfig, &ca, e) < 0 || (ca_hash && check_pin(ca.p, ca_hash, e) < 0))
        return -1;
    str_append_n(ret_ca, ca.p, ca.len);
    return 0;
}
