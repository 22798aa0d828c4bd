/*
 * Role-based access: what the Roles, ClusterRoles and their bindings that are stored allow.
 *
 *     subject ──> bindings ──> role ──> rules: verbs × groups × resources [× names], or verbs × paths
 *
 * The objects are kept in a compiled form, by subject. A compiled form is immutable and counted:
 * readers take a reference and need no lock while they look. It is made anew by the first reader
 * that comes after one of those objects has changed, so a change holds for every request that comes
 * after the one that made it was answered. Objects that did not change are not compiled again.
 *
 * Whatever is not allowed by some rule is not allowed; there is no rule that forbids.
 */
#pragma once

#include "k8s/apiserver/admission.h"
#include "k8s/apiserver/authz.h"
#include "k8s/apiserver/follow.h"
#include "k8s/apiserver/store.h"

struct apiserver_rbac;

/* The store must live longer. */
struct apiserver_rbac *apiserver_rbac_new(struct apiserver_store *store);
void apiserver_rbac_free(struct apiserver_rbac *r); /* NULL is fine */

bool apiserver_rbac_allows(struct apiserver_rbac *r, const struct apiserver_user *user,
                           const struct apiserver_attributes *attributes, struct str *ret_reason);

/*
 * Appends what a user may do in a namespace ("": in the whole cluster) as authorization.k8s.io has
 * it: {verbs, apiGroups, resources, resourceNames} and {verbs, nonResourceURLs}. ret_error gets what
 * could not be found out.
 */
void apiserver_rbac_rules(struct apiserver_rbac *r, const struct apiserver_user *user,
                          const char *namespace, json_t *resource_rules, json_t *path_rules,
                          struct str *ret_error);

/* Admission: nobody gives away, by a role or a binding, what they do not have. */
int apiserver_rbac_admit(struct apiserver_admission *a, struct err *e);

/* Fills ClusterRoles that have an aggregationRule with the rules of those it selects. */
extern const struct apiserver_follower apiserver_rbac_aggregation;

/*
 * Creates the roles and bindings that every cluster has and adds to them what they lack, unless
 * their annotation rbac.authorization.kubernetes.io/autoupdate says "false". Writes nothing when
 * nothing is missing.
 */
int apiserver_rbac_bootstrap(struct apiserver_registry *g, struct err *e);
