#include "base/age.h"
#include "base/vec.h"
#include "k8s/kinds/cells.h"

json_t *api_cell_text(const char *text, const char *otherwise)
{
    return json_string(text && *text ? text : otherwise);
}

json_t *api_cell_list(const json_t *strings, const char *separator, const char *otherwise)
{
    _cleanup_(str_done) struct str text = {0};
    size_t i;
    json_t *value;
    json_array_foreach((json_t *)strings, i, value) {
        const char *word = json_string_value(value);
        str_appendf(&text, "%s%s", text.len ? separator : "", word ? word : "");
    }
    return api_cell_text(str_get(&text), otherwise);
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

json_t *api_cell_labels(const json_t *labels)
{
    VEC(const char *) keys = {0};
    _cleanup_(str_done) struct str text = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)labels, key, value)
        vec_push(&keys, key);
    if (keys.len)
        qsort(keys.p, keys.len, sizeof(*keys.p), compare_words);
    vec_for_each(&keys, k) {
        str_appendf(&text, "%s%s=%s", text.len ? "," : "", *k, json_text(labels, *k));
    }
    vec_done(&keys);
    return api_cell_text(str_get(&text), "<none>");
}

json_t *api_cell_data(const json_t *object, int64_t now)
{
    (void)now;
    return json_integer((json_int_t)(json_object_size(json_object_get(object, "data")) +
                                     json_object_size(json_object_get(object, "binaryData"))));
}

json_t *api_cell_secrets(const json_t *object, int64_t now)
{
    (void)now;
    return json_integer((json_int_t)json_array_size(json_object_get(object, "secrets")));
}

json_t *api_cell_webhooks(const json_t *object, int64_t now)
{
    (void)now;
    return json_integer((json_int_t)json_array_size(json_object_get(object, "webhooks")));
}

/* Services */

json_t *api_cell_service_address(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_text(json_string_value(json_at(object, "spec", "clusterIP")), "<none>");
}

json_t *api_cell_service_external(const json_t *object, int64_t now)
{
    (void)now;
    const char *type = json_string_value(json_at(object, "spec", "type"));
    const json_t *own = json_at(object, "spec", "externalIPs");
    if (type && str_eq(type, "ExternalName"))
        return api_cell_text(json_string_value(json_at(object, "spec", "externalName")), "");
    if (!type || !str_eq(type, "LoadBalancer"))
        return api_cell_list(own, ",", "<none>");
    json_auto_t *all = json_array();
    size_t i;
    json_t *ingress;
    json_array_foreach(json_at(object, "status", "loadBalancer", "ingress"), i, ingress) {
        const char *ip = json_str(ingress, "ip"), *host = json_str(ingress, "hostname");
        json_array_append_new(all, api_cell_text(ip, host ? host : ""));
    }
    json_array_extend(all, (json_t *)own);
    return api_cell_list(all, ",", "<pending>");
}

json_t *api_cell_service_ports(const json_t *object, int64_t now)
{
    (void)now;
    _cleanup_(str_done) struct str text = {0};
    size_t i;
    json_t *port;
    json_array_foreach(json_at(object, "spec", "ports"), i, port) {
        const char *protocol = json_str(port, "protocol");
        json_int_t on_node = json_integer_value(json_object_get(port, "nodePort"));
        str_appendf(&text, "%s%" JSON_INTEGER_FORMAT, i ? "," : "",
                    json_integer_value(json_object_get(port, "port")));
        if (on_node > 0)
            str_appendf(&text, ":%" JSON_INTEGER_FORMAT, on_node);
        str_appendf(&text, "/%s", protocol ? protocol : "");
    }
    return api_cell_text(str_get(&text), "<none>");
}

json_t *api_cell_service_selector(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_labels(json_at(object, "spec", "selector"));
}

