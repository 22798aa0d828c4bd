/*
 * Configurations of webhooks. The numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
static message service_reference = {
    STRING(1, "namespace"), STRING(2, "name"), GIVEN(3, "path", STRING), GIVEN(4, "port", INT), {0},
};

static message webhook_client_config = {
    ONE(1, "service", service_reference), BYTES(2, "caBundle"), GIVEN(3, "url", STRING), {0},
};

static message rule = {
    STRINGS(1, "apiGroups"), STRINGS(2, "apiVersions"), STRINGS(3, "resources"),
    GIVEN(4, "scope", STRING), {0},
};

static message rule_with_operations = {
    STRINGS(1, "operations"), INLINE(2, rule), {0},
};

static message match_condition = {
    STRING(1, "name"), STRING(2, "expression"), {0},
};

static message validating_webhook = {
    STRING(1, "name"), ONE(2, "clientConfig", webhook_client_config),
    MANY(3, "rules", rule_with_operations), GIVEN(4, "failurePolicy", STRING),
    ONE(5, "namespaceSelector", message_label_selector), GIVEN(6, "sideEffects", STRING),
    GIVEN(7, "timeoutSeconds", INT), STRINGS(8, "admissionReviewVersions"),
    GIVEN(9, "matchPolicy", STRING), ONE(10, "objectSelector", message_label_selector),
    MANY(11, "matchConditions", match_condition), {0},
};

message message_validating_webhook_configuration = {
    ONE(1, "metadata", message_metadata), MANY(2, "webhooks", validating_webhook), {0},
};

static message mutating_webhook = {
    STRING(1, "name"), ONE(2, "clientConfig", webhook_client_config),
    MANY(3, "rules", rule_with_operations), GIVEN(4, "failurePolicy", STRING),
    ONE(5, "namespaceSelector", message_label_selector), GIVEN(6, "sideEffects", STRING),
    GIVEN(7, "timeoutSeconds", INT), STRINGS(8, "admissionReviewVersions"),
    GIVEN(9, "matchPolicy", STRING), GIVEN(10, "reinvocationPolicy", STRING),
    ONE(11, "objectSelector", message_label_selector),
    MANY(12, "matchConditions", match_condition), {0},
};

message message_mutating_webhook_configuration = {
    ONE(1, "metadata", message_metadata), MANY(2, "webhooks", mutating_webhook), {0},
};
/* clang-format on */
