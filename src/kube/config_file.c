/*
 * Kubeconfigs: YAML with lists of clusters, users and contexts, each with a name.
 *
 *     contexts[name].context --> clusters[name].cluster    where
 *                           '--> users[name].user          who
 *
 * Several files are one: the first that has an entry of a name is the one that counts. Nothing is
 * merged; what is looked up is looked up in all.
 */
#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/vec.h"
#include "json/doc.h"
#include "kube/config_impl.h"

enum { FILES_MAX = 32 };

struct file {
    json_t *value;
    char *path;   /* as messages name it */
    char *folder; /* where relative paths begin */
};

struct files {
    VEC(struct file) all;
};

/* An entry of a list, and the file that has it. */
struct entry {
    const json_t *value; /* NULL: there is none */
    const struct file *file;
};

static void files_done(struct files *f)
{
    vec_for_each(&f->all, it) {
        json_decref(it->value);
        free(it->path);
        free(it->folder);
    }
    vec_done(&f->all);
}

static int refuse(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(e, ERR_INVALID_ARGUMENT, "InvalidKubeconfig", fmt, ap);
    va_end(ap);
    return -1;
}

/* One document: a map of kind Config, or of none. */
static json_t *parse(const char *text, size_t size, struct err *e)
{
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text, size);
    _cleanup_(json_doc_done) struct json_doc doc = {0};
    int n = json_stream_next(s, &doc, e);
    if (n < 0) {
        err_prefix(e, "line %u, column %u", doc.start.line, doc.start.column);
        return NULL;
    }
    const char *kind = n ? json_str(doc.value, "kind") : NULL;
    if (n == 0 || !json_is_object(doc.value) || (kind && !str_eq(kind, "Config"))) {
        refuse(e, "this is no kubeconfig: write 'kind: Config' with clusters, users and contexts");
        return NULL;
    }
    return json_incref(doc.value);
}

static int files_add_text(struct files *f, const char *path, const char *folder, const char *text,
                          size_t size, struct err *e)
{
    json_t *value = parse(text, size, e);
    if (!value)
        return -1;
    vec_push(&f->all, (struct file){value, mem_strdup(path), mem_strdup(folder)});
    return 0;
}

static int files_add(struct files *f, const char *path, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder =
        slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strdup(".");
    if (file_read(path, CONFIG_FILE_MAX, &text, e) < 0)
        return -1;
    if (files_add_text(f, path, folder, str_get(&text), text.len, e) < 0)
        return err_prefix(e, "%s", path);
    return 0;
}

/* All that exist of a list with colons. */
static int files_add_list(struct files *f, const char *list, struct err *e)
{
    for (const char *p = list; *p; p += *p == ':') {
        size_t n = strcspn(p, ":");
        _cleanup_free_ char *path = mem_strndup(p, n);
        struct err why = {0};
        p += n;
        if (n == 0)
            continue;
        if (f->all.len >= FILES_MAX)
            return refuse(e, "KUBECONFIG names more than %d files", FILES_MAX);
        if (files_add(f, path, &why) < 0 && why.code != ERR_NOT_FOUND) {
            if (e)
                *e = why;
            return -1;
        }
    }
    if (f->all.len == 0)
        return err_set(e, ERR_NOT_FOUND, "NoKubeconfig",
                       "none of the files that KUBECONFIG names exists: %s", list);
    return 0;
}

/* The member `what` of the entry called name in the list `lists`, of the first file that has it. */
static struct entry find(const struct files *f, const char *lists, const char *what,
                         const char *name)
{
    vec_for_each(&f->all, file) {
        size_t i;
        const json_t *it;
        json_array_foreach(json_object_get(file->value, lists), i, it) {
            const char *its = json_str(it, "name");
            const json_t *value = json_object_get(it, what);
            if (its && str_eq(its, name) && json_is_object(value))
                return (struct entry){value, file};
        }
    }
    return (struct entry){0};
}

/* The string at key: NULL when missing or empty, which mean the same here. */
static const char *text_of(struct entry in, const char *key)
{
    const char *s = json_str(in.value, key);
    return s && *s ? s : NULL;
}

static char *resolve(struct entry in, const char *path)
{
    return *path == '/' ? mem_strdup(path) : mem_printf("%s/%s", in.file->folder, path);
}

/* The value of KEY-data, decoded, or the content of the file that KEY names; *ret may stay NULL. */
static int read_pem(struct entry in, const char *key, char **ret, struct err *e)
{
    _cleanup_free_ char *data_key = mem_printf("%s-data", key);
    const char *data = text_of(in, data_key), *path = text_of(in, key);
    if (data) {
        _cleanup_(str_done) struct str bytes = {0};
        if (!base64_parse(data, strlen(data), BASE64_STD, &bytes) ||
            bytes.len != strlen(str_get(&bytes)))
            return refuse(e, "%s: %s is not the base64 of PEM text", in.file->path, data_key);
        *ret = str_take(&bytes);
    } else if (path) {
        _cleanup_free_ char *whole = resolve(in, path);
        *ret = config_read(whole, CONFIG_FILE_MAX, e);
        if (!*ret)
            return err_prefix(e, "%s: %s", in.file->path, key);
    } else {
        return 0;
    }
    if (!strstr(*ret, "-----BEGIN "))
        return refuse(e, "%s: %s is no PEM: it has no line '-----BEGIN ...'", in.file->path, key);
    return 0;
}

