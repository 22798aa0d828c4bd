/*
 * CStorVolumeConfig: a request for a cStor volume, which a controller turns into a CStorVolume.
 * CStorVolumePolicy: settings that configs name.
 *
 * How a config may change:
 * - spec.provision says what was asked for at first, and stays.
 * - spec.capacity grows; a config that is Bound may change its policy.
 * - spec.policy.replicaPoolInfo may gain, lose and exchange pools. Data stays safe: a pool leaves when
 *   the volume has all its data on the others.
 */
#include "kinds/cvc.h"

#include "api/update.h"

enum { REPLICAS_MAX = 32, BLOCK_MIN = 512, BLOCK_MAX = 128 * 1024, WORKERS_MAX = 1024 };

#define P struct cstor_policy
static const struct api_field provision_policy[] = {
    {"replicaAffinity", API_BOOL, API_TRUTH(P, replica_affinity),
     .doc =
         "true: one replica is on the node that the volume is published to, if that has a pool."},
    {"blockSize", API_INT, API_NUMBER_AT(P, block_size), .min = 0, .max = BLOCK_MAX,
     .doc = "Block size of the replicas in bytes: a power of two from 512 to 131072; 4096 without "
            "it."},
    {0},
};

static const struct api_field target_policy[] = {
    {"queueDepth", API_STRING, API_TEXT(P, target.queue_depth), .format = &api_count,
     .doc = "How many commands an initiator may have under way."},
    {"luWorkers", API_INT, API_NUMBER_AT(P, target.workers), .min = 0, .max = WORKERS_MAX,
     .doc =
         "Threads of the target in the published form. It has no effect: one loop does the work."},
    {"monitor", API_BOOL, API_TRUTH(P, target.monitored), .absent = "true",
     .doc = "false: no metrics. Without it the target serves them on port 9500."},
    {"replicationFactor", API_INT, .min = 0, .max = REPLICAS_MAX,
     .doc = "Kept, has no effect: the config says how many replicas there are."},
    {"resources", API_OBJECT, API_JSON(P, target.resources), .fields = api_resources,
     .doc = "Of the target's container."},
    {"auxResources", API_OBJECT, API_JSON(P, target.sidecar_resources), .fields = api_resources,
     .doc = "Of its side-car containers."},
    {"tolerations", API_OBJECT, API_LIST, API_JSON(P, target.tolerations), .fields = api_toleration,
     .doc = "Of the target's pod."},
    {"affinity", API_OBJECT, API_JSON(P, target.affinity), .flags = API_KEEP,
     .doc = "PodAffinity of the target's pod, as Kubernetes has it."},
    {"nodeSelector", API_STRING, API_MAP, API_JSON(P, target.node_selector),
     .doc = "Nodes on which the target may run."},
    {"priorityClassName", API_STRING, API_TEXT(P, target.priority_class),
     .doc = "Priority class of the target's pod."},
    {0},
};

static const struct api_field replica_policy[] = {
    {"zvolWorkers", API_STRING, API_TEXT(P, replica.workers), .format = &api_count,
     .doc = "How many threads work on a replica's reads and writes."},
    {"compression", API_BOOL_OR_STRING, API_TEXT(P, replica.compression),
     .format = &api_compression, .synonyms = (const struct api_synonym[]){{"lz", "lz4"}, {0}},
     .doc = "Compression of the replicas' data: off, on, lz4, lzjb, zle, gzip, gzip-1 to gzip-9, "
            "zstd. The pool's when not given."},
    {0},
};

static const struct api_field pool_info[] = {
    {"poolName", API_STRING, API_TEXT(struct cstor_pool_name, name), .flags = API_REQUIRED,
     .format = &api_dns_subdomain, .doc = "A CStorPoolInstance."},
    {0},
};

const struct api_field api_cstor_policy[] = {
    {"provision", API_OBJECT, API_INLINE, .fields = provision_policy,
     .doc = "How the volume is made."},
    {"target", API_OBJECT, API_INLINE, .fields = target_policy, .doc = "Settings of the target."},
    {"replica", API_OBJECT, API_INLINE, .fields = replica_policy,
     .doc = "Settings of the replicas."},
    {"replicaPoolInfo", API_OBJECT, API_LIST, API_ARRAY(P, pools), .fields = pool_info,
     .doc = "The pools that have a replica each. Change the list to add, remove or move replicas."},
    {0},
};

