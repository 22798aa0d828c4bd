/*
 * What a pod is made of. Several kinds have a template of it.
 *
 * Lists merge by the same keys as in Kubernetes; those of objects that are kept without a table
 * (probes, affinity, security context) have none there either.
 */
#include "k8s/kinds/kinds.h"

static const struct api_field container_port[] = {
    {"containerPort", API_INT, .flags = API_REQUIRED, .min = 1, .max = 65535,
     .doc = "The port on which the container listens."},
    {"name", API_STRING, .doc = "Name of the port, for services."},
    {"hostPort", API_INT, .min = 0, .max = 65535, .doc = "The same port on the node."},
    {"hostIP", API_STRING, .doc = "Address of the node for hostPort."},
    {"protocol", API_STRING, .words = API_WORDS("TCP", "UDP", "SCTP"), .def = "\"TCP\"",
     .doc = "Protocol of the port."},
    {0},
};

static const struct api_field env[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the variable."},
    {"value", API_STRING, .doc = "Its value; quote numbers and booleans."},
    {"valueFrom", API_OBJECT, .fields = api_value_from,
     .doc = "Where the value comes from instead."},
    {0},
};

static const struct api_field volume_mount[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the volume."},
    {"mountPath", API_STRING, .flags = API_REQUIRED, .doc = "Where the container sees it."},
    {"readOnly", API_BOOL, .doc = "Whether it can only be read."},
    {"recursiveReadOnly", API_STRING, .words = API_WORDS("Disabled", "IfPossible", "Enabled"),
     .doc = "Whether mounts below it can only be read, too."},
    {"mountPropagation", API_STRING, .words = API_WORDS("None", "HostToContainer", "Bidirectional"),
     .doc = "Which later mounts are seen on the other side."},
    {"subPath", API_STRING, .doc = "The part of the volume that is mounted."},
    {"subPathExpr", API_STRING, .doc = "The same with variables in it."},
    {0},
};

static const struct api_field volume_device[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the volume; a block volume."},
    {"devicePath", API_STRING, .flags = API_REQUIRED,
     .doc = "Where the container sees the device."},
    {0},
};

static const struct api_field resize_policy[] = {
    {"resourceName", API_STRING, .flags = API_REQUIRED, .doc = "The resource, cpu or memory."},
    {"restartPolicy", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("NotRequired", "RestartContainer"),
     .doc = "Whether changing it restarts the container."},
    {0},
};

static const struct api_field container[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .format = &api_dns_label,
     .doc = "Name of the container, unique in the pod."},
    {"image", API_STRING, .doc = "The image to run."},
    {"command", API_STRING, API_LIST, .doc = "The program, in place of the image's entry point."},
    {"args", API_STRING, API_LIST, .doc = "Its arguments, in place of the image's."},
    {"workingDir", API_STRING, .doc = "The directory it starts in."},
    {"ports", API_OBJECT, API_LIST, .fields = container_port, .merge_key = "containerPort",
     .map_keys = API_KEYS("containerPort", "protocol"), .doc = "The ports on which it listens."},
    {"envFrom", API_OBJECT, API_LIST, .fields = api_env_from,
     .doc = "Where to take whole sets of variables."},
    {"env", API_OBJECT, API_LIST, .fields = env, .merge_key = "name",
     .doc = "Environment variables."},
    {"resources", API_OBJECT, .fields = api_resources, .def = "{}",
     .doc = "What it gets of the machine."},
    {"resizePolicy", API_OBJECT, API_LIST, .fields = resize_policy,
     .doc = "What happens when its resources change."},
    {"restartPolicy", API_STRING, .words = API_WORDS("Always", "OnFailure", "Never"),
     .doc = "For init containers: Always makes one that goes on beside the others."},
    {"volumeMounts", API_OBJECT, API_LIST, .fields = volume_mount, .merge_key = "mountPath",
     .doc = "Volumes that it sees as file systems."},
    {"volumeDevices", API_OBJECT, API_LIST, .fields = volume_device, .merge_key = "devicePath",
     .doc = "Volumes that it sees as block devices."},
    {"livenessProbe", API_OBJECT, .fields = api_probe, .doc = "When to restart it."},
    {"readinessProbe", API_OBJECT, .fields = api_probe, .doc = "When it can serve."},
    {"startupProbe", API_OBJECT, .fields = api_probe, .doc = "When it has started."},
    {"lifecycle", API_OBJECT, .fields = api_lifecycle,
     .doc = "What to run after start, before end."},
    {"terminationMessagePath", API_STRING, .def = "\"/dev/termination-log\"",
     .doc = "File that it leaves its last words in."},
    {"terminationMessagePolicy", API_STRING, .def = "\"File\"",
     .words = API_WORDS("File", "FallbackToLogsOnError"),
     .doc = "Where last words are taken from."},
    {"imagePullPolicy", API_STRING, .words = API_WORDS("Always", "IfNotPresent", "Never"),
     .doc = "When to fetch the image; not given: Always of the tag latest, else IfNotPresent."},
    {"securityContext", API_OBJECT, .fields = api_security_context,
     .doc = "User, privileges and the like."},
    {"stdin", API_BOOL, .doc = "Whether it has an open standard input."},
    {"stdinOnce", API_BOOL, .doc = "Whether that is closed after the first client."},
    {"tty", API_BOOL, .doc = "Whether it has a terminal."},
    {0},
};

