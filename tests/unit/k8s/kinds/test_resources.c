/*
 * The client's table of Kubernetes' collections says what the tables of the kinds say.
 */
#include "api/kind.h"
#include "kube/resource.h"
#include "unit.h"

static void test_builtin_resources_are_those_of_the_tables(void **state)
{
    (void)state;
    for (const struct kube_resource *r = kube_builtin_resources; r->kind; r++) {
        const struct api_kind *kind = api_kind_find(r->api_version, r->kind, NULL);
        if (!kind || !(kind->flags & API_BUILTIN))
            fail_msg("%s %s is no kind of Kubernetes", r->api_version, r->kind);
        assert_string_equal(r->plural, kind->plural);
        assert_int_equal(r->namespaced, !(kind->flags & API_CLUSTER_SCOPED));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_resources_are_those_of_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
