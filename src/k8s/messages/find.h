/*
 * The messages by which Kubernetes' clients in Go speak protobuf of its kinds.
 */
#pragma once

#include "api/message.h"

/* NULL: there is none. */
const struct api_message_field *message_find(const char *api_version, const char *kind);

/* Those that many kinds have. */
extern const struct api_message_field message_label_selector[];
extern const struct api_message_field message_metadata[];
extern const struct api_message_field message_persistent_volume_claim_spec[];
extern const struct api_message_field message_pod_spec[];
extern const struct api_message_field message_pod_template_spec[];
