/*
 * Environment, files, images, addresses and limits of pods.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "jsontest.h"
#include "k8s/kinds/kinds.h"
#include "k8s/kubelet/pod_impl.h"
#include "unit.h"

static const struct pod_place place = {"node-1", "127.0.0.1", "127.10.3.2", "10.0.0.1", "6443"};

/* "kind/name" -> text of the object */
static json_t *get(void *context, const char *kind, const char *ns, const char *name, struct err *e)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", kind, name);
    json_t *object = json_object_get(context, key);
    if (object)
        return json_incref(object);
    err_set(e, ERR_NOT_FOUND, "NotFound", "%s \"%s\" not found in %s", kind, name, ns);
    return NULL;
}

static int token(void *context, const json_t *pod, const char *audience, int64_t seconds,
                 struct str *ret_token, int64_t *ret_expires, struct err *e)
{
    (void)context, (void)pod, (void)e;
    str_appendf(ret_token, "token for %s", audience ? audience : "the API");
    *ret_expires = seconds * CLOCK_SECOND;
    return 0;
}

static json_t *objects(void)
{
    return parse_quoted(
        "{'ConfigMap/c':{'data':{'A':'1','B.b':'$(A)','0':'no name'},'binaryData':{'bin':'AAE='}},"
        "'Secret/s':{'data':{'key':'c2VjcmV0','bad':'!'}}}");
}

static struct pod_spec parse_pod(const char *spec)
{
    _cleanup_free_ char *text =
        mem_printf("{'metadata':{'name':'p','namespace':'n','uid':'u','labels':{'app':'x','b':"
                   "'q\\\\'},'annotations':{'k':'v'}},'spec':{%s}}",
                   spec);
    json_auto_t *pod = parse_quoted(text);
    struct pod_spec parsed;
    struct err e = {0};
    if (pod_spec_parse(pod, &parsed, &e) < 0)
        fail_msg("%s", e.msg);
    return parsed;
}

static void test_expand(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"$(A)", "1"},    {"a$(A)b$(A)", "a1b1"}, {"$$(A)", "$(A)"}, {"$(NONE)", "$(NONE)"},
        {"$(A", "$(A"},   {"$A", "$A"},           {"$", "$"},        {"$$", "$"},
        {"$(E)", ""},     {"$()", "$()"},         {"", ""},          {"$$$(A)", "$1"},
        {"$(V)", "$(A)"},
    };
    struct pod_vars v = {0};
    vec_push(&v.p, mem_strdup("A=1"));
    vec_push(&v.p, mem_strdup("E="));
    vec_push(&v.p, mem_strdup("V=$(A)"));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *got = pod_expand(cases[i].text, &v);
        assert_string_equal(got, cases[i].expected);
    }
    pod_vars_done(&v);
}

