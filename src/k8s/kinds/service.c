/*
 * Service and Endpoints: one stable address for changing pods.
 */
#include "base/map.h"
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field service_port[] = {
    {"name", API_STRING, .format = &api_dns_label,
     .doc = "Name of the port; required when there are several."},
    {"protocol", API_STRING, .words = API_WORDS("TCP", "UDP", "SCTP"), .def = "\"TCP\"",
     .doc = "Protocol of the port."},
    {"appProtocol", API_STRING, .doc = "What is spoken on the port."},
    {"port", API_INT, .flags = API_REQUIRED, .min = 1, .max = 65535,
     .doc = "The port that clients connect to."},
    {"targetPort", API_INT_OR_STRING, .doc = "Number or name of the port on the pods."},
    {"nodePort", API_INT, .min = 0, .max = 65535, .doc = "The port on every node."},
    {0},
};

static const struct api_field service_spec[] = {
    {"ports", API_OBJECT, API_LIST, .fields = service_port, .merge_key = "port",
     .map_keys = API_KEYS("port", "protocol"), .doc = "The ports that the service offers."},
    {"selector", API_STRING, API_MAP, API_ATOMIC, .keys = &api_qualified_name,
     .format = &api_label_value, .doc = "Labels of the pods that serve it."},
    {"clusterIP", API_STRING, .doc = "Its address; None makes a service without one."},
    {"clusterIPs", API_STRING, API_LIST, .doc = "The same, one for each address family."},
    {"type", API_STRING, .def = "\"ClusterIP\"",
     .words = API_WORDS("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
     .doc = "From where it can be reached."},
    {"externalIPs", API_STRING, API_LIST, .doc = "Further addresses that lead to it."},
    {"sessionAffinity", API_STRING, .words = API_WORDS("None", "ClientIP"), .def = "\"None\"",
     .doc = "Whether a client stays with one pod."},
    {"sessionAffinityConfig", API_OBJECT, .flags = API_KEEP, .doc = "Settings of that."},
    {"loadBalancerIP", API_STRING, .doc = "Address that is asked of the load balancer."},
    {"loadBalancerSourceRanges", API_STRING, API_LIST, .doc = "Clients that are let in."},
    {"externalName", API_STRING, .doc = "The DNS name that an ExternalName service stands for."},
    {"externalTrafficPolicy", API_STRING, .words = API_WORDS("", "Cluster", "Local"),
     .doc = "Whether traffic from outside may change nodes."},
    {"internalTrafficPolicy", API_STRING, .words = API_WORDS("Cluster", "Local"),
     .doc = "Whether traffic from inside may change nodes."},
    {"healthCheckNodePort", API_INT, .min = 0, .max = 65535, .doc = "Port to check a node with."},
    {"publishNotReadyAddresses", API_BOOL, .doc = "Whether pods count before they are ready."},
    {"ipFamilies", API_STRING, API_LIST, .words = API_WORDS("IPv4", "IPv6"),
     .doc = "Address families that it has."},
    {"ipFamilyPolicy", API_STRING,
     .words = API_WORDS("SingleStack", "PreferDualStack", "RequireDualStack"),
     .doc = "One address family or two."},
    {0},
};

static const struct api_field service_status[] = {
    {"loadBalancer", API_OBJECT, .flags = API_KEEP, .doc = "Addresses of the load balancer."},
    API_CONDITIONS,
    {0},
};

static const struct api_field service_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .fields = service_spec, .doc = "What is offered, and by which pods."},
    {"status", API_OBJECT, .fields = service_status, .def = "{\"loadBalancer\": {}}",
     .doc = "How it can be reached."},
    {0},
};

static const struct api_column service_columns[] = {
    {"Type", "string", ".spec.type", "From where it can be reached"},
    {"Cluster-IP", "string", NULL, "Its address", 0, api_cell_service_address},
    {"External-IP", "string", NULL, "Its addresses outside", 0, api_cell_service_external},
    {"Port(s)", "string", NULL, "Its ports", 0, api_cell_service_ports},
    API_AGE,
    {"Selector", "string", NULL, "Labels of its pods", 1, api_cell_service_selector},
    {0},
};

/* Ports are told apart by number and protocol, and by name where there are several. */
static void validate_ports(const json_t *ports, struct api_report *report)
{
    const struct api_path *list = API_KEY(API_KEY(NULL, "spec"), "ports");
    struct map names = {0}, numbers = {0};
    size_t i;
    json_t *port;
    json_array_foreach(ports, i, port) {
        const struct api_path *at = API_AT(list, i);
        const json_t *name = json_object_get(port, "name"), *number = json_object_get(port, "port");
        if (json_string_length(name) > 0) {
            if (map_set(&names, json_string_value(name), port))
                api_problem(report, API_KEY(at, "name"), API_DUPLICATE, name,
                            "another port has this name");
        } else if (json_array_size(ports) > 1) {
            api_problem(report, API_KEY(at, "name"), API_MISSING, NULL,
                        "each port must have a name when there are several");
        }
        _cleanup_free_ char *id = mem_printf(
            "%" JSON_INTEGER_FORMAT "/%s", json_integer_value(number), json_str(port, "protocol"));
        if (map_set(&numbers, id, port))
            api_problem(report, at, API_DUPLICATE, number,
                        "another entry has this port and protocol");
    }
    map_done(&names);
    map_done(&numbers);
}

