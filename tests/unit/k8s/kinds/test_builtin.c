/* Kubernetes' own kinds: what is admitted, what is refused and why, and what is filled in. */
#include <stdio.h>

#include "api/admit.h"
#include "api/manifest.h"
#include "base/mem.h"
#include "json/pointer.h"

/* JSON with ' for ", to be read in C. */
#define TEN       "0123456789"
#define META      "'metadata': {'name': 'x'}"
#define CORE(k)   "{'apiVersion': 'v1', 'kind': '" k "', " META
#define APPS(k)   "{'apiVersion': 'apps/v1', 'kind': '" k "', " META
#define BATCH(k)  "{'apiVersion': 'batch/v1', 'kind': '" k "', " META
#define CLASS     "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'StorageClass', " META
#define SNAP(k)   "{'apiVersion': 'snapshot.storage.k8s.io/v1', 'kind': '" k "', " META
#define RBAC(k)   "{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': '" k "', " META
#define CONTAINER "{'name': 'c', 'image': 'i'}"
#define TEMPLATE                                                                                   \
    "'selector': {'matchLabels': {'a': 'b'}}, 'template': {'metadata': {'labels': {'a': 'b'}}, "   \
    "'spec': {'containers': [" CONTAINER "]}}"
#define CLAIM                                                                                      \
    "'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}"
#define WEBHOOKS                                                                                   \
    "{'apiVersion': 'admissionregistration.k8s.io/v1', 'kind': 'ValidatingWebhookConfiguration', " \
    "" META ", 'webhooks': "

