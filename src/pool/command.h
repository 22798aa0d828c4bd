/*
 * `orlop pool serve`: its command line.
 */
#pragma once

#include "cli/log.h"
#include "pool/pool.h"

struct pool_settings {
    struct pool_options o;
    const char *metrics, *kubeconfig, *context;
    struct cli_log log;
};

#define POOL_AT(member) CLI_AT(struct pool_settings, member)

static const struct cli_option pool_serve_options[] = {
    {"name", 0, "NAME", CLI_STRING, POOL_AT(o.name), .required = true,
     .doc = "The CStorPoolInstance whose pool this is."},
    {"namespace", 'n', "NAMESPACE", CLI_STRING, POOL_AT(o.ns), .def = "openebs",
     .doc = "Its namespace."},
    {"node", 0, "NODE", CLI_STRING, POOL_AT(o.node),
     .doc = "The node that this runs on; without it, the one that the object names."},
    {"sparse-dir", 0, "DIR", CLI_DIR, POOL_AT(o.sparse),
     .doc = "The node's folder of sparse devices; without it $ORLOP_SPARSE_DIR. Files elsewhere, "
            "and without such a folder all files, are refused as devices."},
    {"cache", 0, "SIZE", CLI_SIZE, POOL_AT(o.cache_bytes),
     .doc = "Memory for caching reads, at least and without it 64Mi."},
    {"dirty", 0, "SIZE", CLI_SIZE, POOL_AT(o.dirty_bytes),
     .doc = "Memory for writes that are not on the devices yet; without it 64Mi."},
    {"direct", 0, NULL, CLI_SWITCH, POOL_AT(o.direct),
     .doc = "Bypass the page cache when reading and writing devices."},
    {"scrub-every", 0, "TIME", CLI_DURATION, POOL_AT(o.scrub_ns), .def = "30d",
     .doc = "How often all data is read and checked; 0 is never."},
    {"look-every", 0, "TIME", CLI_DURATION, POOL_AT(o.tick_ns), .def = "2s",
     .doc = "How often the state of the pool is read."},
    {"write-every", 0, "TIME", CLI_DURATION, POOL_AT(o.write_ns), .def = "10s",
     .doc = "How often mere numbers are written to the API; states are written at once."},
    {"sign-every", 0, "TIME", CLI_DURATION, POOL_AT(o.sign_ns), .def = "1s",
     .doc = "How often the pool writes to its devices that it is in use. Whoever takes it over "
            "watches them for twenty times as long."},
    {"metrics", 0, "ADDRESS[:PORT]", CLI_STRING, POOL_AT(metrics),
     .doc = "Serve health, and metrics for Prometheus, there (port 9500)."},
    {"kubeconfig", 0, "FILE", CLI_FILE, POOL_AT(kubeconfig),
     .doc = "Kubeconfig of the API; without it $KUBECONFIG, the Pod's own, or ~/.kube/config."},
    {"context", 0, "NAME", CLI_STRING, POOL_AT(context),
     .doc = "Context of the kubeconfig; without it the current one."},
    CLI_LOG_OPTIONS(struct pool_settings),
    {0},
};

static const struct cli_command pool_serve_row = {
    .name = "pool serve",
    .topic = CLI_PROGRAMS,
    .summary = "Own the ZFS pool of a CStorPoolInstance",
    .doc =
        "Creates or imports the pool of one CStorPoolInstance, makes it what the object asks "
        "for, and reports its state in the object, until SIGTERM: then the pool is exported. The "
        "operator of CStorPoolClusters starts one for each pool, on its node; people seldom "
        "do.\n\n"
        "A pool is created once, on empty devices. Devices with anything else on them are left "
        "alone.",
    .settings = sizeof(struct pool_settings),
    .options = pool_serve_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool serve --namespace openebs --name cstor-pool-mirror-7xq2",
             "As the operator's Deployment does."},
            {NULL},
        },
    .program = "pool",
};

int pool_serve_command(const struct cli_args *args);
