/*
 * Which Pods run something of the host: those that ask for a command of it, and those of our own images.
 * In an embedded cluster both are processes with the rights of the node, so both need a right of their own;
 * the server and the node go by what stands here.
 */
#include "k8s/kinds/kinds.h"

const char *api_image_program(const char *image)
{
    static const char *const ours[] = {"orlop-apiserver", "orlop-controller", "orlop-csi",
                                       "orlop-node",      "orlop-pool",       "orlop-replica",
                                       "orlop-target",    "orlop-sidecar",    NULL};
    const char *slash = strrchr(image, '/');
    const char *name = slash ? slash + 1 : image;
    size_t n = strcspn(name, ":@");
    for (const char *const *it = ours; *it; it++) {
        if (strlen(*it) == n && memcmp(*it, name, n) == 0)
            return *it;
    }
    return NULL;
}

bool api_pod_asks_for_host(const json_t *pod)
{
    const char *said = json_str(json_at(pod, "metadata", "annotations"), API_POD_HOST_PROCESS);
    return said && str_eq(said, "true");
}

const char *api_pod_host_program(const json_t *pod)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    if (api_pod_asks_for_host(pod))
        return "commands of the host";
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        size_t i;
        json_t *container;
        json_array_foreach((json_t *)json_at(pod, "spec", lists[l]), i, container) {
            const char *image = json_str(container, "image");
            const char *program = image ? api_image_program(image) : NULL;
            if (program)
                return program;
        }
    }
    return NULL;
}

const json_t *api_pod_template_of(const struct api_kind *kind, const json_t *object)
{
    static const struct api_kind *const usual[] = {&api_deployment, &api_replica_set,
                                                   &api_daemon_set, &api_stateful_set, &api_job};
    if (kind == &api_pod)
        return object;
    if (kind == &api_cron_job)
        return json_at(object, "spec", "jobTemplate", "spec", "template");
    if (kind == &api_controller_revision)
        return json_at(object, "data", "spec", "template");
    for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
        if (kind == usual[i])
            return json_at(object, "spec", "template");
    }
    return NULL;
}