static void test_admits(void **state)
{
    static const char *const cases[] = {
        CORE("Namespace") "}",
        "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': '" TEN TEN TEN TEN TEN TEN
        "56789'}}",
        CORE("Node") ", 'spec': {'taints': [{'key': 'a', 'effect': 'NoSchedule'}, "
                     "{'key': 'a', 'effect': 'NoExecute'}]}}",
        CORE("Pod") ", 'spec': {'containers': [" CONTAINER "]}}",
        /* what no table has a rule for is known nevertheless, and null says nothing */
        CORE("Pod") ", 'spec': {'hostnameOverride': 'h', 'affinity': {'nodeAffinity': null}, "
                    "'containers': [{'name': 'c', 'image': 'i', 'livenessProbe': {'httpGet': "
                    "{'port': 80, 'path': '/'}}, 'resources': {'limits': {'cpu': 0.5}}}]}}",
        CORE("Pod") ", 'spec': {'volumes': [{'name': 'v', 'emptyDir': {}}], 'containers': ["
                    "{'name': 'c', 'image': 'i', 'volumeMounts': [{'name': 'v', 'mountPath': '/v'}]"
                    "}]}}",
        /* duplicate merge keys are none of this check's business */
        CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'i', 'env': ["
                    "{'name': 'A', 'value': '1'}, {'name': 'A', 'value': '2'}]}]}}",
        CORE("Service") ", 'spec': {'ports': [{'port': 80}]}}",
        CORE("Service") ", 'spec': {'clusterIP': 'None', 'selector': {'a': 'b'}}}",
        CORE("Service") ", 'spec': {'type': 'ExternalName', 'externalName': 'a.example.com'}}",
        CORE("Service") ", 'spec': {'ports': [{'port': 53, 'name': 'a'}, "
                        "{'port': 53, 'name': 'b', 'protocol': 'UDP'}]}}",
        CORE("ConfigMap") ", 'data': {'a.conf': 'x'}, 'binaryData': {'b': 'AAE='}}",
        CORE("Secret") ", 'data': {'k': 'c2VjcmV0'}, 'stringData': {'p': 'x y'}}",
        CORE("Event") ", 'involvedObject': {'kind': 'Pod', 'name': 'x'}, 'eventTime': null}",
        CORE("PersistentVolumeClaim") ", " CLAIM "}",
        CORE("PersistentVolumeClaim") ", 'spec': {'accessModes': ['ReadWriteMany', 'ReadOnlyMany'],"
                                      "'storageClassName': '', 'resources': {'requests': "
                                      "{'storage': 1}}}}",
        CORE("PersistentVolume") ", 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                                 "['ReadWriteOnce'], 'persistentVolumeReclaimPolicy': 'Recycle', "
                                 "'hostPath': {'path': '/x'}}}",
        CORE("PersistentVolume") ", 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                                 "['ReadWriteOnce'], 'rbd': {'image': 'x'}}}",
        CORE("ResourceQuota") ", 'spec': {'hard': {'pods': 10, 'requests.storage': '1Ti'}}}",
        CORE("LimitRange") ", 'spec': {'limits': [{'type': 'Pod', 'max': {'cpu': 2}}]}}",
        APPS("Deployment") ", 'spec': {" TEMPLATE "}}",
        APPS("StatefulSet") ", 'spec': {" TEMPLATE "}}",
        APPS("StatefulSet") ", 'spec': {'serviceName': 's', 'volumeClaimUpdatePolicy': 'InPlace', "
                            "'volumeClaimTemplates': [{'metadata': {'name': 'd'}, " CLAIM
                            ", 'status': {'phase': 'Pending'}}], " TEMPLATE "}}",
        APPS("DaemonSet") ", 'spec': {" TEMPLATE "}}",
        APPS("ControllerRevision") ", 'revision': 3, 'data': {'spec': {}}}",
        BATCH("Job") ", 'spec': {'template': {'spec': {'restartPolicy': 'Never', 'containers': "
                     "[" CONTAINER "]}}}}",
        CLASS ", 'provisioner': 'cstor.csi.openebs.io', 'allowVolumeExpansion': true}",
        CLASS ", 'provisioner': 'Example.com/no-provisioner'}",
        "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'CSINode', " META ", 'spec': {'drivers': []}}",
        SNAP("VolumeSnapshot") ", 'spec': {'source': {'persistentVolumeClaimName': 'c'}}}",
        "{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', " META ", 'spec': "
        "{'holderIdentity': 'me', 'renewTime': '2026-01-02T03:04:05.678901Z', "
        "'leaseDurationSeconds': 15}}",
        "{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'ClusterRole', 'metadata': "
        "{'name': 'system:node'}, 'rules': [{'verbs': ['get'], 'nonResourceURLs': ['/healthz']}]}",
        RBAC("RoleBinding") ", 'roleRef': {'kind': 'Role', 'name': 'r'}, 'subjects': "
                            "[{'kind': 'User', 'name': 'a'}]}",
        WEBHOOKS "[{'name': 'a.example.com', 'clientConfig': {'url': 'https://x'}, 'sideEffects': "
                 "'None', 'admissionReviewVersions': ['v1']}]}",
        "{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': "
        "{'name': 'as.b.c'}, 'spec': {'group': 'b.c', 'scope': 'Cluster', 'names': {'plural': 'as',"
        "'kind': 'A'}, 'versions': [{'name': 'v1', 'served': true, 'storage': true, 'schema': "
        "{'openAPIV3Schema': {'type': 'object'}}}]}}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        json_auto_t *object = admit(cases[i], &report);
        if (!object)
            fail_msg("%s\n%s: %s", cases[i], report.problems.p[0].path,
                     report.problems.p[0].message);
        api_report_done(&report);
    }
}

