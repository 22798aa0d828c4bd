#include "k8s/apiserver/path.h"

enum { MAX_SEGMENTS = 8 }; /* apis G V namespaces NS plural name subresource */

struct segments {
    char text[MAX_SEGMENTS][APISERVER_NAME_MAX + 1];
    size_t n;
};

static const char *const verbs[] = {
    [APISERVER_GET] = "get",       [APISERVER_LIST] = "list",
    [APISERVER_WATCH] = "watch",   [APISERVER_CREATE] = "create",
    [APISERVER_UPDATE] = "update", [APISERVER_PATCH] = "patch",
    [APISERVER_DELETE] = "delete", [APISERVER_DELETE_COLLECTION] = "deletecollection",
};

const char *apiserver_verb_text(enum apiserver_verb verb)
{
    return verbs[verb];
}

enum {
    READ = 1 << APISERVER_GET,
    WRITE = 1 << APISERVER_UPDATE | 1 << APISERVER_PATCH,
};

/* What each subresource is called, which kinds have it, and what can be done with it. */
static const struct {
    const char *name;
    unsigned flags, verbs;
} subresources[] = {
    [APISERVER_MAIN] = {""},
    [APISERVER_STATUS] = {"status", API_STATUS, READ | WRITE},
    [APISERVER_SCALE] = {"scale", API_SCALE, READ | WRITE},
    [APISERVER_TOKEN] = {"token", API_TOKEN, 1 << APISERVER_CREATE},
    [APISERVER_LOG] = {"log", API_LOG, READ},
    [APISERVER_FINALIZE] = {"finalize", API_FINALIZE, 1 << APISERVER_UPDATE},
    [APISERVER_APPROVAL] = {"approval", API_APPROVAL, READ | WRITE},
    [APISERVER_BINDING] = {"binding", API_BINDING, 1 << APISERVER_CREATE},
};

const char *apiserver_subresource_text(enum apiserver_subresource subresource)
{
    return subresources[subresource].name;
}

bool apiserver_has_subresource(const struct api_kind *kind, enum apiserver_subresource subresource)
{
    return subresource == APISERVER_MAIN || kind->flags & subresources[subresource].flags;
}

bool apiserver_allows(const struct api_kind *kind, enum apiserver_subresource subresource,
                      enum apiserver_verb verb)
{
    if (subresource != APISERVER_MAIN)
        return apiserver_has_subresource(kind, subresource) &&
               subresources[subresource].verbs & 1U << verb;
    if (kind->flags & API_REVIEW)
        return verb == APISERVER_CREATE;
    if (kind->flags & API_TERMINATING && verb == APISERVER_CREATE)
        return false;
    /* Nobody deletes all namespaces in one go. */
    return verb != APISERVER_DELETE_COLLECTION || !str_eq(kind->plural, "namespaces") ||
           *api_kind_canonical(kind)->group;
}

static int not_found(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "NotFound",
                   "the server could not find the requested resource");
}

static int not_allowed(struct err *e)
{
    return err_set(e, ERR_UNIMPLEMENTED, "MethodNotAllowed",
                   "the server does not allow this method on the requested resource");
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether a decoded segment can be nothing but a name, wherever it is used. */
static bool is_safe(const char *text, size_t n)
{
    if (n == 0 || str_eq(text, ".") || str_eq(text, ".."))
        return false;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t width = str_utf8(text + i, n - i, &c);
        if (width == 0 || c < 0x20 || c == 0x7f || c == '/' || c == '%')
            return false;
        i += width;
    }
    return true;
}

/* Decodes one segment of the path; the text has room for APISERVER_NAME_MAX bytes and a NUL. */
static int decode(const char *segment, size_t size, char *text, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        char c = segment[i];
        if (n == APISERVER_NAME_MAX)
            return not_found(e); /* longer than any name */
        if (c == '?' || c == '#')
            return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                           "the path must not contain \"%c\"; write %s", c,
                           c == '?' ? "%3F" : "%23");
        if (c == '%') {
            int high = size - i > 2 ? hex(segment[i + 1]) : -1;
            int low = size - i > 2 ? hex(segment[i + 2]) : -1;
            if (high < 0 || low < 0)
                return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                               "the path has a %% without two hexadecimal digits after it; a "
                               "percent sign itself is written %%25");
            c = (char)(high << 4 | low);
            i += 2;
        }
        text[n++] = c;
    }
    text[n] = '\0';
    if (!is_safe(text, n))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                       "the path has a segment that cannot be a name: each must be UTF-8 text, not "
                       "empty, not . or .., without control characters, / and %%");
    return 0;
}

