#include "api/report.h"
#include "unit.h"

static void test_paths(void **state)
{
    (void)state;
    struct api_report r = {0};
    const struct api_path *pool = API_AT(API_KEY(API_KEY(NULL, "spec"), "pools"), 3);
    json_auto_t *value = json_string("x");
    api_problem(&r, API_KEY(API_KEY(pool, "nodeSelector"), "a.b/c~d"), API_INVALID, value, "no");
    api_problem(&r, NULL, API_FORBIDDEN, NULL, "all of it");
    api_warn(&r, API_KEY(pool, "name"), "careful");

    assert_int_equal(r.errors, 2);
    assert_int_equal(r.warnings, 1);
    assert_string_equal(r.problems.p[0].path, "spec.pools[3].nodeSelector[a.b/c~d]");
    assert_string_equal(r.problems.p[0].pointer, "/spec/pools/3/nodeSelector/a.b~1c~0d");
    assert_string_equal(r.problems.p[0].message, "Invalid value: \"x\": no");
    assert_false(r.problems.p[0].at_key || r.problems.p[0].warning);
    assert_string_equal(r.problems.p[1].path, "");
    assert_string_equal(r.problems.p[1].message, "Forbidden: all of it");
    assert_string_equal(r.problems.p[2].message, "careful");
    assert_true(r.problems.p[2].warning);
    api_report_done(&r);
}

/* Renames are undone from the newest to the oldest, so that nested ones add up. */
static void test_source_names(void **state)
{
    (void)state;
    struct api_report r = {0};
    const struct api_path *spec = API_KEY(NULL, "spec");
    const struct api_path *group = API_AT(API_KEY(spec, "raidGroups"), 1);
    api_report_renamed(&r, API_KEY(spec, "raidGroups"), API_KEY(spec, "dataRaidGroups"));
    api_report_renamed(&r, API_KEY(group, "blockDevices"), API_KEY(group, "cspiBlockDevices"));
    api_report_renamed(&r, API_AT(API_KEY(spec, "raidGroups"), 2),
                       API_AT(API_KEY(spec, "writeCacheRaidGroups"), 0));

    api_problem(&r, API_AT(API_KEY(group, "blockDevices"), 0), API_INVALID, NULL, "x");
    api_problem(&r, API_KEY(API_AT(API_KEY(spec, "raidGroups"), 2), "type"), API_INVALID, NULL,
                "x");
    api_problem(&r, API_AT(API_KEY(spec, "raidGroups"), 20), API_INVALID, NULL, "x");
    api_problem(&r, API_KEY(spec, "raidGroupsMore"), API_INVALID, NULL, "x");
    static const char *const expected[] = {
        "spec.dataRaidGroups[1].cspiBlockDevices[0]",
        "spec.writeCacheRaidGroups[0].type",
        "spec.dataRaidGroups[20]",
        "spec.raidGroupsMore",
    };
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_string_equal(r.problems.p[i].path, expected[i]);
    api_report_done(&r);
}

static void test_long_values_are_cut(void **state)
{
    (void)state;
    struct api_report r = {0};
    json_auto_t *array = json_array();
    for (int i = 0; i < 100; i++)
        json_array_append_new(array, json_string("\xc3\xa4\xc3\xa4\xc3\xa4"));
    api_problem(&r, NULL, API_INVALID, array, "x");
    const char *message = r.problems.p[0].message;
    assert_true(strlen(message) < 120);
    assert_non_null(strstr(message, "...: x"));
    json_auto_t *valid = json_string(message); /* NULL when a character was cut in two */
    assert_non_null(valid);
    api_report_done(&r);
}

static void test_many_problems_are_counted(void **state)
{
    (void)state;
    struct api_report r = {0};
    for (int i = 0; i < 3 * API_MAX_PROBLEMS; i++)
        api_problem(&r, API_AT(NULL, (size_t)i), API_INVALID, NULL, "x");
    assert_int_equal(r.errors, 3 * API_MAX_PROBLEMS);
    assert_int_equal(r.problems.len, API_MAX_PROBLEMS);
    api_report_clear(&r);
    assert_int_equal(r.errors, 0);
    api_problem(&r, NULL, API_MISSING, NULL, "x");
    assert_int_equal(r.problems.len, 1);
    assert_string_equal(api_cause_reason(r.problems.p[0].cause), "FieldValueRequired");
    assert_true(r.problems.p[0].at_key);
    api_report_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_source_names),
        cmocka_unit_test(test_long_values_are_cut),
        cmocka_unit_test(test_many_problems_are_counted),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
