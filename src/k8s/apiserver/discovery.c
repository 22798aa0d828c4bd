#include "k8s/apiserver/discovery.h"

#include "base/vec.h"
#include "k8s/apiserver/path.h"

#ifdef __aarch64__
#define PLATFORM "linux/arm64"
#else
#define PLATFORM "linux/amd64"
#endif

bool apiserver_kind_in(const struct api_kind *kind, const char *group, const char *version)
{
    for (const struct api_group_version *gv = kind->versions; gv->group; gv++) {
        if (str_eq(gv->group, group) && str_eq(gv->version, version))
            return true;
    }
    return false;
}

struct version {
    int stage; /* 2 stable, 1 beta, 0 alpha, -1 some other word */
    unsigned major, minor;
};

/* A number of at most six digits, as versions have; 0 when there is none. */
static unsigned read_number(const char **s)
{
    unsigned n = 0;
    for (int digits = 0; **s >= '0' && **s <= '9' && digits < 6; digits++)
        n = n * 10 + (unsigned)(*(*s)++ - '0');
    return n;
}

static struct version read_version(const char *text)
{
    struct version v = {.stage = 2}, other = {.stage = -1};
    if (*text++ != 'v' || (v.major = read_number(&text)) == 0)
        return other;
    if (!*text)
        return v;
    bool beta = str_starts_with(text, "beta");
    if (!beta && !str_starts_with(text, "alpha"))
        return other;
    text += beta ? strlen("beta") : strlen("alpha");
    v.stage = beta;
    v.minor = read_number(&text);
    return v.minor && !*text ? v : other;
}

int apiserver_version_cmp(const char *a, const char *b)
{
    struct version x = read_version(a), y = read_version(b);
    if (x.stage != y.stage)
        return x.stage > y.stage ? -1 : 1;
    if (x.major != y.major)
        return x.major > y.major ? -1 : 1;
    if (x.minor != y.minor)
        return x.minor > y.minor ? -1 : 1;
    return strcmp(a, b);
}

/*
 * Where a version goes: before the first of its group that it precedes, else behind its group. False
 * when it is there already.
 */
static bool find_place(const struct api_group_version *all, size_t n,
                       const struct api_group_version *gv, size_t *ret_at)
{
    bool in_group = false;
    for (*ret_at = 0; *ret_at < n; ++*ret_at) {
        bool same = str_eq(all[*ret_at].group, gv->group);
        int order = same ? apiserver_version_cmp(gv->version, all[*ret_at].version) : 0;
        if (same && order == 0)
            return false;
        if (order < 0 || (in_group && !same))
            return true;
        in_group = same;
    }
    return true;
}

struct api_group_version *apiserver_versions(const struct api_kind *const *kinds)
{
    VEC(struct api_group_version) all = {0};
    for (const struct api_kind *const *k = kinds; *k; k++) {
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            size_t at;
            if (!find_place(all.p, all.len, gv, &at))
                continue;
            vec_push(&all, *gv);
            memmove(all.p + at + 1, all.p + at, (all.len - 1 - at) * sizeof(*all.p));
            all.p[at] = *gv;
        }
    }
    vec_push(&all, (struct api_group_version){0});
    return all.p;
}

static json_t *strings(const char *const *words)
{
    json_t *list = json_array();
    for (const char *const *w = words; w && *w; w++)
        json_array_append_new(list, json_string(*w));
    return list;
}

/* Those that `kubectl get all` shows, and the like. */
static json_t *categories(const struct api_kind *kind)
{
    static const char *const all[] = {"pods",         "services",    "deployments",
                                      "statefulsets", "replicasets", "daemonsets",
                                      "jobs",         "cronjobs",    NULL};
    static const char *const extensions[] = {"customresourcedefinitions",
                                             "validatingwebhookconfigurations",
                                             "mutatingwebhookconfigurations", NULL};
    if (kind->categories)
        return strings(kind->categories);
    json_t *list = json_array();
    if (!(kind->flags & API_BUILTIN))
        json_array_append_new(list, json_string("orlop"));
    else if (str_in(kind->plural, all))
        json_array_append_new(list, json_string("all"));
    else if (str_in(kind->plural, extensions))
        json_array_append_new(list, json_string("api-extensions"));
    return list;
}

