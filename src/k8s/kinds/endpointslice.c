/*
 * EndpointSlice: some of the addresses behind a service.
 */
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

enum { SHOWN = 3 };

static const struct api_field conditions[] = {
    {"ready", API_BOOL, .doc = "Whether it can be used."},
    {"serving", API_BOOL, .doc = "Whether it is ready, even if it is about to end."},
    {"terminating", API_BOOL, .doc = "Whether it is about to end."},
    {0},
};

static const struct api_field endpoint[] = {
    {"addresses", API_STRING, API_LIST, API_SET | API_REQUIRED, .doc = "Where it is."},
    {"conditions", API_OBJECT, .fields = conditions, .doc = "How it is."},
    {"hostname", API_STRING, .format = &api_dns_label, .doc = "Name of the host."},
    {"targetRef", API_OBJECT, .flags = API_ATOMIC, .fields = api_object_reference,
     .doc = "The pod behind it."},
    {"deprecatedTopology", API_STRING, API_MAP, .doc = "Obsolete."},
    {"nodeName", API_STRING, .doc = "Node that has it."},
    {"zone", API_STRING, .doc = "Zone that has it."},
    {"hints", API_OBJECT, .flags = API_KEEP, .doc = "Who should use it."},
    {0},
};

static const struct api_field port[] = {
    {"name", API_STRING, .doc = "Name of the port, as in the service."},
    {"port", API_INT, .min = 1, .max = 65535, .doc = "The port."},
    {"protocol", API_STRING, .words = API_WORDS("TCP", "UDP", "SCTP"), .def = "\"TCP\"",
     .doc = "Protocol of the port."},
    {"appProtocol", API_STRING, .doc = "What is spoken on the port."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"addressType", API_STRING, .flags = API_REQUIRED | API_IMMUTABLE,
     .words = API_WORDS("IPv4", "IPv6", "FQDN"), .doc = "What its addresses are."},
    {"endpoints", API_OBJECT, API_LIST, API_ATOMIC, .fields = endpoint, .doc = "The addresses."},
    {"ports", API_OBJECT, API_LIST, API_ATOMIC, .fields = port, .doc = "Ports at each of them."},
    {0},
};

/* The first few, and how many more there are. */
static json_t *shorten(const struct str *text, size_t n)
{
    if (n == 0)
        return json_string("<unset>");
    return n <= SHOWN ? json_string(str_get(text))
                      : json_sprintf("%s + %zu more...", str_get(text), n - SHOWN);
}

static json_t *cell_ports(const json_t *object, int64_t now)
{
    (void)now;
    _cleanup_(str_done) struct str text = {0};
    size_t i, n = 0;
    json_t *value;
    json_array_foreach(json_object_get(object, "ports"), i, value) {
        const json_t *number = json_object_get(value, "port");
        const char *name = json_str(value, "name");
        if (n++ >= SHOWN)
            continue;
        if (number)
            str_appendf(&text, "%s%" JSON_INTEGER_FORMAT, text.len ? "," : "",
                        json_integer_value(number));
        else
            str_appendf(&text, "%s%s", text.len ? "," : "", name && *name ? name : "*");
    }
    return shorten(&text, n);
}

static json_t *cell_endpoints(const json_t *object, int64_t now)
{
    (void)now;
    _cleanup_(str_done) struct str text = {0};
    size_t i, j, n = 0;
    json_t *value, *address;
    json_array_foreach(json_object_get(object, "endpoints"), i, value) {
        json_array_foreach(json_object_get(value, "addresses"), j, address) {
            const char *word = json_string_value(address);
            if (n++ < SHOWN)
                str_appendf(&text, "%s%s", text.len ? "," : "", word ? word : "");
        }
    }
    return shorten(&text, n);
}

static const struct api_column columns[] = {
    {"AddressType", "string", ".addressType", "What its addresses are"},
    {"Ports", "string", NULL, "Ports at each address", 0, cell_ports},
    {"Endpoints", "string", NULL, "The addresses", 0, cell_endpoints},
    API_AGE,
    {0},
};

const struct api_kind api_endpoint_slice = {
    .kind = "EndpointSlice",
    .plural = "endpointslices",
    .singular = "endpointslice",
    .versions = API_VERSION("discovery.k8s.io", "v1"),
    .flags = API_BUILTIN,
    .fields = fields,
    .columns = columns,
    .doc = "Some of the addresses behind a service.",
};
