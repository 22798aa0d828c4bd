/*
 * Rules of pods and of the kinds that make pods from a template.
 */
#include "api/selector.h"
#include "base/map.h"
#include "k8s/kinds/kinds.h"

static void check_names(const json_t *list, const struct api_path *at, struct map *seen,
                        const char *what, struct api_report *report)
{
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element) {
        if (map_set(seen, json_str(element, "name"), element))
            api_problem(report, API_KEY(API_AT(at, i), "name"), API_DUPLICATE,
                        json_object_get(element, "name"), "another %s has this name", what);
    }
}

/* Containers mount only volumes that the pod has. */
static void check_mounts(const json_t *container, const char *list_name, const struct map *volumes,
                         const struct api_path *at, struct api_report *report)
{
    size_t i;
    json_t *mount;
    json_array_foreach(json_object_get(container, list_name), i, mount) {
        if (!map_has(volumes, json_str(mount, "name")))
            api_problem(report, API_KEY(API_AT(API_KEY(at, list_name), i), "name"), API_INVALID,
                        json_object_get(mount, "name"),
                        "the pod has no volume of this name; add it to its volumes");
    }
}

void api_pod_spec_validate(const json_t *spec, const struct api_path *at, struct api_report *report)
{
    static const char *const lists[] = {"initContainers", "containers", NULL};
    struct map volumes = {0}, containers = {0};
    check_names(json_object_get(spec, "volumes"), API_KEY(at, "volumes"), &volumes, "volume",
                report);
    for (const char *const *list = lists; *list; list++) {
        const struct api_path *here = API_KEY(at, *list);
        size_t i;
        json_t *container;
        check_names(json_object_get(spec, *list), here, &containers, "container", report);
        json_array_foreach(json_object_get(spec, *list), i, container) {
            check_mounts(container, "volumeMounts", &volumes, API_AT(here, i), report);
            check_mounts(container, "volumeDevices", &volumes, API_AT(here, i), report);
            if (!json_str(container, "image") || !*json_str(container, "image"))
                api_problem(report, API_KEY(API_AT(here, i), "image"), API_MISSING, NULL,
                            "say which image to run");
        }
    }
    map_done(&volumes);
    map_done(&containers);
}

void api_workload_validate(const json_t *object, struct api_report *report)
{
    const json_t *spec = json_object_get(object, "spec");
    const json_t *selector = json_object_get(spec, "selector");
    const json_t *labels = json_at(spec, "template", "metadata", "labels");
    const struct api_path *at = API_KEY(NULL, "spec"), *template_at = API_KEY(at, "template");
    struct api_selector parsed = {0};
    struct err e = {0};
    if (api_selector_from_json(selector, &parsed, &e) < 0)
        api_problem(report, API_KEY(at, "selector"), API_INVALID, selector, "%s", e.msg);
    else if (!parsed.requirements.len)
        api_problem(report, API_KEY(at, "selector"), API_INVALID, selector,
                    "an empty selector selects every pod; say which labels the pods have");
    else if (!api_selector_matches(&parsed, labels))
        api_problem(report, API_KEY(API_KEY(template_at, "metadata"), "labels"), API_INVALID,
                    labels,
                    "the selector does not match these labels, so the pods would not be "
                    "found again; give both the same labels");
    api_selector_done(&parsed);

    const json_t *policy = json_at(spec, "template", "spec", "restartPolicy");
    if (policy && !str_eq(json_string_value(policy), "Always"))
        api_problem(report, API_KEY(API_KEY(template_at, "spec"), "restartPolicy"), API_UNSUPPORTED,
                    policy, "supported values: \"Always\"");
}
