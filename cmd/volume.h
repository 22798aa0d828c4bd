/*
 * orlop-volume: its command line. `orlop volume` is another thing, so the command has a longer name.
 */
#pragma once

#include "cli/log.h"

struct volume_settings {
    const char *kind, *ns, *name, *control, *kubeconfig;
    struct cli_log log;
};

#define VOLUME_AT(member) CLI_AT(struct volume_settings, member)

static const struct cli_option volume_options[] = {
    {"kind", 0, "KIND", CLI_ENUM, VOLUME_AT(kind), .required = true,
     .choices = CLI_WORDS("JivaVolume"), .doc = "Kind of the volume's object."},
    {"namespace", 0, "NAME", CLI_STRING, VOLUME_AT(ns), .required = true,
     .doc = "Namespace of the object."},
    {"name", 0, "NAME", CLI_STRING, VOLUME_AT(name), .required = true,
     .doc = "Name of the object."},
    {"control", 0, "PATH", CLI_FILE, VOLUME_AT(control), .required = true,
     .doc = "Control socket of the volume's target."},
    {"kubeconfig", 0, "FILE", CLI_FILE, VOLUME_AT(kubeconfig),
     .doc = "Kubeconfig of the API; without it $KUBECONFIG, the Pod's own, or ~/.kube/config."},
    CLI_LOG_OPTIONS(struct volume_settings),
    {0},
};

static const struct cli_command volume_command = {
    .name = "volume-manager",
    .topic = CLI_PROGRAMS,
    .summary = "Look after the target of one volume",
    .doc =
        "Runs beside the target of a volume: it writes the state of the target into the volume's "
        "object, and tells the target what the object asks for. Controllers start one for each "
        "volume; people seldom do.",
    .settings = sizeof(struct volume_settings),
    .options = volume_options,
    .program = "volume",
};
