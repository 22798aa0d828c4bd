#include "jsontest.h"
#include "k8s/controllers/rollout.h"

static void test_settings(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int64_t wanted, surge, unavailable;
        bool recreate;
    } cases[] = {
        {"{}", 1, 1, 0, false},
        {"{'replicas': 10}", 10, 3, 2, false},
        {"{'replicas': 10, 'strategy': {'rollingUpdate': {'maxSurge': '20%', 'maxUnavailable': "
         "0}}}",
         10, 2, 0, false},
        {"{'replicas': 10, 'strategy': {'rollingUpdate': {'maxSurge': 0, 'maxUnavailable': '5%'}}}",
         10, 0, 1, false},
        {"{'replicas': 3, 'strategy': {'rollingUpdate': {'maxSurge': 1, 'maxUnavailable': "
         "'200%'}}}",
         3, 1, 3, false},
        {"{'replicas': 3, 'strategy': {'rollingUpdate': {'maxSurge': '2', 'maxUnavailable': 'x'}}}",
         3, 2, 0, false},
        {"{'replicas': 0}", 0, 0, 0, false},
        {"{'replicas': 4, 'strategy': {'type': 'Recreate'}}", 4, 0, 0, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_auto_t *spec = parse_quoted(cases[i].spec);
        json_auto_t *deployment = json_pack("{s:O}", "spec", spec);
        struct rollout r = rollout_of(deployment);
        if (r.wanted != cases[i].wanted || r.surge != cases[i].surge ||
            r.unavailable != cases[i].unavailable || r.recreate != cases[i].recreate)
            fail_msg("%s: wanted %ld, surge %ld, unavailable %ld", cases[i].spec, (long)r.wanted,
                     (long)r.surge, (long)r.unavailable);
    }
}

/* One step: how many the new set gets, and then what the old ones are left with. */
static void test_steps(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct rollout r;
        struct rollout_set before[3];
        int64_t new, after[3];
    } cases[] = {
        {"first", {4, 1, 1}, {{4, 4}, {0, 0, 0, 0, true}}, 1, {3, 1}},
        {"nothing to spare", {4, 1, 0}, {{4, 4}, {1, 0, 0, 0, true}}, 1, {4, 1}},
        {"one is available", {4, 1, 0}, {{4, 4}, {1, 1, 1, 0, true}}, 1, {3, 1}},
        {"room for the next", {4, 1, 0}, {{3, 3}, {1, 1, 1, 0, true}}, 2, {3, 2}},
        {"broken old ones go first", {4, 1, 1}, {{2, 0}, {2, 2}, {1, 0, 0, 0, true}}, 1, {1, 2, 1}},
        {"old ones that are still there take up room",
         {4, 1, 1},
         {{2, 2, 4}, {1, 1, 1, 0, true}},
         1,
         {2, 1}},
        {"no surge", {3, 0, 1}, {{3, 3}, {0, 0, 0, 0, true}}, 0, {2, 0}},
        {"no surge, room", {3, 0, 1}, {{2, 2}, {0, 0, 0, 0, true}}, 1, {2, 1}},
        {"the last", {3, 1, 0}, {{1, 1}, {3, 3, 3, 0, true}}, 3, {0, 3}},
        {"done", {3, 1, 0}, {{0, 0}, {3, 3, 3, 0, true}}, 3, {0, 3}},
        {"too many", {2, 1, 0}, {{0, 0}, {3, 3, 3, 0, true}}, 2, {0, 2}},
        {"to none", {0, 0, 0}, {{2, 2}, {0, 0, 0, 0, true}}, 0, {0, 0}},
        {"what is new and broken takes nothing away",
         {4, 1, 1},
         {{4, 4}, {2, 0, 0, 0, true}},
         2,
         {3, 2}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rollout_set sets[3];
        size_t n = cases[i].before[2].replicas || cases[i].before[2].is_new ? 3 : 2;
        memcpy(sets, cases[i].before, sizeof(sets));
        sets[n - 1].replicas = rollout_new_replicas(&cases[i].r, sets, n);
        if (sets[n - 1].replicas != cases[i].new)
            fail_msg("%s: the new set gets %ld", cases[i].name, (long)sets[n - 1].replicas);
        rollout_scale_down(&cases[i].r, sets, n);
        for (size_t j = 0; j < n; j++) {
            if (sets[j].replicas != cases[i].after[j])
                fail_msg("%s: set %zu gets %ld", cases[i].name, j, (long)sets[j].replicas);
        }
    }
}

/* Any roll-out comes to its end, and keeps its bounds at every step. */
static void test_whole(void **state)
{
    (void)state;
    for (int64_t wanted = 1; wanted <= 7; wanted++) {
        for (int64_t surge = 0; surge <= 3; surge++) {
            for (int64_t unavailable = surge ? 0 : 1; unavailable <= wanted; unavailable++) {
                struct rollout r = {wanted, surge, unavailable, false};
                struct rollout_set sets[] = {{wanted, wanted, 0, false}, {0, 0, 0, 0, true}};
                int steps = 0;
                while (sets[0].replicas || sets[1].available < wanted) {
                    assert_true(++steps < 100);
                    sets[1].replicas = rollout_new_replicas(&r, sets, 2);
                    assert_true(rollout_total(sets, 2) <= wanted + surge);
                    rollout_scale_down(&r, sets, 2);
                    sets[0].available = sets[0].replicas;
                    assert_true(sets[0].available + sets[1].available >= wanted - unavailable);
                    if (sets[1].available < sets[1].replicas)
                        sets[1].available++; /* one more is ready */
                }
                assert_int_equal(sets[1].replicas, wanted);
            }
        }
    }
}

static void test_scale(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct rollout r;
        struct rollout_set before[2];
        int64_t after[2];
    } cases[] = {
        {"both grow", {20, 0, 1}, {{6, 6, 6, 10}, {4, 4, 4, 10, true}}, {12, 8}},
        {"both shrink", {5, 0, 1}, {{6, 6, 6, 10}, {4, 4, 4, 10, true}}, {3, 2}},
        {"what is left over goes to the largest",
         {11, 0, 1},
         {{5, 5, 5, 10}, {5, 5, 5, 10, true}},
         {6, 5}},
        {"to none", {0, 2, 1}, {{6, 6, 6, 10}, {4, 4, 4, 10, true}}, {0, 0}},
        {"nothing", {8, 2, 1}, {{6, 6, 6, 10}, {4, 4, 4, 10, true}}, {6, 4}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rollout_set sets[2];
        memcpy(sets, cases[i].before, sizeof(sets));
        rollout_scale(&cases[i].r, sets, 2);
        if (sets[0].replicas != cases[i].after[0] || sets[1].replicas != cases[i].after[1])
            fail_msg("%s: %ld and %ld", cases[i].name, (long)sets[0].replicas,
                     (long)sets[1].replicas);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
