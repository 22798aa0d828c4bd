/*
 * Phases of a replica, from its object and from what is so: each row of the table of phases that users of cStor know,
 * and what we know beyond it. And its status, and how much of it is news.
 */
#include "jsontest.h"
#include "pool/cvr.h"

enum { ZVOL = 111, POOL = 7, OTHER = 8 };

/*
 * A letter for each fact of the view: k known, m missing, f foreign, g gone, z its own data set is there, Z one with
 * another GUID, P in another pool, o open, c connected, C complete, F fresh, r rebuilding, u full, w something failed,
 * e the last connection ended.
 */
static struct pool_replica_view view_of(const char *facts)
{
    struct pool_replica_view v = {0};
    for (; *facts; facts++) {
        switch (*facts) {
        case 'k':
            v.known = true;
            v.pool_guid = v.pool_guid ? v.pool_guid : POOL;
            break;
        case 'm':
            v.missing = true;
            break;
        case 'f':
            v.foreign = true;
            break;
        case 'g':
            v.gone = true;
            break;
        case 'z':
            v.guid = ZVOL;
            break;
        case 'Z':
            v.guid = ZVOL + 1;
            break;
        case 'P':
            v.pool_guid = OTHER;
            break;
        case 'o':
            v.open = true;
            break;
        case 'c':
            v.connected = true;
            break;
        case 'C':
            v.complete = true;
            break;
        case 'F':
            v.fresh = true;
            break;
        case 'r':
            v.rebuilding = true;
            v.percent = 42;
            break;
        case 'u':
            v.full = true;
            break;
        case 'w':
            err_set(&v.why, ERR_UNAVAILABLE, "Failed", "it failed");
            break;
        case 'e':
            snprintf(v.last_end, sizeof(v.last_end), "refused");
            break;
        default:
            fail_msg("there is no '%c'", *facts);
        }
    }
    return v;
}

/* A letter for each: d deleting, D and the wish said so, r a request that is new, R one that was answered, i can never be,
 * x something is missing in it, p the pool is not open, K the key cannot be had. */
struct row {
    const char *was;   /* phase */
    bool remembers;    /* the GUIDs */
    const char *facts; /* as above */
    const char *view;
    const char *phase, *says;
    const char *reason; /* of the event; NULL */
    bool keeps;         /* the status remembers a data set afterwards */
};

