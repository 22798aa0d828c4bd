/*
 * Where the API is and who we are there: from a kubeconfig, or from what Kubernetes gives a Pod.
 *
 * Everything is copied in: files that a kubeconfig names are read when it is loaded, except the
 * token file, which Kubernetes rotates: the client reads it again. Credential plugins (exec) and
 * insecure-skip-tls-verify are refused with what to do instead.
 */
#pragma once

#include "base/err.h"

struct kube_config {
    char *server;             /* "https://host:port", without a slash at the end */
    char *ca;                 /* PEM; NULL: the system's */
    char *certificate, *key;  /* PEM; NULL: none */
    char *token, *token_file; /* NULL: none; the file wins */
    char *ns;                 /* the namespace to use where none is named; never NULL */
    char *address;            /* numeric host to connect to when tls-server-name names another */
};

/*
 * path NULL: $KUBECONFIG (the first of several that exists), else the in-cluster credentials where
 * there are some, else ~/.kube/config. context NULL: the current one.
 */
int kube_config_load(const char *path, const char *context, struct kube_config *ret_config,
                     struct err *e);
void kube_config_done(struct kube_config *c);