static void test_refuses(void **state)
{
    static const struct {
        const char *text, *path, *says;
    } cases[] = {
        {"{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'a.b'}}", "metadata.name",
         "must consist of at most 63"},
        {"{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': '" TEN TEN TEN TEN TEN TEN
         "5678'}}",
         "metadata.name", "must consist of at most 63"},
        {"{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'x', 'namespace': 'y'}}",
         "metadata.namespace", "belongs to the whole cluster"},
        {CORE("Node") ", 'spec': {'taints': [{'key': 'a', 'effect': 'Never'}]}}",
         "spec.taints[0].effect", "supported values: \"NoSchedule\""},
        {CORE("Node") ", 'spec': {'podCIDRs': ['a', 'a']}}", "spec.podCIDRs[1]", "in the list"},
        {CORE("Pod") "}", "spec", "Required value"},
        {CORE("Pod") ", 'spec': {'containers': []}}", "spec.containers", "must not be empty"},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c'}]}}", "spec.containers[0].image",
         "say which image"},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'C', 'image': 'i'}]}}",
         "spec.containers[0].name", "lower case"},
        {CORE("Pod") ", 'spec': {'containers': [" CONTAINER ", " CONTAINER "]}}",
         "spec.containers[1].name", "another container has this name"},
        {CORE("Pod") ", 'spec': {'initContainers': [" CONTAINER "], 'containers': [" CONTAINER
                     "]}}",
         "spec.containers[0].name", "another container has this name"},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'i', 'volumeMounts': "
                     "[{'name': 'v', 'mountPath': '/v'}]}]}}",
         "spec.containers[0].volumeMounts[0].name", "no volume of this name"},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'i', 'env': "
                     "[{'name': 'A', 'value': 1}]}]}}",
         "spec.containers[0].env[0].value", "put it in quotes"},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'i', 'resources': "
                     "{'limits': {'memory': '1GB'}}}]}}",
         "spec.containers[0].resources.limits.memory", "Invalid value: \"1GB\""},
        {CORE("Pod") ", 'spec': {'restartPolicy': 'always', 'containers': [" CONTAINER "]}}",
         "spec.restartPolicy", "did you mean \"Always\"?"},
        {CORE("Service") ", 'spec': {}}", "spec.ports", "which ports the service offers"},
        {CORE("Service") ", 'spec': {'ports': [{'port': 0}]}}", "spec.ports[0].port",
         "between 1 and 65535"},
        {CORE("Service") ", 'spec': {'ports': [{'port': 1}, {'port': 2, 'name': 'b'}]}}",
         "spec.ports[0].name", "must have a name"},
        {CORE("Service") ", 'spec': {'ports': [{'port': 1, 'name': 'b'}, {'port': 2, 'name': 'b'}]"
                         "}}",
         "spec.ports[1].name", "another port has this name"},
        {CORE("Service") ", 'spec': {'ports': [{'port': 1, 'name': 'a'}, {'port': 1, 'name': 'b', "
                         "'protocol': 'TCP'}]}}",
         "spec.ports[1]", "another entry has this port and protocol"},
        {"{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': '9x'}, 'spec': {'ports': "
         "[{'port': 1}]}}",
         "metadata.name", "must start with a letter"},
        {CORE("ConfigMap") ", 'data': {'a': 1}}", "data.a", "put it in quotes"},
        {CORE("ConfigMap") ", 'data': {'a/b': ''}}", "data[a/b]", "the name must consist of"},
        {CORE("ConfigMap") ", 'data': {'..b': ''}}", "data[..b]", "the name must consist of"},
        {CORE("Secret") ", 'data': {'k': 'pass word'}}", "data.k", "must be base64"},
        {CORE("Secret") ", 'data': {'k': 'abc'}}", "data.k", "padded with '='"},
        {CORE("Secret") ", 'stringData': {'k': 'x', 'n': 7}}", "stringData.n", "must be a string"},
        {CORE("Secret") ", 'data': 7, 'stringData': {'k': 'x'}}", "data", "must be"},
        {CORE("Secret") ", 'data': {'k': 'a=bc'}}", "data.k", "must be base64"},
        {CORE("PersistentVolumeClaim") "}", "spec", "Required value"},
        {CORE("PersistentVolumeClaim") ", 'spec': {'resources': {'requests': {'storage': '1Gi'}}}}",
         "spec.accessModes", "at least 1 access mode is required"},
        {CORE("PersistentVolumeClaim") ", 'spec': {'accessModes': ['ReadWriteOnce']}}",
         "spec.resources.requests.storage", "say how large"},
        {CORE("PersistentVolumeClaim") ", 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': "
                                       "{'requests': {'storage': '0Gi'}}}}",
         "spec.resources.requests.storage", "must be more than zero"},
        {CORE("PersistentVolumeClaim") ", 'spec': {'accessModes': ['RWO'], 'resources': "
                                       "{'requests': {'storage': '1Gi'}}}}",
         "spec.accessModes[0]", "supported values: \"ReadWriteOnce\""},
        {CORE("PersistentVolumeClaim") ", 'spec': {'accessModes': ['ReadWriteOncePod', "
                                       "'ReadWriteOnce'], 'resources': {'requests': {'storage': "
                                       "'1Gi'}}}}",
         "spec.accessModes", "cannot be combined"},
        {CORE("PersistentVolume") ", 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                                  "['ReadWriteOnce']}}",
         "spec", "must specify a volume type"},
        {CORE("PersistentVolume") ", 'spec': {'capacity': {}, 'accessModes': ['ReadWriteOnce'], "
                                  "'hostPath': {'path': '/x'}}}",
         "spec.capacity.storage", "say how large"},
        {CORE("PersistentVolume") ", 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                                  "['ReadWriteOnce'], 'hostPath': {'path': '/x'}, 'nfs': {}}}",
         "spec.nfs", "has the source hostPath already"},
        {CORE("PersistentVolume") ", 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                                  "['ReadWriteOnce'], 'local': {'path': '/x'}}}",
         "spec.nodeAffinity", "which node"},
        {CORE("PersistentVolume") ", 'spec': {'persistentVolumeReclaimPolicy': 'Keep'}}",
         "spec.persistentVolumeReclaimPolicy",
         "supported values: \"Retain\", \"Delete\", \"Recycle\""},
        {APPS(
             "Deployment") ", 'spec': {'selector': {'matchLabels': {'a': 'c'}}, 'template': "
                           "{'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [" CONTAINER
                           "]}}}}",
         "spec.template.metadata.labels", "does not match these labels"},
        {APPS("Deployment") ", 'spec': {'selector': {}, 'template': {'spec': {'containers': "
                            "[" CONTAINER "]}}}}",
         "spec.selector", "an empty selector selects every pod"},
        {APPS("Deployment") ", 'spec': {'selector': {'matchExpressions': [{'key': 'a', 'operator': "
                            "'In'}]}, 'template': {'spec': {'containers': [" CONTAINER "]}}}}",
         "spec.selector", "matchExpressions[0]: the label a must have at least one value"},
        {APPS("Deployment") ", 'spec': {'replicas': -1, " TEMPLATE "}}", "spec.replicas",
         "between 0 and"},
        {APPS("Deployment") ", 'spec': {'replicas': '3', " TEMPLATE "}}", "spec.replicas",
         "write it without quotes"},
        {APPS("StatefulSet") ", 'spec': {}}", "spec.selector", "Required value"},
        {APPS("StatefulSet") ", 'spec': {'volumeClaimTemplates': [{" CLAIM "}], " TEMPLATE "}}",
         "spec.volumeClaimTemplates[0].metadata", "Required value"},
        {APPS("StatefulSet") ", 'spec': {'volumeClaimTemplates': [{'metadata': {}, " CLAIM
                             "}], " TEMPLATE "}}",
         "spec.volumeClaimTemplates[0].metadata.name", "by which name"},
        {APPS("StatefulSet") ", 'spec': {'volumeClaimTemplates': [{'metadata': {'name': 'd'}, "
                             "'spec': {'accessModes': ['ReadWriteOnce']}}], " TEMPLATE "}}",
         "spec.volumeClaimTemplates[0].spec.resources.requests.storage", "say how large"},
        {APPS(
             "StatefulSet") ", 'spec': {'volumeClaimTemplates': [{'metadata': {'name': 'd'}, " CLAIM
                            "}, {'metadata': {'name': 'd'}, " CLAIM "}], " TEMPLATE "}}",
         "spec.volumeClaimTemplates[1].metadata.name", "another template has this name"},
        {APPS("StatefulSet") ", 'spec': {'volumeClaimUpdatePolicy': 'Inplace', " TEMPLATE "}}",
         "spec.volumeClaimUpdatePolicy", "did you mean \"InPlace\"?"},
        {APPS("StatefulSet") ", 'spec': {'podManagementPolicy': 'Serial', " TEMPLATE "}}",
         "spec.podManagementPolicy", "\"OrderedReady\", \"Parallel\""},
        {APPS("StatefulSet") ", 'spec': {'persistentVolumeClaimRetentionPolicy': {'whenScaled': "
                             "'Recycle'}, " TEMPLATE "}}",
         "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "\"Retain\", \"Delete\""},
        {APPS("StatefulSet") ", 'spec': {'updateStrategy': {'type': 'OnDelete', 'rollingUpdate': "
                             "{}}, " TEMPLATE "}}",
         "spec.updateStrategy.rollingUpdate", "only for the type RollingUpdate"},
        {APPS("DaemonSet") ", 'spec': {'selector': {'matchLabels': {'a': 'b'}}, 'template': "
                           "{'metadata': {'labels': {'a': 'b'}}, 'spec': {'restartPolicy': 'Never',"
                           "'containers': [" CONTAINER "]}}}}",
         "spec.template.spec.restartPolicy", "supported values: \"Always\""},
        {APPS("ControllerRevision") "}", "revision", "Required value"},
        {BATCH("Job") ", 'spec': {'template': {'spec': {'containers': [" CONTAINER "]}}}}",
         "spec.template.spec.restartPolicy", "\"OnFailure\", \"Never\""},
        {BATCH("CronJob") ", 'spec': {'schedule': '* * * * *', 'jobTemplate': {'spec': {'template':"
                          " {'spec': {'containers': [" CONTAINER "]}}}}}}",
         "spec.jobTemplate.spec.template.spec.restartPolicy", "\"OnFailure\", \"Never\""},
        {CLASS "}", "provisioner", "Required value"},
        {CLASS ", 'provisioner': 'a b'}", "provisioner", "must consist of"},
        {CLASS ", 'provisioner': 'x', 'reclaimPolicy': 'Recycle'}", "reclaimPolicy",
         "\"Delete\", \"Retain\""},
        {CLASS ", 'provisioner': 'x', 'volumeBindingMode': 'Later'}", "volumeBindingMode",
         "\"Immediate\", \"WaitForFirstConsumer\""},
        {CLASS ", 'provisioner': 'x', 'allowVolumeExpansion': 'true'}", "allowVolumeExpansion",
         "write it without quotes"},
        {CLASS ", 'provisioner': 'x', 'parameters': {'replicaCount': 3}}",
         "parameters.replicaCount", "put it in quotes"},
        {CLASS ", 'provisioner': 'x', 'parameters': {'': 'y'}}", "parameters", "must have a name"},
        {SNAP("VolumeSnapshot") ", 'spec': {'source': {}}}",
         "spec.source.persistentVolumeClaimName",
         "either persistentVolumeClaimName or volumeSnapshotContentName"},
        {SNAP("VolumeSnapshot") ", 'spec': {'source': {'persistentVolumeClaimName': 'a', "
                                "'volumeSnapshotContentName': 'b'}}}",
         "spec.source.volumeSnapshotContentName", "keep one of them"},
        {"{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', " META ", 'spec': "
         "{'leaseDurationSeconds': 0}}",
         "spec.leaseDurationSeconds", "between 1 and"},
        {"{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', " META ", 'spec': "
         "{'renewTime': 'now'}}",
         "spec.renewTime", "Invalid value: \"now\""},
        {"{'apiVersion': 'policy/v1', 'kind': 'PodDisruptionBudget', " META ", 'spec': "
         "{'minAvailable': 1, 'maxUnavailable': '50%'}}",
         "spec.maxUnavailable", "keep one of them"},
        {RBAC("Role") ", 'rules': [{'verbs': ['get'], 'resources': ['pods']}]}",
         "rules[0].apiGroups", "at least one API group"},
        {RBAC("RoleBinding") ", 'roleRef': {'kind': 'Role', 'name': 'r'}, 'subjects': [{'kind': "
                             "'ServiceAccount', 'name': 'a'}]}",
         "subjects[0].namespace", "say which namespace"},
        {RBAC("ClusterRoleBinding") ", 'roleRef': {'kind': 'Role', 'name': 'r'}}", "roleRef.kind",
         "\"ClusterRole\""},
        {"{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'Role', 'metadata': {'name': "
         "'a/b'}}",
         "metadata.name", "must not contain '/'"},
        {WEBHOOKS "[{'name': 'a.b', 'clientConfig': {'url': 'x'}, 'sideEffects': 'None', "
                  "'admissionReviewVersions': ['v1']}]}",
         "webhooks[0].name", "at least three parts"},
        {WEBHOOKS "[{'name': 'a.b.c', 'clientConfig': {}, 'sideEffects': 'None', "
                  "'admissionReviewVersions': ['v1']}]}",
         "webhooks[0].clientConfig", "exactly one of url or service"},
        {"{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', " META
         ", 'spec': {'group': 'b.c', 'scope': 'Cluster', 'names': {'plural': 'as', 'kind': 'A'}, "
         "'versions': [{'name': 'v1', 'served': true, 'storage': true}]}}",
         "metadata.name", "\"as.b.c\""},
        {"{'apiVersion': 'apps/v2', 'kind': 'Deployment', " META "}", "apiVersion",
         "for a Deployment write \"apps/v1\""},
        {"{'apiVersion': 'openebs.io/v1', 'kind': 'Event', " META "}", "apiVersion",
         "for a Event write \"v1\" or \"events.k8s.io/v1\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        json_auto_t *object = admit(cases[i].text, &report);
        if (object)
            fail_msg("%s: not refused", cases[i].text);
        bool found = false;
        for (size_t j = 0; j < report.problems.len; j++)
            found = found || (str_eq(report.problems.p[j].path, cases[i].path) &&
                              strstr(report.problems.p[j].message, cases[i].says));
        if (!found)
            fail_msg("%s\n%s: %s", cases[i].text, report.problems.p[0].path,
                     report.problems.p[0].message);
        api_report_done(&report);
    }
}