static int split(const char *path, size_t size, struct segments *s, struct err *e)
{
    if (size == 0 || path[0] != '/')
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the path must begin with /");
    if (size > APISERVER_PATH_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the path is longer than %d bytes",
                       APISERVER_PATH_MAX);
    if (size > 1 && path[size - 1] == '/' && path[size - 2] != '/')
        size--; /* "/apis/" is what some people type */
    s->n = 0;
    for (size_t at = 1; size > 1 && at <= size;) {
        const char *end = memchr(path + at, '/', size - at);
        size_t n = end ? (size_t)(end - (path + at)) : size - at;
        if (s->n == MAX_SEGMENTS)
            return not_found(e);
        if (decode(path + at, n, s->text[s->n++], e) < 0)
            return -1;
        at += n + 1;
    }
    return 0;
}

/* The group and version in the tables; NULL. A version of NULL is any. */
static const struct api_group_version *find_version(const struct api_kind *const *kinds,
                                                    const char *group, const char *version)
{
    for (const struct api_kind *const *k = kinds; *k; k++) {
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            if (str_eq(gv->group, group) && (!version || str_eq(gv->version, version)))
                return gv;
        }
    }
    return NULL;
}

static const struct api_kind *find_kind(const struct api_kind *const *kinds, const char *plural,
                                        const struct api_group_version **gv)
{
    for (const struct api_kind *const *k = kinds; *k; k++) {
        if (!str_eq((*k)->plural, plural))
            continue;
        for (const struct api_group_version *own = (*k)->versions; own->group; own++) {
            if (str_eq(own->group, (*gv)->group) && str_eq(own->version, (*gv)->version)) {
                *gv = own;
                return *k;
            }
        }
    }
    return NULL;
}

/*
 * Reads "api V" or "apis G V", as far as it is there, from segment `at`. *ret_next is the first
 * segment behind it.
 */
static int parse_version(const struct api_kind *const *kinds, const struct segments *s, size_t at,
                         struct apiserver_path *p, size_t *ret_next, struct err *e)
{
    bool core = str_eq(s->text[at], "api");
    if (!core && !str_eq(s->text[at], "apis"))
        return not_found(e);
    const char *group = "";
    at++;
    if (!core) {
        group = at < s->n ? s->text[at++] : NULL;
        if (group && !*group)
            return not_found(e);
    }
    const char *version = at < s->n ? s->text[at++] : NULL;
    *ret_next = at;
    const struct api_group_version *gv = group ? find_version(kinds, group, version) : NULL;
    if (group && !gv && (version || !core))
        return not_found(e);
    p->group = gv ? gv->group : NULL;
    p->gv = version ? gv : NULL;
    if (p->gv)
        p->asked = APISERVER_ASKED_RESOURCES;
    else if (core)
        p->asked = APISERVER_ASKED_CORE;
    else
        p->asked = group ? APISERVER_ASKED_GROUP : APISERVER_ASKED_GROUPS;
    return 0;
}

static int subresource_parse(const char *text, struct apiserver_path *p, struct err *e)
{
    for (size_t i = APISERVER_MAIN + 1; i < ARRAY_SIZE(subresources); i++) {
        p->subresource = (enum apiserver_subresource)i;
        if (str_eq(text, subresources[i].name) &&
            apiserver_has_subresource(p->kind, p->subresource))
            return 0;
    }
    p->subresource = APISERVER_MAIN;
    return not_found(e);
}

/* What follows the version: [namespaces NS] plural [name [subresource]] */
static int parse_objects(const struct api_kind *const *kinds, const struct segments *s, size_t at,
                         struct apiserver_path *p, struct err *e)
{
    /* A namespace itself may be meant: /namespaces, /namespaces/x, /namespaces/x/status. */
    bool in_namespace = s->n - at >= 3 && str_eq(s->text[at], "namespaces") &&
                        find_kind(kinds, s->text[at + 2], &p->gv);
    if (in_namespace) {
        memcpy(p->namespace, s->text[at + 1], sizeof(p->namespace));
        at += 2;
    }
    p->asked = APISERVER_ASKED_OBJECTS;
    p->kind = find_kind(kinds, s->text[at++], &p->gv);
    if (!p->kind || (in_namespace && p->kind->flags & API_CLUSTER_SCOPED))
        return not_found(e);
    if (at < s->n)
        memcpy(p->name, s->text[at++], sizeof(p->name));
    p->all_namespaces = !in_namespace && !(p->kind->flags & API_CLUSTER_SCOPED);
    if (p->all_namespaces && *p->name)
        return not_found(e); /* an object has a namespace */
    if (at < s->n && subresource_parse(s->text[at++], p, e) < 0)
        return -1;
    return at == s->n ? 0 : not_found(e);
}

