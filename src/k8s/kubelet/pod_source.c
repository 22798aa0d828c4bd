/*
 * What pods take from the API: ConfigMaps, Secrets, and tokens, which are kept until it is time for
 * new ones.
 */
#include <stdlib.h>

#include "base/rfc3339.h"
#include "k8s/kubelet/pod_impl.h"
#include "kube/object.h"

struct pod_place pod_place_of(const struct pod_run *r)
{
    const struct pods *p = r->all;
    return (struct pod_place){
        .node = p->options.node,
        .host_ip = p->options.address,
        .pod_ip = *r->memory.ip ? r->memory.ip : p->options.address,
        .api_host = p->api_host,
        .api_port = p->api_port,
    };
}

static json_t *get(void *context, const char *kind, const char *ns, const char *name, struct err *e)
{
    struct pod_run *r = context;
    struct kube_resource resource = kube_resource("v1", kind);
    return kube_get(r->all->client, &resource, ns, name, e);
}

static json_t *ask_token(struct pod_run *r, const json_t *pod, const char *audience,
                         int64_t seconds, struct err *e)
{
    const char *account = json_str(json_object_get(pod, "spec"), "serviceAccountName");
    _cleanup_free_ char *path =
        mem_printf("/api/v1/namespaces/%s/serviceaccounts/%s/token", kube_namespace(pod),
                   account && *account ? account : "default");
    json_auto_t *body = json_pack(
        "{s:s, s:s, s:{s:I, s:{s:s, s:s, s:s, s:s}}}", "apiVersion", "authentication.k8s.io/v1",
        "kind", "TokenRequest", "spec", "expirationSeconds", (json_int_t)seconds, "boundObjectRef",
        "apiVersion", "v1", "kind", "Pod", "name", kube_name(pod), "uid", kube_uid(pod));
    if (audience && *audience)
        json_object_set_new(json_object_get(body, "spec"), "audiences", json_pack("[s]", audience));
    _cleanup_(str_done) struct str text = {0};
    if (kube_raw(r->all->client, "POST", path, body, &text, e) < 0)
        return NULL;
    return json_parse(str_get(&text), text.len, NULL, e);
}

static int token(void *context, const json_t *pod, const char *audience, int64_t seconds,
                 struct str *ret_token, int64_t *ret_expires, struct err *e)
{
    struct pod_run *r = context;
    int64_t now = clock_real_ns(r->all->clock), mono = clock_mono_ns(r->all->clock);
    int64_t spare = seconds * CLOCK_SECOND / 5;
    audience = audience ? audience : "";
    struct pod_token *kept = NULL;
    vec_for_each(&r->tokens, it) {
        if (str_eq(it->audience, audience) && it->seconds == seconds)
            kept = it;
    }
    if (!kept || kept->expires - spare <= now || kept->renew_ns <= mono) {
        json_auto_t *reply = ask_token(r, pod, audience, seconds, e);
        const char *text = json_str(json_object_get(reply, "status"), "token");
        const char *expires = json_str(json_object_get(reply, "status"), "expirationTimestamp");
        struct timespec t;
        if (!reply || rfc3339_parse(expires ? expires : "", &t, e) < 0)
            return -1;
        if (!text)
            return err_set(e, ERR_INTERNAL, "NoToken", "the API gave no token");
        if (!kept) {
            vec_push(&r->tokens, (struct pod_token){.audience = mem_strdup(audience)});
            kept = &vec_last(&r->tokens);
        }
        free(kept->token);
        kept->token = mem_strdup(text);
        kept->seconds = seconds;
        kept->expires = rfc3339_to_ns(t);
        kept->renew_ns = mono + seconds * CLOCK_SECOND - spare;
    }
    str_append(ret_token, kept->token);
    *ret_expires = kept->expires;
    return 0;
}

struct pod_source pod_source_of(struct pod_run *r)
{
    return (struct pod_source){get, token, r};
}

void pod_tokens_done(struct pod_run *r)
{
    vec_for_each(&r->tokens, it) {
        free(it->audience);
        free(it->token);
    }
    vec_done(&r->tokens);
}
