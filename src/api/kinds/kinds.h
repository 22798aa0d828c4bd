/*
 * The tables of all kinds, and the parts that several of them share.
 */
#pragma once

#include "api/format.h"
#include "api/kind.h"
#include "base/map.h"

/* Ours. */
extern const struct api_kind api_cstor_pool_cluster, api_cstor_pool_instance;
extern const struct api_kind api_block_device, api_block_device_claim;
extern const struct api_kind api_cstor_volume, api_cstor_volume_replica;
extern const struct api_kind api_jiva_volume, api_jiva_volume_resize;
extern const struct api_kind api_logical_volume;

/* Kubernetes' own, as far as they are used here; what their tables do not name, messages do. */
extern const struct api_kind api_namespace, api_config_map, api_secret, api_service_account;
extern const struct api_kind api_resource_quota, api_limit_range, api_event;
extern const struct api_kind api_node, api_service, api_endpoints, api_pod;
extern const struct api_kind api_persistent_volume, api_persistent_volume_claim;
extern const struct api_kind api_deployment, api_replica_set, api_daemon_set;
extern const struct api_kind api_controller_revision, api_stateful_set, api_job, api_cron_job;
extern const struct api_kind api_storage_class, api_csi_driver, api_csi_node;
extern const struct api_kind api_volume_attachment, api_csi_storage_capacity;
extern const struct api_kind api_volume_attributes_class;
extern const struct api_kind api_volume_snapshot, api_volume_snapshot_content;
extern const struct api_kind api_volume_snapshot_class;
extern const struct api_kind api_certificate_signing_request, api_endpoint_slice;
extern const struct api_kind api_lease, api_pod_disruption_budget, api_priority_class;
extern const struct api_kind api_role, api_role_binding, api_cluster_role, api_cluster_role_binding;
extern const struct api_kind api_token_review, api_self_subject_review, api_token_request;
extern const struct api_kind api_validating_webhook, api_mutating_webhook;
extern const struct api_kind api_custom_resource_definition;
extern const struct api_kind api_subject_access_review, api_local_subject_access_review;
extern const struct api_kind api_self_subject_access_review, api_self_subject_rules_review;

/* For the kinds whose only version is this one. */
#define API_VERSION(group_, version_)                                                              \
    ((const struct api_group_version[]){{(group_), (version_)}, {0}})
/* An integer of 32 bits that is not negative. */
#define API_UINT31 .min = 0, .max = INT32_MAX
/* Members and columns that many kinds have. */
#define API_CONDITIONS                                                                             \
    {                                                                                              \
        "conditions", API_OBJECT, API_LIST, .fields = api_conditions, .merge_key = "type",         \
                                            .doc = "What holds of the object, and since when."     \
    }
#define API_AGE                                                                                    \
    {                                                                                              \
        "Age", "date", ".metadata.creationTimestamp", "Time since it was created"                  \
    }
#define API_CREATED_AT                                                                             \
    {                                                                                              \
        "Created At", "string", ".metadata.creationTimestamp", "When it was created"               \
    }

/* Shared tables. */
extern const struct api_field api_webhook_client[]; /* where a webhook is */
void api_check_webhook_client(const json_t *client, const struct api_path *at,
                              struct api_report *report);
extern const struct api_field api_conditions[]; /* Kubernetes' usual condition */
extern const struct api_field api_resources[];  /* limits and requests of a container */
extern const struct api_field api_toleration[];
extern const struct api_field api_version_details[];
extern const struct api_field api_label_selector[];
extern const struct api_field api_object_reference[];
extern const struct api_field api_local_reference[]; /* a name in the same namespace */
extern const struct api_field api_pod_spec[], api_pod_template[];
extern const struct api_field api_claim_spec[]; /* of a PersistentVolumeClaim */
extern const struct api_field api_job_spec[];
/* Parts of pods (kinds/podparts.c). */
extern const struct api_field api_probe[], api_lifecycle[], api_value_from[], api_env_from[];
extern const struct api_field api_security_context[], api_pod_security_context[];
extern const struct api_field api_affinity[], api_node_selector[];