static const struct api_field claim_source[] = {
    {"claimName", API_STRING, .flags = API_REQUIRED, .doc = "The PersistentVolumeClaim."},
    {"readOnly", API_BOOL, .doc = "Whether it can only be read."},
    {0},
};

static const struct api_field empty_dir[] = {
    {"medium", API_STRING, .doc = "Memory for a file system in memory; empty for the node's disk."},
    {"sizeLimit", API_QUANTITY, .doc = "The most it may hold."},
    {0},
};

static const struct api_field host_path[] = {
    {"path", API_STRING, .flags = API_REQUIRED, .doc = "A path of the node."},
    {"type", API_STRING, .def = "\"\"",
     .words = API_WORDS("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket",
                        "CharDevice", "BlockDevice"),
     .doc = "What must be there; empty checks nothing."},
    {0},
};

static const struct api_field config_map_source[] = {
    {"name", API_STRING, .doc = "The ConfigMap."},
    {"items", API_OBJECT, API_LIST, API_KEEP, .doc = "Which keys become which files; all if none."},
    {"defaultMode", API_INT, .min = 0, .max = 0777, .def = "420", .doc = "Mode of the files."},
    {"optional", API_BOOL, .doc = "Whether it may be missing."},
    {0},
};

static const struct api_field secret_source[] = {
    {"secretName", API_STRING, .doc = "The Secret."},
    {"items", API_OBJECT, API_LIST, API_KEEP, .doc = "Which keys become which files; all if none."},
    {"defaultMode", API_INT, .min = 0, .max = 0777, .def = "420", .doc = "Mode of the files."},
    {"optional", API_BOOL, .doc = "Whether it may be missing."},
    {0},
};

static const struct api_field csi_source[] = {
    {"driver", API_STRING, .flags = API_REQUIRED, .doc = "Name of the CSI driver."},
    {"readOnly", API_BOOL, .doc = "Whether it can only be read."},
    {"fsType", API_STRING, .doc = "File system, such as ext4."},
    {"volumeAttributes", API_STRING, API_MAP, .doc = "Settings for the driver."},
    {"nodePublishSecretRef", API_OBJECT, .flags = API_ATOMIC, .fields = api_local_reference,
     .doc = "Secret for the driver."},
    {0},
};

static const struct api_field claim_template[] = {
    {"metadata", API_OBJECT, .flags = API_EMBEDDED, .fields = api_object_meta,
     .doc = "Labels and annotations of the claim."},
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = api_claim_spec, .doc = "The claim."},
    {0},
};

static const struct api_field ephemeral_source[] = {
    {"volumeClaimTemplate", API_OBJECT, .fields = claim_template,
     .doc = "The claim that is made for the pod and goes with it."},
    {0},
};

static const struct api_field volume[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .format = &api_dns_label,
     .doc = "Name by which containers mount it."},
    {"persistentVolumeClaim", API_OBJECT, .fields = claim_source, .doc = "A claimed volume."},
    {"emptyDir", API_OBJECT, .fields = empty_dir, .doc = "An empty directory, gone with the pod."},
    {"hostPath", API_OBJECT, .fields = host_path, .doc = "A path of the node."},
    {"configMap", API_OBJECT, .fields = config_map_source, .doc = "A ConfigMap's keys as files."},
    {"secret", API_OBJECT, .fields = secret_source, .doc = "A Secret's keys as files."},
    {"projected", API_OBJECT, .flags = API_KEEP, .doc = "Several sources in one directory."},
    {"downwardAPI", API_OBJECT, .flags = API_KEEP, .doc = "Facts about the pod as files."},
    {"csi", API_OBJECT, .fields = csi_source, .doc = "A volume that a CSI driver makes in place."},
    {"ephemeral", API_OBJECT, .fields = ephemeral_source,
     .doc = "A claim that lives with the pod."},
    {"nfs", API_OBJECT, .flags = API_KEEP, .doc = "A directory of an NFS server."},
    {"iscsi", API_OBJECT, .flags = API_KEEP, .doc = "A disk of an iSCSI target."},
    {0},
};

