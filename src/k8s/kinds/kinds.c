#include "k8s/kinds/kinds.h"

#include "api/openapi.h"
#include "k8s/messages/find.h"
#include "kinds/kinds.h"

const struct api_kind *const api_kinds[] = {
    &api_cstor_pool_cluster,
    &api_cstor_pool_instance,
    &api_block_device,
    &api_block_device_claim,
    &api_cstor_volume,
    &api_cstor_volume_replica,
    &api_cstor_volume_config,
    &api_cstor_volume_policy,
    &api_jiva_volume,
    &api_jiva_volume_resize,
    &api_logical_volume,

    &api_namespace,
    &api_node,
    &api_pod,
    &api_service,
    &api_endpoints,
    &api_config_map,
    &api_secret,
    &api_service_account,
    &api_event,
    &api_persistent_volume,
    &api_persistent_volume_claim,
    &api_resource_quota,
    &api_limit_range,
    &api_deployment,
    &api_stateful_set,
    &api_replica_set,
    &api_daemon_set,
    &api_controller_revision,
    &api_job,
    &api_cron_job,
    &api_storage_class,
    &api_csi_driver,
    &api_csi_node,
    &api_volume_attachment,
    &api_csi_storage_capacity,
    &api_volume_attributes_class,
    &api_volume_snapshot,
    &api_volume_snapshot_content,
    &api_volume_snapshot_class,
    &api_lease,
    &api_role,
    &api_role_binding,
    &api_cluster_role,
    &api_cluster_role_binding,
    &api_subject_access_review,
    &api_local_subject_access_review,
    &api_self_subject_access_review,
    &api_self_subject_rules_review,
    &api_pod_disruption_budget,
    &api_priority_class,
    &api_validating_webhook,
    &api_mutating_webhook,
    &api_custom_resource_definition,
    &api_certificate_signing_request,
    &api_endpoint_slice,
    &api_token_review,
    &api_self_subject_review,
    NULL,
};

const struct api_kind *const *api_kinds_of_kubernetes(void)
{
    const struct api_kind *const *k = api_kinds;
    while (*k != &api_namespace)
        k++;
    return k;
}

const struct api_message_field *api_message_find(const char *api_version, const char *kind)
{
    return message_find(api_version, kind);
}

/* Objects that are in many kinds: OpenAPI v2 has them once and refers to them. */
static const struct api_openapi_shared shared[] = {
    {"io.k8s.api.core.v1.PersistentVolumeClaimSpec", api_claim_spec,
     message_persistent_volume_claim_spec},
    {"io.k8s.api.core.v1.PodSpec", api_pod_spec, message_pod_spec},
    {"io.k8s.api.core.v1.PodTemplateSpec", api_pod_template, message_pod_template_spec},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", api_label_selector,
     message_label_selector},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", api_object_meta, message_metadata},
    {0},
};

const struct api_openapi_shared *api_openapi_shared(void)
{
    return shared;
}
