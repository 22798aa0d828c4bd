/*
 * What is done to a pool, by what is wanted and what is.
 */
#include "pool/pooltest.h"

/*
 * A pool as text: names are groups and pairs up to ")", and devices with marks: "-" is UNAVAIL, "x" FAULTED,
 * "~" behind, "+" larger than it was, "*" a spare that is in use.
 *
 *     mirror(a b-) c spare:s
 */
static struct zpool_vdev rows[64];

static struct zpool_status make(const char *text)
{
    struct zpool_status s = {.vdevs = rows, .n_vdevs = 1};
    char copy[256], *save = NULL;
    int parent = 0;
    snprintf(copy, sizeof(copy), "%s", text);
    memset(rows, 0, sizeof(rows));
    rows[0] = (struct zpool_vdev){.type = "root", .parent = -1};
    for (char *it = strtok_r(copy, " ", &save); it; it = strtok_r(NULL, " ", &save)) {
        char *open;
        while ((open = strchr(it, '('))) {
            *open = '\0';
            struct zpool_vdev *v = &rows[s.n_vdevs];
            *v = (struct zpool_vdev){.parent = parent};
            snprintf(v->type, sizeof(v->type), "%s", it);
            parent = (int)s.n_vdevs++;
            it = open + 1;
        }
        struct zpool_vdev *v = &rows[s.n_vdevs++];
        *v = (struct zpool_vdev){.type = "file", .parent = parent, .size = 1 << 30};
        if (strncmp(it, "spare:", 6) == 0) {
            it += 6;
            v->role = ZPOOL_ROLE_SPARE;
            v->parent = -1;
        }
        v->guid = (uint64_t)it[0];
        snprintf(v->path, sizeof(v->path), "/d/%c", it[0]);
        v->state = strchr(it, '-')   ? ZPOOL_UNAVAILABLE
                   : strchr(it, 'x') ? ZPOOL_FAULTED
                                     : ZPOOL_ONLINE;
        v->behind = strchr(it, '~') != NULL;
        v->expandable = strchr(it, '+') ? 4096 : 0;
        v->spare_in_use = strchr(it, '*') != NULL;
        for (char *close = strchr(it, ')'); close && *close == ')'; close++)
            parent = rows[parent].parent;
    }
    return s;
}

static const char *const kinds[] = {"online", "add",     "grow",  "replace",
                                    "spare",  "unspare", "clear", "scrub"};

/* "add:c replace:b" */
static const char *plan(struct pool_wish *w, const struct zpool_status *s, const char *answered,
                        int64_t now)
{
    static struct str out;
    struct pool_step steps[POOL_PLAN_MAX];
    str_clear(&out);
    str_append(&out, "");
    const char *const both[POOL_REQUESTS] = {answered, ""};
    size_t n = pool_plan(w, s, both, now, steps);
    for (size_t i = 0; i < n; i++) {
        const struct pool_step *p = &steps[i];
        str_appendf(&out, "%s%s", i ? " " : "", kinds[p->kind]);
        if (p->kind == POOL_STEP_ADD)
            str_appendf(&out, ":%s", p->device ? p->device->name : p->group->devices[0].name);
        else if (p->row[0])
            str_appendf(&out, ":%c", (char)strtoull(p->row, NULL, 10));
        assert_true(strlen(p->text) > 5);
    }
    return str_get(&out);
}

