/*
 * Node: a machine that runs pods.
 */
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field taint[] = {
    {"key", API_STRING, .flags = API_REQUIRED, .format = &api_qualified_name,
     .doc = "What the taint is about."},
    {"value", API_STRING, .format = &api_label_value, .doc = "Its value."},
    {"effect", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("NoSchedule", "PreferNoSchedule", "NoExecute"),
     .doc = "What happens to pods that do not tolerate it."},
    {"timeAdded", API_TIME, .doc = "When it was added, for NoExecute."},
    {0},
};

static const struct api_field spec[] = {
    {"podCIDR", API_STRING, .doc = "Range of addresses for the node's pods."},
    {"podCIDRs", API_STRING, API_LIST, API_SET, .doc = "The same, one for each address family."},
    {"providerID", API_STRING, .doc = "The machine's name with its provider."},
    {"unschedulable", API_BOOL, .doc = "Whether new pods are kept away; see kubectl cordon."},
    {"taints", API_OBJECT, API_LIST, .fields = taint,
     .doc = "Marks that keep away pods which do not tolerate them."},
    {0},
};

static const struct api_field address[] = {
    {"type", API_STRING, .flags = API_REQUIRED, .doc = "Hostname, InternalIP or ExternalIP."},
    {"address", API_STRING, .flags = API_REQUIRED, .doc = "The address."},
    {0},
};

static const struct api_field node_info[] = {
    {"machineID", API_STRING, .doc = "Id of the machine."},
    {"systemUUID", API_STRING, .doc = "UUID of the machine."},
    {"bootID", API_STRING, .doc = "Changes with every start of the machine."},
    {"kernelVersion", API_STRING, .doc = "Version of the kernel."},
    {"osImage", API_STRING, .doc = "The operating system, for people."},
    {"containerRuntimeVersion", API_STRING, .doc = "What runs containers, and its version."},
    {"kubeletVersion", API_STRING, .doc = "Version of the node's agent."},
    {"kubeProxyVersion", API_STRING, .doc = "Obsolete."},
    {"operatingSystem", API_STRING, .doc = "The operating system, such as linux."},
    {"architecture", API_STRING, .doc = "The processor, such as amd64."},
    {0},
};

static const struct api_field image[] = {
    {"names", API_STRING, API_LIST, .doc = "Names by which the image is known."},
    {"sizeBytes", API_INT, .doc = "Its size."},
    {0},
};

static const struct api_field attached_volume[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "The volume, in the form driver^handle."},
    {"devicePath", API_STRING, .doc = "The device on the node."},
    {0},
};

static const struct api_field status[] = {
    {"capacity", API_QUANTITY, API_MAP, .doc = "Resources of the machine."},
    {"allocatable", API_QUANTITY, API_MAP, .doc = "Resources that pods may use."},
    {"phase", API_STRING, .doc = "Obsolete."},
    API_CONDITIONS,
    {"addresses", API_OBJECT, API_LIST, .fields = address, .merge_key = "type",
     .doc = "Where the node can be reached."},
    {"daemonEndpoints", API_OBJECT, .flags = API_KEEP, .doc = "Ports of the node's agents."},
    {"nodeInfo", API_OBJECT, .fields = node_info, .doc = "What the machine is and runs."},
    {"images", API_OBJECT, API_LIST, .fields = image, .doc = "Images that are on the node."},
    {"volumesInUse", API_STRING, API_LIST, .doc = "Volumes that are mounted on the node."},
    {"volumesAttached", API_OBJECT, API_LIST, .fields = attached_volume,
     .doc = "Volumes that are attached to the node."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .fields = spec, .doc = "How the node is to be used."},
    {"status", API_OBJECT, .fields = status, .doc = "What the node has, and how it is."},
    {0},
};

static const struct api_column columns[] = {
    {"Status", "string", NULL, "Whether it is ready", 0, api_cell_node_status},
    {"Roles", "string", NULL, "What it is for", 0, api_cell_node_roles},
    API_AGE,
    {"Version", "string", ".status.nodeInfo.kubeletVersion", "Version of its agent"},
    {"Internal-IP", "string", NULL, "Its address", 1, api_cell_node_internal},
    {"External-IP", "string", NULL, "Its address outside", 1, api_cell_node_external},
    {"OS-Image", "string", ".status.nodeInfo.osImage", "Operating system", 1},
    {"Kernel-Version", "string", ".status.nodeInfo.kernelVersion", "Version of the kernel", 1},
    {"Container-Runtime", "string", ".status.nodeInfo.containerRuntimeVersion",
     "What runs containers", 1},
    {0},
};

const struct api_kind api_node = {
    .kind = "Node",
    .plural = "nodes",
    .singular = "node",
    .short_names = API_WORDS("no"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_STATUS,
    .fields = fields,
    .columns = columns,
    .doc = "A machine of the cluster.",
};