static void test_fills_in(void **state)
{
    static const struct {
        const char *text, *pointer, *value;
    } cases[] = {
        {CLASS ", 'provisioner': 'x'}", "/reclaimPolicy", "\"Delete\""},
        {CLASS ", 'provisioner': 'x'}", "/volumeBindingMode", "\"Immediate\""},
        {CORE("PersistentVolumeClaim") ", " CLAIM "}", "/spec/volumeMode", "\"Filesystem\""},
        {CORE("PersistentVolume") ", 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                                  "['ReadWriteOnce'], 'hostPath': {'path': '/x'}}}",
         "/spec/persistentVolumeReclaimPolicy", "\"Retain\""},
        {APPS("StatefulSet") ", 'spec': {" TEMPLATE "}}", "/spec/replicas", "1"},
        {APPS("StatefulSet") ", 'spec': {" TEMPLATE "}}", "/spec/updateStrategy",
         "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":0}}"},
        {APPS("StatefulSet") ", 'spec': {'updateStrategy': {'type': 'OnDelete'}, " TEMPLATE "}}",
         "/spec/updateStrategy", "{\"type\":\"OnDelete\"}"},
        {APPS("StatefulSet") ", 'spec': {" TEMPLATE "}}",
         "/spec/persistentVolumeClaimRetentionPolicy",
         "{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}"},
        {APPS("StatefulSet") ", 'spec': {" TEMPLATE "}}", "/status",
         "{\"replicas\":0,\"availableReplicas\":0}"},
        {APPS("Deployment") ", 'spec': {" TEMPLATE "}}", "/status", "{}"},
        {APPS("Deployment") ", 'spec': {" TEMPLATE "}}",
         "/spec/template/spec/containers/0/imagePullPolicy", "\"Always\""},
        {APPS("Deployment") ", 'spec': {" TEMPLATE "}}",
         "/spec/template/spec/containers/0/resources", "{}"},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'h:5000/i'}]}}",
         "/spec/containers/0/imagePullPolicy", "\"Always\""},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'h:5000/i:1'}]}}",
         "/spec/containers/0/imagePullPolicy", "\"IfNotPresent\""},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'i@sha256:0'}]}}",
         "/spec/containers/0/imagePullPolicy", "\"IfNotPresent\""},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}",
         "/spec/enableServiceLinks", "true"},
        {CORE("Service") ", 'spec': {'ports': [{'port': 80, 'targetPort': 0}]}}",
         "/spec/ports/0/targetPort", "80"},
        {CORE("Service") ", 'spec': {'ports': [{'port': 80}]}}", "/status",
         "{\"loadBalancer\":{}}"},
        {APPS("Deployment") ", 'spec': {" TEMPLATE "}}", "/spec/strategy/rollingUpdate",
         "{\"maxUnavailable\":\"25%\",\"maxSurge\":\"25%\"}"},
        {APPS("Deployment") ", 'spec': {" TEMPLATE "}}", "/spec/template/spec/restartPolicy",
         "\"Always\""},
        {CORE("Service") ", 'spec': {'ports': [{'port': 80}]}}", "/spec/ports/0/protocol",
         "\"TCP\""},
        {CORE("Secret") "}", "/type", "\"Opaque\""},
        {CORE("Secret") ", 'data': {'k': 'c2VjcmV0', 'p': 'eA=='}, 'stringData': {'p': 'x y'}}",
         "/data", "{\"k\":\"c2VjcmV0\",\"p\":\"eCB5\"}"},
        {CORE("Secret") ", 'stringData': {'e': '', 'p': 'ä'}}", "/data",
         "{\"e\":\"\",\"p\":\"w6Q=\"}"},
        {CORE("Secret") ", 'data': null, 'stringData': {'p': 'x'}}", "/data", "{\"p\":\"eA==\"}"},
        {"{'apiVersion': 'storage.k8s.io/v1', 'kind': 'CSIDriver', " META ", 'spec': {}}",
         "/spec/volumeLifecycleModes", "[\"Persistent\"]"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        struct err e = {0};
        _cleanup_(str_done) struct str out = {0};
        json_auto_t *object = admit(cases[i].text, &report);
        if (!object)
            fail_msg("%s\n%s", cases[i].text, report.problems.p[0].message);
        const json_t *value = json_pointer_get(object, cases[i].pointer, &e);
        if (!value)
            fail_msg("%s: %s", cases[i].text, e.msg);
        json_format(value, &out);
        assert_string_equal(str_get(&out), cases[i].value);
        api_report_done(&report);
    }
}