static const struct api_field host_alias[] = {
    {"ip", API_STRING, .flags = API_REQUIRED, .doc = "The address."},
    {"hostnames", API_STRING, API_LIST, .doc = "Names for it."},
    {0},
};

static const struct api_field spread_constraint[] = {
    {"maxSkew", API_INT, .flags = API_REQUIRED, .min = 1, .max = INT32_MAX,
     .doc = "How uneven the spread may be."},
    {"topologyKey", API_STRING, .flags = API_REQUIRED, .doc = "Node label to spread over."},
    {"whenUnsatisfiable", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("DoNotSchedule", "ScheduleAnyway"), .doc = "What if it cannot be had."},
    {"labelSelector", API_OBJECT, .flags = API_ATOMIC, .fields = api_label_selector,
     .doc = "Pods that are counted."},
    {"minDomains", API_INT, .min = 1, .max = INT32_MAX, .doc = "The least number of places."},
    {"nodeAffinityPolicy", API_STRING, .words = API_WORDS("Honor", "Ignore"),
     .doc = "Whether nodes the pod cannot go to are counted."},
    {"nodeTaintsPolicy", API_STRING, .words = API_WORDS("Honor", "Ignore"),
     .doc = "Whether tainted nodes are counted."},
    {"matchLabelKeys", API_STRING, API_LIST, .doc = "Labels of the pod itself to count by."},
    {0},
};

static const struct api_field scheduling_gate[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the gate."},
    {0},
};

static const struct api_field resource_claim[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name by which containers refer to it."},
    {"resourceClaimName", API_STRING, .doc = "The ResourceClaim."},
    {"resourceClaimTemplateName", API_STRING, .doc = "The template to make one from."},
    {0},
};

static const struct api_field readiness_gate[] = {
    {"conditionType", API_STRING, .flags = API_REQUIRED, .doc = "The condition."},
    {0},
};