static const struct row rows[] = {
    /* "" or Init: the process sees the object */
    {"", false, "p", "", "Init", "the pool is being looked for", "Synced", false},
    {"", false, "", "", "Init", "is being made", "Synced", false},
    {"Init", false, "", "", "Init", "is being made", NULL, false},
    {"Init", false, "", "km", "Init", "is being made", NULL, false},
    /* any other: the process was started again, and its pool is not open yet */
    {"Healthy", true, "p", "", "Offline", "the pool is being looked for", NULL, true},
    {"Degraded", true, "p", "", "Offline", "", NULL, true},
    {"Error", true, "p", "", "Offline", "", NULL, true},
    /* the pool is open, and nobody has looked yet */
    {"Healthy", true, "", "", "Healthy", "before", NULL, true},
    {"Offline", true, "", "", "Offline", "before", NULL, true},
    /* "", Init, Recreate: the data set is there */
    {"", false, "", "kz", "Offline", "about to be opened", "Created", true},
    {"Init", false, "", "kz", "Offline", "about to be opened", "Created", true},
    {"Recreate", false, "", "kz", "Offline", "about to be opened", "Created", true},
    {"Error", false, "", "kz", "Offline", "about to be opened", "Created", true},
    {"Init", true, "", "kz", "Offline", "is being opened", NULL, true},
    /* Recreate: it is not there */
    {"Recreate", false, "", "km", "Recreate", "is being made", NULL, false},
    {"Recreate", false, "p", "", "Recreate", "the pool is being looked for", NULL, false},
    /* it could not be made, or belongs to somebody else */
    {"Init", false, "", "kmw", "Error", "could not be made: it failed", "FailCreate", false},
    {"Recreate", false, "", "kmw", "Error", "could not be made: it failed", "FailCreate", false},
    {"Init", false, "", "kfZ", "Error", "belongs to another", "FailCreate", false},
    {"Init", false, "", "kfZw", "Error", "it failed", "FailCreate", false},
    {"Error", false, "", "km", "Init", "is being made", NULL, false},
    /* not connected */
    {"Healthy", true, "", "kzo", "Offline", "no connection to its target 10.0.0.1 yet", NULL, true},
    {"Healthy", true, "", "kzoe", "Offline", "to its target 10.0.0.1: refused", NULL, true},
    {"Rebuilding", true, "", "kzoCe", "Offline", "refused", NULL, true},
    {"Offline", true, "K", "kz", "Offline", "no key", "SyncFailed", true},
    {"Offline", true, "", "kzw", "Error", "cannot be opened: it failed", "SyncFailed", true},
    /* connected */
    {"Offline", true, "", "kzoc", "Degraded", "lacks data", NULL, true},
    {"Offline", true, "", "kzocF", "NewReplicaDegraded", "lacks data", NULL, true},
    {"Degraded", true, "", "kzocr", "Rebuilding", "being written", NULL, true},
    {"NewReplicaDegraded", true, "", "kzocFr", "ReconstructingNewReplica", "", NULL, true},
    {"Rebuilding", true, "", "kzocC", "Healthy", "", NULL, true},
    {"ReconstructingNewReplica", true, "", "kzocC", "Healthy", "", NULL, true},
    {"Offline", true, "", "kzocC", "Healthy", "", NULL, true},
    {"Healthy", true, "", "kzocCr", "Rebuilding", "", NULL, true},
    /* something did not work meanwhile: the phase is what it is */
    {"Healthy", true, "", "kzocCw", "Healthy", "it failed", NULL, true},
    {"Healthy", true, "", "kzocCu", "Healthy", "roThresholdLimit", NULL, true},
    {"Rebuilding", true, "", "kzocru", "Rebuilding", "roThresholdLimit", NULL, true},
    /* labels, targetIP, capacity missing; and what can never be */
    {"Healthy", true, "x", "kzocC", "Offline", "is wrong", "FailValidate", true},
    {"", false, "x", "", "Offline", "is wrong", "FailValidate", false},
    {"Healthy", true, "i", "kzocC", "Invalid", "is wrong", "FailValidate", true},
    {"", false, "i", "", "Invalid", "is wrong", "FailValidate", false},
    {"Invalid", true, "", "kzocC", "Healthy", "", NULL, true},
    /* the data set is missing: in the same pool, in another one, and when somebody asked */
    {"Healthy", true, "", "km", "Error", "is missing in the pool that had it (GUID 7)",
     "ZvolMissing", true},
    {"Error", true, "R", "km", "Error", "is missing", "ZvolMissing", true},
    {"Error", true, "r", "km", "Recreate", "111 is missing, and a new one was asked for",
     "Recreate", false},
    {"Healthy", true, "", "kPm", "Recreate", "another one (GUID 8, it was 7)", "Recreate", false},
    {"Healthy", true, "r", "kPm", "Recreate", "another one", "Recreate", false},
    {"Healthy", true, "", "kPzocC", "Healthy", "", NULL, true},
    {"Healthy", true, "", "kfZ", "Error", "another data set", "ZvolForeign", true},
    {"Healthy", true, "", "kZoc", "Error", "another data set", "ZvolForeign", true},
    {"Healthy", true, "r", "kfZ", "Error", "another data set", "ZvolForeign", true},
    {"Healthy", true, "", "kPfZ", "Error", "another data set", "ZvolForeign", true},
    /* deletion */
    {"Healthy", true, "d", "kzocC", "Healthy", "is being destroyed", NULL, true},
    {"Healthy", true, "d", "kzocCw", "Healthy", "is being destroyed", NULL, true},
    {"Healthy", true, "D", "kzw", "DeletionFailed", "it failed; it is tried again", "FailDestroy",
     true},
    {"DeletionFailed", true, "D", "kz", "DeletionFailed", "before", NULL, true},
    {"DeletionFailed", true, "Dp", "", "DeletionFailed", "the pool is being looked for", NULL,
     true},
    {"Healthy", true, "Di", "kzw", "DeletionFailed", "it failed", "FailDestroy", true},
    {"Init", false, "D", "km", "Init", "is being destroyed", NULL, false},
};

static json_t *object_of(const struct row *row, bool answered)
{
    json_t *o = json_pack("{s:{s:s},s:{s:s},s:{s:s,s:s}}", "metadata", "name", "v-p", "spec",
                          "targetIP", "10.0.0.1", "status", "phase", row->was, "message", "before");
    json_t *status = json_object_get(o, "status");
    if (row->remembers) {
        json_object_set_new(status, "zvolGuid", json_string("111"));
        json_object_set_new(status, "poolGuid", json_string("7"));
    }
    if (answered)
        json_object_set_new(status, "recreate", json_string("true"));
    return o;
}