/* Both groups' events are one kind; what events.k8s.io says is kept under the core group's names. */
static void test_events_of_both_groups(void **state)
{
    (void)state;
    struct api_report report = {0};
    json_auto_t *object =
        admit("{'apiVersion': 'events.k8s.io/v1', 'kind': 'Event', 'metadata': {'name': 'x.1', "
              "'namespace': 'default'}, 'regarding': {'kind': 'Pod', 'name': 'x'}, 'note': 'n', "
              "'reportingController': 'c', 'eventTime': '2026-01-02T03:04:05.000001Z'}",
              &report);
    assert_non_null(object);
    assert_string_equal(json_str(object, "message"), "n");
    assert_string_equal(json_str(object, "reportingComponent"), "c");
    assert_non_null(json_at(object, "involvedObject", "name"));
    assert_null(json_object_get(object, "regarding"));

    const struct api_kind *kind = api_kind_find("events.k8s.io/v1", "Event", NULL);
    kind->publish(object, &report);
    api_report_done(&report);
    assert_string_equal(json_str(object, "note"), "n");
    assert_null(json_object_get(object, "message"));
    assert_non_null(json_at(object, "regarding", "name"));
    assert_string_equal(json_str(object, "eventTime"), "2026-01-02T03:04:05.000001Z");
}

