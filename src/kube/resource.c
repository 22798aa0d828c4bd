#include "kube/resource.h"

#include <stdlib.h>

#include "api/kind.h"
#include "base/log.h"

struct kube_resource kube_resource(const char *api_version, const char *kind)
{
    const struct api_kind *k = api_kind_find(api_version, kind, NULL);
    if (!k) {
        log_error("no such kind in the tables", LOG_S("apiVersion", api_version),
                  LOG_S("kind", kind));
        abort();
    }
    return (struct kube_resource){api_version, k->kind, k->plural,
                                  !(k->flags & API_CLUSTER_SCOPED)};
}
