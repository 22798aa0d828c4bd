/*
 * Objects in protobuf: as Go writes them, as hostile clients write them, and back.
 */
#include "jsontest.h"
#include "k8s/apiserver/protobuf.h"

/* Writes messages by hand. */
static void tag(struct str *out, unsigned number, unsigned wire)
{
    assert_true(number < 256);
    unsigned value = number << 3 | wire;
    if (value >= 0x80)
        str_append_c(out, (char)(value | 0x80)), value >>= 7;
    str_append_c(out, (char)value);
}

static void field(struct str *out, unsigned number, const void *bytes, size_t n)
{
    tag(out, number, 2);
    for (size_t left = n;; left >>= 7) {
        str_append_c(out, (char)(left | (left >= 0x80 ? 0x80 : 0)));
        if (left < 0x80)
            break;
    }
    str_append_n(out, bytes, n);
}

static void text(struct str *out, unsigned number, const char *value)
{
    field(out, number, value, strlen(value));
}

static void inside(struct str *out, unsigned number, const struct str *message)
{
    field(out, number, str_get(message), message->len);
}

static void envelope(struct str *out, const char *version, const char *kind, const struct str *raw)
{
    _cleanup_(str_done) struct str type = {0};
    text(&type, 1, version);
    text(&type, 2, kind);
    str_append_n(out, "k8s", 4);
    inside(out, 1, &type);
    inside(out, 2, raw);
    text(out, 3, "");
    text(out, 4, "");
}

/* What kubectl 1.36 sends for: kubectl auth can-i list gadgets.rec.example.test */
static void test_can_i(void **state)
{
    (void)state;
    static const char metadata[] = "\n\0\x12\0\x1a\0\"\0*\0"
                                   "2\0008\0B\0";
    static const char attributes[] = "\n\7default\x12\4list\x1a\x10rec.example.test\"\0*\7gadgets"
                                     "2\0:\0";
    static const char status[] = "\x8\0\x12\0\x1a\0 \0";
    _cleanup_(str_done) struct str spec = {0}, raw = {0}, body = {0};
    field(&spec, 1, attributes, sizeof(attributes) - 1);
    field(&raw, 1, metadata, sizeof(metadata) - 1);
    inside(&raw, 2, &spec);
    field(&raw, 3, status, sizeof(status) - 1);
    envelope(&body, "authorization.k8s.io/v1", "SelfSubjectAccessReview", &raw);
    assert_int_equal(body.len, 142); /* the length that was recorded */
    struct err e = {0};
    json_auto_t *object = apiserver_protobuf_parse(body.p, body.len, &e);
    if (!object)
        fail_msg("%s", e.msg);
    json_auto_t *expected = parse_quoted(
        "{'apiVersion': 'authorization.k8s.io/v1', 'kind': 'SelfSubjectAccessReview', 'metadata': "
        "{},"
        "'spec': {'resourceAttributes': {'namespace': 'default', 'verb': 'list', 'group':"
        "'rec.example.test', 'resource': 'gadgets'}}, 'status': {}}");
    assert_json(object, expected, "the review");
}

