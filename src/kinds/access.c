#include "kinds/access.h"

#include "api/format.h"
#include "base/str.h"

#define NODE_PREFIX    "system:node:"
#define ACCOUNT_PREFIX "system:serviceaccount:"
#define EXTRA          "authentication.kubernetes.io/"

static const char *first_extra(const json_t *extra, const char *key)
{
    const char *text = json_string_value(json_array_get(json_object_get(extra, key), 0));
    return text && *text ? text : NULL;
}

static enum api_who find_account(const char *account, const char **ret_name)
{
    static const struct {
        const char *account;
        enum api_who who;
    } accounts[] = {
        {API_ACCESS_POOLS_ACCOUNT, API_WHO_POOL},
        {"orlop-replica", API_WHO_REPLICA},
        {"orlop-csi-node", API_WHO_CSI_NODE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(accounts); i++) {
        if (str_eq(account, accounts[i].account))
            return accounts[i].who;
    }
    static const struct {
        const char *prefix;
        enum api_who who;
    } prefixes[] = {
        {API_ACCESS_POOL_PREFIX, API_WHO_POOL},
        {API_ACCESS_VOLUME_PREFIX, API_WHO_TARGET},
    };
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        if (str_starts_with(account, prefixes[i].prefix)) {
            *ret_name = account + strlen(prefixes[i].prefix);
            return prefixes[i].who;
        }
    }
    return API_WHO_OTHER;
}

void api_actor_init(struct api_actor *a, const char *user, bool in_nodes, const json_t *extra)
{
    *a = (struct api_actor){.who = API_WHO_OTHER};
    if (in_nodes) {
        a->who = API_WHO_NODE;
        if (str_starts_with(user, NODE_PREFIX) &&
            !api_dns_subdomain.check(user + strlen(NODE_PREFIX)))
            a->name = user + strlen(NODE_PREFIX);
        return;
    }
    const char *ns = str_starts_with(user, ACCOUNT_PREFIX) ? user + strlen(ACCOUNT_PREFIX) : NULL;
    const char *colon = ns ? strchr(ns, ':') : NULL;
    if (!colon)
        return;
    a->who = find_account(colon + 1, &a->name);
    if (a->who == API_WHO_OTHER)
        return;
    a->ns = mem_strndup(ns, (size_t)(colon - ns));
    a->pod = first_extra(extra, EXTRA "pod-name");
    a->pod_uid = first_extra(extra, EXTRA "pod-uid");
    if (a->who == API_WHO_CSI_NODE)
        a->name = first_extra(extra, EXTRA "node-name");
}

void api_actor_done(struct api_actor *a)
{
    free(a->ns);
    a->ns = NULL;
}

const char *api_who_text(enum api_who who)
{
    static const char *const texts[API_WHO_COUNT] = {"node", "pool", "target", "replica",
                                                     "CSI node"};
    return who < API_WHO_COUNT ? texts[who] : "other";
}

/* Whether a list of words, separated by spaces, has this one of n bytes. */
static bool has_word(const char *list, const char *word, size_t n)
{
    for (const char *at = list; at && *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        if (size == n && memcmp(at, word, n) == 0)
            return true;
        at += size;
    }
    return false;
}

const struct api_access_rule *api_access_find(enum api_who who, const struct api_kind *kind,
                                              const char *subresource)
{
    const char *part = subresource ? subresource : "";
    for (const struct api_access_rule *r = api_access_rules; r->kind; r++) {
        if (r->who == who && str_eq(r->kind, kind->kind) && str_eq(r->subresource, part))
            return r;
    }
    return NULL;
}

/* What the server keeps of an object, and nobody writes. */
static bool is_servers(const char *key)
{
    static const char *const keys[] = {"resourceVersion",
                                       "generation",
                                       "managedFields",
                                       "creationTimestamp",
                                       "uid",
                                       "selfLink",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       NULL};
    return str_in(key, keys);
}

static bool is_empty(const json_t *value)
{
    return !value || json_is_null(value) || (json_is_object(value) && !json_object_size(value)) ||
           (json_is_array(value) && !json_array_size(value));
}