static void judge(const struct row *row, json_t *object, const struct pool_replica_view *view,
                  struct pool_cvr_verdict *ret)
{
    struct err wrong = {0}, pool = {0}, key = {0};
    if (strpbrk(row->facts, "ix"))
        err_set(&wrong, strchr(row->facts, 'i') ? ERR_INVALID_ARGUMENT : ERR_FAILED_PRECONDITION,
                "FailValidate", "something is wrong");
    if (strchr(row->facts, 'p'))
        err_set(&pool, ERR_UNAVAILABLE, "NotOpen", "the pool is being looked for");
    if (strchr(row->facts, 'K'))
        err_set(&key, ERR_NOT_FOUND, "NoKey", "there is no key");
    const struct pool_cvr_facts facts = {
        .object = volume_replica_of(object),
        .deleting = strpbrk(row->facts, "dD") != NULL,
        .destroying = strchr(row->facts, 'D') != NULL,
        .request = strpbrk(row->facts, "rR") ? "true" : "",
        .wrong = &wrong,
        .pool = &pool,
        .key = &key,
        .view = view,
    };
    pool_cvr_judge(&facts, ret);
}

static void test_phases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];
        json_auto_t *object = object_of(row, strchr(row->facts, 'R') != NULL);
        struct pool_replica_view view = view_of(row->view);
        struct pool_cvr_verdict v;
        judge(row, object, &view, &v);
        if (!str_eq(v.phase, row->phase) || !strstr(v.message, row->says) ||
            !str_eq(v.reason ? v.reason : "", row->reason ? row->reason : "") ||
            (v.zvol_guid != 0) != row->keeps || (v.pool_guid != 0) != row->keeps)
            fail_msg("row %zu (%s, \"%s\", view \"%s\"): %s, \"%s\", %s, %llu in %llu", i, row->was,
                     row->facts, row->view, v.phase, v.message, v.reason ? v.reason : "no event",
                     (unsigned long long)v.zvol_guid, (unsigned long long)v.pool_guid);
    }
}

static void test_every_phase_has_a_cause(void **state)
{
    static const char *const phases[] = {"Init",
                                         "Recreate",
                                         "Offline",
                                         "Degraded",
                                         "NewReplicaDegraded",
                                         "Rebuilding",
                                         "ReconstructingNewReplica",
                                         "Healthy",
                                         "Error",
                                         "DeletionFailed",
                                         "Invalid"};
    (void)state;
    for (size_t p = 0; p < ARRAY_SIZE(phases);
         p++) { /* "" is an object that nobody has looked at */
        bool found = false;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
            found |= str_eq(rows[i].phase, phases[p]) && !str_eq(rows[i].was, phases[p]);
        if (!found)
            fail_msg("nothing leads to %s", phases[p]);
    }
}

/* What is wanted follows from the object alone; a wish to make one only while no GUID is remembered. */
static void test_wants(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct row row = {.was = "Healthy", .remembers = i & 1};
        json_auto_t *object = object_of(&row, false);
        const struct volume_replica r = volume_replica_of(object);
        enum pool_replica_want is = pool_cvr_want(&r, i & 2);
        assert_int_equal(is, i & 2   ? POOL_REPLICA_DESTROY
                             : i & 1 ? POOL_REPLICA_KEEP
                                     : POOL_REPLICA_CREATE);
    }
}

/* The pool that has the data set is remembered, and another data set never takes its place. */
static void test_guids(void **state)
{
    static const struct {
        const char *view;
        uint64_t zvol, pool;
    } cases[] = {
        {"kzocC", ZVOL, POOL}, {"kPzocC", ZVOL, OTHER}, {"kZoc", ZVOL, POOL},
        {"kfZ", ZVOL, POOL},   {"km", ZVOL, POOL},      {"kPm", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct row row = {.was = "Healthy", .remembers = true, .facts = ""};
        json_auto_t *object = object_of(&row, false);
        struct pool_replica_view view = view_of(cases[i].view);
        struct pool_cvr_verdict v;
        judge(&row, object, &view, &v);
        assert_int_equal(v.zvol_guid, cases[i].zvol);
        assert_int_equal(v.pool_guid, cases[i].pool);
    }
}

static void test_gone(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        static const char *const facts[] = {"D", "d", ""};
        const struct row row = {.was = "Healthy", .remembers = true, .facts = facts[i]};
        json_auto_t *object = object_of(&row, false);
        struct pool_replica_view view = view_of("kg");
        struct pool_cvr_verdict v;
        judge(&row, object, &view, &v);
        assert_int_equal(v.gone, i == 0); /* not what was said of another wish */
    }
}

