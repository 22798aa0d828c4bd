#include "ctl/pools.h"

#include <stdio.h>

#include "base/quantity.h"

struct kube_resource ctl_disks(void)
{
    return kube_resource("openebs.io/v1alpha1", "BlockDevice");
}

const char *ctl_namespace(const struct cli_args *args, struct kube_client *client)
{
    const char *given = ctl_settings(args)->ns;
    if (ctl_settings(args)->all_namespaces)
        return NULL;
    if (given)
        return given;
    const char *own = client ? kube_client_namespace(client) : "default";
    return str_eq(own, "default") ? "openebs" : own; /* where devices are as a rule */
}

json_t *ctl_instances_of(struct kube_client *client, const char *ns, const char *cluster,
                         struct err *e)
{
    _cleanup_free_ char *labels = mem_printf(API_POOL_CLUSTER "=%s", cluster);
    return ctl_cstor_list(client, &api_cstor_pool_instance, ns, labels, e);
}

static bool shares_device(const json_t *a, const json_t *b)
{
    pool_each_device(a, it) {
        if (api_pool_has(b, it.name))
            return true;
    }
    return false;
}

const json_t *ctl_instance_of(const json_t *instances, const json_t *pool)
{
    size_t i;
    json_t *instance;
    json_array_foreach(instances, i, instance) {
        if (shares_device(json_object_get(instance, "spec"), pool))
            return instance;
    }
    return NULL;
}

static bool selects(const json_t *selector, const json_t *node)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)selector, key, value) {
        const char *label = kube_label(node, key), *wanted = json_string_value(value);
        if (!label || !wanted || !str_eq(label, wanted))
            return false;
    }
    return json_object_size(selector) > 0;
}

json_t *ctl_pool_on(const json_t *cluster, const char *name, const json_t *node)
{
    size_t i;
    json_t *pool;
    json_array_foreach(pool_cluster_of(cluster).pools, i, pool) {
        const json_t *selector = pool_spec_of(pool, NULL).node_selector;
        const char *host = json_str(selector, API_POOL_HOSTNAME);
        if (node ? selects(selector, node) : host && str_eq(host, name))
            return pool;
    }
    return NULL;
}

const char *ctl_node_of(const json_t *instance, const json_t *pool)
{
    const char *host = pool_instance_of(instance, NULL).spec.host_name;
    if (*host)
        return host;
    const json_t *selector = pool_spec_of(pool, NULL).node_selector;
    host = json_str(selector, API_POOL_HOSTNAME);
    if (!host && selector)
        host = json_string_value(json_object_iter_value(json_object_iter((json_t *)selector)));
    return host ? host : "";
}

const json_t *ctl_cluster_with(const json_t *clusters, const char *device)
{
    size_t i, j;
    json_t *cluster, *pool;
    json_array_foreach(clusters, i, cluster) {
        json_array_foreach(pool_cluster_of(cluster).pools, j, pool) {
            if (api_pool_has(pool, device))
                return cluster;
        }
    }
    return NULL;
}

const char *ctl_disk_node(const json_t *disk)
{
    const char *node = block_device_of(disk).spec.node_name;
    const char *host = kube_label(disk, API_POOL_HOSTNAME);
    return *node ? node : host ? host : "";
}

static bool is_path_of(const json_t *disk, const char *text)
{
    const char *path = block_device_of(disk).spec.path, *last = strrchr(path, '/');
    return *path && (str_eq(path, text) || (last && str_eq(last + 1, text)));
}

const json_t *ctl_disk_find(const json_t *disks, const char *node, const char *text, struct err *e)
{
    const json_t *found = NULL;
    size_t i, n = 0;
    json_t *disk;
    json_array_foreach(disks, i, disk) {
        if (node && !str_eq(ctl_disk_node(disk), node))
            continue;
        if (str_eq(kube_name(disk), text))
            return disk;
        if (!is_path_of(disk, text) && !str_starts_with(kube_name(disk), text))
            continue;
        found = disk;
        n++;
    }
    if (n == 1)
        return found;
    if (n)
        err_set(e, ERR_INVALID_ARGUMENT, "Ambiguous",
                "%zu disks%s%s are called \"%s\"; write more of the name, or say on which node", n,
                node ? " of node " : "", node ? node : "", text);
    else
        err_set(e, ERR_NOT_FOUND, "NotFound",
                "there is no disk \"%s\"%s%s; `orlop disk list` shows those there are", text,
                node ? " on node " : "", node ? node : "");
    return NULL;
}

/* Sizes. */

/* Bytes; false when it is nothing of the kind. */
static bool bytes_of(const json_t *value, double *ret)
{
    const char *text = json_string_value(value);
    struct quantity q;
    if (json_is_number(value)) {
        *ret = json_number_value(value);
        return true;
    }
    if (text && quantity_parse(text, &q, NULL) == 0) {
        *ret = (double)q.nano / 1e9;
        return true;
    }
    char *end = NULL;
    double number = text ? strtod(text, &end) : 0; /* 68.5K, as ZFS says it */
    const char *unit = end && *end ? strchr("KMGTPE", *end) : NULL;
    if (!unit || end == text || end[1])
        return false;
    for (const char *u = "KMGTPE";; u++) {
        number *= 1024;
        if (*u == *end)
            break;
    }
    *ret = number;
    return true;
}

static const char *format_bytes(double bytes, char buf[CTL_BYTES_MAX])
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
        bytes /= 1024;
    bool whole = bytes - (double)(int64_t)bytes < 0.05;
    snprintf(buf, CTL_BYTES_MAX, whole ? "%.0f%s" : "%.1f%s", bytes, units[unit]);
    return buf;
}

const char *ctl_bytes(const json_t *value, char buf[CTL_BYTES_MAX])
{
    const char *text = json_string_value(value);
    double bytes;
    if (bytes_of(value, &bytes))
        return format_bytes(bytes, buf);
    snprintf(buf, CTL_BYTES_MAX, "%.16s", text ? text : "");
    return buf;
}

const char *ctl_size(int64_t bytes, char buf[CTL_BYTES_MAX])
{
    buf[0] = '\0';
    return bytes ? format_bytes((double)bytes, buf) : buf;
}

int ctl_percent(const json_t *used, const json_t *total)
{
    double a, b;
    if (!bytes_of(used, &a) || !bytes_of(total, &b) || b <= 0 || a < 0)
        return -1;
    return a >= b ? 100 : (int)(a / b * 100);
}