/* Of kinds that have a definition, Kubernetes names what all have before what changes things. */
static json_t *verbs(const struct api_kind *kind, enum apiserver_subresource subresource)
{
    static const enum apiserver_verb sorted[] = {
        APISERVER_CREATE, APISERVER_DELETE, APISERVER_DELETE_COLLECTION,
        APISERVER_GET,    APISERVER_LIST,   APISERVER_PATCH,
        APISERVER_UPDATE, APISERVER_WATCH,
    };
    static const enum apiserver_verb defined[] = {
        APISERVER_DELETE, APISERVER_DELETE_COLLECTION,
        APISERVER_GET,    APISERVER_LIST,
        APISERVER_PATCH,  APISERVER_CREATE,
        APISERVER_UPDATE, APISERVER_WATCH,
    };
    _Static_assert(ARRAY_SIZE(sorted) == ARRAY_SIZE(defined), "the same verbs");
    const enum apiserver_verb *order = kind->flags & API_BUILTIN ? sorted : defined;
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(sorted); i++) {
        if (apiserver_allows(kind, subresource, order[i]))
            json_array_append_new(list, json_string(apiserver_verb_text(order[i])));
    }
    return list;
}

static void set_unless_empty(json_t *object, const char *key, json_t *list)
{
    if (json_array_size(list))
        json_object_set(object, key, list);
    json_decref(list);
}

/* In the canonical group only: kubectl would find a kind of two groups ambiguous. */
static void set_short_names(json_t *resource, const struct api_kind *kind, const char *group)
{
    if (str_eq(group, api_kind_canonical(kind)->group))
        set_unless_empty(resource, "shortNames", strings(kind->short_names));
}

static const struct {
    enum apiserver_subresource id;
    const char *name, *group, *version, *kind; /* what it is, when not the kind itself */
} subresources[] = {
    {APISERVER_APPROVAL, "approval", "", "", NULL},
    {APISERVER_BINDING, "binding", "", "", "Binding"},
    {APISERVER_SCALE, "scale", "autoscaling", "v1", "Scale"},
    {APISERVER_STATUS, "status", "", "", NULL},
    {APISERVER_TOKEN, "token", "authentication.k8s.io", "v1", "TokenRequest"},
};

/* Which comes at a place: by name, but for kinds that have a definition the status first. */
static size_t subresource_at(const struct api_kind *kind, size_t i)
{
    enum { SCALE = 2, STATUS = 3 };
    return (i == SCALE || i == STATUS) && !(kind->flags & API_BUILTIN) ? SCALE + STATUS - i : i;
}

static void append_resource(json_t *list, const struct api_kind *kind, const char *group)
{
    bool namespaced = !(kind->flags & API_CLUSTER_SCOPED);
    json_t *r = json_pack("{s:s,s:s,s:b,s:s,s:o}", "name", kind->plural, "singularName",
                          kind->singular, "namespaced", namespaced, "kind", kind->kind, "verbs",
                          verbs(kind, APISERVER_MAIN));
    set_short_names(r, kind, group);
    set_unless_empty(r, "categories", categories(kind));
    json_array_append_new(list, r);
    for (size_t place = 0; place < ARRAY_SIZE(subresources); place++) {
        size_t i = subresource_at(kind, place);
        if (!apiserver_has_subresource(kind, subresources[i].id))
            continue;
        const char *other = subresources[i].kind;
        r = json_pack("{s:o,s:s,s:b}", "name",
                      json_sprintf("%s/%s", kind->plural, subresources[i].name), "singularName", "",
                      "namespaced", namespaced);
        if (*subresources[i].version) {
            json_object_set_new(r, "group", json_string(subresources[i].group));
            json_object_set_new(r, "version", json_string(subresources[i].version));
        }
        json_object_set_new(r, "kind", json_string(other ? other : kind->kind));
        json_object_set_new(r, "verbs", verbs(kind, subresources[i].id));
        json_array_append_new(list, r);
    }
}

json_t *apiserver_resource_list(const struct api_kind *const *kinds, const char *group,
                                const char *version)
{
    json_auto_t *resources = json_array();
    for (const struct api_kind *const *k = kinds; *k; k++) {
        if (apiserver_kind_in(*k, group, version))
            append_resource(resources, *k, group);
    }
    if (!json_array_size(resources))
        return NULL;
    char text[128];
    struct api_group_version gv = {group, version};
    return json_pack("{s:s,s:s,s:s,s:O}", "kind", "APIResourceList", "apiVersion", "v1",
                     "groupVersion", api_version_text(&gv, text), "resources", resources);
}

json_t *apiserver_core_versions(const struct api_kind *const *kinds, const char *address)
{
    _cleanup_free_ struct api_group_version *all = apiserver_versions(kinds);
    json_t *versions = json_array(), *addresses = json_array();
    for (const struct api_group_version *gv = all; gv->group; gv++) {
        if (!*gv->group)
            json_array_append_new(versions, json_string(gv->version));
    }
    if (address)
        json_array_append_new(
            addresses, json_pack("{s:s,s:s}", "clientCIDR", "0.0.0.0/0", "serverAddress", address));
    return json_pack("{s:s,s:o,s:o}", "kind", "APIVersions", "versions", versions,
                     "serverAddressByClientCIDRs", addresses);
}

