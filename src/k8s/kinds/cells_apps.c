#include "api/selector.h"
#include "base/age.h"
#include "base/rfc3339.h"
#include "k8s/kinds/cells.h"

static json_int_t number(const json_t *object, const char *part, const char *name)
{
    return json_integer_value(json_at(object, part, name));
}

json_t *api_cell_replicas_ready(const json_t *object, int64_t now)
{
    (void)now;
    return json_sprintf("%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
                        number(object, "status", "readyReplicas"),
                        number(object, "spec", "replicas"));
}

/* The header says text, the cells are numbers. */
json_t *api_cell_updated(const json_t *object, int64_t now)
{
    (void)now;
    return json_integer(number(object, "status", "updatedReplicas"));
}

json_t *api_cell_available(const json_t *object, int64_t now)
{
    (void)now;
    return json_integer(number(object, "status", "availableReplicas"));
}

json_t *api_cell_node_selector(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_labels(json_at(object, "spec", "template", "spec", "nodeSelector"));
}

static json_t *of_containers(const json_t *spec, const char *member)
{
    _cleanup_(str_done) struct str text = {0};
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(json_at(spec, "template", "spec"), "containers"), i,
                       container) {
        str_appendf(&text, "%s%s", i ? "," : "", json_text(container, member));
    }
    return json_string(str_get(&text));
}

static json_t *selector_text(const json_t *selector)
{
    struct api_selector s = {0};
    _cleanup_(str_done) struct str text = {0};
    if (selector && api_selector_from_json(selector, &s, NULL) == 0)
        api_selector_format(&s, &text);
    api_selector_done(&s);
    return api_cell_text(str_get(&text), "<none>");
}

json_t *api_cell_containers(const json_t *object, int64_t now)
{
    (void)now;
    return of_containers(json_object_get(object, "spec"), "name");
}

json_t *api_cell_images(const json_t *object, int64_t now)
{
    (void)now;
    return of_containers(json_object_get(object, "spec"), "image");
}

json_t *api_cell_selector(const json_t *object, int64_t now)
{
    (void)now;
    return selector_text(json_at(object, "spec", "selector"));
}

json_t *api_cell_cron_containers(const json_t *object, int64_t now)
{
    (void)now;
    return of_containers(json_at(object, "spec", "jobTemplate", "spec"), "name");
}

json_t *api_cell_cron_images(const json_t *object, int64_t now)
{
    (void)now;
    return of_containers(json_at(object, "spec", "jobTemplate", "spec"), "image");
}

json_t *api_cell_cron_selector(const json_t *object, int64_t now)
{
    (void)now;
    return selector_text(json_at(object, "spec", "jobTemplate", "spec", "selector"));
}

json_t *api_cell_cron_zone(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_text(json_string_value(json_at(object, "spec", "timeZone")), "<none>");
}

json_t *api_cell_cron_suspend(const json_t *object, int64_t now)
{
    (void)now;
    const json_t *suspend = json_at(object, "spec", "suspend");
    return json_string(!suspend ? "<unset>" : json_is_true(suspend) ? "True" : "False");
}

json_t *api_cell_cron_active(const json_t *object, int64_t now)
{
    (void)now;
    return json_integer((json_int_t)json_array_size(json_at(object, "status", "active")));
}

json_t *api_cell_cron_last(const json_t *object, int64_t now)
{
    char age[AGE_MAX];
    const char *last = json_string_value(json_at(object, "status", "lastScheduleTime"));
    return json_string(last ? age_since(last, now, age) : "<none>");
}

static bool has_condition(const json_t *object, const char *type)
{
    size_t i;
    json_t *condition;
    json_array_foreach(json_at(object, "status", "conditions"), i, condition) {
        const char *name = json_str(condition, "type"), *status = json_str(condition, "status");
        if (name && status && str_eq(name, type) && str_eq(status, "True"))
            return true;
    }
    return false;
}

json_t *api_cell_job_status(const json_t *object, int64_t now)
{
    (void)now;
    static const char *const later[] = {"Suspended", "FailureTarget", "SuccessCriteriaMet", NULL};
    if (has_condition(object, "Complete"))
        return json_string("Complete");
    if (has_condition(object, "Failed"))
        return json_string("Failed");
    if (json_at(object, "metadata", "deletionTimestamp"))
        return json_string("Terminating");
    for (const char *const *type = later; *type; type++) {
        if (has_condition(object, *type))
            return json_string(*type);
    }
    return json_string("Running");
}

json_t *api_cell_job_completions(const json_t *object, int64_t now)
{
    (void)now;
    json_int_t done = number(object, "status", "succeeded");
    if (json_at(object, "spec", "completions"))
        return json_sprintf("%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT, done,
                            number(object, "spec", "completions"));
    json_int_t parallel = number(object, "spec", "parallelism");
    if (parallel > 1)
        return json_sprintf("%" JSON_INTEGER_FORMAT "/1 of %" JSON_INTEGER_FORMAT, done, parallel);
    return json_sprintf("%" JSON_INTEGER_FORMAT "/1", done);
}

json_t *api_cell_job_duration(const json_t *object, int64_t now)
{
    char age[AGE_MAX];
    struct timespec end;
    const char *start = json_string_value(json_at(object, "status", "startTime"));
    const char *finish = json_string_value(json_at(object, "status", "completionTime"));
    if (!start)
        return json_string("");
    if (finish && rfc3339_parse(finish, &end, NULL) == 0)
        now = rfc3339_to_ns(end);
    return json_string(age_since(start, now, age));
}

/* "statefulset.apps/web" */
json_t *api_cell_controller(const json_t *object, int64_t now)
{
    (void)now;
    size_t i;
    json_t *owner;
    json_array_foreach(json_at(object, "metadata", "ownerReferences"), i, owner) {
        const char *kind = json_str(owner, "kind"), *name = json_str(owner, "name");
        const char *version = json_str(owner, "apiVersion");
        if (!json_is_true(json_object_get(owner, "controller")) || !kind || !name || !version)
            continue;
        _cleanup_(str_done) struct str text = {0};
        for (const char *c = kind; *c; c++)
            str_append_c(&text, (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c));
        const char *slash = strchr(version, '/');
        if (slash)
            str_appendf(&text, ".%.*s", (int)(slash - version), version);
        str_appendf(&text, "/%s", name);
        return json_string(str_get(&text));
    }
    return json_string("<none>");
}

/* A number, a percentage, or that it is not what the budget goes by. */
static json_t *of_budget(const json_t *value)
{
    if (json_is_integer(value))
        return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return api_cell_text(json_string_value(value), "N/A");
}

json_t *api_cell_min_available(const json_t *object, int64_t now)
{
    (void)now;
    return of_budget(json_at(object, "spec", "minAvailable"));
}

json_t *api_cell_max_unavailable(const json_t *object, int64_t now)
{
    (void)now;
    return of_budget(json_at(object, "spec", "maxUnavailable"));
}
