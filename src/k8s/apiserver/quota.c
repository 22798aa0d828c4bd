#include "k8s/apiserver/quota.h"

#include "k8s/kinds/kinds.h"

static const char class_infix[] = ".storageclass.storage.k8s.io/";
static const __int128 ONE = 1000000000; /* in nano-units */

static bool parse_claims(const char *name, struct quota_term *t)
{
    t->kind = &api_persistent_volume_claim;
    t->storage = str_eq(name, "requests.storage");
    return t->storage || str_eq(name, "persistentvolumeclaims");
}

/* "deployments.apps" */
static bool parse_count(const struct api_kind *const *kinds, const char *name, struct quota_term *t)
{
    size_t n = strcspn(name, ".");
    const char *group = name[n] ? name + n + 1 : "";
    for (const struct api_kind *const *k = kinds; *k; k++) {
        if (strlen((*k)->plural) == n && strncmp((*k)->plural, name, n) == 0 &&
            str_eq(api_kind_canonical(*k)->group, group)) {
            t->kind = *k;
            return !((*k)->flags & API_CLUSTER_SCOPED);
        }
    }
    return false;
}

bool quota_term_parse(const struct api_kind *const *kinds, const char *name,
                      struct quota_term *ret_term)
{
    static const char *const plain[] = {"pods",       "services",       "secrets",
                                        "configmaps", "resourcequotas", NULL};
    *ret_term = (struct quota_term){0};
    const char *infix = strstr(name, class_infix);
    if (infix) {
        size_t n = (size_t)(infix - name);
        if (n == 0 || n >= sizeof(ret_term->class))
            return false;
        memcpy(ret_term->class, name, n);
        return parse_claims(infix + strlen(class_infix), ret_term);
    }
    if (str_starts_with(name, "count/"))
        return parse_count(kinds, name + strlen("count/"), ret_term);
    if (str_in(name, plain)) {
        ret_term->unfinished = str_eq(name, "pods");
        return parse_count(kinds, name, ret_term);
    }
    return parse_claims(name, ret_term);
}

bool quota_term_of(const struct api_kind *const *kinds, const json_t *quota, const char *name,
                   struct quota_term *ret_term)
{
    bool found = quota_term_parse(kinds, name, ret_term);
    ret_term->quota = quota_is_scoped(quota) ? quota : NULL;
    return found;
}

bool quota_term_needs_object(const struct quota_term *t)
{
    return t->quota || t->storage || *t->class || t->unfinished;
}

static __int128 nano_of(const json_t *value)
{
    struct quantity q = {0};
    _cleanup_(str_done) struct str number = {0};
    if (json_is_number(value))
        json_format(value, &number);
    const char *text = json_is_string(value) ? json_string_value(value) : str_get(&number);
    return quantity_parse(text, &q, NULL) < 0 ? 0 : q.nano;
}

__int128 quota_limit(const json_t *limit)
{
    return nano_of(limit);
}

/* While a claim grows, or did not manage to, the larger of what it asks for and what it may have. */
static __int128 size_of(const json_t *claim)
{
    __int128 asked = nano_of(json_at(claim, "spec", "resources", "requests", "storage"));
    const json_t *allocated = json_at(claim, "status", "allocatedResources", "storage");
    __int128 given = allocated ? nano_of(allocated) : 0;
    return given > asked ? given : asked;
}

__int128 quota_term_amount(const struct quota_term *t, const json_t *object)
{
    if (!object || (t->quota && !quota_has_in_scope(t->quota, t->kind, object)))
        return 0;
    if (*t->class) {
        const char *class = json_str(json_object_get(object, "spec"), "storageClassName");
        if (!class || !str_eq(class, t->class))
            return 0;
    }
    if (t->unfinished) {
        static const char *const ended[] = {"Succeeded", "Failed", NULL};
        const char *phase = json_str(json_object_get(object, "status"), "phase");
        return phase && str_in(phase, ended) ? 0 : ONE;
    }
    return t->storage ? size_of(object) : ONE;
}

bool quota_list(struct apiserver_registry *g, const char *namespace, struct apiserver_list *ret)
{
    _cleanup_(str_done) struct str collection = {0}, prefix = {0};
    apiserver_collection(&api_resource_quota, &collection);
    str_appendf(&prefix, "%s/", namespace);
    struct apiserver_list_options here = {.prefix = str_get(&prefix)};
    return apiserver_store_list(g->store, str_get(&collection), &here, ret, NULL) == 0 &&
           ret->objects.len > 0;
}

void quota_amount_text(__int128 nano, const json_t *limit, char buf[QUANTITY_TEXT_MAX])
{
    struct quantity q = {0};
    if (json_is_string(limit))
        (void)quantity_parse(json_string_value(limit), &q, NULL);
    q.nano = nano;
    quantity_format(&q, buf);
}