/* Rules of a ResourceQuota (kinds/quota.c). */
void api_quota_validate(const json_t *object, struct api_report *report);
/* Rules of a pod's spec that lies at that path (kinds/pod_rules.c). */
void api_pod_spec_validate(const json_t *spec, const struct api_path *at,
                           struct api_report *report);
/* Defaults of a pod's spec that follow from other fields; the same for what has a template. */
void api_pod_spec_derive(json_t *spec);
void api_pod_template_derive(json_t *object);
/*
 * What runs on a node itself (kinds/pod_host.c). `pod` is a Pod or a template of Pods.
 */
#define API_POD_HOST_PROCESS "orlop.io/host-process"
/* The program that an image of ours stands for, as its file's name; NULL: it is not ours. */
const char *api_image_program(const char *image);
/* Whether it asks to run commands of the host. */
bool api_pod_asks_for_host(const json_t *pod);
/* What of the host or of ours it runs, for people; NULL: nothing. */
const char *api_pod_host_program(const json_t *pod);
/* The Pod itself, or the template of Pods that an object of that kind has; NULL: it has none. */
const json_t *api_pod_template_of(const struct api_kind *kind, const json_t *object);
/*
 * The rules that Deployment, ReplicaSet, DaemonSet and StatefulSet share: the selector selects what
 * the template makes, and the template's pods are restarted always.
 */
void api_workload_validate(const json_t *object, struct api_report *report);
/* Why an update of a StatefulSet is refused, in the words that users of Kubernetes know. */
extern const char api_stateful_set_fixed[];
/* Access modes and size of a claim's spec at that path (kinds/claim.c). */
void api_claim_spec_validate(const json_t *spec, const struct api_path *at,
                             struct api_report *report);

/* Whether a CertificateSigningRequest is Approved, Denied, Failed (kinds/certificate.c). */
bool api_csr_has(const json_t *object, const char *type);

/* Pools: what CStorPoolCluster and CStorPoolInstance have in common (kinds/pool.c). */
extern const struct api_field api_raid_group[], api_pool_config[];
void api_pool_normalize(json_t *pool, const struct api_path *at, struct api_report *report);
/* `devices` has the devices of the pools that were validated before, and gets those of this one. */
void api_pool_validate(const json_t *pool, const struct api_path *at, struct map *devices,
                       struct api_report *report);
void api_pool_publish(json_t *pool, const struct api_path *at, struct api_report *report);
/* The layout of a group: its own type, or the pool's default; NULL where neither is given. */
const char *api_raid_type(const json_t *pool, const json_t *group);
enum api_raid_role { API_RAID_DATA, API_RAID_WRITE_CACHE, API_RAID_READ_CACHE, API_RAID_SPARE };
enum api_raid_role api_raid_role_of(const json_t *group);
const char *api_raid_role_text(enum api_raid_role role);
/* Rules for a pool that was `old` and becomes `pool` (kinds/pool_update.c). */
void api_pool_validate_update(const json_t *old, const json_t *pool, const struct api_path *at,
                              struct api_report *report);
const char *api_raid_device(const json_t *device); /* its name; "" */
bool api_raid_group_has(const json_t *group, const char *device);
bool api_pool_has(const json_t *pool, const char *device);
/* The devices that only one of two groups has. */
struct api_raid_difference {
    size_t removed, added;
    const json_t *lost, *gained; /* the last of each; NULL */
    size_t gained_index;
};
struct api_raid_difference api_raid_compare(const json_t *old, const json_t *group);
/* The claim by which a cluster has a device, and its name (kinds/pool_claim.c); predecessor or NULL. */
json_t *api_pool_claim(const json_t *cluster, const json_t *bd, const char *predecessor);
char *api_pool_claim_name(const json_t *bd);
/* What they are among other objects (kinds/cspc_among.c). */
int api_cstor_pool_cluster_among(const struct api_among *a, struct err *e);
int api_cstor_pool_instance_among(const struct api_among *a, struct err *e);
