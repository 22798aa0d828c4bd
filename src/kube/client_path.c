#include "kube/client_impl.h"

/* Everything but what RFC 3986 calls unreserved. */
static void append_encoded(struct str *path, const char *s)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        if (plain)
            str_append_c(path, *s);
        else
            str_append_n(path, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
    }
}

static void append_segment(struct str *path, const char *s)
{
    str_append_c(path, '/');
    append_encoded(path, s);
}

void kube_path_append(struct str *path, const struct kube_resource *r, const char *ns,
                      const char *name, const char *sub)
{
    /* The version is ours, and its slash is one. */
    str_appendf(path, "/%s/%s", strchr(r->api_version, '/') ? "apis" : "api", r->api_version);
    if (r->namespaced && ns && *ns) {
        str_append(path, "/namespaces");
        append_segment(path, ns);
    }
    append_segment(path, r->plural);
    if (name)
        append_segment(path, name);
    if (sub)
        str_appendf(path, "/%s", sub);
}

void kube_path_query(struct str *path, const char *key, const char *value)
{
    if (!value)
        return;
    str_appendf(path, "%c%s=", strchr(str_get(path), '?') ? '&' : '?', key);
    append_encoded(path, value);
}