static int check_members(struct entry in, const char *const (*table)[2], struct err *e)
{
    for (; (*table)[0]; table++) {
        const json_t *value = json_object_get(in.value, (*table)[0]);
        if (value && !json_is_null(value) && !json_is_false(value) &&
            !(json_is_string(value) && json_string_length(value) == 0))
            return refuse(e, "%s: %s is not supported: %s", in.file->path, (*table)[0],
                          (*table)[1]);
    }
    return 0;
}

static int read_cluster(struct entry in, struct kube_config *c, struct err *e)
{
    static const char *const refused[][2] = {
        {"insecure-skip-tls-verify",
         "give the server's authority in certificate-authority, or name what its certificate is "
         "for in tls-server-name"},
        {"proxy-url", "connect to the server itself"},
        {0},
    };
    if (check_members(in, refused, e) < 0)
        return -1;
    const char *server = text_of(in, "server");
    if (!server)
        return refuse(e, "%s: the cluster has no server", in.file->path);
    if (config_set_server(c, server, text_of(in, "tls-server-name"), e) < 0)
        return err_prefix(e, "%s", in.file->path);
    return read_pem(in, "certificate-authority", &c->ca, e);
}

static int read_user(struct entry in, struct kube_config *c, struct err *e)
{
    static const char *const refused[][2] = {
        {"exec",
         "credential plugins are not run; use a client certificate, a token or a tokenFile"},
        {"auth-provider", "use a client certificate, a token or a tokenFile"},
        {"username", "no server takes passwords; use a client certificate, a token or a tokenFile"},
        {"password", "no server takes passwords; use a client certificate, a token or a tokenFile"},
        {"as", "use the credentials of that user"},
        {0},
    };
    if (check_members(in, refused, e) < 0 ||
        read_pem(in, "client-certificate", &c->certificate, e) < 0 ||
        read_pem(in, "client-key", &c->key, e) < 0)
        return -1;
    if (!c->certificate != !c->key)
        return refuse(e, "%s: the user has a client-%s without a client-%s", in.file->path,
                      c->key ? "key" : "certificate", c->key ? "certificate" : "key");
    const char *token = text_of(in, "token"), *file = text_of(in, "tokenFile");
    if (file) {
        c->token_file = resolve(in, file);
        c->token = config_read(c->token_file, CONFIG_TOKEN_MAX, e);
        if (!c->token)
            return err_prefix(e, "%s: tokenFile", in.file->path);
    } else if (token) {
        c->token = mem_strdup(token);
    }
    if (c->token && config_check_token(c->token, e) < 0)
        return err_prefix(e, "%s", in.file->path);
    return 0;
}

static int read_context(const struct files *f, const char *name, struct kube_config *c,
                        struct err *e)
{
    assert(f->all.len > 0);
    for (size_t i = 0; !name && i < f->all.len; i++)
        name = text_of((struct entry){f->all.p[i].value, &f->all.p[i]}, "current-context");
    if (!name)
        return refuse(e, "%s: there is no current-context; name one", f->all.p[0].path);
    struct entry context = find(f, "contexts", "context", name);
    if (!context.value)
        return refuse(e, "%s: there is no context '%s'", f->all.p[0].path, name);
    const char *cluster = text_of(context, "cluster"), *user = text_of(context, "user"),
               *ns = text_of(context, "namespace");
    struct entry where = {0}, who = {0};
    if (cluster)
        where = find(f, "clusters", "cluster", cluster);
    if (user)
        who = find(f, "users", "user", user);
    if (!where.value)
        return refuse(e, "%s: the cluster '%s' of the context '%s' is missing", context.file->path,
                      cluster ? cluster : "", name);
    if (user && !who.value)
        return refuse(e, "%s: the user '%s' of the context '%s' is missing", context.file->path,
                      user, name);
    c->ns = mem_strdup(ns ? ns : "default");
    return read_cluster(where, c, e) < 0 || (user && read_user(who, c, e) < 0) ? -1 : 0;
}

static int load(const struct files *f, const char *context, struct kube_config *ret_config,
                struct err *e)
{
    *ret_config = (struct kube_config){0};
    if (read_context(f, context, ret_config, e) == 0)
        return 0;
    kube_config_done(ret_config);
    json_clean_message(e);
    return -1;
}

int kube_config_parse(const char *text, size_t size, const char *folder, const char *context,
                      struct kube_config *ret_config, struct err *e)
{
    _cleanup_(files_done) struct files f = {0};
    *ret_config = (struct kube_config){0};
    return files_add_text(&f, "kubeconfig", folder, text, size, e) < 0
               ? -1
               : load(&f, context, ret_config, e);
}

int kube_config_load(const char *path, const char *context, struct kube_config *ret_config,
                     struct err *e)
{
    _cleanup_(files_done) struct files f = {0};
    *ret_config = (struct kube_config){0};
    const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
    if (path)
        return files_add(&f, path, e) < 0 ? -1 : load(&f, context, ret_config, e);
    if (list && *list)
        return files_add_list(&f, list, e) < 0 ? -1 : load(&f, context, ret_config, e);
    if (!context) {
        struct err why = {0};
        if (kube_config_in_cluster(NULL, ret_config, &why) == 0)
            return 0;
        if (why.code != ERR_NOT_FOUND) {
            if (e)
                *e = why;
            return -1;
        }
    }
    _cleanup_free_ char *usual = mem_printf("%s/.kube/config", home && *home ? home : "");
    if (access(usual, F_OK) < 0)
        return err_set(e, ERR_NOT_FOUND, "NoKubeconfig",
                       "no server is known: KUBECONFIG is not set, this is no Pod, and there is "
                       "no %s",
                       usual);
    return files_add(&f, usual, e) < 0 ? -1 : load(&f, context, ret_config, e);
}
