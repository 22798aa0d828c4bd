/*
 * What the files of role-based access share.
 */
#pragma once

#include "base/arena.h"
#include "k8s/apiserver/rbac.h"

/* One rule; the lists end with NULL. */
struct rbac_rule {
    const char **verbs, **groups, **resources, **names, **paths;
};

struct rbac_rules {
    struct rbac_rule *p;
    size_t n;
};

/* rbac_rule.c */
/* From a role's rules, into the arena; what has not the expected type is left out. */
struct rbac_rules rbac_rules_compile(const json_t *rules, struct arena *a);
bool rbac_rule_allows(const struct rbac_rule *rule, const struct apiserver_attributes *attributes);
/* Whether the owner's rules allow everything that this rule does. */
bool rbac_rules_cover(const struct rbac_rule *const *owned, size_t n_owned,
                      const struct rbac_rule *rule);

enum { RBAC_COMBINATIONS = 100000 }; /* of a role, at most looked at one by one */

/*
 * Appends to `missing` what the rule allows and the owner's do not, by group and resource, or path.
 * False when looking at its combinations would take more than what is left of the budget.
 */
bool rbac_rules_missing(const struct rbac_rule *const *owned, size_t n_owned,
                        const struct rbac_rule *rule, size_t *budget, struct str *missing);

/* Everything that a user may do, held still. */
struct rbac_view {
    struct rbac_snapshot *snapshot;
    VEC(const struct rbac_rule *) rules;
    struct str error; /* roles that are bound and not there */
};

/* rbac.c */
void rbac_view_init(struct rbac_view *v, struct apiserver_rbac *r,
                    const struct apiserver_user *user, const char *namespace);
void rbac_view_done(struct rbac_view *v);
/* The rules of a role; NULL when there is none. They live as long as the view. */
const struct rbac_rules *rbac_view_role(const struct rbac_view *v, const char *namespace,
                                        const char *name);

/* rbac_defaults.c */
/* Words in these are separated by spaces; "core" is the group without a name. */
struct rbac_default_rule {
    const char *groups, *resources, *names, *verbs;
    const char *paths;
};

struct rbac_default_role {
    const char *name;
    const struct rbac_default_rule *rules; /* ends with a rule without verbs; NULL: aggregated */
    const char *aggregate_from;            /* the last word of the label that it selects */
    const char *aggregate_to;              /* the last word of a label that it has */
    const char *namespace;                 /* of a Role; NULL: it is a ClusterRole */
};

struct rbac_default_binding {
    const char *role;           /* also the binding's name */
    const char *users, *groups; /* or NULL */
    const char *namespace;      /* of the Role and the RoleBinding; NULL: of the whole cluster */
};

extern const struct rbac_default_role rbac_default_roles[];       /* ends with {0} */
extern const struct rbac_default_binding rbac_default_bindings[]; /* ends with {0} */
