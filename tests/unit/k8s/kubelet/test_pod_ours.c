/*
 * Containers of our own images take only what our controllers give them.
 */
#include "jsontest.h"
#include "k8s/kubelet/pod_content.h"
#include "unit.h"

static int check(const char *program, const char *container, const char *words, struct err *e)
{
    _cleanup_free_ char *text =
        mem_printf("{'metadata':{'name':'p','namespace':'n','uid':'u'},'spec':{'containers':"
                   "[{'name':'c','volumeMounts':[{'name':'data','mountPath':'/run/orlop/data'},"
                   "{'name':'key','mountPath':'/run/orlop/key'}]%s}]}}",
                   container);
    json_auto_t *pod = parse_quoted(text);
    struct pod_spec spec;
    assert_int_equal(pod_spec_parse(pod, &spec, e), 0);
    _cleanup_free_ char *copy = mem_strdup(words);
    const char *argv[32];
    size_t n = 0;
    char *save = NULL;
    for (char *it = strtok_r(copy, " ", &save); it; it = strtok_r(NULL, " ", &save))
        argv[n++] = it;
    int status = pod_ours_check(&spec.containers.p[0], program, argv, n, e);
    pod_spec_done(&spec);
    return status;
}

static void test_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *program, *words, *why; /* NULL: it may run */
    } cases[] = {
        {"orlop-target", "target serve --volume v --iqn i --key-file /run/orlop/key/key --lun 0",
         NULL},
        {"orlop-target", "target serve --key-file=/run/orlop/key/key", NULL},
        {"orlop-target", "target serve --store file:/etc/shadow", "--store"},
        {"orlop-target", "target serve --store=file:/etc/shadow", "--store"},
        {"orlop-target", "target serve -s file:/etc/shadow", "-s"},
        {"orlop-target", "target serve --key-file /etc/shadow", "leads out of its volumes"},
        {"orlop-target", "target serve --key-file=/etc/shadow", "leads out of its volumes"},
        {"orlop-target", "target serve --key-file /run/orlop/key/../../../etc/shadow",
         "leads out of its volumes"},
        {"orlop-target", "target serve --key-file /run/orlop/key/..", "leads out of its volumes"},
        {"orlop-target", "target serve --key-file /run/orlop/keys", "leads out of its volumes"},
        {"orlop-target", "target serve --key-file run/orlop/key/key", "leads out of its volumes"},
        {"orlop-target", "target serve --state-dir", "leads out of its volumes"},
        {"orlop-target", "target grow --size 1Gi", "only what Orlop's controllers run"},
        {"orlop-target", "", "only what Orlop's controllers run"},
        {"orlop-replica", "replica serve --dir /run/orlop/data --volume v --direct", NULL},
        {"orlop-replica", "replica serve --dir /", "leads out of its volumes"},
        {"orlop-replica",
         "replica erase --beneath /run/orlop/data --dir /run/orlop/data/n/f --volume v", NULL},
        {"orlop-replica", "replica erase --dir /run/orlop/data/../.. --volume v",
         "leads out of its volumes"},
        {"orlop-pool", "pool serve --namespace n --name p --node n --metrics 127.0.0.1", NULL},
        {"orlop-pool", "pool serve --sparse-dir /etc", "--sparse-dir"},
        {"orlop-sidecar", "--kind JivaVolume --name v --control /run/orlop/data/c", NULL},
        {"orlop-sidecar", "--kubeconfig /etc/passwd", "--kubeconfig"},
        {"orlop-apiserver", "--data-dir /", "only what Orlop's controllers run"},
        {"orlop-node", "wipe /etc/passwd", "only what Orlop's controllers run"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        int status = check(cases[i].program, "", cases[i].words, &e);
        if (status != (cases[i].why ? -1 : 0) || (cases[i].why && !strstr(e.msg, cases[i].why)))
            fail_msg("%s %s: %d %s", cases[i].program, cases[i].words, status, e.msg);
    }
}

static void test_surroundings(void **state)
{
    (void)state;
    static const struct {
        const char *container;
        bool fine;
    } cases[] = {
        {",'env':[{'name':'POD_IP','value':'1'},{'name':'NODE_NAME','value':'n'}]", true},
        {",'livenessProbe':{'httpGet':{'port':1}}", true},
        {",'env':[{'name':'LD_PRELOAD','value':'/run/orlop/data/x.so'}]", false},
        {",'envFrom':[{'configMapRef':{'name':'c'}}]", false},
        {",'livenessProbe':{'exec':{'command':['cat','/etc/shadow']}}", false},
        {",'startupProbe':{'exec':{'command':['x']}}", false},
        {",'readinessProbe':{'exec':{'command':['x']}}", false},
        {",'lifecycle':{'preStop':{'exec':{'command':['x']}}}", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        int status = check("orlop-target", cases[i].container, "target serve --lun 0", &e);
        if ((status == 0) != cases[i].fine)
            fail_msg("%s: %d %s", cases[i].container, status, e.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_surroundings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
