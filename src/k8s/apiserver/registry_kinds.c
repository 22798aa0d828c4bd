#include "k8s/apiserver/kinds.h"
#include "k8s/apiserver/registry_impl.h"

const struct api_kind *apiserver_kind_find(struct apiserver_registry *g, const char *api_version,
                                           const char *kind)
{
    _cleanup_(apiserver_kinds_unrefp) struct apiserver_kinds *set = apiserver_kinds_get(g);
    for (const struct api_kind *const *k = set->all; *k; k++) {
        if (!str_eq((*k)->kind, kind))
            continue;
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            char text[128];
            if (str_eq(api_version_text(gv, text), api_version))
                return *k;
        }
    }
    return NULL;
}

const struct api_kind *apiserver_kind_of(struct apiserver_registry *g, const char *collection)
{
    const char *slash = strchr(collection, '/');
    size_t n = slash ? (size_t)(slash - collection) : 0;
    const struct api_kind *found = NULL;
    _cleanup_(apiserver_kinds_unrefp) struct apiserver_kinds *set = apiserver_kinds_get(g);
    for (const struct api_kind *const *k = set->all; slash && *k; k++) {
        const struct api_group_version *gv = api_kind_canonical(*k);
        if (!str_eq((*k)->plural, slash + 1) || strlen(gv->group) != n ||
            strncmp(gv->group, collection, n) != 0)
            continue;
        if (str_eq(gv->version, api_kind_stored(*k)->version))
            return *k; /* its objects are as they are stored */
        found = found ? found : *k;
    }
    return found;
}
