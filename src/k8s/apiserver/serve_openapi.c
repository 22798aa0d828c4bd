/*
 * OpenAPI documents as they are asked for: in which form, and only if the client does not have it
 * already. Bytes are those of the set of kinds, which the answer holds until they are sent.
 */
#include "k8s/apiserver/openapi_v2.h"
#include "k8s/apiserver/serve_impl.h"

static void unref_kinds(void *kinds)
{
    apiserver_kinds_unref(kinds);
}

static void reply_document(struct call *c, const char *type, const struct apiserver_document *d)
{
    char tag[APISERVER_HASH_MAX + 2];
    snprintf(tag, sizeof(tag), "\"%s\"", d->hash);
    http_reply_header(c->http, "Vary", "Accept");
    http_reply_header(c->http, "Etag", tag);
    const char *known = http_request_header(c->http, "If-None-Match");
    if (known && (strstr(known, tag) || str_eq(known, "*")))
        http_reply(c->http, 304, NULL, "", 0, NULL, NULL);
    else
        call_reply_bytes(c, 200, type, d->text.p, d->text.len, unref_kinds,
                         apiserver_kinds_ref(c->kinds));
}

void call_openapi_v3(struct call *c, const struct api_group_version *gv)
{
    reply_document(c, "application/json", apiserver_kinds_document(c->kinds, gv));
}

/* One of the types that the client accepts: where it ends, and how much it is wanted. */
struct clause {
    const char *type, *end; /* without parameters */
    double quality;
    unsigned stars;
};

/* The next clause, or false; *at goes behind it. */
static bool next_clause(const char **at, struct clause *ret)
{
    const char *p = *at + strspn(*at, " ,");
    const char *stop = p + strcspn(p, ",");
    if (!*p)
        return false;
    *ret = (struct clause){.type = p, .end = p + strcspn(p, "; ,"), .quality = 1};
    for (const char *c = p; c < ret->end; c++)
        ret->stars += *c == '*';
    for (const char *q = p; (q = memchr(q, ';', (size_t)(stop - q)));) {
        q += 1 + strspn(q + 1, " ");
        if (strncmp(q, "q=", 2) == 0)
            ret->quality = strtod(q + 2, NULL);
    }
    *at = stop;
    return true;
}

static bool is_type(const struct clause *c, const char *type)
{
    size_t n = (size_t)(c->end - c->type);
    return strlen(type) == n && strncmp(c->type, type, n) == 0;
}

enum v2_form { V2_NONE, V2_JSON, V2_PROTOBUF };

static enum v2_form form_of(const struct clause *c)
{
    if (is_type(c, "*/*") || is_type(c, "application/*") || is_type(c, "application/json"))
        return V2_JSON;
    /* The second is what clients asked for before somebody read what a media type may contain. */
    if (is_type(c, APISERVER_OPENAPI_V2_PROTOBUF) ||
        is_type(c, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"))
        return V2_PROTOBUF;
    return V2_NONE;
}

/* The form that the client likes best; of those it likes the same, the one that it says exactly. */
static enum v2_form accepted(const char *accept)
{
    struct clause best = {0}, one;
    enum v2_form form = V2_NONE;
    while (next_clause(&accept, &one)) {
        if (form_of(&one) != V2_NONE &&
            (one.quality > best.quality ||
             (one.quality == best.quality && form != V2_NONE && one.stars < best.stars))) {
            best = one;
            form = form_of(&one);
        }
    }
    return form;
}

void call_openapi_v2(struct call *c)
{
    const char *accept = http_request_header(c->http, "Accept");
    enum v2_form form = accepted(accept && *accept ? accept : "*/*");
    if (form == V2_NONE) {
        http_reply_header(c->http, "Vary", "Accept");
        http_reply(c->http, 406, NULL, "", 0, NULL, NULL);
        return;
    }
    reply_document(c, form == V2_JSON ? "application/json" : APISERVER_OPENAPI_V2_PROTOBUF,
                   apiserver_kinds_document_v2(c->kinds, form == V2_PROTOBUF));
}
