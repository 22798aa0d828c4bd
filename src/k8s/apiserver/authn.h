/*
 * Authentication: who asks.
 *
 *     client certificate ──valid──> CN is the user, O are the groups
 *     bearer token ─┬─ of the token file
 *                   ├─ of a service account, signed by this server
 *                   └─ bootstrap token: a Secret in kube-system
 *     nothing ─────────────────────> system:anonymous
 *
 * The first that is valid counts. Credentials of which none is valid are Unauthorized, and the answer
 * does not say why. On plain HTTP, which is for tests, who shows nothing may do everything.
 */
#pragma once

#include "base/err.h"
#include "k8s/apiserver/user.h"
#include "pki/key.h"

struct apiserver;
struct call;

/* The API's own audience, and the issuer of its tokens. */
#define APISERVER_AUDIENCE "https://kubernetes.default.svc.cluster.local"

/* Sets c->user, a reference of the call's. Unauthorized for credentials that are not valid. */
int apiserver_authenticate(struct call *c);
/*
 * In place of the user, the one that Impersonate-User names, with the groups, uid and extra of the
 * other Impersonate headers; c->real is who they are then. Forbidden unless they may.
 */
int apiserver_impersonate(struct call *c);

/*
 * The user of a bearer token that is valid for one of the audiences (a list of strings, NULL: the
 * API's own); UNAUTHENTICATED. *ret_audiences, if given: which of them; a new reference.
 */
const struct apiserver_user *apiserver_authenticate_token(struct apiserver *a, const char *token,
                                                          const json_t *audiences,
                                                          json_t **ret_audiences, struct err *e);

/* authn_file.c: tokens in a file, as kube-apiserver has it: token,user,uid,"group1,group2" */
struct apiserver_token_file;
int apiserver_token_file_open(const char *path, struct apiserver_token_file **ret_file,
                              struct err *e);
void apiserver_token_file_free(struct apiserver_token_file *f); /* NULL is fine */
/* A new reference, or NULL. */
const struct apiserver_user *apiserver_token_file_find(const struct apiserver_token_file *f,
                                                       const char *token);

/* authn_bootstrap.c: a new reference, or NULL. */
const struct apiserver_user *apiserver_bootstrap_find(struct apiserver *a, const char *token);
/* Whether a Secret is a bootstrap token for that use, "authentication" or "signing", and not over. */
bool apiserver_bootstrap_is(const struct apiserver *a, const json_t *secret, const char *use,
                            char ret_id[7], char ret_secret[17]);
/* Whether it is a bootstrap token whose time is over. */
bool apiserver_bootstrap_is_over(const struct apiserver *a, const json_t *secret);
/* "id.secret", 6 and 16 lower-case letters and digits. */
bool apiserver_bootstrap_parse(const char *token, char ret_id[7], char ret_secret[17]);

/* authn_account.c: tokens of service accounts. */
struct apiserver_account_token {
    const json_t *account;      /* the ServiceAccount */
    const char *bound_kind;     /* "Pod", "Secret", "Node"; NULL: to nothing else */
    const json_t *bound, *node; /* these objects; node: of a bound pod; NULL: none */
    const json_t *audiences;    /* a list of strings */
    int64_t seconds;            /* how long it is valid */
};
int apiserver_account_token(struct apiserver *a, const struct apiserver_account_token *t,
                            struct str *ret_token, int64_t *ret_until, struct err *e);
/* A new reference, or NULL. *ret_token_audiences: a new reference to what it is for. */
const struct apiserver_user *apiserver_account_find(struct apiserver *a, const char *token,
                                                    json_t **ret_token_audiences);

/* The object of a kind by name, or NULL; `kind` is one of Kubernetes' own of version v1. */
json_t *apiserver_core_object(struct apiserver *a, const char *kind, const char *namespace,
                              const char *name);