static int parse_verb(const char *method, bool watch, struct apiserver_path *p, struct err *e)
{
    static const struct {
        const char *method;
        bool named;
        enum apiserver_verb verb;
    } methods[] = {
        {"GET", true, APISERVER_GET},
        {"GET", false, APISERVER_LIST},
        {"POST", false, APISERVER_CREATE},
        {"PUT", true, APISERVER_UPDATE},
        {"PATCH", true, APISERVER_PATCH},
        {"DELETE", true, APISERVER_DELETE},
        {"DELETE", false, APISERVER_DELETE_COLLECTION},
    };
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        bool posted_to_one = p->subresource != APISERVER_MAIN && str_eq(method, "POST");
        if (methods[i].named != (*p->name && !posted_to_one) || !str_eq(methods[i].method, method))
            continue;
        p->verb = methods[i].verb;
        if (watch && str_eq(method, "GET") && p->subresource == APISERVER_MAIN)
            p->verb = APISERVER_WATCH;
        bool reads = p->verb == APISERVER_LIST || p->verb == APISERVER_WATCH;
        if (!apiserver_allows(p->kind, p->subresource, p->verb) || (p->all_namespaces && !reads))
            return not_allowed(e);
        return 0;
    }
    return not_allowed(e);
}

/* Paths outside /api and /apis. */
static int parse_other(const struct api_kind *const *kinds, const struct segments *s,
                       struct apiserver_path *p, struct err *e)
{
    static const char *const health[] = {"healthz", "livez", "readyz", NULL};
    if (s->n == 0) {
        p->asked = APISERVER_ASKED_ROOT;
        return 0;
    }
    const char *first = s->text[0];
    if (str_in(first, health) && s->n <= 2) {
        p->asked = APISERVER_ASKED_HEALTH;
        memcpy(p->name, first, sizeof(p->name));
        if (s->n == 2)
            memcpy(p->check, s->text[1], sizeof(p->check));
        return 0;
    }
    if (s->n == 1 && (str_eq(first, "version") || str_eq(first, "metrics"))) {
        p->asked = *first == 'v' ? APISERVER_ASKED_VERSION : APISERVER_ASKED_METRICS;
        return 0;
    }
    if (!str_eq(first, "openapi") || s->n < 2)
        return not_found(e);
    p->asked = str_eq(s->text[1], "v2") ? APISERVER_ASKED_OPENAPI_V2 : APISERVER_ASKED_OPENAPI_V3;
    if (s->n == 2)
        return str_eq(s->text[1], "v2") || str_eq(s->text[1], "v3") ? 0 : not_found(e);
    size_t next = 0;
    if (!str_eq(s->text[1], "v3") || parse_version(kinds, s, 2, p, &next, e) < 0 || !p->gv ||
        next != s->n)
        return not_found(e);
    p->asked = APISERVER_ASKED_OPENAPI_V3_DOCUMENT;
    return 0;
}

int apiserver_path_parse(const struct api_kind *const *kinds, const char *method, const char *path,
                         size_t size, bool watch, struct apiserver_path *ret_path, struct err *e)
{
    struct segments s = {.n = 0};
    *ret_path = (struct apiserver_path){.verb = APISERVER_GET};
    if (split(path, size, &s, e) < 0)
        return -1;
    if (s.n > 0 && (str_eq(s.text[0], "api") || str_eq(s.text[0], "apis"))) {
        size_t next = 0;
        if (parse_version(kinds, &s, 0, ret_path, &next, e) < 0)
            return -1;
        if (next < s.n)
            return parse_objects(kinds, &s, next, ret_path, e) < 0
                       ? -1
                       : parse_verb(method, watch, ret_path, e);
    } else if (parse_other(kinds, &s, ret_path, e) < 0) {
        return -1;
    }
    bool head = str_eq(method, "HEAD") && ret_path->asked == APISERVER_ASKED_HEALTH;
    return str_eq(method, "GET") || head ? 0 : not_allowed(e);
}
