/*
 * What the files of the webhooks share.
 */
#pragma once

#include "api/selector.h"
#include "http/client.h"
#include "k8s/apiserver/webhook.h"
#include "k8s/cel/cel.h"

/* A condition that must hold; one that cannot be compiled has an error instead. */
struct webhook_condition {
    const char *name;
    struct cel_program *program;
    struct err err;
};

/* One webhook, ready to be asked. */
struct webhook {
    const char *name;
    const json_t *spec; /* its element of the configuration, which the set holds */
    bool ignore;        /* failurePolicy */
    bool reinvoke;
    bool side_effects; /* it must not be asked in a dry run */
    int64_t timeout_ns;
    struct api_selector namespaces, objects;
    VEC(struct webhook_condition) conditions;
    struct http_client *client; /* NULL: err says why */
    struct err err;
};

/* webhook_set.c: what a list of configurations comes to. */
struct webhook_set {
    unsigned refs;                          /* atomic */
    VEC(struct apiserver_object *) objects; /* that it was made of, with references */
    VEC(json_t *) documents;
    VEC(struct webhook) hooks;
};

/* One that is nothing but a place to send to: `spec` has its clientConfig and lives longer. */
void webhook_init(struct webhook *h, const json_t *spec, int seconds);
void webhook_done(struct webhook *h);
struct webhook_set *webhook_set_new(const struct apiserver_list *list);
bool webhook_set_is_of(const struct webhook_set *s, const struct apiserver_list *list);
struct webhook_set *webhook_set_ref(struct webhook_set *s);
void webhook_set_unref(struct webhook_set *s); /* NULL is fine */
DEFINE_CLEANUP(struct webhook_set *, webhook_set_unref)

/* webhook_match.c */

/*
 * Whether rules and selectors select the request. *ret_gv is the version that the webhook wants it
 * in.
 */
bool webhook_matches(const struct webhook *h, const struct apiserver_admission *a,
                     const struct api_group_version **ret_gv);
/* The same for the rules alone. */
bool webhook_rules_match(const json_t *rules, bool equivalent, const struct apiserver_request *r,
                         const char *operation, const struct api_group_version **ret_gv);

/* webhook_review.c */

const char *webhook_operation(const struct apiserver_admission *a); /* "CREATE" */
/* The AdmissionReview for a webhook that wants it in that version. New reference. */
json_t *webhook_review(const struct apiserver_admission *a, const struct api_group_version *gv,
                       const char *uid);

/* webhook_conditions.c: 1: ask; 0: one does not hold; -1: none is false and one is an error. */
int webhook_conditions(const struct webhook *h, const struct apiserver_admission *a,
                       const json_t *review, struct err *e);

/* webhook_call.c */

/* Sends a document; what comes back, a new reference, or NULL: Post "https://...": ... */
json_t *webhook_send(const struct webhook *h, struct apiserver_registry *g, const json_t *body,
                     struct err *e);

/*
 * Asks. *ret_response is the response, checked as far as the API demands; a new reference. The error
 * is complete: failed calling webhook "x": ...
 */
int webhook_call(const struct webhook *h, struct apiserver_registry *g, const json_t *review,
                 bool mutating, int64_t timeout_ns, json_t **ret_response, struct err *e);
