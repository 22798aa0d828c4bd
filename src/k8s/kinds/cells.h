/*
 * Cells of tables that no path leads to, for Kubernetes' own kinds: what kubectl users are used to
 * see there. Each takes an object of its kind and returns a new reference.
 */
#pragma once

#include "api/kind.h"

typedef json_t *api_cell(const json_t *object, int64_t now);

/* cells_apps.c */
api_cell api_cell_replicas_ready; /* 1/3 */
api_cell api_cell_updated, api_cell_available;
api_cell api_cell_node_selector;
api_cell api_cell_containers, api_cell_images, api_cell_selector; /* of a template */
api_cell api_cell_cron_containers, api_cell_cron_images, api_cell_cron_selector;
api_cell api_cell_cron_zone, api_cell_cron_suspend, api_cell_cron_active, api_cell_cron_last;
api_cell api_cell_job_status, api_cell_job_completions, api_cell_job_duration;
api_cell api_cell_controller;
api_cell api_cell_min_available, api_cell_max_unavailable;

/* cells_core.c */
api_cell api_cell_data, api_cell_secrets, api_cell_webhooks; /* how many */
api_cell api_cell_service_address, api_cell_service_external, api_cell_service_ports;
api_cell api_cell_service_selector;
api_cell api_cell_endpoints;
api_cell api_cell_node_status, api_cell_node_roles, api_cell_node_internal, api_cell_node_external;
api_cell api_cell_event_last, api_cell_event_first, api_cell_event_count, api_cell_event_object;
api_cell api_cell_event_source, api_cell_event_message;
api_cell api_cell_quota_requests, api_cell_quota_limits;
api_cell api_cell_role, api_cell_users, api_cell_groups, api_cell_accounts;

/* cells_pod.c */
api_cell api_cell_pod_ready, api_cell_pod_status, api_cell_pod_restarts, api_cell_pod_address;
api_cell api_cell_pod_node, api_cell_pod_nominated, api_cell_pod_gates;

/* cells_storage.c */
api_cell api_cell_claim_status, api_cell_claim_capacity, api_cell_claim_modes,
    api_cell_volume_modes;
api_cell api_cell_volume_claim, api_cell_attributes_class, api_cell_volume_mode,
    api_cell_class_name;
api_cell api_cell_drivers, api_cell_token_requests, api_cell_lifecycle_modes;

/* Helpers of the above (cells_core.c): text of members, what is wanted where there is none. */
json_t *api_cell_text(const char *text, const char *otherwise);
json_t *api_cell_list(const json_t *strings, const char *separator, const char *otherwise);
json_t *api_cell_labels(const json_t *labels);

/* Columns that all with a template of pods have. */
#define API_TEMPLATE_COLUMNS                                                                       \
    {"Containers", "string", NULL, "Containers of the template", 1, api_cell_containers},          \
    {                                                                                              \
        "Images", "string", NULL, "Images of the template", 1, api_cell_images                     \
    }
#define API_SELECTOR_COLUMN                                                                        \
    {                                                                                              \
        "Selector", "string", NULL, "Which pods are its own", 1, api_cell_selector                 \
    }
