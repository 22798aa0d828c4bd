/* Quorum arithmetic and lineages, as tables. */
#include "repl/view.h"
#include "unit.h"

static void quorums(void **state)
{
    (void)state;
    static const struct {
        unsigned cf, n, need, meet;
    } rows[] = {
        {0, 1, 1, 1}, {0, 2, 2, 1}, {0, 3, 2, 2}, {0, 4, 3, 2}, {0, 5, 3, 3}, {0, 6, 4, 3},
        {0, 7, 4, 4}, {1, 3, 2, 2}, {3, 3, 3, 1}, {4, 5, 4, 2}, {5, 5, 5, 1}, {5, 3, 3, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(repl_cf(rows[i].cf, rows[i].n), rows[i].need);
        assert_int_equal(repl_meet(rows[i].cf, rows[i].n), rows[i].meet);
    }
}

/* Every set of cf meets every set of k; two sets of cf meet; by trying all. */
static void sets_meet(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 7; n++)
        for (unsigned cf = 0; cf <= n; cf++)
            for (unsigned a = 0; a < 1u << n; a++)
                for (unsigned b = 0; b < 1u << n; b++) {
                    unsigned na = (unsigned)__builtin_popcount(a),
                             nb = (unsigned)__builtin_popcount(b);
                    if (na >= repl_cf(cf, n) && nb >= repl_meet(cf, n))
                        assert_true(a & b);
                }
}

static struct repl_lineage lineage(int n, const uint64_t (*rows)[3])
{
    struct repl_lineage l = {.n = (uint32_t)n};
    for (int i = 0; i < n; i++) {
        l.at[i].epoch = (uint32_t)rows[i][0];
        l.at[i].owner = rows[i][1];
        l.at[i].end = repl_pos((uint32_t)rows[i][0], rows[i][2]);
    }
    return l;
}

static void forks(void **state)
{
    (void)state;
    /* epoch, owner, end; the last one is open */
    static const struct {
        int xn, tn;
        uint64_t x[3][3], t[3][3];
        uint64_t pos[2], fork[2];
        const char *what;
    } rows[] = {
        {0, 1, {{0}}, {{1, 7, 0}}, {0, 0}, {0, 0}, "a new replica"},
        {1, 1, {{1, 7, 0}}, {{1, 7, 0}}, {1, 50}, {1, 50}, "the same epoch"},
        {1, 2, {{1, 7, 0}}, {{1, 7, 99}, {3, 9, 0}}, {1, 100}, {1, 99}, "one write too many"},
        {1, 2, {{1, 7, 0}}, {{1, 7, 99}, {3, 9, 0}}, {1, 50}, {1, 50}, "behind"},
        {2,
         2,
         {{1, 7, 100}, {2, 8, 0}},
         {{1, 7, 99}, {3, 9, 0}},
         {2, 5},
         {1, 99},
         "another branch"},
        {2,
         3,
         {{1, 7, 99}, {2, 8, 0}},
         {{1, 7, 99}, {2, 8, 4}, {3, 9, 0}},
         {2, 5},
         {2, 4},
         "same branch"},
        {1, 1, {{2, 8, 0}}, {{2, 9, 0}}, {2, 5}, {0, 0}, "two targets took the same number"},
        {1, 2, {{1, 7, 0}}, {{4, 7, 3}, {5, 8, 0}}, {1, 9}, {0, 0}, "longer ago than is kept"},
        {2, 1, {{1, 7, 9}, {4, 8, 0}}, {{4, 8, 0}}, {4, 2}, {4, 2}, "the other forgot more"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct repl_lineage x = lineage(rows[i].xn, rows[i].x), t = lineage(rows[i].tn, rows[i].t);
        uint64_t pos = repl_pos((uint32_t)rows[i].pos[0], rows[i].pos[1]);
        uint64_t want = repl_pos((uint32_t)rows[i].fork[0], rows[i].fork[1]);
        if (repl_fork(&x, pos, &t) != want)
            fail_msg("%s", rows[i].what);
    }
}

static void growing(void **state)
{
    (void)state;
    struct repl_lineage l = {0};
    for (uint32_t e = 1; e <= REPL_EPOCHS + 5; e++)
        repl_lineage_add(&l, repl_pos(e - 1, 10 * e), e, e);
    assert_int_equal(l.n, REPL_EPOCHS);
    assert_int_equal(l.at[0].epoch, 6);
    assert_true(l.at[0].end == repl_pos(6, 70));
    assert_true(repl_fork_mark(repl_pos(6, 100), &l) == repl_pos(6, 70));
    assert_true(repl_fork_mark(repl_pos(6, 60), &l) == repl_pos(6, 60));
    assert_true(repl_fork_mark(repl_pos(REPL_EPOCHS + 5, 9), &l) == repl_pos(REPL_EPOCHS + 5, 9));
    assert_true(repl_fork_mark(repl_pos(2, 9), &l) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorums),
        cmocka_unit_test(sets_meet),
        cmocka_unit_test(forks),
        cmocka_unit_test(growing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
