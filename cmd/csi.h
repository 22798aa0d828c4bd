/*
 * orlop-csi: its command line.
 */
#pragma once

#include "cli/log.h"

struct csi_settings {
    struct cli_list drivers;
    const char *sockets, *registration, *ns, *kubeconfig, *context;
    struct cli_log log;
};

#define CSI_AT(member) CLI_AT(struct csi_settings, member)

static const struct cli_option csi_options[] = {
    {"drivers", 0, "NAME,...", CLI_LIST, CSI_AT(drivers), .replaces = true,
     .doc = "The names by which it serves, one socket each: jiva.csi.openebs.io, also without "
            "this."},
    {"socket-dir", 0, "DIR", CLI_DIR, CSI_AT(sockets), .required = true,
     .doc = "The folder of the sockets: NAME/csi.sock for each driver."},
    {"namespace", 'n', "NAMESPACE", CLI_STRING, CSI_AT(ns), .def = "openebs",
     .doc = "Namespace of volumes."},
    {"kubeconfig", 0, "FILE", CLI_FILE, CSI_AT(kubeconfig),
     .doc = "Kubeconfig of the API; without it $KUBECONFIG, the Pod's own, or ~/.kube/config."},
    {"context", 0, "NAME", CLI_STRING, CSI_AT(context),
     .doc = "Context of the kubeconfig; without it the current one."},
    CLI_LOG_OPTIONS(struct csi_settings),
    {0},
};

static const struct cli_command csi_command = {
    .name = "csi serve",
    .topic = CLI_PROGRAMS,
    .summary = "Serve the Container Storage Interface",
    .doc = "Serves the controller's part of CSI for replicated volumes: volumes are made, listed, "
           "grown and removed. The node's part is not there yet.",
    .settings = sizeof(struct csi_settings),
    .options = csi_options,
    .examples =
        (const char *const[][2]){
            {"orlop csi serve --socket-dir /run/orlop/csi", "Beside the side-cars of Kubernetes."},
            {NULL},
        },
    .program = "csi",
};
