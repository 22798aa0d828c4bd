#include "k8s/apiserver/token.h"

#include "base/mem.h"
#include "json/json.h"

#define TOKEN_VERSION "meta.k8s.io/v1"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

enum { BITS = 6, BYTE_BITS = 8, TOKEN_MAX = 4096 };

static void encode(const struct str *bytes, struct str *out)
{
    unsigned bits = 0, n = 0;
    for (size_t i = 0; i < bytes->len; i++) {
        bits = (bits << BYTE_BITS | (unsigned char)bytes->p[i]) & 0xffff;
        for (n += BYTE_BITS; n >= BITS; n -= BITS)
            str_append_c(out, digits[bits >> (n - BITS) & 0x3f]);
    }
    if (n)
        str_append_c(out, digits[bits << (BITS - n) & 0x3f]);
}

static bool decode(const char *text, struct str *out)
{
    unsigned bits = 0, n = 0;
    for (; *text && *text != '='; text++) {
        const char *digit = strchr(digits, *text);
        if (!digit)
            return false;
        bits = (bits << BITS | (unsigned)(digit - digits)) & 0xffff;
        n += BITS;
        if (n >= BYTE_BITS) {
            n -= BYTE_BITS;
            str_append_c(out, (char)(bits >> n & 0xff));
        }
    }
    return text[strspn(text, "=")] == '\0';
}

void apiserver_token_format(uint64_t revision, const char *after, struct str *out)
{
    _cleanup_(str_done) struct str text = {0};
    json_auto_t *token =
        json_pack("{s:s,s:I,s:s}", "v", TOKEN_VERSION, "rv",
                  revision ? (json_int_t)revision : (json_int_t)-1, "start", after);
    json_format(token, &text);
    encode(&text, out);
}

static int invalid(struct err *e, const char *why)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                   "invalid continue token: continue key is not valid: %s", why);
}

int apiserver_token_parse(const char *text, struct apiserver_token *ret_token, struct err *e)
{
    _cleanup_(str_done) struct str plain = {0};
    if (strlen(text) > TOKEN_MAX || !decode(text, &plain))
        return invalid(e, "it is no base64");
    json_auto_t *token = json_parse(str_get(&plain), plain.len, NULL, NULL);
    const char *version = json_str(token, "v"), *start = json_str(token, "start");
    json_int_t revision = json_integer_value(json_object_get(token, "rv"));
    if (!version)
        return invalid(e, "it says no version");
    if (!str_eq(version, TOKEN_VERSION))
        return invalid(e, "server does not recognize this encoded version");
    if (revision == 0)
        return invalid(e, "incorrect encoded start resourceVersion (version " TOKEN_VERSION ")");
    if (!start || !*start)
        return invalid(e, "incorrect encoded start key (version " TOKEN_VERSION ")");
    *ret_token = (struct apiserver_token){.revision = revision < 0 ? 0 : (uint64_t)revision};
    str_append(&ret_token->after, start);
    return 0;
}
