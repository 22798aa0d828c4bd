/*
 * What a ResourceQuota counts. Each name in its spec.hard is a term: objects of one kind, each
 * worth one or its size.
 *
 *     requests.storage                                        sizes of all claims
 *     persistentvolumeclaims                                  how many claims
 *     CLASS.storageclass.storage.k8s.io/requests.storage      the same, of one storage class
 *     CLASS.storageclass.storage.k8s.io/persistentvolumeclaims
 *     pods services secrets configmaps resourcequotas         how many; of pods those not finished
 *     count/PLURAL  count/PLURAL.GROUP                        how many of any kind
 *
 * Other names are limits that nothing here uses up. A quota with scopes counts only what is in all of
 * them: BestEffort, NotBestEffort, Terminating, NotTerminating, PriorityClass and
 * CrossNamespacePodAffinity of pods, VolumeAttributesClass of claims.
 */
#pragma once

#include "base/quantity.h"
#include "k8s/apiserver/registry.h"

struct quota_term {
    const struct api_kind *kind;
    char class[APISERVER_NAME_MAX + 1]; /* only claims of this class; "": of any */
    bool storage;                       /* sizes are added up */
    bool unfinished;                    /* only pods that have not ended */
    const json_t *quota;                /* only what is in its scopes; NULL: it has none */
};

/* False when nothing is counted under that name. The kinds are all there are. */
bool quota_term_parse(const struct api_kind *const *kinds, const char *name,
                      struct quota_term *ret_term);
/* The same for a name in a quota that lives as long, with its scopes. */
bool quota_term_of(const struct api_kind *const *kinds, const json_t *quota, const char *name,
                   struct quota_term *ret_term);
/* What one object of the term's kind uses, in nano-units; NULL uses nothing. */
__int128 quota_term_amount(const struct quota_term *t, const json_t *object);
/* Whether the amount depends on the object, or every one uses the same. */
bool quota_term_needs_object(const struct quota_term *t);

/* The namespace's quotas; false when there are none. A list to be done in either case. */
bool quota_list(struct apiserver_registry *g, const char *namespace, struct apiserver_list *ret);
/* quota_scope.c */
bool quota_is_scoped(const json_t *quota);
bool quota_has_in_scope(const json_t *quota, const struct api_kind *kind, const json_t *object);
/* An amount as text, in the suffixes of the limit. */
void quota_amount_text(__int128 nano, const json_t *limit, char buf[QUANTITY_TEXT_MAX]);
__int128 quota_limit(const json_t *limit);
