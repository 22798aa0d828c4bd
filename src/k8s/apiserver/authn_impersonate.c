/*
 * Acting as somebody else: the headers Impersonate-User, -Group, -Uid and -Extra-KEY. Each thing that
 * is claimed needs the permission to claim it, so that nobody gets further than they may.
 */
#include "base/vec.h"
#include "k8s/apiserver/authn.h"
#include "k8s/apiserver/authz.h"
#include "k8s/apiserver/serve_impl.h"

enum { MOST = 1000 };

struct claim {
    const char *name, *uid;
    VEC(const char *) groups;
    json_t *extra;
    unsigned count; /* of headers */
    bool bad;
};

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The key of a header "Impersonate-Extra-KEY": lower case, with %XX for what a header cannot say. */
static char *extra_key(const char *text)
{
    struct str key = {0};
    for (; *text; text++) {
        int high = *text == '%' ? hex_of(text[1]) : -1, low = high >= 0 ? hex_of(text[2]) : -1;
        int c = low >= 0 ? high << 4 | low : *text;
        text += low >= 0 ? 2 : 0;
        str_append_c(&key, (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c));
    }
    return str_take(&key);
}

static bool take_header(void *context, const char *name, const char *value)
{
    static const char prefix[] = "Impersonate-", extra[] = "Extra-";
    struct claim *claim = context;
    if (strncasecmp(name, prefix, sizeof(prefix) - 1) != 0)
        return true;
    name += sizeof(prefix) - 1;
    claim->count++;
    json_auto_t *text = json_string(value);
    if (!text)
        claim->bad = true; /* no UTF-8 */
    if (strcasecmp(name, "User") == 0) {
        claim->name = value;
    } else if (strcasecmp(name, "Uid") == 0) {
        claim->uid = value;
    } else if (strcasecmp(name, "Group") == 0) {
        vec_push(&claim->groups, value);
    } else if (strncasecmp(name, extra, sizeof(extra) - 1) == 0) {
        _cleanup_free_ char *key = extra_key(name + sizeof(extra) - 1);
        json_t *values = json_object_get(claim->extra, key);
        if (!values) {
            values = json_array();
            json_object_set_new(claim->extra, key, values); /* not if it is no UTF-8 */
        }
        json_array_append_new(json_object_get(claim->extra, key), json_string(value));
    }
    return claim->count < MOST;
}

static int ask(struct call *c, const struct apiserver_attributes *what)
{
    struct apiserver_attributes wanted = *what;
    wanted.verb = "impersonate";
    if (apiserver_authorized(c->server, c->user, &wanted, NULL))
        return 0;
    bool extra = what->subresource, cluster = !what->namespace;
    const char *group = what->group ? what->group : "";
    return err_set(&c->err, ERR_PERMISSION_DENIED, "Forbidden",
                   "%s%s%s \"%s\" is forbidden: User \"%s\" cannot impersonate resource "
                   "\"%s%s%s\" in API group \"%s\" %s%s%s",
                   what->resource, *group ? "." : "", group, what->name, c->user->name,
                   what->resource, extra ? "/" : "", extra ? what->subresource : "", group,
                   cluster ? "at the cluster scope" : "in the namespace \"",
                   cluster ? "" : what->namespace, cluster ? "" : "\"");
}

static int ask_user(struct call *c, const char *name)
{
    static const char accounts[] = "system:serviceaccount:";
    struct apiserver_attributes what = {.group = "", .resource = "users", .name = name};
    const char *rest = name + sizeof(accounts) - 1;
    const char *colon = str_starts_with(name, accounts) ? strchr(rest, ':') : NULL;
    if (!colon)
        return ask(c, &what);
    _cleanup_free_ char *namespace = mem_strndup(rest, (size_t)(colon - rest));
    what.resource = "serviceaccounts";
    what.namespace = namespace;
    what.name = colon + 1;
    return ask(c, &what);
}

/* Everything that is claimed must be allowed. */
static int ask_all(struct call *c, const struct claim *claim)
{
    static const char group[] = "authentication.k8s.io";
    if (ask_user(c, claim->name) < 0 ||
        (claim->uid && ask(c, &(struct apiserver_attributes){
                                  .group = group, .resource = "uids", .name = claim->uid}) < 0))
        return -1;
    vec_for_each(&claim->groups, name) {
        if (ask(c, &(struct apiserver_attributes){.resource = "groups", .name = *name}) < 0)
            return -1;
    }
    const char *key;
    json_t *values;
    json_object_foreach(claim->extra, key, values) {
        size_t i;
        json_t *value;
        json_array_foreach(values, i, value) {
            struct apiserver_attributes what = {
                .group = group,
                .resource = "userextras",
                .subresource = key,
                .name = json_string_value(value),
            };
            if (ask(c, &what) < 0)
                return -1;
        }
    }
    return 0;
}

static bool has_group(const struct claim *claim, const char *name)
{
    vec_for_each(&claim->groups, group) {
        if (str_eq(*group, name))
            return true;
    }
    return false;
}

/* The groups that come with a name of its own accord. */
static void add_groups(struct claim *claim, char **ret_group)
{
    static const char accounts[] = "system:serviceaccount:";
    if (!claim->groups.len && str_starts_with(claim->name, accounts)) {
        const char *namespace = claim->name + sizeof(accounts) - 1;
        *ret_group =
            mem_printf("system:serviceaccounts:%.*s", (int)strcspn(namespace, ":"), namespace);
        vec_push(&claim->groups, "system:serviceaccounts");
        vec_push(&claim->groups, *ret_group);
    }
    bool nobody = str_eq(claim->name, apiserver_anonymous.name);
    const char *last = nobody ? "system:unauthenticated" : "system:authenticated";
    if (!has_group(claim, last) && !has_group(claim, "system:unauthenticated"))
        vec_push(&claim->groups, last);
    vec_push(&claim->groups, NULL);
}

int apiserver_impersonate(struct call *c)
{
    struct claim claim = {.extra = json_object()};
    int r = 0;
    http_request_headers(c->http, take_header, &claim);
    if (claim.bad || claim.count >= MOST)
        r = err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                    "there are Impersonate headers that are no text, or too many");
    else if (claim.count && (!claim.name || !*claim.name))
        r = err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                    "there are Impersonate headers but no Impersonate-User");
    else if (claim.count)
        r = ask_all(c, &claim);
    if (claim.count && r == 0) {
        _cleanup_free_ char *group = NULL;
        add_groups(&claim, &group);
        c->real = c->user;
        c->user =
            apiserver_user_new(claim.name, claim.uid, claim.groups.p, json_incref(claim.extra));
    }
    json_decref(claim.extra);
    vec_done(&claim.groups);
    return r;
}