struct cstor_policy cstor_policy_of(const json_t *policy, struct arena *arena)
{
    struct cstor_policy p = {0};
    api_decode(api_cstor_policy, policy, &p, arena);
    return p;
}

/* Configs. */

#define C struct cstor_volume_config
static const struct api_field storage[] = {
    {"storage", API_QUANTITY, API_AMOUNT(C, spec.capacity),
     .flags = API_REQUIRED | API_POSITIVE | API_GROW_ONLY,
     .doc = "The size that is wanted. Raise it to grow the volume; it cannot shrink."},
    {0},
};

static const struct api_field first_storage[] = {
    {"storage", API_QUANTITY, .flags = API_POSITIVE | API_IMMUTABLE, .doc = "The size at first."},
    {0},
};

static const struct api_field provision[] = {
    {"capacity", API_OBJECT, .fields = first_storage,
     .doc = "The size that was asked for at first."},
    {"replicaCount", API_INT, API_NUMBER_AT(C, spec.replicas),
     .flags = API_REQUIRED | API_IMMUTABLE, .min = 1, .max = REPLICAS_MAX,
     .doc = "How many replicas were asked for at first."},
    {0},
};

static const struct api_field reference[] = {
    {"apiVersion", API_STRING, .doc = "Version of the object's kind."},
    {"kind", API_STRING, .doc = "The object's kind."},
    {"name", API_STRING, .doc = "Name of the object."},
    {"namespace", API_STRING, .doc = "Namespace of the object."},
    {"uid", API_STRING, .doc = "Identity of the object."},
    {"resourceVersion", API_STRING, .doc = "Version of the object that is meant."},
    {"fieldPath", API_STRING, .doc = "Part of the object that is meant."},
    {0},
};

static const struct api_field spec[] = {
    {"capacity", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = storage,
     .doc = "The size that is wanted."},
    {"cstorVolumeRef", API_OBJECT, .fields = reference,
     .doc = "The CStorVolume. Written by the system."},
    {"cstorVolumeSource", API_STRING, API_TEXT(C, spec.source), .flags = API_IMMUTABLE,
     .doc = "What the volume begins as: VOLUME@SNAPSHOT, or a volume."},
    {"provision", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = provision,
     .doc = "What was asked for at first."},
    {"policy", API_OBJECT, API_JSON(C, spec.policy), .fields = api_cstor_policy,
     .doc = "Settings of the volume. A CStorVolumePolicy that the annotation "
            "openebs.io/volume-policy names is copied here once; edit them here from then on."},
    {0},
};

static const struct api_field publish[] = {
    {"nodeId", API_STRING, API_TEXT(C, node), .doc = "Node that the volume is published to."},
    {0},
};

static const struct api_field conditions[] = {
    {"type", API_STRING, .flags = API_REQUIRED,
     .doc = "Resizing, VolumeResizePending, VolumeResizeFailed, VolumeResizeSuccessful."},
    {"reason", API_STRING, .doc = "One CamelCase word for it."},
    {"message", API_STRING, .doc = "The same for people."},
    {"lastProbeTime", API_TIME, .doc = "When it was last looked at."},
    {"lastTransitionTime", API_TIME, .doc = "When it began."},
    {0},
};

static const struct api_field status_capacity[] = {
    {"storage", API_QUANTITY, .doc = "The size that the volume has."},
    {0},
};

static const struct api_field status[] = {
    {"phase", API_STRING, API_TEXT(C, status.phase),
     .words = API_WORDS("", "Pending", "Bound", "Failed"),
     .doc =
         "Pending: the volume is being made. Bound: it is there. Failed: it cannot be made as it "
         "is asked for."},
    {"poolInfo", API_STRING, API_LIST, .doc = "Pools that have a replica."},
    {"capacity", API_OBJECT, .fields = status_capacity, .doc = "The size that the volume has."},
    {"condition", API_OBJECT, API_LIST, .fields = conditions, .merge_key = "type",
     .doc = "What is under way, or failed."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = spec,
     .doc = "The volume that is wanted."},
    {"publish", API_OBJECT, API_INLINE, .fields = publish, .doc = "Who uses the volume."},
    {"versionDetails", API_OBJECT, .fields = api_version_details,
     .doc = "Version of the software that looks after the object."},
    {"status", API_OBJECT, API_INLINE, .fields = status, .doc = "The volume that is there."},
    {0},
};