/* All that is wrong is said at once. */
static void test_reports_all(void **state)
{
    (void)state;
    struct api_report report = {0};
    json_auto_t *refused = admit(
        CORE("Pod") ", 'spec': {'containers': [{'ports': [{'containerPort': 0}]}, {}]}}", &report);
    assert_null(refused);
    assert_int_equal(report.errors, 3);
    api_report_done(&report);
}

/* Members that a kind does not have, at any depth and in whichever table the ones around it are. */
static void test_unknown_members(void **state)
{
    (void)state;
    static const struct {
        const char *object, *path;
    } cases[] = {
        {CORE("ConfigMap") ", 'more': {'a': [1]}}", "more"},
        {"{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'x', 'more': 1}}",
         "metadata.more"},
        {CORE("Pod") ", 'spec': {'more': 1, 'containers': [" CONTAINER "]}}", "spec.more"},
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'i', 'livenessProbe': "
                     "{'httpGet': {'port': 1, 'more': 1}}}]}}",
         "spec.containers[0].livenessProbe.httpGet.more"},
        {CORE("Pod") ", 'spec': {'containers': [" CONTAINER "], 'affinity': {'podAffinity': "
                     "{'requiredDuringSchedulingIgnoredDuringExecution': [{'topologyKey': 'k', "
                     "'more': 1}]}}}}",
         "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].more"},
        {CORE("PersistentVolume") ", 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                                  "['ReadWriteOnce'], 'nfs': {'server': 's', 'path': '/', "
                                  "'more': 1}}}",
         "spec.nfs.more"},
        {CORE("PersistentVolumeClaim") ", " CLAIM ", 'more': 1}", "more"},
        {SNAP("VolumeSnapshotClass") ", 'driver': 'd', 'deletionPolicy': 'Delete', 'more': 1}",
         "more"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        json_auto_t *refused = admit(cases[i].object, &report);
        assert_null(refused);
        assert_int_equal(report.errors, 1);
        assert_int_equal(report.problems.p[0].cause, API_UNKNOWN);
        assert_string_equal(report.problems.p[0].path, cases[i].path);
        api_report_clear(&report);

        json_auto_t *object = parse_quoted(cases[i].object);
        assert_true(
            api_admit(api_kind_of(object, &report), object, NULL, API_UNKNOWN_WARN, &report));
        assert_int_equal(report.warnings, 1);
        assert_string_equal(report.problems.p[0].path, cases[i].path);
        _cleanup_(str_done) struct str text = {0};
        json_format(object, &text);
        assert_null(strstr(str_get(&text), "more")); /* it is gone */
        api_report_done(&report);
    }
}

/* A type is checked by the message where no table says anything. */
static void test_types_of_messages(void **state)
{
    (void)state;
    static const struct {
        const char *object, *path;
    } cases[] = {
        {CORE("Pod") ", 'spec': {'containers': [{'name': 'c', 'image': 'i', 'livenessProbe': "
                     "{'periodSeconds': 'x'}}]}}",
         "spec.containers[0].livenessProbe.periodSeconds"},
        {CORE("Pod") ", 'spec': {'containers': [" CONTAINER "], 'securityContext': "
                     "{'supplementalGroups': 5}}}",
         "spec.securityContext.supplementalGroups"},
        {CORE("Pod") ", 'spec': {'containers': [" CONTAINER "], 'affinity': []}}", "spec.affinity"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        json_auto_t *refused = admit(cases[i].object, &report);
        assert_null(refused);
        assert_int_equal(report.errors, 1);
        assert_int_equal(report.problems.p[0].cause, API_WRONG_TYPE);
        assert_string_equal(report.problems.p[0].path, cases[i].path);
        api_report_done(&report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admits),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_fills_in),
        cmocka_unit_test(test_events_of_both_groups),
        cmocka_unit_test(test_reports_all),
        cmocka_unit_test(test_unknown_members),
        cmocka_unit_test(test_types_of_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
