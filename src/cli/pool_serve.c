/*
 * pool serve: the command line of the process that owns a pool. The work is done by orlop-pool.
 */
#include "cli/commands.h"

static const struct cli_option options[] = {
    {"name", 0, "NAME", .doc = "The CStorPoolInstance whose pool this is."},
    {"namespace", 'n', "NAMESPACE", .doc = "Where it is (openebs)."},
    {"node", 0, "NODE",
     .doc = "The node that this runs on; without it, the one that the object names."},
    {"sparse-dir", 0, "DIR", .complete = CLI_DIRS,
     .doc = "The node's folder of sparse devices, else $ORLOP_SPARSE_DIR: files elsewhere, and "
            "without it all files, are refused as devices."},
    {"cache", 0, "SIZE", .doc = "Memory for what is read often, at least and without it 64Mi."},
    {"dirty", 0, "SIZE", .doc = "Memory for what is written and not on the devices yet (64Mi)."},
    {"direct", 0, .doc = "Read and write devices past the page cache."},
    {"scrub-every", 0, "TIME", .doc = "How often all data is read and checked (30d); 0 is never."},
    {"look-every", 0, "TIME", .doc = "How often the pool is looked at (2s)."},
    {"write-every", 0, "TIME",
     .doc = "How often numbers alone are written to the API (10s); states are at once."},
    {"sign-every", 0, "TIME",
     .doc = "How often the pool says on its devices that it is in use (1s). Whoever takes it over "
            "watches them for twenty times as long."},
    {"metrics", 0, "ADDRESS[:PORT]",
     .doc = "Serve health, and metrics for Prometheus, there (port 9500)."},
    {"kubeconfig", 0, "FILE", .complete = CLI_FILES,
     .doc = "Where the API is; else $KUBECONFIG, the Pod's own, ~/.kube/config."},
    {"context", 0, "NAME", .doc = "The context of it to use; its current one without this."},
    {"log-format", 0, "FORMAT", .choices = (const char *const[]){"text", "json", NULL},
     .doc = "Of the lines on standard error."},
    {"log-level", 0, "LEVEL",
     .choices = (const char *const[]){"error", "warn", "info", "debug", NULL},
     .doc = "What to log."},
    {0},
};

const struct cli_command cli_pool_serve = {
    .name = "pool serve",
    .summary = "Own the ZFS pool of a CStorPoolInstance",
    .doc =
        "Makes or imports the pool of one CStorPoolInstance, makes it as the object says, and says "
        "in the object how it is, until SIGTERM: then the pool is exported. The operator of "
        "CStorPoolClusters starts one for each pool, on its node; people seldom do.\n\n"
        "A pool is made once, on empty devices. Devices with anything else on them are left alone.",
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop pool serve --namespace openebs --name cstor-pool-mirror-7xq2",
             "As the operator's Deployment does."},
            {NULL},
        },
    .program = "pool",
};