struct cstor_volume_config cstor_volume_config_of(const json_t *json)
{
    struct cstor_volume_config c = {.json = json};
    api_decode(fields, json, &c, NULL);
    return c;
}

static const struct api_column columns[] = {
    {"Capacity", "string", ".status.capacity.storage", "Size that the volume has"},
    {"Status", "string", ".status.phase", "Whether the volume is there"},
    API_AGE,
    {0},
};

/* Rules. */

static const struct api_path *const policy_at = API_KEY(API_KEY(NULL, "spec"), "policy");

static void check_policy(const json_t *policy, const struct api_path *at, struct api_report *report)
{
    struct arena arena = {0};
    const struct cstor_policy p = cstor_policy_of(policy, &arena);
    const struct api_path *pools = API_KEY(at, "replicaPoolInfo");
    if (p.block_size && (p.block_size < BLOCK_MIN || p.block_size & (p.block_size - 1)))
        api_problem(report, API_KEY(API_KEY(at, "provision"), "blockSize"), API_INVALID,
                    json_at(policy, "provision", "blockSize"),
                    "must be a power of two from %d to %d", BLOCK_MIN, BLOCK_MAX);
    for (size_t i = 0; i < p.pools.len; i++) {
        for (size_t j = 0; j < i; j++) {
            if (str_eq(p.pools.p[i].name, p.pools.p[j].name))
                api_problem(report, API_KEY(API_AT(pools, i), "poolName"), API_DUPLICATE, NULL,
                            "a pool has one replica of a volume: %s is named twice",
                            p.pools.p[i].name);
        }
    }
    arena_done(&arena);
}

static void validate(const json_t *object, struct api_report *report)
{
    check_policy(json_at(object, "spec", "policy"), policy_at, report);
}

/* The list of pools follows what there is only when it was made as it was asked for. */
static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    const json_t *was = json_at(old, "spec", "policy", "replicaPoolInfo"),
                 *is = json_at(object, "spec", "policy", "replicaPoolInfo");
    const char *phase = cstor_volume_config_of(old).status.phase;
    if (!was || !json_array_size(was) || json_equal(was, is))
        return;
    if (!str_eq(phase, "Bound"))
        api_problem(report, API_KEY(policy_at, "replicaPoolInfo"), API_FORBIDDEN, NULL,
                    "pools can be changed when the volume is Bound: it is %s",
                    *phase ? phase : "Pending");
    if (!json_array_size(is))
        api_problem(report, API_KEY(policy_at, "replicaPoolInfo"), API_FORBIDDEN, NULL,
                    "a volume keeps a pool at least; delete the config to remove the volume");
}

const struct api_kind api_cstor_volume_config = {
    .kind = "CStorVolumeConfig",
    .plural = "cstorvolumeconfigs",
    .singular = "cstorvolumeconfig",
    .short_names = API_WORDS("cvc"),
    .versions = API_VERSION("cstor.openebs.io", "v1"),
    .flags = API_STATUS,
    .fields = fields,
    .columns = columns,
    .validate = validate,
    .validate_update = validate_update,
    .doc = "A request for a cStor volume, with its settings.",
};

/* Policies. */

static const struct api_field policy_status[] = {
    {"phase", API_STRING, .doc = "Kept, has no effect."},
    {0},
};

static const struct api_field policy_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = api_cstor_policy,
     .doc =
         "Settings of volumes. They are copied when a volume is made; later changes here have no "
         "effect on it."},
    {"status", API_OBJECT, .fields = policy_status, .doc = "Nothing is said of a policy."},
    {0},
};

static void validate_policy(const json_t *object, struct api_report *report)
{
    check_policy(json_object_get(object, "spec"), API_KEY(NULL, "spec"), report);
}

static const struct api_column policy_columns[] = {
    API_AGE,
    {0},
};

const struct api_kind api_cstor_volume_policy = {
    .kind = "CStorVolumePolicy",
    .plural = "cstorvolumepolicies",
    .singular = "cstorvolumepolicy",
    .short_names = API_WORDS("cvp"),
    .versions = API_VERSION("cstor.openebs.io", "v1"),
    .flags = API_STATUS,
    .fields = policy_fields,
    .columns = policy_columns,
    .validate = validate_policy,
    .doc = "Settings that CStorVolumeConfigs name.",
};