static void test_table(void **state)
{
    (void)state;
    static const struct {
        const char *wish, *pool, *steps;
    } table[] = {
        {"mirror a b", "mirror(a b)", ""},
        {"stripe a b", "a b", ""},
        {"stripe a b", "a", "add:b"},
        {"mirror a b; mirror c d", "mirror(a b)", "add:c"},
        {"mirror a b; log l; cache c; spare s", "mirror(a b)", "add:l add:c add:s"},
        {"mirror a c<b", "mirror(a b)", "replace:b"},
        {"mirror a c<b", "mirror(a replacing(b c~))", ""},
        {"mirror a c<b", "mirror(a c)", ""},
        {"mirror a c<b", "mirror(a b-)", "online:b replace:b"},
        {"mirror a c<b", "mirror(a d)", "replace"}, /* act.c says why not */
        {"mirror a c<b; stripe d", "mirror(a b)", "add:d replace:b"},
        {"mirror a c", "mirror(a b)", ""}, /* nothing says whose place it takes */
        {"mirror a b", "mirror(a b-)", "online:b"},
        {"mirror a b", "mirror(a b+)", "grow:b"},
        {"mirror a b; spare s", "mirror(a bx) spare:s", "spare:b"},
        {"mirror a b; spare s", "mirror(a b-) spare:s", "online:b spare:b"},
        {"mirror a b; spare s", "mirror(a bx) spare:s-", ""},
        {"mirror a b; spare s", "mirror(a spare(bx s)) spare:s*", ""},
        {"mirror a b; spare s", "mirror(a spare(b~ s)) spare:s*", ""},
        {"mirror a b; spare s", "mirror(a spare(b s)) spare:s*", "unspare:s"},
        {"mirror a b; mirror c d; spare s", "mirror(a bx) mirror(cx d) spare:s", "spare:b"},
        {"mirror a c<b; spare s", "mirror(a bx) spare:s", "replace:b"},
        {"stripe a; spare s", "ax spare:s", ""}, /* there is nothing to copy from */
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct test_wish t;
        struct pool_wish *w = test_wish(&t, table[i].wish);
        struct zpool_status s = make(table[i].pool);
        const char *got = plan(w, &s, "", 0);
        if (strcmp(got, table[i].steps) != 0)
            fail_msg("%s of %s: \"%s\", not \"%s\"", table[i].wish, table[i].pool, got,
                     table[i].steps);
        s.suspended = true;
        assert_string_equal(plan(w, &s, "", 0), "");
    }
}

static void test_scrub(void **state)
{
    (void)state;
    struct test_wish t;
    struct pool_wish *w = test_wish(&t, "mirror a b");
    struct zpool_status s = make("mirror(a b)");
    w->scrub_due = 1000;
    assert_string_equal(plan(w, &s, "", 999), "");
    assert_string_equal(plan(w, &s, "", 1000), "scrub");
    s.scan = (struct zpool_progress){
        .kind = ZPOOL_SCAN_SCRUB, .state = ZPOOL_SCAN_DONE, .started = 1000};
    assert_string_equal(plan(w, &s, "", 1001), "");
    w->request[POOL_SCRUB] = "now";
    assert_string_equal(plan(w, &s, "", 1001), "scrub");
    assert_string_equal(plan(w, &s, "now", 1001), "");
    s.scan.state = ZPOOL_SCAN_RUNNING;
    assert_string_equal(plan(w, &s, "", 1001), "");
    s = make("mirror(a b~)");
    assert_string_equal(plan(w, &s, "", 1001), "");
    w->request[POOL_CLEAR] = "now";
    assert_string_equal(plan(w, &s, "now", 1001), "clear");
}

/* A device at the path where another was is not that other one. */
static void test_same_path(void **state)
{
    (void)state;
    struct test_wish t;
    struct pool_wish *w = test_wish(&t, "mirror a c<b");
    struct zpool_status s = make("mirror(a b-)");
    t.devices[1].path = t.others[0].path; /* in the same slot */
    t.others[0].guid = 'b';
    assert_string_equal(plan(w, &s, "", 0), "online:b replace:b");
    assert_int_equal(pool_wish_row(w, &t.devices[1], &s), -1);
    assert_int_equal(pool_wish_row(w, &t.others[0], &s), 3);
    assert_ptr_equal(pool_wish_device(w, &s, 3), &t.others[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_scrub),
        cmocka_unit_test(test_same_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
