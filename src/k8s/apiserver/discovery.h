/*
 * Discovery: which groups, versions and kinds there are, for clients that know nothing yet. Both
 * forms: the list of groups with one list of resources per version, and the aggregated one that has
 * everything in one reply.
 *
 * All of it follows from the tables of kinds; groups are in the order in which the kinds name them
 * first, a group's versions in Kubernetes' order: stable before beta before alpha, then the newest.
 * The first of them is the preferred one.
 */
#pragma once

#include "api/kind.h"

/* The release of Kubernetes whose API this is, as /version says. */
#define APISERVER_KUBERNETES_MAJOR "1"
#define APISERVER_KUBERNETES_MINOR "36"

/* GET /api. `address`: host:port where clients find this server; NULL leaves it out. */
json_t *apiserver_core_versions(const struct api_kind *const *kinds, const char *address);
/* GET /apis */
json_t *apiserver_group_list(const struct api_kind *const *kinds);
/* GET /apis/G; NULL when there is no such group. */
json_t *apiserver_group(const struct api_kind *const *kinds, const char *group);
/* GET /api/v1 and /apis/G/V; NULL when there is no such version. */
json_t *apiserver_resource_list(const struct api_kind *const *kinds, const char *group,
                                const char *version);
/* GET /api (core) and /apis (not core), when an APIGroupDiscoveryList is asked for. */
json_t *apiserver_aggregated_discovery(const struct api_kind *const *kinds, bool core);
/* GET /version */
json_t *apiserver_version(void);

/* Every group and version once, in the order above; ends with {NULL}. To be freed. */
struct api_group_version *apiserver_versions(const struct api_kind *const *kinds);
/* The kind has this group and version. */
bool apiserver_kind_in(const struct api_kind *kind, const char *group, const char *version);
/*
 * Which of two versions of a group goes first: below 0, the first one. "v1" before "v2beta1" before
 * "v1alpha1"; what is no such word comes last, by the alphabet.
 */
int apiserver_version_cmp(const char *a, const char *b);