/* The first few of all addresses with all their ports. */
json_t *api_cell_endpoints(const json_t *object, int64_t now)
{
    (void)now;
    enum { SHOWN = 3 };
    _cleanup_(str_done) struct str text = {0};
    size_t n = 0, i, j, k;
    json_t *subset, *port, *address;
    json_array_foreach(json_object_get(object, "subsets"), i, subset) {
        json_array_foreach(json_object_get(subset, "ports"), j, port) {
            json_array_foreach(json_object_get(subset, "addresses"), k, address) {
                const char *ip = json_str(address, "ip");
                if (n++ >= SHOWN)
                    continue;
                bool six = ip && strchr(ip, ':');
                str_appendf(&text, "%s%s%s%s:%" JSON_INTEGER_FORMAT, text.len ? "," : "",
                            six ? "[" : "", ip ? ip : "", six ? "]" : "",
                            json_integer_value(json_object_get(port, "port")));
            }
        }
    }
    if (n > SHOWN)
        str_appendf(&text, " + %zu more...", n - SHOWN);
    return api_cell_text(str_get(&text), "<none>");
}

/* Nodes */

json_t *api_cell_node_status(const json_t *object, int64_t now)
{
    (void)now;
    const char *word = "Unknown";
    size_t i;
    json_t *condition;
    json_array_foreach(json_at(object, "status", "conditions"), i, condition) {
        const char *type = json_str(condition, "type"), *status = json_str(condition, "status");
        if (type && status && str_eq(type, "Ready"))
            word = str_eq(status, "True") ? "Ready" : "NotReady";
    }
    bool closed = json_is_true(json_at(object, "spec", "unschedulable"));
    return json_sprintf("%s%s", word, closed ? ",SchedulingDisabled" : "");
}

json_t *api_cell_node_roles(const json_t *object, int64_t now)
{
    (void)now;
    static const char prefix[] = "node-role.kubernetes.io/";
    VEC(const char *) roles = {0};
    _cleanup_(str_done) struct str text = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json_at(object, "metadata", "labels"), key, value) {
        const char *role = NULL;
        if (str_starts_with(key, prefix))
            role = key + strlen(prefix);
        else if (str_eq(key, "kubernetes.io/role"))
            role = json_string_value(value);
        if (role && *role)
            vec_push(&roles, role);
    }
    if (roles.len)
        qsort(roles.p, roles.len, sizeof(*roles.p), compare_words);
    vec_for_each(&roles, role)
        str_appendf(&text, "%s%s", text.len ? "," : "", *role);
    vec_done(&roles);
    return api_cell_text(str_get(&text), "<none>");
}

static json_t *node_address(const json_t *object, const char *type)
{
    size_t i;
    json_t *address;
    json_array_foreach(json_at(object, "status", "addresses"), i, address) {
        const char *is = json_str(address, "type");
        if (is && str_eq(is, type))
            return api_cell_text(json_str(address, "address"), "<none>");
    }
    return json_string("<none>");
}

json_t *api_cell_node_internal(const json_t *object, int64_t now)
{
    (void)now;
    return node_address(object, "InternalIP");
}

json_t *api_cell_node_external(const json_t *object, int64_t now)
{
    (void)now;
    return node_address(object, "ExternalIP");
}

/* Events */

json_t *api_cell_event_first(const json_t *object, int64_t now)
{
    char age[AGE_MAX];
    const char *time = json_str(object, "firstTimestamp");
    if (!time)
        time = json_str(object, "eventTime");
    return json_string(age_since(time ? time : "", now, age));
}

json_t *api_cell_event_last(const json_t *object, int64_t now)
{
    char age[AGE_MAX];
    const char *time = json_string_value(json_at(object, "series", "lastObservedTime"));
    if (!time)
        time = json_str(object, "lastTimestamp");
    return time ? json_string(age_since(time, now, age)) : api_cell_event_first(object, now);
}

json_t *api_cell_event_count(const json_t *object, int64_t now)
{
    (void)now;
    const json_t *series = json_object_get(object, "series");
    json_int_t n = json_integer_value(json_object_get(series ? series : object, "count"));
    return json_integer(n || series ? n : 1);
}