static void test_round_trips(void **state)
{
    (void)state;
    static const char *const objects[] = {
        "{'apiVersion': 'authorization.k8s.io/v1', 'kind': 'SubjectAccessReview', 'metadata': {},"
        "'spec': {'nonResourceAttributes': {'path': '/x', 'verb': 'get'}, 'user': 'u', 'groups':"
        "['a', 'b'], 'extra': {'k': ['1', '2'], 'none': []}, 'uid': 'i'}, 'status': {'allowed': "
        "true,"
        "'reason': 'because'}}",
        "{'apiVersion': 'authorization.k8s.io/v1', 'kind': 'SelfSubjectRulesReview', 'metadata': "
        "{},"
        "'spec': {'namespace': 'ns'}, 'status': {'resourceRules': [{'verbs': ['*'], 'apiGroups': "
        "[''],"
        "'resources': ['*']}], 'nonResourceRules': [{'verbs': ['get'], 'nonResourceURLs': ['/a',"
        "'/b']}], 'incomplete': true}}",
        "{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', 'metadata': {'name': 'l',"
        "'namespace': 'ns', 'uid': 'u', 'resourceVersion': '7', 'generation': 3,"
        "'creationTimestamp': '2026-01-02T03:04:05Z', 'labels': {'a': 'b', 'empty': ''},"
        "'ownerReferences': [{'kind': 'Node', 'name': 'n', 'uid': 'x', 'apiVersion': 'v1',"
        "'controller': false}], 'finalizers': ['f'], 'managedFields': [{'manager': 'm', "
        "'operation':"
        "'Update', 'fieldsType': 'FieldsV1', 'fieldsV1': {'f:spec': {'.': {}}}}]}, 'spec':"
        "{'holderIdentity': '', 'leaseDurationSeconds': 15, 'acquireTime':"
        "'2026-01-02T03:04:05.678901Z', 'renewTime': '1969-12-31T23:59:59.000001Z',"
        "'leaseTransitions': 0}}",
        "{'apiVersion': 'v1', 'kind': 'Event', 'metadata': {'name': 'e'}, 'involvedObject': "
        "{'kind':"
        "'Pod', 'name': 'p'}, 'reason': 'r', 'message': '\xc3\xbc', 'source': {'component': 'c'},"
        "'firstTimestamp': '2026-01-02T03:04:05Z', 'count': 5, 'type': 'Normal', 'series': "
        "{'count':"
        "2, 'lastObservedTime': '2026-01-02T03:04:05.000000Z'}}",
        "{'apiVersion': 'events.k8s.io/v1', 'kind': 'Event', 'metadata': {'name': 'e'}, "
        "'eventTime':"
        "'2026-01-02T03:04:05.000007Z', 'reportingController': 'c', 'regarding': {'kind': 'Pod'},"
        "'note': 'n', 'deprecatedCount': -1}",
        "{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 's'}, 'data': {'a': '//79',"
        "'empty': ''}, 'type': 'Opaque', 'immutable': false}",
        "{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'ClusterRole', 'metadata': {'name':"
        "'r'}, 'rules': [{'verbs': ['get'], 'apiGroups': ['', 'apps'], 'resources': ['pods']}],"
        "'aggregationRule': {'clusterRoleSelectors': [{'matchLabels': {'a': 'b'},"
        "'matchExpressions': [{'key': 'k', 'operator': 'In', 'values': ['v']}]}]}}",
        "{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'RoleBinding', 'metadata': {'name':"
        "'b'}, 'subjects': [{'kind': 'User', 'name': 'u'}], 'roleRef': {'kind': 'Role', 'name': "
        "'r'}}",
        "{'apiVersion': 'authentication.k8s.io/v1', 'kind': 'TokenRequest', 'metadata': {}, 'spec':"
        "{'audiences': ['a'], 'boundObjectRef': {'kind': 'Pod', 'name': 'p'}, 'expirationSeconds':"
        "3600}}",
        "{'apiVersion': 'v1', 'kind': 'DeleteOptions', 'metadata': {}, 'gracePeriodSeconds': 0,"
        "'preconditions': {'uid': 'u'}, 'propagationPolicy': 'Foreground', 'dryRun': ['All']}",
        /* Quantities, numbers that may be words, inlined messages. */
        "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'volumes': "
        "[{'name':"
        "'v', 'hostPath': {'path': '/x', 'type': ''}}, {'name': 'w', 'emptyDir': {'sizeLimit': "
        "'1Gi'}}, {'name': 'c', 'configMap': {'name': 'm', 'defaultMode': 420}}], 'containers': "
        "[{'name': 'c', 'image': 'i', 'ports': [{'containerPort': 80}], 'env': [{'name': 'E', "
        "'valueFrom': {'secretKeyRef': {'name': 's', 'key': 'k', 'optional': false}}}], "
        "'resources': "
        "{'limits': {'cpu': '500m'}}, 'livenessProbe': {'httpGet': {'path': '/', 'port': 'http'}, "
        "'periodSeconds': 5}, 'securityContext': {'runAsUser': 0, 'privileged': false}}], "
        "'securityContext': {'supplementalGroups': [0, 7]}}, 'status': {'phase': 'Running'}}",
        "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {}, 'spec': {'ports': [{'port': 80, "
        "'targetPort': 8080}, {'port': 81, 'targetPort': 'web'}], 'selector': {'a': 'b'}}}",
        "{'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {}, 'spec': {'capacity': "
        "{'storage': '5Gi'}, 'csi': {'driver': 'd', 'volumeHandle': 'h'}, 'accessModes': "
        "['ReadWriteOnce'], 'volumeMode': 'Block'}}",
        "{'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {}, 'spec': "
        "{'resources': "
        "{'requests': {'storage': '1Gi'}}, 'storageClassName': ''}}",
        "{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {}, 'spec': {'replicas': 0, "
        "'selector': {'matchLabels': {'a': 'b'}}, 'template': {'metadata': {'labels': {'a': 'b'}}, "
        "'spec': {'containers': [{'name': 'c'}]}}, 'strategy': {'rollingUpdate': {'maxSurge': "
        "'25%', "
        "'maxUnavailable': 0}}}}",
        "{'apiVersion': 'apps/v1', 'kind': 'ControllerRevision', 'metadata': {}, 'data': {'spec': "
        "[1]}, 'revision': 3}",
        "{'apiVersion': 'batch/v1', 'kind': 'CronJob', 'metadata': {}, 'spec': {'schedule': '* * * "
        "* "
        "*', 'suspend': false, 'jobTemplate': {'spec': {'completions': 2, 'template': {'spec': "
        "{'restartPolicy': 'Never'}}}}}}",
        "{'apiVersion': 'policy/v1', 'kind': 'PodDisruptionBudget', 'metadata': {}, 'spec': "
        "{'minAvailable': '50%'}}",
        "{'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', 'metadata': {}, 'value': "
        "-1, 'globalDefault': true, 'preemptionPolicy': 'Never'}",
        "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'StorageClass', 'metadata': {}, "
        "'provisioner': "
        "'p', 'allowVolumeExpansion': false, 'parameters': {'a': 'b'}}",
        "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'CSIStorageCapacity', 'metadata': {}, "
        "'storageClassName': 's', 'capacity': '10Gi', 'nodeTopology': {}}",
        "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'VolumeAttachment', 'metadata': {}, 'spec': "
        "{'attacher': 'a', 'nodeName': 'n', 'source': {'persistentVolumeName': 'v'}}, 'status': "
        "{'attached': true}}",
        "{'apiVersion': 'admissionregistration.k8s.io/v1', 'kind': 'MutatingWebhookConfiguration', "
        "'metadata': {}, 'webhooks': [{'name': 'w', 'clientConfig': {'url': 'u', 'caBundle': "
        "'AAEC'}, 'rules': [{'operations': ['CREATE'], 'apiGroups': [''], 'resources': "
        "['pods']}]}]}",
        "{'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': {}, 'spec': {'replicas': "
        "2}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        json_auto_t *object = parse_quoted(objects[i]);
        _cleanup_(str_done) struct str bytes = {0};
        struct err e = {0};
        if (apiserver_protobuf_format(object, &bytes, &e) < 0)
            fail_msg("%s: %s", objects[i], e.msg);
        json_auto_t *back = apiserver_protobuf_parse(bytes.p, bytes.len, &e);
        if (!back)
            fail_msg("%s: %s", objects[i], e.msg);
        assert_json(back, object, objects[i]);
        for (size_t n = 0; n < bytes.len; n++) { /* cut anywhere: an object or an error, no more */
            _cleanup_free_ char *cut = mem_alloc(n + 1);
            memcpy(cut, bytes.p, n);
            json_auto_t *part = apiserver_protobuf_parse(cut, n, NULL);
            assert_true(!part || json_is_object(part));
        }
    }
}

