/*
 * How the tables of messages are written, and those that several files need. All of what Kubernetes
 * has in these messages is here, also what nothing here makes use of: what is left out would be lost
 * without a word.
 */
#pragma once

#include "apiserver/protobuf.h"

/* clang-format off */
#define STRING(n, name)        {(name), (n), APISERVER_PROTOBUF_STRING}
#define STRINGS(n, name)       {(name), (n), APISERVER_PROTOBUF_STRING, .repeated = true}
#define BOOL(n, name)          {(name), (n), APISERVER_PROTOBUF_BOOL}
#define INT(n, name)           {(name), (n), APISERVER_PROTOBUF_INT}
#define INTS(n, name)          {(name), (n), APISERVER_PROTOBUF_INT, .repeated = true}
#define BYTES(n, name)         {(name), (n), APISERVER_PROTOBUF_BYTES}
#define TIME(n, name)          {(name), (n), APISERVER_PROTOBUF_TIME}
#define MICRO_TIME(n, name)    {(name), (n), APISERVER_PROTOBUF_MICRO_TIME}
#define QUANTITY(n, name)      {(name), (n), APISERVER_PROTOBUF_QUANTITY}
#define INT_OR_STRING(n, name) {(name), (n), APISERVER_PROTOBUF_INT_OR_STRING}
#define JSON(n, name)          {(name), (n), APISERVER_PROTOBUF_JSON}
#define MAP(n, name)           {(name), (n), APISERVER_PROTOBUF_MAP}
#define BYTES_MAP(n, name)     {(name), (n), APISERVER_PROTOBUF_BYTES_MAP}
#define QUANTITIES(n, name)    {(name), (n), APISERVER_PROTOBUF_QUANTITIES}
#define LISTS(n, name)         {(name), (n), APISERVER_PROTOBUF_LISTS}
#define ONE(n, name, of)       {(name), (n), APISERVER_PROTOBUF_MESSAGE, (of)}
#define MANY(n, name, of)      {(name), (n), APISERVER_PROTOBUF_MESSAGE, (of), .repeated = true}
/* A message whose members are, in JSON, those of what it is in. */
#define INLINE(n, of)          {"", (n), APISERVER_PROTOBUF_INLINE, (of)}
/* Pointers in Go: what is there was meant. */
#define GIVEN(n, name, type)   {(name), (n), APISERVER_PROTOBUF_##type, .keep = true}
/* clang-format on */

typedef const struct apiserver_protobuf_field message[];

/* protobuf_tables.c */
extern message protobuf_metadata;
extern message protobuf_label_selector;
extern message protobuf_condition;
extern message protobuf_object_reference;
extern message protobuf_local_reference;
/* protobuf_volumes.c */
extern message protobuf_host_path_volume_source;
extern message protobuf_gce_persistent_disk_volume_source;
extern message protobuf_aws_elastic_block_store_volume_source;
extern message protobuf_nfs_volume_source;
extern message protobuf_flocker_volume_source;
extern message protobuf_object_field_selector;
extern message protobuf_resource_field_selector;
extern message protobuf_fc_volume_source;
extern message protobuf_vsphere_virtual_disk_volume_source;
extern message protobuf_quobyte_volume_source;
extern message protobuf_azure_disk_volume_source;
extern message protobuf_photon_persistent_disk_volume_source;
extern message protobuf_portworx_volume_source;
extern message protobuf_persistent_volume_claim_spec;
extern message protobuf_volume;
/* protobuf_pod.c */
extern message protobuf_resource_requirements;
extern message protobuf_node_selector;
extern message protobuf_pod_spec;
extern message protobuf_pod_template_spec;
/* protobuf_pod_status.c */
extern message protobuf_volume_health_condition;
extern message protobuf_pod;
/* protobuf_core.c */
extern message protobuf_service;
extern message protobuf_endpoints;
extern message protobuf_node;
extern message protobuf_resource_quota;
extern message protobuf_limit_range;
extern message protobuf_scale;
/* protobuf_storage.c */
extern message protobuf_persistent_volume;
extern message protobuf_persistent_volume_claim;
extern message protobuf_storage_class;
extern message protobuf_csi_node;
extern message protobuf_csi_driver;
extern message protobuf_volume_attachment;
extern message protobuf_csi_storage_capacity;
extern message protobuf_volume_attributes_class;
/* protobuf_apps.c */
extern message protobuf_deployment;
extern message protobuf_stateful_set;
extern message protobuf_daemon_set;
extern message protobuf_replica_set;
extern message protobuf_controller_revision;
extern message protobuf_job;
extern message protobuf_cron_job;
extern message protobuf_pod_disruption_budget;
extern message protobuf_priority_class;
/* protobuf_cluster.c */
extern message protobuf_certificate_signing_request;
extern message protobuf_binding;
extern message protobuf_endpoint_slice;
/* protobuf_webhooks.c */
extern message protobuf_validating_webhook_configuration;
extern message protobuf_mutating_webhook_configuration;