static void test_status(void **state)
{
    (void)state;
    const struct row row = {.was = "Degraded", .remembers = true, .facts = ""};
    json_auto_t *object = object_of(&row, false);
    const struct volume_replica r = volume_replica_of(object);
    struct pool_replica_view view = view_of("kzocr");
    struct pool_cvr_verdict v;
    view.used = 6144;
    view.logical = 1 << 20;
    judge(&row, object, &view, &v);
    json_auto_t *first = pool_cvr_status(&r, &v, &view, clock_system());
    assert_string_equal(json_str(first, "phase"), "Rebuilding");
    assert_string_equal(json_str(first, "zvolGuid"), "111");
    assert_string_equal(json_str(first, "poolGuid"), "7");
    assert_string_equal(json_str(json_object_get(first, "capacity"), "total"), "6Ki");
    assert_string_equal(json_str(json_object_get(first, "capacity"), "used"), "1Mi");
    assert_int_equal(json_integer_value(json_object_get(first, "rebuildPercent")), 42);
    assert_non_null(json_object_get(first, "lastTransitionTime"));
    assert_null(json_object_get(first, "recreate"));

    /* What is news. */
    view.percent = 43;
    json_auto_t *second = pool_cvr_status(&r, &v, &view, clock_system());
    assert_int_equal(pool_cvr_compare(first, second), POOL_CVR_NUMBERS);
    json_object_set_new(second, "rebuildPercent", json_integer(42));
    json_object_set_new(second, "lastUpdateTime", json_string("2001-01-01T00:00:00Z"));
    assert_int_equal(pool_cvr_compare(first, second), POOL_CVR_SAME);
    json_object_set_new(second, "message", json_string("other words"));
    assert_int_equal(pool_cvr_compare(first, second), POOL_CVR_WORDS);
    json_object_set_new(second, "zvolGuid", json_string("112"));
    assert_int_equal(pool_cvr_compare(first, second), POOL_CVR_STATE);
    assert_int_equal(pool_cvr_compare(NULL, first), POOL_CVR_STATE);
}

/* Snapshots by their names, while it runs; when it does not, those that were there stay. */
static void test_snapshots(void **state)
{
    (void)state;
    const struct row row = {.was = "Rebuilding", .remembers = true, .facts = ""};
    json_auto_t *object = object_of(&row, false);
    const struct volume_replica r = volume_replica_of(object);
    struct pool_replica_view view = view_of("kzocr");
    struct pool_cvr_verdict v;
    view.snapshots = 2;
    view.snapshot[0] = (struct pool_replica_snapshot){.id = 1, .logical = 4096, .name = "monday"};
    view.snapshot[1] = (struct pool_replica_snapshot){.id = 2, .logical = 8192}; /* nobody's */
    view.pending = 1;
    snprintf(view.pending_name[0], sizeof(view.pending_name[0]), "tuesday");
    judge(&row, object, &view, &v);
    json_auto_t *status = pool_cvr_status(&r, &v, &view, clock_system());
    json_auto_t *snapshots = parse_quoted("{'monday': {'logicalReferenced': 4096}}");
    json_auto_t *pending = parse_quoted("{'tuesday': {}}");
    assert_true(json_equal(json_object_get(status, "snapshots"), snapshots));
    assert_true(json_equal(json_object_get(status, "pendingSnapshots"), pending));

    json_object_set(object, "status", status);
    const struct volume_replica later = volume_replica_of(object);
    view.open = view.connected = false;
    view.snapshots = view.pending = 0;
    json_auto_t *closed = pool_cvr_status(&later, &v, &view, clock_system());
    assert_true(json_equal(json_object_get(closed, "snapshots"), snapshots));
    view.open = true;
    json_auto_t *none = pool_cvr_status(&later, &v, &view, clock_system());
    assert_null(json_object_get(none, "snapshots"));
    assert_null(json_object_get(none, "pendingSnapshots"));
}

/* A request is answered once, and a pool that is another one answers none. */
static void test_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct row row = {.was = "Error", .remembers = true, .facts = "r"};
        json_auto_t *object = object_of(&row, false);
        const struct volume_replica r = volume_replica_of(object);
        struct pool_replica_view view = view_of(i ? "kPm" : "km");
        struct pool_cvr_verdict v;
        judge(&row, object, &view, &v);
        json_auto_t *status = pool_cvr_status(&r, &v, &view, clock_system());
        const char *answered = json_str(status, "recreate");
        assert_string_equal(answered ? answered : "", i ? "" : "true");
        assert_null(json_object_get(status, "zvolGuid"));
    }
}

static void test_numbers_of_replicas(void **state)
{
    static const struct {
        const char *text;
        uint64_t id; /* 0: another one, never 0 */
    } cases[] = {{"17", 17},
                 {"18446744073709551615", UINT64_MAX},
                 {"18446744073709551616", 0},
                 {"0", 0},
                 {"4D", 0},
                 {"", 0}};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *object = json_pack("{s:{s:s},s:{s:s}}", "metadata", "uid", "u-1", "spec",
                                        "replicaid", cases[i].text);
        const struct volume_replica r = volume_replica_of(object);
        uint64_t id = volume_replica_id(&r);
        assert_int_not_equal(id, 0);
        if (cases[i].id)
            assert_int_equal(id, cases[i].id);
        assert_int_equal(id, volume_replica_id(&r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_every_phase_has_a_cause),
        cmocka_unit_test(test_wants),
        cmocka_unit_test(test_guids),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_numbers_of_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
