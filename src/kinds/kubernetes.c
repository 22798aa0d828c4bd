#include "kinds/kinds.h"

const struct api_kind api_kubernetes_node = {
    .kind = "Node",
    .plural = "nodes",
    .singular = "node",
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
};

const struct api_kind api_kubernetes_pod = {
    .kind = "Pod",
    .plural = "pods",
    .singular = "pod",
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN,
};