const struct api_field api_pod_spec[] = {
    {"volumes", API_OBJECT, API_LIST, API_RETAIN_KEYS, .fields = volume, .merge_key = "name",
     .doc = "Volumes that containers can mount."},
    {"initContainers", API_OBJECT, API_LIST, .fields = container, .merge_key = "name",
     .doc = "Containers that run one after the other before the others start."},
    {"containers", API_OBJECT, API_LIST, API_REQUIRED, .fields = container, .merge_key = "name",
     .doc = "The containers."},
    {"ephemeralContainers", API_OBJECT, API_LIST, .fields = container, .merge_key = "name",
     .doc = "Containers that were added to look into the pod."},
    {"restartPolicy", API_STRING, .words = API_WORDS("Always", "OnFailure", "Never"),
     .def = "\"Always\"", .doc = "Whether containers that end are started again."},
    {"terminationGracePeriodSeconds", API_INT, .min = 0, .max = INT64_MAX, .def = "30",
     .doc = "Time to end before it is killed."},
    {"activeDeadlineSeconds", API_INT, .min = 1, .max = INT32_MAX,
     .doc = "Time after which it is ended."},
    {"dnsPolicy", API_STRING, .def = "\"ClusterFirst\"",
     .words = API_WORDS("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
     .doc = "How names are looked up."},
    {"dnsConfig", API_OBJECT, .flags = API_KEEP, .doc = "Name servers and search domains."},
    {"nodeSelector", API_STRING, API_MAP, API_ATOMIC, .keys = &api_qualified_name,
     .format = &api_label_value, .doc = "Labels that its node must have."},
    {"serviceAccountName", API_STRING, .doc = "The account it runs as."},
    {"serviceAccount", API_STRING, .doc = "Obsolete name of serviceAccountName."},
    {"automountServiceAccountToken", API_BOOL, .doc = "Whether it gets the account's token."},
    {"nodeName", API_STRING, .doc = "The node that it is on; set when it is scheduled."},
    {"hostNetwork", API_BOOL, .doc = "Whether it has the node's network."},
    {"hostPID", API_BOOL, .doc = "Whether it sees the node's processes."},
    {"hostIPC", API_BOOL, .doc = "Whether it shares the node's IPC."},
    {"hostUsers", API_BOOL, .doc = "Whether it has the node's user ids."},
    {"shareProcessNamespace", API_BOOL,
     .doc = "Whether its containers see each other's processes."},
    {"securityContext", API_OBJECT, .fields = api_pod_security_context, .def = "{}",
     .doc = "User, groups and the like for all containers."},
    {"imagePullSecrets", API_OBJECT, API_LIST, API_ATOMIC_ITEMS, .fields = api_local_reference,
     .merge_key = "name", .doc = "Secrets for fetching its images."},
    {"hostname", API_STRING, .doc = "Its host name; that of the pod when not given."},
    {"subdomain", API_STRING, .doc = "The service under whose name it is known."},
    {"setHostnameAsFQDN", API_BOOL, .doc = "Whether its host name is the full one."},
    {"affinity", API_OBJECT, .fields = api_affinity,
     .doc = "Nodes and pods to be near to or far from."},
    {"schedulerName", API_STRING, .def = "\"default-scheduler\"", .doc = "Who finds its node."},
    {"tolerations", API_OBJECT, API_LIST, .fields = api_toleration,
     .doc = "Taints of nodes that it bears."},
    {"hostAliases", API_OBJECT, API_LIST, .fields = host_alias, .merge_key = "ip",
     .doc = "Further lines of its /etc/hosts."},
    {"priorityClassName", API_STRING, .doc = "The PriorityClass."},
    {"priority", API_INT, .doc = "The number that follows from it."},
    {"preemptionPolicy", API_STRING, .words = API_WORDS("PreemptLowerPriority", "Never"),
     .doc = "Whether it may drive out others."},
    {"readinessGates", API_OBJECT, API_LIST, .fields = readiness_gate,
     .doc = "Conditions that must hold before it counts as ready."},
    {"runtimeClassName", API_STRING, .doc = "The RuntimeClass."},
    {"enableServiceLinks", API_BOOL,
     .doc = "Whether services are told to it as variables; true when not given."},
    {"overhead", API_QUANTITY, API_MAP, .doc = "Resources that running it costs by itself."},
    {"topologySpreadConstraints", API_OBJECT, API_LIST, .fields = spread_constraint,
     .merge_key = "topologyKey", .map_keys = API_KEYS("topologyKey", "whenUnsatisfiable"),
     .doc = "How it is spread with its like."},
    {"schedulingGates", API_OBJECT, API_LIST, .fields = scheduling_gate, .merge_key = "name",
     .doc = "What must be removed before it is scheduled."},
    {"resourceClaims", API_OBJECT, API_LIST, API_RETAIN_KEYS, .fields = resource_claim,
     .merge_key = "name", .doc = "Devices that it claims."},
    {"resources", API_OBJECT, .fields = api_resources,
     .doc = "What all its containers together get."},
    {"os", API_OBJECT, .flags = API_KEEP, .doc = "The operating system that it needs."},
    {0},
};

const struct api_field api_pod_template[] = {
    {"metadata", API_OBJECT, .flags = API_EMBEDDED, .fields = api_object_meta,
     .doc = "Labels and annotations of the pods."},
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = api_pod_spec, .doc = "The pods."},
    {0},
};

/* The tag of an image, which is what may change behind its name; NULL when a digest fixes it. */
static const char *image_tag(const char *image)
{
    if (strchr(image, '@'))
        return NULL;
    const char *slash = strrchr(image, '/'), *colon = strrchr(slash ? slash : image, ':');
    return colon ? colon + 1 : "latest";
}

static void derive_containers(json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) {
        const char *image = json_str(one, "image");
        const char *tag = image && *image ? image_tag(image) : NULL;
        if (!json_is_object(one) || json_object_get(one, "imagePullPolicy"))
            continue;
        bool newest = image && *image && tag && str_eq(tag, "latest");
        json_object_set_new(one, "imagePullPolicy",
                            json_string(newest ? "Always" : "IfNotPresent"));
    }
}

void api_pod_spec_derive(json_t *spec)
{
    derive_containers(json_object_get(spec, "containers"));
    derive_containers(json_object_get(spec, "initContainers"));
    derive_containers(json_object_get(spec, "ephemeralContainers"));
}

void api_pod_template_derive(json_t *object)
{
    api_pod_spec_derive((json_t *)json_at(object, "spec", "template", "spec"));
}
