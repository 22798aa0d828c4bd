/*
 * Private to config*.c.
 */
#pragma once

#include "kube/config.h"

enum {
    CONFIG_FILE_MAX = 1 << 20,    /* a kubeconfig, or a file of certificates */
    CONFIG_TOKEN_MAX = 64 * 1024, /* a file with a token */
};

/* The content of a file, to be freed; NULL. Line ends and blanks at its end are left out. */
char *config_read(const char *path, size_t limit, struct err *e);
/* Sets c->server, and c->address when another name is to be verified; name may be NULL. */
int config_set_server(struct kube_config *c, const char *server, const char *name, struct err *e);
/* Whether a text can be sent as a token. Never says what it is. */
int config_check_token(const char *token, struct err *e);