/* Whether the list allows a change of a path: always, or with a '+' only where there was nothing. */
static bool allows_change(const char *allowed, const char *path, const json_t *old)
{
    _cleanup_free_ char *once = mem_printf("+%s", path);
    return has_word(allowed, path, strlen(path)) ||
           (is_empty(old) && has_word(allowed, once, strlen(once)));
}

/* The first member of either that differs in the other and that the list does not allow; NULL. Owned. */
static char *find_change(const char *allowed, const char *part, const json_t *old,
                         const json_t *object)
{
    const json_t *const sides[] = {old, object};
    const char *key;
    json_t *unused;
    bool metadata = str_eq(part, "metadata");
    for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
        json_object_foreach((json_t *)(uintptr_t)sides[i], key, unused) {
            const json_t *was = json_object_get(old, key), *is = json_object_get(object, key);
            if ((was && is && json_equal(was, is)) || (is_empty(was) && is_empty(is)) ||
                (metadata && is_servers(key)))
                continue;
            char *path = mem_printf("%s%s%s", part, *part ? "." : "", key);
            if (!allows_change(allowed, path, was))
                return path;
            free(path);
        }
    }
    return NULL;
}

/* The first field that an update changes and may not; NULL. Owned. */
static char *find_foreign_change(const char *allowed, const json_t *old, const json_t *object)
{
    static const char *const parts[] = {"metadata", "spec"};
    json_auto_t *was = json_copy((json_t *)(uintptr_t)old);
    json_auto_t *is = json_copy((json_t *)(uintptr_t)object);
    char *found = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(parts) && !found; i++) {
        if (!has_word(allowed, parts[i], strlen(parts[i])))
            found = find_change(allowed, parts[i], json_object_get(was, parts[i]),
                                json_object_get(is, parts[i]));
        json_object_del(was, parts[i]);
        json_object_del(is, parts[i]);
    }
    json_object_del(was, "apiVersion"); /* the same object in another version */
    json_object_del(is, "apiVersion");
    return found ? found : find_change(allowed, "", was, is);
}

static int refuse(const struct api_actor *a, const struct api_write *w, struct err *e,
                  const char *why)
{
    const char *name =
        json_str(json_object_get(w->object ? w->object : w->old, "metadata"), "name");
    bool part = w->subresource && *w->subresource;
    return err_set(e, ERR_PERMISSION_DENIED, "Forbidden", "%s%s%s%s may not %s %s%s%s \"%s\": %s",
                   api_who_text(a->who), a->name ? " \"" : "", a->name ? a->name : "",
                   a->name ? "\"" : "", w->verb, w->kind->plural, part ? "/" : "",
                   part ? w->subresource : "", name ? name : "", why);
}

int api_access_check(const struct api_actor *a, const struct api_write *w,
                     const struct api_lookup *lookup, struct err *e)
{
    if (a->who == API_WHO_OTHER || w->kind->schema) /* others, and what users define: by roles */
        return 0;
    const struct api_access_rule *rule = api_access_find(a->who, w->kind, w->subresource);
    if (!rule || !has_word(rule->verbs, w->verb, strlen(w->verb)))
        return refuse(a, w, e,
                      "programs of Orlop write only what the table in the guide on access "
                      "names");
    struct err why = {0};
    bool taken = w->old && w->object && rule->takes && rule->takes(w->old);
    bool own = (!w->old || taken || rule->owns(a, w->old, lookup, &why)) &&
               (!w->object || rule->owns(a, w->object, lookup, &why));
    if (why.code) {
        *e = why;
        return -1;
    }
    if (!own) {
        _cleanup_free_ char *text = mem_printf("it may write only %s", rule->own);
        return refuse(a, w, e, text);
    }
    _cleanup_free_ char *changed = w->old && w->object && rule->changes
                                       ? find_foreign_change(rule->changes, w->old, w->object)
                                       : NULL;
    if (!changed)
        return 0;
    _cleanup_free_ char *text =
        mem_printf("it would change %s, and may change only %s", changed, rule->changes);
    return refuse(a, w, e, text);
}