/* {name, versions, preferredVersion} */
static json_t *group_entry(const struct api_group_version *all, const char *group)
{
    json_auto_t *versions = json_array();
    for (const struct api_group_version *gv = all; gv->group; gv++) {
        char text[128];
        if (str_eq(gv->group, group))
            json_array_append_new(versions,
                                  json_pack("{s:s,s:s}", "groupVersion", api_version_text(gv, text),
                                            "version", gv->version));
    }
    if (!json_array_size(versions))
        return NULL;
    return json_pack("{s:s,s:O,s:O}", "name", group, "versions", versions, "preferredVersion",
                     json_array_get(versions, 0));
}

static bool begins_group(const struct api_group_version *all, const struct api_group_version *gv)
{
    return gv == all || !str_eq(gv[-1].group, gv->group);
}

json_t *apiserver_group_list(const struct api_kind *const *kinds)
{
    _cleanup_free_ struct api_group_version *all = apiserver_versions(kinds);
    json_t *groups = json_array();
    for (const struct api_group_version *gv = all; gv->group; gv++) {
        if (*gv->group && begins_group(all, gv))
            json_array_append_new(groups, group_entry(all, gv->group));
    }
    return json_pack("{s:s,s:s,s:o}", "kind", "APIGroupList", "apiVersion", "v1", "groups", groups);
}

json_t *apiserver_group(const struct api_kind *const *kinds, const char *group)
{
    _cleanup_free_ struct api_group_version *all = apiserver_versions(kinds);
    json_auto_t *entry = *group ? group_entry(all, group) : NULL;
    if (!entry)
        return NULL;
    json_t *reply = json_pack("{s:s,s:s}", "kind", "APIGroup", "apiVersion", "v1");
    json_object_update(reply, entry);
    return reply;
}

/* What answers: the kind of the same group and version has both empty. */
static json_t *response_kind(const char *group, const char *version, const char *kind)
{
    return json_pack("{s:s,s:s,s:s}", "group", group, "version", version, "kind", kind);
}

static json_t *aggregated_resource(const struct api_kind *kind, const char *group)
{
    json_t *r = json_pack("{s:s,s:o,s:s,s:s,s:o}", "resource", kind->plural, "responseKind",
                          response_kind("", "", kind->kind), "scope",
                          kind->flags & API_CLUSTER_SCOPED ? "Cluster" : "Namespaced",
                          "singularResource", kind->singular, "verbs", verbs(kind, APISERVER_MAIN));
    set_short_names(r, kind, group);
    set_unless_empty(r, "categories", categories(kind));
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(subresources); i++) {
        const char *other = subresources[i].kind;
        if (apiserver_has_subresource(kind, subresources[i].id))
            json_array_append_new(
                list,
                json_pack("{s:s,s:o,s:o}", "subresource", subresources[i].name, "responseKind",
                          response_kind(subresources[i].group, subresources[i].version,
                                        other ? other : kind->kind),
                          "verbs", verbs(kind, subresources[i].id)));
    }
    set_unless_empty(r, "subresources", list);
    return r;
}

json_t *apiserver_aggregated_discovery(const struct api_kind *const *kinds, bool core)
{
    _cleanup_free_ struct api_group_version *all = apiserver_versions(kinds);
    json_t *items = json_array(), *versions = NULL;
    for (const struct api_group_version *gv = all; gv->group; gv++) {
        if (core != !*gv->group)
            continue;
        if (begins_group(all, gv)) {
            json_t *metadata = core ? json_object() : json_pack("{s:s}", "name", gv->group);
            versions = json_array();
            json_array_append_new(
                items, json_pack("{s:o,s:o}", "metadata", metadata, "versions", versions));
        }
        json_t *resources = json_array();
        for (const struct api_kind *const *k = kinds; *k; k++) {
            if (apiserver_kind_in(*k, gv->group, gv->version))
                json_array_append_new(resources, aggregated_resource(*k, gv->group));
        }
        json_array_append_new(versions, json_pack("{s:s,s:o,s:s}", "version", gv->version,
                                                  "resources", resources, "freshness", "Current"));
    }
    return json_pack("{s:s,s:s,s:{},s:o}", "kind", "APIGroupDiscoveryList", "apiVersion",
                     "apidiscovery.k8s.io/v2", "metadata", "items", items);
}

json_t *apiserver_version(void)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "major", APISERVER_KUBERNETES_MAJOR,
                     "minor", APISERVER_KUBERNETES_MINOR, "gitVersion",
                     "v" APISERVER_KUBERNETES_MAJOR "." APISERVER_KUBERNETES_MINOR
                     ".0+orlop-" ORLOP_VERSION,
                     "gitCommit", "", "gitTreeState", "clean", "buildDate", "1970-01-01T00:00:00Z",
                     "goVersion", "none", "compiler", "cc", "platform", PLATFORM);
}
