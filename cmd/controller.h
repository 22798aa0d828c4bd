/*
 * orlop-controller: its command line.
 */
#pragma once

#include "admission/admission.h"
#include "cli/log.h"
#include "controllers/volume/volume.h"

enum controller_elect { ELECT_AUTO, ELECT_YES, ELECT_NO };
enum controller_webhook { WEBHOOK_NO, WEBHOOK_YES, WEBHOOK_REMOVE };

struct controller_settings {
    const char *controllers, *kubeconfig, *context, *ns, *lease_name, *health_address;
    bool embedded;
    enum controller_elect elect;
    enum controller_webhook webhook;
    int64_t lease_ns, node_grace;
    int health_port;
    unsigned qps, burst;
    struct admission_options admission;
    struct volume_settings volume;
    struct cli_log log;
};

#define CONTROLLER_AT(member) CLI_AT(struct controller_settings, member)

static const struct cli_option controller_options[] = {
    {"controllers", 0, "LIST", CLI_STRING, CONTROLLER_AT(controllers), .def = "*",
     .doc = "Controllers to run, with commas between: * is all of them, foo is foo, -foo all but "
            "it."},
    {"embedded", 0, NULL, CLI_BOOL, CONTROLLER_AT(embedded),
     .doc = "Run also the controllers that a real cluster brings itself. Only beside "
            "orlop-apiserver."},
    {"kubeconfig", 0, "FILE", CLI_FILE, CONTROLLER_AT(kubeconfig),
     .doc = "Kubeconfig of the API; without it $KUBECONFIG, the Pod's own, or ~/.kube/config."},
    {"context", 0, "NAME", CLI_STRING, CONTROLLER_AT(context),
     .doc = "Context of the kubeconfig; without it the current one."},
    {"namespace", 0, "NAME", CLI_STRING, CONTROLLER_AT(ns),
     .doc = "Namespace of the Lease; without it the context's, or the Pod's."},
    {"leader-elect", 0, "WHEN", CLI_ENUM, CONTROLLER_AT(elect), .def = "auto", .implied = "true",
     .choices = CLI_WORDS("auto", "true", "false"),
     .doc = "Elect a leader, so that of several processes only one acts. auto does unless "
            "--embedded is given."},
    {"leader-elect-lease-name", 0, "NAME", CLI_STRING, CONTROLLER_AT(lease_name),
     .def = "orlop-controller", .doc = "Name of the Lease for the election."},
    {"lease-duration", 0, "TIME", CLI_DURATION, CONTROLLER_AT(lease_ns), .def = "15s",
     .least = CLOCK_SECOND,
     .doc = "How long the leader may be silent before another takes over, in whole seconds."},
    {"health-address", 0, "IP", CLI_STRING, CONTROLLER_AT(health_address), .def = "127.0.0.1",
     .doc = "Address that serves /healthz, /readyz and /metrics."},
    {"health-port", 0, "PORT", CLI_INT, CONTROLLER_AT(health_port), .def = "10281",
     .most = UINT16_MAX, .off = "off", .doc = "Port for the same; 0 is any free one, off is none."},
    {"webhook", 0, "WHAT", CLI_ENUM, CONTROLLER_AT(webhook), .def = "false", .implied = "true",
     .choices = CLI_WORDS("false", "true", "remove"),
     .doc = "Serve an admission webhook for Orlop's kinds. remove takes its configuration out of "
            "the cluster and ends."},
    {"webhook-address", 0, "IP", CLI_STRING, CONTROLLER_AT(admission.address),
     .doc = "Address that the webhook listens on; without it all."},
    {"webhook-port", 0, "PORT", CLI_INT, CONTROLLER_AT(admission.port), .def = "9443",
     .most = UINT16_MAX, .doc = "Port that the webhook listens on."},
    {"webhook-service", 0, "NAME", CLI_STRING, CONTROLLER_AT(admission.service),
     .def = "orlop-webhook", .doc = "Service in --namespace through which the webhook is reached."},
    {"webhook-url", 0, "URL", CLI_STRING, CONTROLLER_AT(admission.url),
     .doc = "URL of the webhook instead of a Service, https://HOST:PORT, outside of a cluster."},
    {"webhook-certificate-lifetime", 0, "TIME", CLI_DURATION, CONTROLLER_AT(admission.lifetime_ns),
     .def = "8760h",
     .doc = "Lifetime of the webhook's certificate, which is renewed when a third is left."},
    {"webhook-check-period", 0, "TIME", CLI_DURATION, CONTROLLER_AT(admission.tick_ns),
     .def = "10s", .doc = "How often the webhook's certificate and configuration are checked."},
    {"webhook-remove-on-stop", 0, NULL, CLI_BOOL, CONTROLLER_AT(admission.remove_on_stop),
     .doc = "Remove the webhook's configuration when the process ends."},
    {"node-monitor-grace-period", 0, "TIME", CLI_DURATION, CONTROLLER_AT(node_grace), .def = "40s",
     .doc = "How long a node may be silent before it counts as lost."},
    {"kube-api-qps", 0, "N", CLI_INT, CONTROLLER_AT(qps), .def = "500", .most = 100000,
     .doc = "Requests a second to the API."},
    {"kube-api-burst", 0, "N", CLI_INT, CONTROLLER_AT(burst), .def = "1000", .most = 100000,
     .doc = "Requests to the API at once."},
    {"image-prefix", 0, "TEXT", CLI_STRING, CONTROLLER_AT(volume.image_prefix), .def = "",
     .doc = "What to put in front of the image names of Pods that controllers create: host/path/."},
    {"jiva-dir", 0, "DIR", CLI_STRING, CONTROLLER_AT(volume.dir), .def = "/var/lib/orlop/jiva",
     .doc = "Folder on the nodes in which replicas of JivaVolumes have their folders."},
    {"rehome-after", 0, "TIME", CLI_DURATION, CONTROLLER_AT(volume.rehome_ns), .def = "5m",
     .doc = "How long a node or pool is away before its replicas are rebuilt on another."},
    {"rehome-most", 0, "N", CLI_INT, CONTROLLER_AT(volume.rehome_most), .def = "2", .most = 1000,
     .doc = "How many volumes of a kind may be rebuilt elsewhere at a time."},
    CLI_LOG_OPTIONS(struct controller_settings),
    {0},
};

static const struct cli_command controller_command = {
    .name = "controller",
    .topic = CLI_PROGRAMS,
    .summary = "Run the controllers against a Kubernetes API",
    .doc = "Reconciles what the API asks for with what there is, in any Kubernetes cluster or "
           "beside orlop-apiserver. `orlop controller --help` lists the controllers.",
    .settings = sizeof(struct controller_settings),
    .options = controller_options,
    .examples =
        (const char *const[][2]){
            {"orlop controller --kubeconfig admin.kubeconfig --embedded",
             "Beside the embedded API server."},
            {"orlop controller --namespace openebs --webhook", "In a cluster, with admission."},
            {NULL},
        },
    .program = "controller",
};
