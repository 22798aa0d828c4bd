/*
 * Which collection of the API is meant: all that a URL needs to know of a kind.
 *
 *     struct kube_resource pods = kube_resource("v1", "Pod");
 *     struct kube_resource lvs = kube_resource("topolvm.io/v1", "LogicalVolume");
 */
#pragma once

#include <stdbool.h>

struct kube_resource {
    const char *api_version; /* "v1", "openebs.io/v1alpha1" */
    const char *kind, *plural;
    bool namespaced;
    bool optional; /* set by whoever can do without: a server that lacks the kind has none of it */
};

/* The collections of Kubernetes' own kinds that Orlop uses; ends with one without a kind. */
extern const struct kube_resource kube_builtin_resources[];

/*
 * Of one of those, or of a kind in the tables of src/kinds, in that version of it; one that is not
 * there is a mistake in the program and ends it. Points to what lives for ever, if api_version does:
 * a literal.
 */
struct kube_resource kube_resource(const char *api_version, const char *kind);
