/* Which requests a rule selects; what webhooks are sent and answer is an integration test's. */
#include <stdio.h>

#include "k8s/apiserver/webhook_impl.h"
#include "k8s/kinds/kinds.h"
#include "kinds/kinds.h"
#include "unit.h"

#define RULE(operations, groups, versions, resources, more)                                        \
    "[{\"operations\":" operations ",\"apiGroups\":" groups ",\"apiVersions\":" versions           \
    ",\"resources\":" resources more "}]"
#define ALL "[\"*\"]"

static void test_rules(void **state)
{
    (void)state;
    const struct api_kind *cm = &api_config_map, *ns = &api_namespace,
                          *cspc = &api_cstor_pool_cluster;
    const struct {
        const char *rules;
        const struct api_kind *kind;
        enum apiserver_subresource subresource;
        bool exact;
        const char *version; /* in which it matches; NULL: not at all */
    } table[] = {
        {"[]", cm, 0, false, NULL},
        {"null", cm, 0, false, NULL},
        {"[{}]", cm, 0, false, NULL},
        {"[7,{\"operations\":7}]", cm, 0, false, NULL},
        {RULE(ALL, ALL, ALL, ALL, ""), cm, 0, false, "v1"},
        {RULE("[\"CREATE\",\"UPDATE\"]", "[\"\"]", "[\"v1\"]", "[\"configmaps\"]", ""), cm, 0,
         false, "v1"},
        {RULE("[\"UPDATE\"]", ALL, ALL, ALL, ""), cm, 0, false, NULL},
        {RULE(ALL, "[\"apps\"]", ALL, ALL, ""), cm, 0, false, NULL},
        {RULE(ALL, ALL, "[\"v2\"]", ALL, ""), cm, 0, false, NULL},
        {RULE(ALL, ALL, ALL, "[\"secrets\",\"configmaps\"]", ""), cm, 0, false, "v1"},
        {RULE(ALL, ALL, ALL, "[\"configmap\"]", ""), cm, 0, false, NULL},
        {RULE(ALL, ALL, ALL, "[\"configmapsx\"]", ""), cm, 0, false, NULL},
        {RULE(ALL, ALL, ALL, "[\"\"]", ""), cm, 0, false, NULL},
        /* subresources */
        {RULE(ALL, ALL, ALL, ALL, ""), cspc, APISERVER_STATUS, true, NULL},
        {RULE(ALL, ALL, ALL, "[\"*/*\"]", ""), cspc, APISERVER_STATUS, true, "openebs.io/v1alpha1"},
        {RULE(ALL, ALL, ALL, "[\"*/*\"]", ""), cspc, APISERVER_MAIN, true, "openebs.io/v1alpha1"},
        {RULE(ALL, ALL, ALL, "[\"*/status\"]", ""), cspc, APISERVER_STATUS, true,
         "openebs.io/v1alpha1"},
        {RULE(ALL, ALL, ALL, "[\"*/status\"]", ""), cspc, APISERVER_MAIN, true, NULL},
        {RULE(ALL, ALL, ALL, "[\"cstorpoolclusters/*\"]", ""), cspc, APISERVER_STATUS, true,
         "openebs.io/v1alpha1"},
        {RULE(ALL, ALL, ALL, "[\"cstorpoolclusters\"]", ""), cspc, APISERVER_STATUS, true, NULL},
        {RULE(ALL, ALL, ALL, "[\"cstorpoolclusters/scale\"]", ""), cspc, APISERVER_STATUS, true,
         NULL},
        /* scope */
        {RULE(ALL, ALL, ALL, ALL, ",\"scope\":\"Namespaced\""), cm, 0, false, "v1"},
        {RULE(ALL, ALL, ALL, ALL, ",\"scope\":\"Cluster\""), cm, 0, false, NULL},
        {RULE(ALL, ALL, ALL, ALL, ",\"scope\":\"Cluster\""), ns, 0, false, "v1"},
        {RULE(ALL, ALL, ALL, ALL, ",\"scope\":\"Namespaced\""), ns, 0, false, NULL},
        {RULE(ALL, ALL, ALL, ALL, ",\"scope\":\"*\""), ns, 0, false, "v1"},
        /* other names of the same objects */
        {RULE(ALL, "[\"cstor.openebs.io\"]", ALL, ALL, ""), cspc, 0, false, "cstor.openebs.io/v1"},
        {RULE(ALL, "[\"cstor.openebs.io\"]", ALL, ALL, ""), cspc, 0, true, NULL},
        {RULE(ALL, "[\"cstor.openebs.io\",\"openebs.io\"]", ALL, ALL, ""), cspc, 0, false,
         "openebs.io/v1alpha1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        json_auto_t *rules = json_loads(table[i].rules, JSON_DECODE_ANY, NULL);
        assert_non_null(rules);
        struct apiserver_request r = {.kind = table[i].kind, .subresource = table[i].subresource};
        const struct api_group_version *gv = NULL;
        bool matches = webhook_rules_match(rules, !table[i].exact, &r, "CREATE", &gv);
        char text[128];
        if (matches != (table[i].version != NULL))
            fail_msg("%zu: %s", i, table[i].rules);
        if (matches)
            assert_string_equal(api_version_text(gv, text), table[i].version);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