static void test_environment(void **state)
{
    (void)state;
    static const struct {
        const char *env, *name, *value, *error; /* value NULL: it is not there */
    } cases[] = {
        {"'env':[{'name':'X','value':'a'},{'name':'Y','value':'$(X)$(Z)'}]", "Y", "a$(Z)", NULL},
        {"'env':[{'name':'X','value':'a'},{'name':'X','value':'b'}]", "X", "b", NULL},
        {"'env':[]", "POD_IP", "127.10.3.2", NULL},
        {"'env':[{'name':'POD_IP','value':'mine'}]", "POD_IP", "mine", NULL},
        {"'env':[]", "KUBERNETES_SERVICE_PORT", "6443", NULL},
        {"'envFrom':[{'configMapRef':{'name':'c'},'prefix':'P_'}]", "P_B.b", "$(A)", NULL},
        {"'envFrom':[{'configMapRef':{'name':'c'}}]", "0", NULL, NULL},
        {"'envFrom':[{'secretRef':{'name':'s'}}]", "key", "secret", NULL},
        {"'envFrom':[{'secretRef':{'name':'s'}}]", "bad", NULL, NULL},
        {"'envFrom':[{'secretRef':{'name':'none'}}]", NULL, NULL, "not found"},
        {"'envFrom':[{'secretRef':{'name':'none','optional':true}}]", "none", NULL, NULL},
        {"'env':[{'name':'X','valueFrom':{'configMapKeyRef':{'name':'c','key':'A'}}}]", "X", "1",
         NULL},
        {"'env':[{'name':'X','valueFrom':{'configMapKeyRef':{'name':'c','key':'none'}}}]", NULL,
         NULL, "couldn't find key none in ConfigMap n/c"},
        {"'env':[{'name':'X','valueFrom':{'secretKeyRef':{'name':'s','key':'no','optional':true}}}"
         "]",
         "X", NULL, NULL},
        {"'env':[{'name':'X','valueFrom':{'secretKeyRef':{'name':'s','key':'key'}}}]", "X",
         "secret", NULL},
        {"'env':[{'name':'X','valueFrom':{'fieldRef':{'fieldPath':'metadata.name'}}}]", "X", "p",
         NULL},
        {"'env':[{'name':'X','valueFrom':{'fieldRef':{'fieldPath':'spec.nodeName'}}}]", "X",
         "node-1", NULL},
        {"'env':[{'name':'X','valueFrom':{'fieldRef':{'fieldPath':'status.hostIP'}}}]", "X",
         "127.0.0.1", NULL},
        {"'env':[{'name':'X','valueFrom':{'fieldRef':{'fieldPath':'spec.nothing'}}}]", NULL, NULL,
         "spec.nothing"},
        {"'resources':{'limits':{'cpu':'1500m','memory':'64Mi'}},'env':[{'name':'X','valueFrom':"
         "{'resourceFieldRef':{'resource':'limits.cpu'}}}]",
         "X", "2", NULL},
        {"'resources':{'limits':{'memory':'64Mi'}},'env':[{'name':'X','valueFrom':"
         "{'resourceFieldRef':{'resource':'limits.memory','divisor':'1Mi'}}}]",
         "X", "64", NULL},
        {"'env':[{'name':'X','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu','divisor':"
         "'-1'}}}]",
         NULL, NULL, "divisor"},
        {"'env':[{'name':'X=Y','value':''}]", NULL, NULL, "no name"},
        {"'env':[{'name':'X','valueFrom':{}}]", NULL, NULL, "no source"},
    };
    json_auto_t *all = objects();
    struct pod_source source = {get, token, all};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text = mem_printf("'containers':[{'name':'a',%s}]", cases[i].env);
        _cleanup_(pod_spec_done) struct pod_spec spec = parse_pod(text);
        _cleanup_(pod_vars_done) struct pod_vars vars = {0};
        struct err e = {0};
        int r = pod_vars_make(&spec, spec.containers.p, &place, &source, &vars, &e);
        assert_int_equal(r, cases[i].error ? -1 : 0);
        if (cases[i].error && !strstr(e.msg, cases[i].error))
            fail_msg("%s: %s", cases[i].env, e.msg);
        const char *value = r == 0 ? pod_vars_get(&vars, cases[i].name) : NULL;
        if (cases[i].value && !value)
            fail_msg("%s: %s is missing", cases[i].env, cases[i].name);
        if (cases[i].value)
            assert_string_equal(value, cases[i].value);
        else
            assert_null(value);
    }
}

/* "path=data(mode) ..." */
static void describe(const struct pod_files *f, struct str *out)
{
    vec_for_each(&f->p, it)
        str_appendf(out, "%s%s=%zu:%s(%o)", out->len ? " " : "", it->path, it->data.len,
                    str_get(&it->data), it->mode);
}

static void test_payload(void **state)
{
    (void)state;
    static const struct {
        const char *volume, *expected, *error;
    } cases[] = {
        {"'configMap':{'name':'c','items':[{'key':'A','path':'x/y','mode':256}]}", "x/y=1:1(400)",
         NULL},
        {"'configMap':{'name':'c','items':[{'key':'bin','path':'b'}],'defaultMode':288}",
         "b=2:(440)", NULL},
        {"'configMap':{'name':'c','items':[{'key':'none','path':'b'}]}", NULL, "none"},
        {"'configMap':{'name':'c','optional':true,'items':[{'key':'none','path':'b'}]}", "", NULL},
        {"'configMap':{'name':'none'}", NULL, "not found"},
        {"'configMap':{'name':'none','optional':true}", "", NULL},
        {"'configMap':{'name':'c','items':[{'key':'A','path':'../x'}]}", NULL, "no path"},
        {"'configMap':{'name':'c','items':[{'key':'A','path':'a/../x'}]}", NULL, "no path"},
        {"'configMap':{'name':'c','items':[{'key':'A','path':'/x'}]}", NULL, "no path"},
        {"'configMap':{'name':'c','items':[{'key':'A','path':'..data'}]}", NULL, "no path"},
        {"'secret':{'secretName':'s','items':[{'key':'key','path':'k'}]}", "k=6:secret(644)", NULL},
        {"'downwardAPI':{'items':[{'path':'l','fieldRef':{'fieldPath':'metadata.labels'}}]}",
         "l=15:app=\"x\"\nb=\"q\\\\\"(644)", NULL},
        {"'projected':{'defaultMode':256,'sources':[{'serviceAccountToken':{'path':'t','audience':"
         "'you','expirationSeconds':600}},{'secret':{'name':'s','items':[{'key':'key','path':'k'}]}"
         "}"
         "]}",
         "t=13:token for you(400) k=6:secret(400)", NULL},
        {"'projected':{'sources':[{'clusterTrustBundle':{}}]}", NULL, "projected"},
    };
    json_auto_t *all = objects();
    struct pod_source source = {get, token, all};
    _cleanup_(pod_spec_done) struct pod_spec spec = parse_pod("'containers':[]");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text = mem_printf("{%s}", cases[i].volume);
        json_auto_t *volume = parse_quoted(text);
        _cleanup_(pod_files_done) struct pod_files files = {0};
        _cleanup_(str_done) struct str got = {0};
        struct err e = {0};
        assert_true(pod_volume_is_payload(volume));
        int r = pod_payload(&spec, volume, &place, &source, &files, &e);
        assert_int_equal(r, cases[i].error ? -1 : 0);
        if (cases[i].error && !strstr(e.msg, cases[i].error))
            fail_msg("%s: %s", cases[i].volume, e.msg);
        describe(&files, &got);
        if (cases[i].expected)
            assert_string_equal(str_get(&got), cases[i].expected);
    }
}

