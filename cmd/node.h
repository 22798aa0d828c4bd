/*
 * orlop-node: its command line.
 */
#pragma once

#include <limits.h>

#include "cli/log.h"
#include "k8s/kubelet/pods.h"
#include "node/join.h"
#include "node/node.h"

struct node_settings {
    struct node_options node;
    struct node_join_options join;
    struct node_pods_options pods;
    const char *kubeconfig, *context, *token_file, *ca_file, *health_address;
    const char *sparse, *vg_disks;
    struct cli_list labels, include_paths, exclude_paths, include_vendors, exclude_vendors;
    bool run_pods;
    int health_port;
    struct cli_log log;
    /* Not from options. */
    bool again; /* with other credentials */
    char host[256], libexec[PATH_MAX], own_kubeconfig[PATH_MAX];
};

#define NODE_AT(member) CLI_AT(struct node_settings, member)

static const struct cli_option node_options[] = {
    {"name", 0, "NAME", CLI_STRING, NODE_AT(node.name),
     .doc = "Name of the Node; without it the machine's."},
    {"kubeconfig", 0, "FILE", CLI_FILE, NODE_AT(kubeconfig),
     .doc = "Kubeconfig of the API; without it $KUBECONFIG, the Pod's own, or ~/.kube/config."},
    {"context", 0, "NAME", CLI_STRING, NODE_AT(context),
     .doc = "Context of the kubeconfig; without it the current one."},
    {"data-dir", 0, "DIR", CLI_DIR, NODE_AT(node.data_dir), .def = "/var/lib/orlop",
     .doc = "Folder for what the node keeps."},
    {"namespace", 0, "NAME", CLI_STRING, NODE_AT(node.ns), .def = "openebs",
     .doc = "Namespace of BlockDevices and their claims."},
    {"sparse-disks", 0, "NxSIZE", CLI_STRING, NODE_AT(sparse),
     .doc = "Sparse files to offer as disks, such as 3x10Gi; they are never removed."},
    {"discover", 0, NULL, CLI_BOOL, NODE_AT(node.discover), .def = "true",
     .doc = "Look for the machine's disks. Of several nodes on one machine only one may."},
    {"include-paths", 0, "GLOB,...", CLI_LIST, NODE_AT(include_paths),
     .doc = "Use only disks with such a path or link, such as /dev/nvme*."},
    {"exclude-paths", 0, "GLOB,...", CLI_LIST, NODE_AT(exclude_paths), .def = NODE_EXCLUDED_PATHS,
     .doc = "Use no disks with such a path or link."},
    {"include-vendors", 0, "GLOB,...", CLI_LIST, NODE_AT(include_vendors),
     .doc = "Use only disks of these makers."},
    {"exclude-vendors", 0, "GLOB,...", CLI_LIST, NODE_AT(exclude_vendors),
     .doc = "Use no disks of these makers."},
    {"device-classes", 0, "FILE", CLI_FILE, NODE_AT(node.lvs.classes_file),
     .doc =
         "Volume groups and thin pools for LogicalVolumes, as in TopoLVM's lvmd.yaml; without it "
         "the volume group orlop, if there is one."},
    {"vg-disks", 0, "NxSIZE", CLI_STRING, NODE_AT(vg_disks),
     .doc = "Sparse files to create the volume group orlop on, such as 1x4Gi."},
    {"reclaim-orphans", 0, NULL, CLI_BOOL, NODE_AT(node.lvs.reclaim_orphans),
     .doc = "Remove Orlop's logical volumes that belong to no object."},
    {"orphan-grace", 0, "TIME", CLI_DURATION, NODE_AT(node.lvs.orphan_grace_ns), .def = "10m",
     .doc = "How long a logical volume must have been an orphan before it is removed."},
    {"audit", 0, "TIME", CLI_DURATION, NODE_AT(node.lvs.audit_ns), .def = "5m",
     .doc = "How often LVM is compared with the API."},
    {"rescan", 0, "TIME", CLI_DURATION, NODE_AT(node.rescan_ns), .def = "60s",
     .least = CLOCK_SECOND,
     .doc = "How often to look for changes of disks that the kernel did not announce."},
    {"register-node", 0, NULL, CLI_BOOL, NODE_AT(node.register_node), .def = "true",
     .doc = "Create the Node and renew its Lease; false where a kubelet does."},
    {"lease-duration", 0, "TIME", CLI_DURATION, NODE_AT(node.lease_ns), .def = "40s",
     .least = 4 * CLOCK_SECOND,
     .doc = "Duration of the node's Lease; it is renewed four times in that time."},
    {"address", 0, "IP", CLI_STRING, NODE_AT(node.address), .def = "127.0.0.1",
     .doc = "Address of the node."},
    {"labels", 0, "KEY=VALUE,...", CLI_LIST, NODE_AT(labels), .doc = "More labels of the Node."},
    {"run-pods", 0, NULL, CLI_BOOL, NODE_AT(run_pods),
     .doc = "Run the Pods of this node as processes, where there is no kubelet."},
    {"pod-cidr", 0, "CIDR", CLI_STRING, NODE_AT(node.pod_cidr),
     .doc = "Addresses for the node's Pods; without it they have the node's."},
    {"allow-host-commands", 0, NULL, CLI_BOOL, NODE_AT(pods.allow_host_commands),
     .doc = "Let Pods that ask for it by annotation run commands of the machine."},
    {"stop-pods-on-exit", 0, NULL, CLI_BOOL, NODE_AT(pods.stop_on_exit),
     .doc = "End all containers when the agent stops."},
    {"libexec", 0, "DIR", CLI_DIR, NODE_AT(pods.libexec),
     .doc =
         "Folder of orlop-shim and the programs of Orlop's images; without it the folder of this "
         "program."},
    {"join", 0, "URL", CLI_STRING, NODE_AT(join.url),
     .doc = "Join the cluster whose API is at this URL; the credentials are kept in the data "
            "folder."},
    {"token", 0, "TOKEN", CLI_STRING, NODE_AT(join.token),
     .doc = "Token to join with, used once; `orlop token create` creates one."},
    {"token-file", 0, "FILE", CLI_FILE, NODE_AT(token_file),
     .doc = "File with the token, so that others do not see it in ps."},
    {"ca-file", 0, "FILE", CLI_FILE, NODE_AT(ca_file),
     .doc = "Certificate authority to trust when joining; without it the cluster proves its "
            "identity with the token."},
    {"ca-hash", 0, "sha256:HEX", CLI_STRING, NODE_AT(join.ca_hash),
     .doc = "Hash of the public key that the cluster's authority must have."},
    {"health-address", 0, "IP", CLI_STRING, NODE_AT(health_address), .def = "127.0.0.1",
     .doc = "Address that serves /healthz, /readyz and /metrics."},
    {"health-port", 0, "PORT", CLI_INT, NODE_AT(health_port), .def = "10282", .most = UINT16_MAX,
     .off = "off", .doc = "Port for the same; 0 is any free one, off is none."},
    CLI_LOG_OPTIONS(struct node_settings),
    {0},
};

static const struct cli_command node_command = {
    .name = "node",
    .topic = CLI_PROGRAMS,
    .summary = "Run the agent of a node, or join a machine to a cluster",
    .doc = "Finds the block devices of a node, gives them to those who claim them, and reports "
           "that the node is alive. With --join and a token a machine becomes a node of a cluster.",
    .settings = sizeof(struct node_settings),
    .options = node_options,
    .examples =
        (const char *const[][2]){
            {"orlop node --join https://192.0.2.1:6443 --token-file token --ca-hash sha256:...",
             "Join a cluster, as `orlop token create` says."},
            {NULL},
        },
    .program = "node",
};
