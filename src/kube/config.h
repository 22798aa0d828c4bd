/*
 * Where the API is and who we are there: from a kubeconfig, or from what Kubernetes gives a Pod.
 *
 * Everything is copied in: files that a kubeconfig names are read when it is loaded, except the
 * token file, which Kubernetes rotates: the client reads it again. Credential plugins (exec) and
 * insecure-skip-tls-verify are refused with what to do instead.
 */
#pragma once

#include <stddef.h>

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
 * path NULL: what $KUBECONFIG lists, else the in-cluster credentials where there are some, else
 * ~/.kube/config. Of several files the first that has a cluster, user or context of a name counts,
 * and those that do not exist are passed over. context NULL: the current one.
 */
int kube_config_load(const char *path, const char *context, struct kube_config *ret_config,
                     struct err *e);
/* The text of one kubeconfig; relative paths in it begin at folder. */
int kube_config_parse(const char *text, size_t size, const char *folder, const char *context,
                      struct kube_config *ret_config, struct err *e);
/*
 * What Kubernetes gives a Pod: the address in KUBERNETES_SERVICE_HOST and _PORT, token, authority and
 * namespace in the folder. NULL is where they always are.
 */
int kube_config_in_cluster(const char *folder, struct kube_config *ret_config, struct err *e);
void kube_config_done(struct kube_config *c);
