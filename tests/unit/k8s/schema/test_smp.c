#include <stdio.h>

#include "base/mem.h"
#include "k8s/schema/smp.h"
#include "unit.h"

/* The schema's answer for the last member of a dotted path. */
static bool lookup(const char *version, const char *kind_name, const char *path,
                   struct json_smp_field *ret_field)
{
    const struct api_kind *kind = api_kind_find(version, kind_name, NULL);
    assert_non_null(kind);
    ret_field->node = api_smp_root(kind);
    while (*path) {
        size_t n = strcspn(path, ".");
        _cleanup_free_ char *name = mem_strndup(path, n);
        const void *node = ret_field->node;
        if (!node || !api_smp_schema.field(node, name, ret_field))
            return false;
        path += n + (path[n] == '.');
    }
    return true;
}

static void test_lists_merge_as_in_kubernetes(void **state)
{
    /* "" is a set, NULL is replaced whole */
    static const struct {
        const char *version, *kind, *path, *merge_key;
    } cases[] = {
        {"v1", "Pod", "metadata.finalizers", ""},
        {"v1", "Pod", "metadata.ownerReferences", "uid"},
        {"v1", "Pod", "metadata.managedFields", NULL},
        {"v1", "Pod", "spec.containers", "name"},
        {"v1", "Pod", "spec.initContainers", "name"},
        {"v1", "Pod", "spec.ephemeralContainers", "name"},
        {"v1", "Pod", "spec.containers.ports", "containerPort"},
        {"v1", "Pod", "spec.containers.env", "name"},
        {"v1", "Pod", "spec.containers.envFrom", NULL},
        {"v1", "Pod", "spec.containers.args", NULL},
        {"v1", "Pod", "spec.containers.command", NULL},
        {"v1", "Pod", "spec.containers.resizePolicy", NULL},
        {"v1", "Pod", "spec.containers.resources.claims", NULL},
        {"v1", "Pod", "spec.containers.volumeMounts", "mountPath"},
        {"v1", "Pod", "spec.containers.volumeDevices", "devicePath"},
        {"v1", "Pod", "spec.ephemeralContainers.env", "name"},
        {"v1", "Pod", "spec.volumes", "name"},
        {"v1", "Pod", "spec.volumes.configMap.items", NULL},
        {"v1", "Pod", "spec.volumes.ephemeral.volumeClaimTemplate.metadata.finalizers", ""},
        {"v1", "Pod", "spec.imagePullSecrets", "name"},
        {"v1", "Pod", "spec.hostAliases", "ip"},
        {"v1", "Pod", "spec.tolerations", NULL},
        {"v1", "Pod", "spec.topologySpreadConstraints", "topologyKey"},
        {"v1", "Pod", "spec.schedulingGates", "name"},
        {"v1", "Pod", "spec.resourceClaims", "name"},
        {"v1", "Pod", "spec.readinessGates", NULL},
        {"v1", "Pod", "status.conditions", "type"},
        {"v1", "Pod", "status.podIPs", "ip"},
        {"v1", "Pod", "status.hostIPs", "ip"},
        {"v1", "Pod", "status.containerStatuses", NULL},
        {"v1", "Pod", "status.resourceClaimStatuses", "name"},
        {"v1", "Node", "spec.taints", NULL},
        {"v1", "Node", "spec.podCIDRs", ""},
        {"v1", "Node", "status.addresses", "type"},
        {"v1", "Node", "status.conditions", "type"},
        {"v1", "Node", "status.images", NULL},
        {"v1", "Node", "status.volumesAttached", NULL},
        {"v1", "Namespace", "spec.finalizers", NULL},
        {"v1", "Namespace", "status.conditions", "type"},
        {"v1", "Service", "spec.ports", "port"},
        {"v1", "Service", "spec.clusterIPs", NULL},
        {"v1", "Service", "status.conditions", "type"},
        {"v1", "Endpoints", "subsets", NULL},
        {"v1", "ServiceAccount", "secrets", "name"},
        {"v1", "ServiceAccount", "imagePullSecrets", NULL},
        {"v1", "PersistentVolume", "spec.accessModes", NULL},
        {"v1", "PersistentVolume", "spec.mountOptions", NULL},
        {"v1", "PersistentVolumeClaim", "spec.accessModes", NULL},
        {"v1", "PersistentVolumeClaim", "status.conditions", "type"},
        {"apps/v1", "Deployment", "spec.template.spec.containers", "name"},
        {"apps/v1", "Deployment", "spec.template.metadata.finalizers", ""},
        {"apps/v1", "Deployment", "spec.selector.matchExpressions", NULL},
        {"apps/v1", "Deployment", "status.conditions", "type"},
        {"apps/v1", "StatefulSet", "spec.volumeClaimTemplates", NULL},
        {"apps/v1", "StatefulSet", "spec.template.spec.volumes", "name"},
        {"apps/v1", "DaemonSet", "spec.template.spec.initContainers.env", "name"},
        {"apps/v1", "ReplicaSet", "status.conditions", "type"},
        {"batch/v1", "Job", "status.conditions", "type"},
        {"batch/v1", "CronJob", "spec.jobTemplate.spec.template.spec.containers", "name"},
        {"batch/v1", "CronJob", "status.active", NULL},
        {"storage.k8s.io/v1", "CSINode", "spec.drivers", "name"},
        {"storage.k8s.io/v1", "CSINode", "spec.drivers.topologyKeys", NULL},
        {"storage.k8s.io/v1", "StorageClass", "allowedTopologies", NULL},
        {"policy/v1", "PodDisruptionBudget", "status.conditions", "type"},
        {"rbac.authorization.k8s.io/v1", "Role", "rules", NULL},
        {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "subjects", NULL},
        {"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "webhooks", "name"},
        {"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration",
         "webhooks.matchConditions", "name"},
        {"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "webhooks.rules", NULL},
        {"apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec.versions", NULL},
        {"apiextensions.k8s.io/v1", "CustomResourceDefinition", "status.conditions", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_smp_field field = {0};
        if (!lookup(cases[i].version, cases[i].kind, cases[i].path, &field))
            fail_msg("%s has no %s", cases[i].kind, cases[i].path);
        const char *key = cases[i].merge_key;
        enum json_list_kind list = !key ? JSON_LIST_ATOMIC : *key ? JSON_LIST_MAP : JSON_LIST_SET;
        bool same_key =
            key && *key ? field.merge_key && str_eq(field.merge_key, key) : field.merge_key == NULL;
        if (field.list != list || !same_key)
            fail_msg("%s %s: list %d, merge key %s", cases[i].kind, cases[i].path, (int)field.list,
                     field.merge_key ? field.merge_key : "none");
        assert_false(field.replace);
    }
}

static void test_objects(void **state)
{
    struct json_smp_field field = {0};
    (void)state;
    assert_true(lookup("apps/v1", "Deployment", "spec.strategy", &field));
    assert_true(field.retain_keys);
    assert_non_null(field.node);
    assert_true(lookup("v1", "Pod", "spec.volumes", &field));
    assert_true(field.retain_keys);
    assert_true(lookup("v1", "Pod", "spec.containers", &field));
    assert_false(field.retain_keys);
    assert_true(lookup("apps/v1", "StatefulSet", "spec.updateStrategy", &field));
    assert_false(field.retain_keys);
    assert_true(lookup("policy/v1", "PodDisruptionBudget", "spec.selector", &field));
    assert_true(field.replace);
    assert_true(lookup("apps/v1", "Deployment", "spec.selector", &field));
    assert_false(field.replace);
}

/* Below what has no table nothing is known; a map's members are not looked up in any table. */
static void test_unknown_members(void **state)
{
    struct json_smp_field field = {0};
    (void)state;
    assert_true(lookup("v1", "Pod", "spec.dnsConfig", &field));
    assert_null(field.node);
    assert_true(lookup("v1", "Pod", "metadata.labels", &field));
    assert_null(field.node);
    assert_true(lookup("v1", "Pod", "spec.containers.resources.limits", &field));
    assert_null(field.node);
    assert_false(lookup("v1", "Pod", "spec.nonsense", &field));
    assert_false(lookup("v1", "Pod", "spec.dnsConfig.options", &field));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_merge_as_in_kubernetes),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_unknown_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
