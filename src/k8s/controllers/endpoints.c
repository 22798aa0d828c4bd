#include "k8s/controllers/endpoints.h"

#include "base/mem.h"
#include "k8s/controllers/pods.h"
#include "kube/names.h"

bool endpoints_concern(const json_t *service)
{
    return json_object_size(json_at(service, "spec", "selector")) &&
           !str_eq(json_text(service, "spec", "type"), "ExternalName") && !kube_deleting(service);
}

bool endpoints_select(const json_t *service, const json_t *pod)
{
    const json_t *labels = json_at(pod, "metadata", "labels");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json_at(service, "spec", "selector"), key, value) {
        if (!json_equal(value, json_object_get(labels, key)))
            return false;
    }
    return json_object_size(json_at(service, "spec", "selector"));
}

static const char *address_of(const json_t *pod)
{
    return json_text(pod, "status", "podIP");
}

static bool is_ended(const json_t *pod)
{
    const char *phase = json_str(json_object_get(pod, "status"), "phase");
    return phase && (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"));
}

static bool counts_early(const json_t *service)
{
    return json_is_true(json_at(service, "spec", "publishNotReadyAddresses"));
}

/* The port of a pod that a service's port leads to; 0: it has none. */
static json_int_t target_of(const json_t *port, const json_t *pod)
{
    const json_t *target = json_object_get(port, "targetPort");
    const char *name = json_string_value(target);
    size_t i, j;
    json_t *container, *own;
    if (!name)
        return json_integer_value(json_is_integer(target) ? target : json_object_get(port, "port"));
    json_array_foreach((json_t *)json_at(pod, "spec", "containers"), i, container) {
        json_array_foreach(json_object_get(container, "ports"), j, own) {
            const char *is = json_str(own, "name");
            if (is && str_eq(is, name))
                return json_integer_value(json_object_get(own, "containerPort"));
        }
    }
    return 0;
}

/* The ports of a service as a pod has them, in the form of endpoints. */
static json_t *ports_of(const json_t *service, const json_t *pod)
{
    static const char *const shared[] = {"name", "protocol", "appProtocol", NULL};
    json_t *ports = json_array(), *port;
    size_t i;
    json_array_foreach((json_t *)json_at(service, "spec", "ports"), i, port) {
        json_int_t number = target_of(port, pod);
        json_t *made = json_object();
        for (const char *const *key = shared; *key; key++) {
            json_t *value = json_object_get(port, *key);
            if (value)
                json_object_set(made, *key, value);
        }
        json_object_set_new(made, "port", json_integer(number));
        if (number)
            json_array_append(ports, made);
        json_decref(made);
    }
    return ports;
}

static json_t *reference_to(const json_t *pod)
{
    return json_pack("{s:s,s:s,s:s,s:s}", "kind", "Pod", "namespace", kube_namespace(pod), "name",
                     kube_name(pod), "uid", kube_uid(pod));
}

static json_t *metadata_of(const json_t *service, const char *name)
{
    json_t *labels = json_deep_copy(json_at(service, "metadata", "labels"));
    json_t *metadata =
        json_pack("{s:s,s:s,s:[o]}", "name", name, "namespace", kube_namespace(service),
                  "ownerReferences", kube_owner_reference(service));
    json_object_set_new(metadata, "labels", labels ? labels : json_object());
    return metadata;
}

/* The member of a group of pods that have the same ports; made where there is none. */
static json_t *group_for(json_t *groups, json_t *ports, const char *key)
{
    size_t i;
    json_t *group;
    json_array_foreach(groups, i, group) {
        if (json_equal(json_object_get(group, "ports"), ports))
            return group;
    }
    group = json_pack("{s:O,s:[]}", "ports", ports, key);
    json_array_append_new(groups, group);
    return group;
}

static json_t *list_of(json_t *group, const char *key)
{
    json_t *list = json_array_at(group, key);
    return list;
}

json_t *endpoints_object(const json_t *service, const json_t *pods)
{
    json_t *subsets = json_array(), *pod;
    size_t i;
    json_array_foreach((json_t *)pods, i, pod) {
        if (!*address_of(pod) || is_ended(pod) || kube_deleting(pod))
            continue;
        json_auto_t *ports = ports_of(service, pod);
        json_t *address =
            json_pack("{s:s,s:o}", "ip", address_of(pod), "targetRef", reference_to(pod));
        if (*pods_node(pod))
            json_object_set_new(address, "nodeName", json_string(pods_node(pod)));
        json_t *group = group_for(subsets, ports, "addresses");
        bool ready = pods_is_ready(pod) || counts_early(service);
        json_array_append_new(list_of(group, ready ? "addresses" : "notReadyAddresses"), address);
    }
    json_array_foreach(subsets, i, pod) {
        if (!json_array_size(json_object_get(pod, "addresses")))
            json_object_del(pod, "addresses");
    }
    json_t *metadata = metadata_of(service, kube_name(service));
    return json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "Endpoints", "metadata",
                     metadata, "subsets", subsets);
}

static json_t *slice_endpoint(const json_t *service, const json_t *pod)
{
    bool serving = pods_is_ready(pod), ending = kube_deleting(pod);
    bool ready = (serving && !ending) || counts_early(service);
    json_t *made = json_pack("{s:[s],s:{s:b,s:b,s:b},s:o}", "addresses", address_of(pod),
                             "conditions", "ready", ready, "serving", serving, "terminating",
                             ending, "targetRef", reference_to(pod));
    if (*pods_node(pod))
        json_object_set_new(made, "nodeName", json_string(pods_node(pod)));
    return made;
}

json_t *endpoints_slices(const json_t *service, const json_t *pods)
{
    json_auto_t *groups = json_array();
    json_t *slices = json_array(), *pod, *group;
    size_t i;
    json_array_foreach((json_t *)pods, i, pod) {
        if (!*address_of(pod) || is_ended(pod))
            continue;
        json_auto_t *ports = ports_of(service, pod);
        group = group_for(groups, ports, "endpoints");
        json_array_append_new(json_object_get(group, "endpoints"), slice_endpoint(service, pod));
    }
    if (!json_array_size(groups)) {
        json_auto_t *none = json_array();
        group_for(groups, none, "endpoints"); /* one without any, as in Kubernetes */
    }
    json_array_foreach(groups, i, group) {
        char suffix[6];
        char *ports = json_dumps(json_object_get(group, "ports"), JSON_COMPACT | JSON_SORT_KEYS);
        _cleanup_free_ char *text = mem_printf("%s %s", kube_uid(service), ports);
        free(ports);
        kube_suffix(text, suffix);
        _cleanup_free_ char *name = mem_printf("%.57s-%s", kube_name(service), suffix);
        json_t *metadata = metadata_of(service, name);
        json_t *labels = json_object_get(metadata, "labels");
        json_object_set_new(labels, "kubernetes.io/service-name", json_string(kube_name(service)));
        json_object_set_new(labels, "endpointslice.kubernetes.io/managed-by",
                            json_string("endpointslice-controller.k8s.io"));
        json_array_append_new(slices, json_pack("{s:s,s:s,s:o,s:s,s:O,s:O}", "apiVersion",
                                                "discovery.k8s.io/v1", "kind", "EndpointSlice",
                                                "metadata", metadata, "addressType", "IPv4",
                                                "endpoints", json_object_get(group, "endpoints"),
                                                "ports", json_object_get(group, "ports")));
    }
    return slices;
}