static void test_label_subscript(void **state)
{
    (void)state;
    _cleanup_(pod_spec_done) struct pod_spec spec = parse_pod("'containers':[]");
    _cleanup_(str_done) struct str out = {0};
    struct err e = {0};
    assert_int_equal(pod_field(spec.pod, &place, "metadata.labels['app']", &out, &e), 0);
    assert_string_equal(str_get(&out), "x");
    assert_int_equal(pod_field(spec.pod, &place, "metadata.annotations['none']", &out, &e), 0);
    assert_string_equal(str_get(&out), "x");
    assert_int_equal(pod_field(spec.pod, &place, "metadata.labels['", &out, &e), -1);
}

static void add_file(struct pod_files *f, const char *path, const char *text, unsigned mode)
{
    struct pod_file file = {.path = mem_strdup(path), .mode = mode};
    str_append(&file.data, text);
    vec_push(&f->p, file);
}

static void expect_file(const char *folder, const char *name, const char *text)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
    _cleanup_(str_done) struct str got = {0};
    struct err e = {0};
    if (!text) {
        struct stat st;
        assert_int_equal(lstat(path, &st), -1);
        return;
    }
    if (file_read(path, 1000, &got, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(str_get(&got), text);
}

static void test_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/orlop-test-XXXXXX", before[PATH_MAX] = "", after[PATH_MAX] = "";
    struct err e = {0};
    assert_non_null(mkdtemp(folder));
    _cleanup_free_ char *data = mem_printf("%s/..data", folder);
    struct pod_files one = {0}, two = {0};
    add_file(&one, "a", "1", 0600);
    add_file(&one, "d/b", "2", 0644);
    assert_int_equal(pod_files_write(folder, &one, &e), 0);
    expect_file(folder, "a", "1");
    expect_file(folder, "d/b", "2");
    /* The same again changes nothing. */
    assert_true(readlink(data, before, sizeof(before) - 1) > 0);
    assert_int_equal(pod_files_write(folder, &one, &e), 0);
    assert_true(readlink(data, after, sizeof(after) - 1) > 0);
    assert_string_equal(before, after);
    /* What is gone goes, what is new comes, and the version before is cleared away. */
    add_file(&two, "a", "other", 0600);
    add_file(&two, "c", "3", 0600);
    assert_int_equal(pod_files_write(folder, &two, &e), 0);
    expect_file(folder, "a", "other");
    expect_file(folder, "c", "3");
    expect_file(folder, "d", NULL);
    expect_file(folder, before, NULL);
    assert_int_equal(file_remove_tree(folder, &e), 0);
    pod_files_done(&one);
    pod_files_done(&two);
}