/* Messages that come in two parts are one, of two values the last counts. */
static void test_merging(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str a = {0}, b = {0}, raw = {0}, body = {0};
    text(&a, 1, "first");
    text(&a, 3, "ns");
    text(&b, 1, "last");
    inside(&raw, 1, &a);
    inside(&raw, 1, &b);
    text(&raw, 99, "of a newer client");
    tag(&raw, 98, 0);
    str_append_n(&raw, "\xff\x01", 2);
    tag(&raw, 97, 5);
    str_append_n(&raw, "1234", 4);
    tag(&raw, 96, 1);
    str_append_n(&raw, "12345678", 8);
    envelope(&body, "v1", "ConfigMap", &raw);
    json_auto_t *object = apiserver_protobuf_parse(body.p, body.len, NULL);
    json_auto_t *expected = parse_quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata':"
                                         "{'name': 'last', 'namespace': 'ns'}}");
    assert_json(object, expected, "the object");
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        size_t size;
        const char *message;
    } cases[] = {
#define RAW(s) (s), sizeof(s) - 1
        {RAW("\x0a"), "cut off"},
        {RAW("\x0a\x05"), "cut off"},
        {RAW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "cut off"},
        {RAW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "cut off"},
        {RAW("\x00\x00"), "cut off"},
        {RAW("\x0b\x0c"), "cut off"},
        {RAW("\x08\x01"), "wrong type"},           /* metadata as a number */
        {RAW("\x0a\x03\x0a\x01\xff"), "no UTF-8"}, /* metadata.name */
        {RAW("\x0a\x04\x0a\x02"
             "a\0"),
         "no UTF-8"},                                                      /* NUL in a string */
        {RAW("\x0a\x0a\x42\x08\x08\xff\xff\xff\xff\xff\xff\x7f"), "time"}, /* year 17 million */
        {RAW("\x0a\x08\x42\x06\x10\xff\xff\xff\xff\x0f"), "time"},         /* nanoseconds */
#undef RAW
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(str_done) struct str body = {0};
        struct str raw = {.p = (char *)cases[i].raw, .len = cases[i].size};
        struct err e = {0};
        envelope(&body, "v1", "ConfigMap", &raw);
        json_auto_t *object = apiserver_protobuf_parse(body.p, body.len, &e);
        if (object || !strstr(e.msg, cases[i].message))
            fail_msg("%zu: %s", i, object ? "accepted" : e.msg);
        assert_string_equal(e.reason, "BadRequest");
    }
}

