/*
 * What machines and schedulers send: requests for certificates, bindings, slices of endpoints. The
 * numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
static message csr_spec = {
    BYTES(1, "request"), STRING(2, "username"), STRING(3, "uid"), STRINGS(4, "groups"),
    STRINGS(5, "usages"), LISTS(6, "extra"), STRING(7, "signerName"),
    GIVEN(8, "expirationSeconds", INT), {0},
};

static message csr_condition = {
    STRING(1, "type"), STRING(2, "reason"), STRING(3, "message"), TIME(4, "lastUpdateTime"),
    TIME(5, "lastTransitionTime"), STRING(6, "status"), {0},
};

static message csr_status = {
    MANY(1, "conditions", csr_condition), BYTES(2, "certificate"), {0},
};

message message_certificate_signing_request = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", csr_spec), ONE(3, "status", csr_status),
    {0},
};

message message_binding = {
    ONE(1, "metadata", message_metadata), ONE(2, "target", message_object_reference), {0},
};

static message endpoint_conditions = {
    GIVEN(1, "ready", BOOL), GIVEN(2, "serving", BOOL), GIVEN(3, "terminating", BOOL), {0},
};

static message hint = {
    STRING(1, "name"), {0},
};

static message endpoint_hints = {
    MANY(1, "forZones", hint), MANY(2, "forNodes", hint), {0},
};

static message slice_endpoint = {
    STRINGS(1, "addresses"), ONE(2, "conditions", endpoint_conditions),
    GIVEN(3, "hostname", STRING), ONE(4, "targetRef", message_object_reference),
    MAP(5, "deprecatedTopology"), GIVEN(6, "nodeName", STRING), GIVEN(7, "zone", STRING),
    ONE(8, "hints", endpoint_hints), {0},
};

static message slice_port = {
    GIVEN(1, "name", STRING), GIVEN(2, "protocol", STRING), GIVEN(3, "port", INT),
    GIVEN(4, "appProtocol", STRING), {0},
};

message message_endpoint_slice = {
    ONE(1, "metadata", message_metadata), MANY(2, "endpoints", slice_endpoint),
    MANY(3, "ports", slice_port), STRING(4, "addressType"), {0},
};
/* clang-format on */