/* A port leads to the same one of the pods, unless it is said otherwise. */
static void derive_service(json_t *object)
{
    size_t i;
    json_t *port;
    json_array_foreach(json_at(object, "spec", "ports"), i, port) {
        const json_t *target = json_object_get(port, "targetPort");
        const char *text = json_string_value(target);
        bool given = target && (text ? *text : json_integer_value(target) != 0);
        json_t *number = json_object_get(port, "port");
        if (json_is_object(port) && number && !given)
            json_object_set(port, "targetPort", number);
    }
}

static void validate_service(const json_t *object, struct api_report *report)
{
    const struct api_path *at = API_KEY(NULL, "spec");
    const json_t *spec = json_object_get(object, "spec"), *ports = json_object_get(spec, "ports");
    const char *type = json_str(spec, "type"), *address = json_str(spec, "clusterIP");
    bool external = type && str_eq(type, "ExternalName"),
         headless = address && str_eq(address, "None");
    if (json_array_size(ports) == 0 && !external && !headless)
        api_problem(report, API_KEY(at, "ports"), API_MISSING, NULL,
                    "say which ports the service offers, for example \"- port: 80\"");
    const char *name = json_str(spec, "externalName");
    if (external && (!name || !*name))
        api_problem(report, API_KEY(at, "externalName"), API_MISSING, NULL,
                    "say which DNS name the service stands for");
    validate_ports(ports, report);

    const json_t *own = json_at(object, "metadata", "name");
    const char *text = json_string_value(own);
    const char *why = text && *text ? api_dns_label.check(text) : NULL;
    if (why || (text && text[0] >= '0' && text[0] <= '9'))
        api_problem(report, API_KEY(API_KEY(NULL, "metadata"), "name"), API_INVALID, own, "%s",
                    why ? why : "must start with a letter, as it becomes a DNS name");
}

static const struct api_field endpoint_address[] = {
    {"ip", API_STRING, .flags = API_REQUIRED, .format = &api_ip, .doc = "The address."},
    {"hostname", API_STRING, .doc = "Name of the host."},
    {"nodeName", API_STRING, .doc = "Node that has the address."},
    {"targetRef", API_OBJECT, .flags = API_ATOMIC, .fields = api_object_reference,
     .doc = "The pod behind it."},
    {0},
};

static const struct api_field endpoint_port[] = {
    {"name", API_STRING, .doc = "Name of the port, as in the service."},
    {"port", API_INT, .flags = API_REQUIRED, .min = 1, .max = 65535, .doc = "The port."},
    {"protocol", API_STRING, .words = API_WORDS("TCP", "UDP", "SCTP"), .def = "\"TCP\"",
     .doc = "Protocol of the port."},
    {"appProtocol", API_STRING, .doc = "What is spoken on the port."},
    {0},
};

static const struct api_field endpoint_subset[] = {
    {"addresses", API_OBJECT, API_LIST, .fields = endpoint_address, .doc = "Where it is served."},
    {"notReadyAddresses", API_OBJECT, API_LIST, .fields = endpoint_address,
     .doc = "Where it will be served when they are ready."},
    {"ports", API_OBJECT, API_LIST, .fields = endpoint_port, .doc = "Ports at these addresses."},
    {0},
};

static const struct api_field endpoints_fields[] = {
    API_TYPE_AND_META,
    {"subsets", API_OBJECT, API_LIST, .fields = endpoint_subset,
     .doc = "Addresses that have the same ports."},
    {0},
};

static const struct api_column endpoints_columns[] = {
    {"Endpoints", "string", NULL, "Addresses and ports", 0, api_cell_endpoints},
    API_AGE,
    {0},
};

const struct api_kind api_service = {
    .kind = "Service",
    .plural = "services",
    .singular = "service",
    .short_names = API_WORDS("svc"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_STATUS,
    .fields = service_fields,
    .columns = service_columns,
    .derive = derive_service,
    .validate = validate_service,
    .doc = "A stable address for a set of pods.",
};

const struct api_kind api_endpoints = {
    .kind = "Endpoints",
    .plural = "endpoints",
    .singular = "endpoints",
    .short_names = API_WORDS("ep"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN,
    .fields = endpoints_fields,
    .columns = endpoints_columns,
    .doc = "The addresses behind a service.",
};
