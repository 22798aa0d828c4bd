/*
 * Bootstrap tokens: what a machine shows to join, once, for a short time. They are Secrets of the
 * form that Kubernetes gives them, so kubeadm's and ours are the same.
 */
#pragma once

#include "kube/client.h"

enum {
    UP_TOKEN_MAX = 24,      /* "abcdef.0123456789abcdef" and a NUL */
    UP_TOKEN_SECONDS = 900, /* of one for nodes that are started at once */
};

/* Makes one that is good for so many seconds. */
int up_token_create(struct kube_client *client, const char *description, unsigned seconds,
                    char ret_token[UP_TOKEN_MAX], struct err *e);