json_t *api_cell_event_object(const json_t *object, int64_t now)
{
    (void)now;
    const json_t *about = json_object_get(object, "involvedObject");
    const char *kind = json_str(about, "kind"), *name = json_str(about, "name");
    _cleanup_(str_done) struct str text = {0};
    for (const char *c = kind ? kind : ""; *c; c++)
        str_append_c(&text, (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c));
    str_appendf(&text, "/%s", name ? name : "");
    return json_string(str_get(&text));
}

json_t *api_cell_event_source(const json_t *object, int64_t now)
{
    (void)now;
    const char *who = json_string_value(json_at(object, "source", "component"));
    const char *host = json_string_value(json_at(object, "source", "host"));
    if (!who || !*who)
        who = json_str(object, "reportingComponent");
    return json_sprintf("%s%s%s", who ? who : "", host && *host ? ", " : "", host ? host : "");
}

json_t *api_cell_event_message(const json_t *object, int64_t now)
{
    (void)now;
    static const char blank[] = " \t\r\n";
    const char *text = json_str(object, "message");
    if (!text)
        return json_string("");
    text += strspn(text, blank);
    size_t n = strlen(text);
    while (n && strchr(blank, text[n - 1]))
        n--;
    return json_stringn(text, n);
}

/* Quotas: "name: used/hard" of all, limits apart. */

static json_t *quota(const json_t *object, bool limits)
{
    _cleanup_(str_done) struct str text = {0};
    VEC(const char *) names = {0};
    const json_t *hard = json_at(object, "status", "hard"),
                 *used = json_at(object, "status", "used");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)hard, name, value) {
        bool is_limit = str_starts_with(name, "limits.") || strstr(name, "/limits");
        if (is_limit == limits && json_is_string(value))
            vec_push(&names, name);
    }
    if (names.len)
        qsort(names.p, names.len, sizeof(*names.p), compare_words);
    vec_for_each(&names, n) {
        const char *in_use = json_str(used, *n);
        str_appendf(&text, "%s%s: %s/%s", text.len ? ", " : "", *n, in_use ? in_use : "0",
                    json_str(hard, *n));
    }
    vec_done(&names);
    return json_string(str_get(&text));
}

json_t *api_cell_quota_requests(const json_t *object, int64_t now)
{
    (void)now;
    return quota(object, false);
}

json_t *api_cell_quota_limits(const json_t *object, int64_t now)
{
    (void)now;
    return quota(object, true);
}

/* Bindings */

json_t *api_cell_role(const json_t *object, int64_t now)
{
    (void)now;
    const char *kind = json_string_value(json_at(object, "roleRef", "kind"));
    const char *name = json_string_value(json_at(object, "roleRef", "name"));
    return json_sprintf("%s/%s", kind ? kind : "", name ? name : "");
}

static json_t *subjects(const json_t *object, const char *kind)
{
    _cleanup_(str_done) struct str text = {0};
    size_t i;
    json_t *subject;
    json_array_foreach(json_object_get(object, "subjects"), i, subject) {
        const char *is = json_str(subject, "kind"), *name = json_str(subject, "name");
        const char *namespace = json_str(subject, "namespace");
        if (!is || !name || !str_eq(is, kind))
            continue;
        str_append(&text, text.len ? ", " : "");
        if (str_eq(kind, "ServiceAccount"))
            str_appendf(&text, "%s/", namespace ? namespace : "");
        str_append(&text, name);
    }
    return json_string(str_get(&text));
}

json_t *api_cell_users(const json_t *object, int64_t now)
{
    (void)now;
    return subjects(object, "User");
}

json_t *api_cell_groups(const json_t *object, int64_t now)
{
    (void)now;
    return subjects(object, "Group");
}

json_t *api_cell_accounts(const json_t *object, int64_t now)
{
    (void)now;
    return subjects(object, "ServiceAccount");
}