static void test_envelopes(void **state)
{
    (void)state;
    struct err e = {0};
    _cleanup_(str_done) struct str other = {0}, raw = {0};
    assert_null(apiserver_protobuf_parse("", 0, &e));
    assert_null(apiserver_protobuf_parse("k8s", 3, &e));
    assert_null(apiserver_protobuf_parse("{\"kind\":1}", 10, &e));
    assert_string_equal(e.reason, "BadRequest");
    assert_null(apiserver_protobuf_parse("k8s\0\x0a", 5, &e));
    envelope(&other, "v1", "PodTemplate", &raw);
    assert_null(apiserver_protobuf_parse(other.p, other.len, &e));
    assert_string_equal(e.reason, "UnsupportedMediaType");
    assert_non_null(strstr(e.msg, "application/json"));
    json_auto_t *object = parse_quoted("{'apiVersion': 'v1', 'kind': 'PodTemplate'}");
    assert_int_equal(apiserver_protobuf_format(object, &raw, &e), -1);
    assert_string_equal(e.reason, "NotAcceptable");
}

static void test_too_many_values(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str raw = {0}, metadata = {0}, body = {0};
    for (int i = 0; i < 200000; i++)
        text(&metadata, 14, "f");
    inside(&raw, 1, &metadata);
    envelope(&body, "v1", "ConfigMap", &raw);
    struct err e = {0};
    assert_null(apiserver_protobuf_parse(body.p, body.len, &e));
    assert_non_null(strstr(e.msg, "too many"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_can_i),     cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_merging),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_envelopes), cmocka_unit_test(test_too_many_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
