/*
 * Key and certificates in a Secret, as the files of an authority (pki/authority.h):
 *
 *     data:  ca.pem       key of the authority, certificates
 *            ca.crt       whom to trust
 *            server.pem   key and certificate of the server
 *
 * The Secret is read, the authority looks at it and renews what is due, and if it changed anything it is
 * written back with the version that was read: who was faster decides.
 */
#include "admission/impl.h"
#include "base/base64.h"
#include "base/map.h"
#include "http/url.h"
#include "kube/resource.h"

enum { TRIES = 5 };

/* The Secret's data, decoded. */
struct files {
    struct map texts; /* name -> struct str */
    bool changed;
};

static void files_done(struct files *f)
{
    map_for_each(&f->texts, it) {
        pki_wipe(it->value);
        free(it->value);
    }
    map_done(&f->texts);
}

static struct str *file_at(struct files *f, const char *name)
{
    struct str *text = map_get(&f->texts, name);
    if (!text) {
        text = NEW(struct str);
        map_set(&f->texts, name, text);
    }
    return text;
}

static int read_file(void *context, const char *name, struct str *ret_text, struct err *e)
{
    struct files *f = context;
    const struct str *text = map_get(&f->texts, name);
    if (!text || !text->len)
        return err_set(e, ERR_NOT_FOUND, "NotFound", "the Secret has no %s", name);
    str_append_n(ret_text, text->p, text->len);
    return 0;
}

static int replace_file(void *context, const char *name, const void *bytes, size_t n, struct err *e)
{
    struct files *f = context;
    struct str *text = file_at(f, name);
    (void)e;
    if (text->len == n && memcmp(str_get(text), bytes, n) == 0)
        return 0;
    pki_wipe(text);
    *text = (struct str){0};
    str_append_n(text, bytes, n);
    f->changed = true;
    return 0;
}

/* What is no base64 is as if it were not there. */
static void load(const json_t *secret, struct files *f)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(secret, "data"), key, value) {
        if (json_is_string(value))
            base64_parse(json_string_value(value), json_string_length(value), BASE64_STD,
                         file_at(f, key));
    }
}

static json_t *data_of(const struct files *f)
{
    json_t *data = json_object();
    map_for_each(&f->texts, it) {
        const struct str *text = it->value;
        _cleanup_(pki_wipe) struct str encoded = {0};
        base64_format(str_get(text), text->len, BASE64_STD, &encoded);
        json_object_set_new(data, it->key, json_string(str_get(&encoded)));
    }
    return data;
}

/* The names by which the server is reached; owned by the list, which ends with NULL. */
static void names_of(const struct admission_options *o, char *ret_names[3])
{
    struct http_url url;
    if (o->url && http_url_parse(o->url, &url, NULL) == 0) {
        ret_names[0] = mem_strdup(url.host);
        return;
    }
    ret_names[0] = mem_printf("%s.%s.svc", o->service, o->ns);
    ret_names[1] = mem_printf("%s.%s.svc.cluster.local", o->service, o->ns);
}

static int renew(struct files *f, const struct admission_options *o,
                 struct admission_certificates *ret, struct err *e)
{
    const struct pki_files files = {read_file, replace_file, f};
    _cleanup_(pki_authority_freep) struct pki_authority *authority = NULL;
    _cleanup_free_ char *where = mem_printf("Secret %s/%s", o->ns, o->name);
    struct err why = {0};
    if (pki_authority_open_in(&files, where, clock_system(), &authority, &why) < 0) {
        if (why.code != ERR_DATA_LOSS)
            return err_set(e, why.code, why.reason, "%s", why.msg);
        log_warn("a damaged authority is replaced", LOG_ERR(&why)); /* we can tell who trusts it */
        str_clear(file_at(f, "ca.pem"));
        if (pki_authority_open_in(&files, where, clock_system(), &authority, e) < 0)
            return -1;
    }
    char *names[3] = {NULL};
    names_of(o, names);
    const struct pki_request request = {.use = PKI_SERVER,
                                        .common_name = o->service,
                                        .names = (const char *const *)names,
                                        .seconds = o->lifetime_ns / CLOCK_SECOND};
    bool changed;
    int r = pki_authority_leaf(authority, "server", &request, &ret->leaf, &changed, e);
    free(names[0]);
    free(names[1]);
    str_clear(&ret->bundle);
    str_append(&ret->bundle, pki_authority_bundle(authority));
    struct pki_facts facts = {0};
    if (r == 0)
        r = pki_cert_read(str_get(&ret->leaf.chain), &facts, e);
    ret->expiry = facts.until;
    return r;
}

static int save(struct kube_client *client, const struct admission_options *o, json_t *secret,
                const struct files *f, struct err *e)
{
    const struct kube_resource r = kube_resource("v1", "Secret");
    json_auto_t *made =
        secret ? json_incref(secret)
               : json_pack("{s:s, s:s, s:s, s:{s:s, s:s, s:{s:s}}}", "apiVersion", "v1", "kind",
                           "Secret", "type", "Opaque", "metadata", "name", o->name, "namespace",
                           o->ns, "labels", "app.kubernetes.io/part-of", "orlop");
    json_object_set_new(made, "data", data_of(f));
    json_auto_t *is =
        secret ? kube_update(client, &r, made, NULL, e) : kube_create(client, &r, made, NULL, e);
    return is ? 0 : -1;
}

void admission_certificates_done(struct admission_certificates *c)
{
    str_done(&c->bundle);
    pki_leaf_done(&c->leaf);
}

int admission_certificates_read(struct kube_client *client, const struct admission_options *o,
                                struct admission_certificates *ret, struct err *e)
{
    const struct kube_resource r = kube_resource("v1", "Secret");
    for (int tries = TRIES;; tries--) {
        struct err why = {0};
        _cleanup_(files_done) struct files f = {0};
        json_auto_t *secret = kube_get(client, &r, o->ns, o->name, &why);
        if (!secret && why.code != ERR_NOT_FOUND)
            return err_set(e, why.code, why.reason, "%s", why.msg);
        load(secret, &f);
        if (renew(&f, o, ret, e) < 0)
            return -1;
        if (!f.changed)
            return 0;
        why = (struct err){0};
        if (save(client, o, secret, &f, &why) == 0) {
            log_info("webhook certificates were renewed", LOG_S("secret", o->name));
            return 0;
        }
        bool raced =
            why.code == ERR_ABORTED || why.code == ERR_ALREADY_EXISTS || why.code == ERR_NOT_FOUND;
        if (!raced || !tries)
            return err_set(e, why.code, why.reason, "%s", why.msg);
    }
}
