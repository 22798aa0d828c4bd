/*
 * What the commands of replicated volumes share.
 */
#pragma once

#include "ctl/ctl.h"
#include "kinds/jiva.h"

#define CTL_VOLUME_OPTIONS                                                                         \
    {"namespace", 'n',        "NAMESPACE",                                                         \
     CLI_STRING,  CTL_AT(ns), .doc = "Namespace of the volume; without it the context's."},        \
        CTL_API_OPTIONS

struct ctl_volume {
    const struct cli_args *args;
    struct kube_client *client;
    struct kube_resource volumes, resizes, pods;
    const char *ns;
};

/* Connects; CLI_DONE, or the status to end with, and what is wrong was said. */
int ctl_volume_open(const struct cli_args *args, struct ctl_volume *ret);
void ctl_volume_close(struct ctl_volume *v);

/* Replicas that have everything; *ret_all: how many there are, or are to be. */
unsigned ctl_volume_healthy(const struct jiva_volume *volume, size_t *ret_all);
/* The first condition that says that something is wrong; NULL. Borrowed. */
const json_t *ctl_volume_trouble(const json_t *volume);
/* Whether a condition says that something is wrong. */
bool ctl_volume_is_trouble(const json_t *condition);
/* volume_login.c: what is needed to log in; the status to end with. */
int ctl_volume_print_login(const struct ctl_volume *v, const json_t *volume);
/* CLI_DONE when the text is a size; else what is wrong with it was said. */
int ctl_volume_size(const struct cli_args *args, const char *text);
