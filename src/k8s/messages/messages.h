/*
 * How the tables of messages are written, and those that several files need. All of what Kubernetes
 * has in these messages is here, also what nothing here makes use of: what is left out would be lost
 * without a word.
 */
#pragma once

#include "k8s/messages/find.h"

/* clang-format off */
#define STRING(n, name)        {(name), (n), API_MESSAGE_STRING}
#define STRINGS(n, name)       {(name), (n), API_MESSAGE_STRING, .repeated = true}
#define BOOL(n, name)          {(name), (n), API_MESSAGE_BOOL}
#define INT(n, name)           {(name), (n), API_MESSAGE_INT}
#define INTS(n, name)          {(name), (n), API_MESSAGE_INT, .repeated = true}
#define BYTES(n, name)         {(name), (n), API_MESSAGE_BYTES}
#define TIME(n, name)          {(name), (n), API_MESSAGE_TIME}
#define MICRO_TIME(n, name)    {(name), (n), API_MESSAGE_MICRO_TIME}
#define QUANTITY(n, name)      {(name), (n), API_MESSAGE_QUANTITY}
#define INT_OR_STRING(n, name) {(name), (n), API_MESSAGE_INT_OR_STRING}
#define JSON(n, name)          {(name), (n), API_MESSAGE_JSON}
#define MAP(n, name)           {(name), (n), API_MESSAGE_MAP}
#define BYTES_MAP(n, name)     {(name), (n), API_MESSAGE_BYTES_MAP}
#define QUANTITIES(n, name)    {(name), (n), API_MESSAGE_QUANTITIES}
#define LISTS(n, name)         {(name), (n), API_MESSAGE_LISTS}
#define ONE(n, name, of)       {(name), (n), API_MESSAGE_MESSAGE, (of)}
#define MANY(n, name, of)      {(name), (n), API_MESSAGE_MESSAGE, (of), .repeated = true}
/* A message whose members are, in JSON, those of what it is in. */
#define INLINE(n, of)          {"", (n), API_MESSAGE_INLINE, (of)}
/* Pointers in Go: what is there was meant. */
#define GIVEN(n, name, type)   {(name), (n), API_MESSAGE_##type, .keep = true}
/* clang-format on */

typedef const struct api_message_field message[];

/* messages.c */
extern message message_condition;
extern message message_object_reference;
extern message message_local_reference;
/* volumes.c */
extern message message_host_path_volume_source;
extern message message_gce_persistent_disk_volume_source;
extern message message_aws_elastic_block_store_volume_source;
extern message message_nfs_volume_source;
extern message message_flocker_volume_source;
extern message message_object_field_selector;
extern message message_resource_field_selector;
extern message message_fc_volume_source;
extern message message_vsphere_virtual_disk_volume_source;
extern message message_quobyte_volume_source;
extern message message_azure_disk_volume_source;
extern message message_photon_persistent_disk_volume_source;
extern message message_portworx_volume_source;
extern message message_volume;
/* pod.c */
extern message message_resource_requirements;
extern message message_node_selector;
/* pod_status.c */
extern message message_volume_health_condition;
extern message message_pod;
/* core.c */
extern message message_service;
extern message message_endpoints;
extern message message_node;
extern message message_resource_quota;
extern message message_limit_range;
extern message message_scale;
/* storage.c */
extern message message_persistent_volume;
extern message message_persistent_volume_claim;
extern message message_storage_class;
extern message message_csi_node;
extern message message_csi_driver;
extern message message_volume_attachment;
extern message message_csi_storage_capacity;
extern message message_volume_attributes_class;
/* apps.c */
extern message message_deployment;
extern message message_stateful_set;
extern message message_daemon_set;
extern message message_replica_set;
extern message message_controller_revision;
extern message message_job;
extern message message_cron_job;
extern message message_pod_disruption_budget;
extern message message_priority_class;
/* cluster.c */
extern message message_certificate_signing_request;
extern message message_binding;
extern message message_endpoint_slice;
/* webhooks.c */
extern message message_validating_webhook_configuration;
extern message message_mutating_webhook_configuration;