static void test_images(void **state)
{
    (void)state;
    static const struct {
        const char *image, *program;
    } cases[] = {
        {"orlop/orlop-target:1.0", "orlop-target"},
        {"orlop-replica", "orlop-replica"},
        {"registry.example.com:5000/x/orlop-pool@sha256:00", "orlop-pool"},
        {"localhost:5000/orlop-csi", "orlop-csi"},
        {"openebs/cstor-pool-manager:2", NULL},
        {"orlop-target-evil", NULL},
        {"orlop-target/busybox", NULL},
        {"orlop-shim", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *got = api_image_program(cases[i].image);
        assert_string_equal(got ? got : "", cases[i].program ? cases[i].program : "");
    }
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const wrong[] = {"127.0.0.0", "127.0.0.0/30", "::1/64", "x/24",
                                        "1.2.3.4/24x"};
    struct pod_addresses a;
    struct err e = {0};
    char ip[16], other[16];
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(pod_addresses_init(&a, wrong[i], &e), -1);
    assert_int_equal(pod_addresses_init(&a, "127.10.3.8/29", &e), 0);
    pod_addresses_take(&a, "127.10.3.10");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pod_addresses_get(&a, ip, &e), 0);
    assert_string_equal(ip, "127.10.3.14");
    assert_int_equal(pod_addresses_get(&a, other, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    pod_addresses_put(&a, ip);
    assert_int_equal(pod_addresses_get(&a, other, &e), 0);
    assert_string_equal(other, ip);
    pod_addresses_done(&a);
}

static void put_file(const char *folder, const char *name, const char *text)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
    struct err e = {0};
    assert_int_equal(file_replace(path, text, strlen(text), 0644, &e), 0);
}

/* A folder that looks like the kernel's. */
static void test_limits(void **state)
{
    (void)state;
    char base[] = "/tmp/orlop-test-XXXXXX";
    struct err e = {0};
    assert_non_null(mkdtemp(base));
    json_auto_t *container =
        parse_quoted("{'resources':{'limits':{'cpu':'1500m','memory':'64Mi'}}}");
    _cleanup_free_ char *path = pod_cgroup_path(base, "u/a/0");
    assert_true(str_ends_with(path, "/u_a_0"));
    /* Without the files the limits cannot be set, and that is said. */
    assert_null(pod_cgroup_make(base, "u/a/0", container, &e));
    assert_non_null(strstr(e.msg, "memory.max"));
    assert_int_equal(mkdir(path, 0755), 0);
    put_file(path, "memory.max", "");
    put_file(path, "cpu.max", "");
    put_file(path, "memory.events", "low 0\noom 0\noom_kill 0\n");
    _cleanup_free_ char *made = pod_cgroup_make(base, "u/a/0", container, &e);
    assert_non_null(made);
    expect_file(made, "memory.max", "67108864");
    expect_file(made, "cpu.max", "150000 100000");
    assert_false(pod_cgroup_oom(made));
    put_file(path, "memory.events", "oom 1\noom_kill 1\n");
    assert_true(pod_cgroup_oom(made));
    assert_null(pod_cgroup_base(base, &e));
    assert_int_equal(file_remove_tree(base, &e), 0);
}

static void test_ports(void **state)
{
    (void)state;
    json_auto_t *container =
        parse_quoted("{'ports':[{'containerPort':80,'name':'web'},{'containerPort':81}]}");
    static const struct {
        const char *port;
        unsigned expected;
    } cases[] = {{"81", 81},       {"'web'", 80}, {"'none'", 0},
                 {"'8080'", 8080}, {"99999", 0},  {"-1", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text = mem_printf("[%s]", cases[i].port);
        json_auto_t *list = parse_quoted(text);
        assert_int_equal(pod_port(container, json_array_get(list, 0)), cases[i].expected);
    }
}

static void test_specs(void **state)
{
    (void)state;
    _cleanup_(pod_spec_done) struct pod_spec s =
        parse_pod("'restartPolicy':'OnFailure','terminationGracePeriodSeconds':5,'initContainers':["
                  "{'name':'i'}"
                  ",{'name':'s','restartPolicy':'Always'}],'containers':[{'name':'a','"
                  "livenessProbe':{'exec':{"
                  "},'periodSeconds':2}}]");
    assert_int_equal(s.policy, POD_ON_FAILURE);
    assert_int_equal(s.grace_ns, 5 * CLOCK_SECOND);
    assert_int_equal(s.containers.len, 3);
    assert_int_equal(s.containers.p[0].role, POD_INIT);
    assert_int_equal(s.containers.p[1].role, POD_SIDECAR);
    assert_int_equal(s.containers.p[2].role, POD_MAIN);
    const struct pod_probe *p = &s.containers.p[2].probes[POD_LIVENESS];
    assert_int_equal(p->means, POD_EXEC);
    assert_int_equal(p->period_ns, 2 * CLOCK_SECOND);
    assert_int_equal(p->timeout_ns, CLOCK_SECOND);
    assert_int_equal(p->failures, 3);
    static const char *const wrong[] = {"{'metadata':{'name':'../x','namespace':'n','uid':'u'}}",
                                        "{'metadata':{'name':'x','namespace':'n','uid':'a/b'}}",
                                        "{'metadata':{'name':'x','namespace':'n','uid':'u'},"
                                        "'spec':{'containers':[{'name':'../../etc'}]}}",
                                        "{}"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        json_auto_t *pod = parse_quoted(wrong[i]);
        struct pod_spec none;
        struct err e = {0};
        assert_int_equal(pod_spec_parse(pod, &none, &e), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expand),    cmocka_unit_test(test_environment),
        cmocka_unit_test(test_payload),   cmocka_unit_test(test_label_subscript),
        cmocka_unit_test(test_files),     cmocka_unit_test(test_images),
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ports),     cmocka_unit_test(test_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
