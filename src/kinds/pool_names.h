/*
 * Labels, annotations and finalizers of pools, by which admission, the operator, orlop-pool and the commands know of
 * each other: each name stands here alone.
 */
#pragma once

/*
 * The ServiceAccount of the process that serves an instance, in the instance's namespace: each pool has its own, so
 * that what one may read can differ from what another may. Owned.
 */
char *api_pool_account(const char *cspi);

#define API_POOL_HOSTNAME          "kubernetes.io/hostname"
/* On claims and instances: whose they are. */
#define API_POOL_CLUSTER           "openebs.io/cstor-pool-cluster"
/* On replicas of volumes: the instance that they are on. */
#define API_POOL_OF_REPLICA        "cstorpoolinstance.openebs.io/name"
/* On a claim: the device that its own takes the place of. */
#define API_POOL_PREDECESSOR       "openebs.io/bd-predecessor"
/* On an instance: goes when the pool is gone; and as it is published. */
#define API_POOL_FINALIZER         "cstorpoolinstance.openebs.io/finalizer"
#define API_POOL_PROTECTION        "openebs.io/pool-protection"
/* On clusters and their claims. */
#define API_POOL_CLUSTER_FINALIZER "cstorpoolcluster.openebs.io/finalizer"
/* On claims that have a device, and on such devices: go when the node has let go. */
#define API_CLAIM_FINALIZER        "openebs.io/bdc-protection"
#define API_DEVICE_FINALIZER       "openebs.io/bd-protection"
/* On an instance that is deleted: its pool is to go too, and why. */
#define API_POOL_DESTROY           "orlop.io/destroy-pool"
/* On an instance: a pool of this name is there and is imported, never made. */
#define API_POOL_EXISTING          "import.cspi.cstor.openebs.io/existing-pool-name"
/* On an instance that was made for a pool that is there: the pool's GUID. It is imported, never made. */
#define API_POOL_GUID              "orlop.io/pool-guid"
/* On an instance: another value asks for a scrub. */
#define API_POOL_SCRUB             "openebs.io/scrub-requested-at"
/* On an instance: another value asks for its counters of errors to be forgotten, and failed devices tried again. */
#define API_POOL_CLEAR             "openebs.io/clear-requested-at"
/*
 * On an instance, its claims and their devices: somebody said that the pool will not be back, who, and when
 * (JSON). Nobody waits for it, and nothing that may be on the devices is touched.
 */
#define API_POOL_FORGOTTEN         "orlop.io/forgotten"
/* "true": leave it alone. */
#define API_POOL_PAUSED            "reconcile.openebs.io/disable"
