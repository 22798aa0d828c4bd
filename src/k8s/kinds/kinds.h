/*
 * The tables of Kubernetes' own kinds, and the parts that several of them share.
 */
#pragma once

#include "api/shared.h"

/* The end of api_kinds that is Kubernetes' own. */
const struct api_kind *const *api_kinds_of_kubernetes(void);

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

/* Shared tables. */
extern const struct api_field api_webhook_client[]; /* where a webhook is */
void api_check_webhook_client(const json_t *client, const struct api_path *at,
                              struct api_report *report);
extern const struct api_field api_pod_spec[], api_pod_template[];
extern const struct api_field api_claim_spec[]; /* of a PersistentVolumeClaim */
/* Parts of pods (podparts.c). */
extern const struct api_field api_probe[], api_lifecycle[], api_value_from[], api_env_from[];
extern const struct api_field api_security_context[], api_pod_security_context[];
extern const struct api_field api_affinity[], api_node_selector[];

/* Rules of a ResourceQuota (quota.c). */
void api_quota_validate(const json_t *object, struct api_report *report);
/* Rules of a pod's spec that lies at that path (pod_rules.c). */
void api_pod_spec_validate(const json_t *spec, const struct api_path *at,
                           struct api_report *report);
/* Defaults of a pod's spec that follow from other fields; the same for what has a template. */
void api_pod_spec_derive(json_t *spec);
void api_pod_template_derive(json_t *object);
/*
 * What runs on a node itself (pod_host.c). `pod` is a Pod or a template of Pods.
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
/* Access modes and size of a claim's spec at that path (claim.c). */
void api_claim_spec_validate(const json_t *spec, const struct api_path *at,
                             struct api_report *report);

/* Whether a CertificateSigningRequest is Approved, Denied, Failed (certificate.c). */
bool api_csr_has(const json_t *object, const char *type);
