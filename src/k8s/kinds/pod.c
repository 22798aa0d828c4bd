/*
 * Pod.
 */
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field mount_status[] = {
    {"name", API_STRING, .doc = "Name of the volume."},
    {"mountPath", API_STRING, .doc = "Where it is mounted."},
    {"readOnly", API_BOOL, .doc = "Whether it can only be read."},
    {"recursiveReadOnly", API_STRING, .doc = "Whether mounts below it can only be read, too."},
    {0},
};

static const struct api_field resource_status[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the resource."},
    {"resources", API_OBJECT, API_LIST, API_KEEP, .doc = "Its devices and how they are."},
    {0},
};

static const struct api_field container_status[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the container."},
    {"state", API_OBJECT, .flags = API_KEEP, .doc = "Whether it waits, runs or has ended."},
    {"lastState", API_OBJECT, .flags = API_KEEP, .doc = "How it ended the last time."},
    {"ready", API_BOOL, .doc = "Whether it can serve."},
    {"started", API_BOOL, .doc = "Whether it has started."},
    {"restartCount", API_INT, API_UINT31, .doc = "How often it was started again."},
    {"image", API_STRING, .doc = "The image that it runs."},
    {"imageID", API_STRING, .doc = "Digest of that image."},
    {"containerID", API_STRING, .doc = "Id of the container on its node."},
    {"allocatedResources", API_QUANTITY, API_MAP, .doc = "Resources that were set aside for it."},
    {"resources", API_OBJECT, .fields = api_resources, .doc = "Resources that it has."},
    {"volumeMounts", API_OBJECT, API_LIST, .fields = mount_status, .merge_key = "mountPath",
     .doc = "Its mounts."},
    {"allocatedResourcesStatus", API_OBJECT, API_LIST, .fields = resource_status,
     .merge_key = "name", .doc = "How its devices are."},
    {0},
};

static const struct api_field address[] = {
    {"ip", API_STRING, .flags = API_REQUIRED, .doc = "The address."},
    {0},
};

static const struct api_field claim_status[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the claim in the spec."},
    {"resourceClaimName", API_STRING, .doc = "The ResourceClaim that was made for it."},
    {0},
};

static const struct api_field status[] = {
    {"observedGeneration", API_INT, .doc = "The metadata.generation that this was said of."},
    {"phase", API_STRING, .doc = "Pending, Running, Succeeded, Failed or Unknown."},
    API_CONDITIONS,
    {"message", API_STRING, .doc = "Why it is in this phase, for people."},
    {"reason", API_STRING, .doc = "One CamelCase word for why it is in this phase."},
    {"nominatedNodeName", API_STRING, .doc = "Node on which room is being made for it."},
    {"hostIP", API_STRING, .doc = "Address of its node."},
    {"hostIPs", API_OBJECT, API_LIST, API_ATOMIC, .fields = address, .merge_key = "ip",
     .doc = "Addresses of its node."},
    {"podIP", API_STRING, .doc = "Its address."},
    {"podIPs", API_OBJECT, API_LIST, .fields = address, .merge_key = "ip", .doc = "Its addresses."},
    {"startTime", API_TIME, .doc = "When its node took it on."},
    {"initContainerStatuses", API_OBJECT, API_LIST, .fields = container_status,
     .doc = "How its init containers are."},
    {"containerStatuses", API_OBJECT, API_LIST, .fields = container_status,
     .doc = "How its containers are."},
    {"ephemeralContainerStatuses", API_OBJECT, API_LIST, .fields = container_status,
     .doc = "How its ephemeral containers are."},
    {"qosClass", API_STRING, .doc = "How well its resources are guaranteed."},
    {"resize", API_STRING, .doc = "Progress of a change of its resources."},
    {"resourceClaimStatuses", API_OBJECT, API_LIST, API_RETAIN_KEYS, .fields = claim_status,
     .merge_key = "name", .doc = "How its claims for devices are."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = api_pod_spec,
     .doc = "The containers that are wanted."},
    {"status", API_OBJECT, .fields = status, .def = "{\"phase\": \"Pending\"}",
     .doc = "The containers that are there."},
    {0},
};

static const struct api_column columns[] = {
    {"Ready", "string", NULL, "Containers that are ready, of all", 0, api_cell_pod_ready},
    {"Status", "string", NULL, "How it is", 0, api_cell_pod_status},
    {"Restarts", "string", NULL, "How often containers were started again", 0,
     api_cell_pod_restarts},
    API_AGE,
    {"IP", "string", NULL, "Its address", 1, api_cell_pod_address},
    {"Node", "string", NULL, "The node it is on", 1, api_cell_pod_node},
    {"Nominated Node", "string", NULL, "Where room is made for it", 1, api_cell_pod_nominated},
    {"Readiness Gates", "string", NULL, "Conditions that hold, of those that must", 1,
     api_cell_pod_gates},
    {0},
};

static void derive(json_t *object)
{
    json_t *spec = json_object_get(object, "spec");
    api_pod_spec_derive(spec);
    if (json_is_object(spec) && !json_object_get(spec, "enableServiceLinks"))
        json_object_set_new(spec, "enableServiceLinks", json_true());
}

static void validate(const json_t *object, struct api_report *report)
{
    api_pod_spec_validate(json_object_get(object, "spec"), API_KEY(NULL, "spec"), report);
}

/* One that no node runs, or has ended, has nobody who could end it. */
static int64_t grace(const json_t *pod)
{
    const json_t *spec = json_object_get(pod, "spec");
    const char *node = json_str(spec, "nodeName");
    const char *phase = json_str(json_object_get(pod, "status"), "phase");
    if (!node || !*node || (phase && (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"))))
        return -1;
    return json_integer_value(json_object_get(spec, "terminationGracePeriodSeconds"));
}

const struct api_kind api_pod = {
    .kind = "Pod",
    .plural = "pods",
    .singular = "pod",
    .short_names = API_WORDS("po"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_STATUS | API_LOG | API_BINDING,
    .fields = fields,
    .columns = columns,
    .grace = grace,
    .derive = derive,
    .validate = validate,
    .doc = "Containers that run together on one node.",
};
