/*
 * orlop-sidecar: its command line.
 */
#pragma once

#include "cli/log.h"

struct sidecar_settings {
    const char *kind, *ns, *name, *control, *kubeconfig;
    struct cli_log log;
};

#define SIDECAR_AT(member) CLI_AT(struct sidecar_settings, member)

static const struct cli_option sidecar_options[] = {
    {"kind", 0, "KIND", CLI_ENUM, SIDECAR_AT(kind), .required = true,
     .choices = CLI_WORDS("CStorVolume", "JivaVolume"), .doc = "Kind of the volume's object."},
    {"namespace", 0, "NAME", CLI_STRING, SIDECAR_AT(ns), .required = true,
     .doc = "Namespace of the object."},
    {"name", 0, "NAME", CLI_STRING, SIDECAR_AT(name), .required = true,
     .doc = "Name of the object."},
    {"control", 0, "PATH", CLI_FILE, SIDECAR_AT(control), .required = true,
     .doc = "Control socket of the volume's target."},
    {"kubeconfig", 0, "FILE", CLI_FILE, SIDECAR_AT(kubeconfig),
     .doc = "Kubeconfig of the API; without it $KUBECONFIG, the Pod's own, or ~/.kube/config."},
    CLI_LOG_OPTIONS(struct sidecar_settings),
    {0},
};

static const struct cli_command sidecar_command = {
    .name = "sidecar",
    .topic = CLI_PROGRAMS,
    .summary = "Look after the target of one volume",
    .doc =
        "Runs beside the target of a volume: it writes the state of the target into the volume's "
        "object, and tells the target what the object asks for. Controllers start one for each "
        "volume; people seldom do.",
    .settings = sizeof(struct sidecar_settings),
    .options = sidecar_options,
    .program = "sidecar",
};
