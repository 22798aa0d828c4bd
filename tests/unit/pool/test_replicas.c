/*
 * What is done with a replica, by what is wanted and what is found; and replicas in a real pool, without a target.
 */
#include <poll.h>
#include <sys/eventfd.h>

#include "pool/replicas_impl.h"
#include "zpool/zpooltest.h"

enum { GUID = 77, ID = 5 };

/* Decisions. */

static void test_plan(void **state)
{
    (void)state;
    enum { NOTHING, OURS, UNNAMED, OTHER };
    static const struct {
        enum pool_replica_want want;
        uint64_t guid; /* that the object remembers */
        int data, meta;
        enum replica_step step;
        bool missing, foreign, gone;
    } table[] = {
        /* One that is there is opened only if the object remembers it. */
        {POOL_REPLICA_KEEP, GUID, OURS, OURS, REPLICA_OPEN, 0, 0, 0},
        {POOL_REPLICA_KEEP, 0, OURS, OURS, REPLICA_REST, 0, 0, 0},
        {POOL_REPLICA_KEEP, GUID + 1, OURS, OURS, REPLICA_REST, 0, 1, 0},
        {POOL_REPLICA_KEEP, GUID, OTHER, OTHER, REPLICA_REST, 0, 1, 0},
        {POOL_REPLICA_KEEP, GUID, UNNAMED, NOTHING, REPLICA_OPEN, 0, 0, 0},
        {POOL_REPLICA_KEEP, GUID, OURS, OTHER, REPLICA_REST, 0, 1, 0},
        {POOL_REPLICA_KEEP, GUID, OURS, NOTHING, REPLICA_OPEN, 0, 0, 0},
        /* One that is missing is made only when that is said. */
        {POOL_REPLICA_KEEP, GUID, NOTHING, OURS, REPLICA_REST, 1, 0, 0},
        {POOL_REPLICA_KEEP, GUID, NOTHING, NOTHING, REPLICA_REST, 1, 0, 0},
        {POOL_REPLICA_CREATE, 0, NOTHING, NOTHING, REPLICA_MAKE, 1, 0, 0},
        {POOL_REPLICA_CREATE, GUID + 1, NOTHING, NOTHING, REPLICA_MAKE, 1, 0, 0},
        {POOL_REPLICA_CREATE, 0, NOTHING, OURS, REPLICA_MAKE, 1, 0, 0},
        {POOL_REPLICA_CREATE, 0, NOTHING, OTHER, REPLICA_REST, 1, 1, 0},
        {POOL_REPLICA_CREATE, 0, OURS, OURS, REPLICA_REST, 0, 0, 0},
        {POOL_REPLICA_CREATE, 0, OTHER, OTHER, REPLICA_REST, 0, 1, 0},
        {POOL_REPLICA_CREATE, 0, UNNAMED, NOTHING, REPLICA_REST, 0, 1, 0},
        /* Nothing of others is destroyed. */
        {POOL_REPLICA_DESTROY, GUID, OURS, OURS, REPLICA_DESTROY, 0, 0, 0},
        {POOL_REPLICA_DESTROY, 0, OURS, OURS, REPLICA_DESTROY, 0, 0, 0},
        {POOL_REPLICA_DESTROY, GUID, UNNAMED, NOTHING, REPLICA_DESTROY, 0, 0, 0},
        {POOL_REPLICA_DESTROY, 0, UNNAMED, NOTHING, REPLICA_REST, 0, 1, 1},
        {POOL_REPLICA_DESTROY, GUID, OTHER, OTHER, REPLICA_REST, 0, 1, 1},
        {POOL_REPLICA_DESTROY, GUID, OTHER, OURS, REPLICA_DESTROY, 0, 1, 0},
        {POOL_REPLICA_DESTROY, GUID, NOTHING, OURS, REPLICA_DESTROY, 1, 0, 0},
        {POOL_REPLICA_DESTROY, GUID, NOTHING, NOTHING, REPLICA_REST, 1, 0, 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct pool_replica_wish w = {.want = table[i].want,
                                            .guid = table[i].guid,
                                            .replicaid = ID,
                                            .target = "127.0.0.1",
                                            .key = (const uint8_t *)"key"};
        const struct replica_found f = {.data = table[i].data != NOTHING,
                                        .data_ours = table[i].data == OURS,
                                        .data_other = table[i].data == OTHER,
                                        .guid = table[i].data != NOTHING ? GUID : 0,
                                        .meta = table[i].meta != NOTHING,
                                        .meta_ours = table[i].meta == OURS,
                                        .meta_other = table[i].meta == OTHER};
        struct pool_replica_view v = {0};
        replica_judge(&w, &f, &v);
        bool right = replica_plan(&w, &f) == table[i].step && v.missing == table[i].missing &&
                     v.foreign == table[i].foreign && v.gone == table[i].gone;
        if (!right)
            fail_msg("row %zu: step %d, missing %d, foreign %d, gone %d", i,
                     (int)replica_plan(&w, &f), v.missing, v.foreign, v.gone);
        assert_int_equal(replica_plan(&w, NULL), REPLICA_LOOK);
    }
}

/* A replica without a key, or whose target is not known, is not opened. */
static void test_not_ready(void **state)
{
    (void)state;
    const struct replica_found f = {.data = true, .data_ours = true, .guid = GUID};
    struct pool_replica_wish w = {
        .guid = GUID, .replicaid = ID, .target = "127.0.0.1", .key = (const uint8_t *)"key"};
    assert_int_equal(replica_plan(&w, &f), REPLICA_OPEN);
    w.target = "";
    assert_int_equal(replica_plan(&w, &f), REPLICA_REST);
    w.target = "127.0.0.1";
    w.key = NULL;
    assert_int_equal(replica_plan(&w, &f), REPLICA_REST);
}

/* In a pool. */

static int woken;

static void wake(void *context)
{
    (void)context;
    uint64_t one = 1;
    assert_int_equal(write(woken, &one, sizeof(one)), sizeof(one));
}

/* Serves until a condition holds of the view of "r". */
#define serve_until(all, v, condition)                                                             \
    do {                                                                                           \
        int64_t until_ = now_ms() + 30000;                                                         \
        for (;;) {                                                                                 \
            uint64_t n_;                                                                           \
            pool_replicas_serve(all);                                                              \
            pool_replicas_view(all, "r", &(v));                                                    \
            if (condition)                                                                         \
                break;                                                                             \
            if (now_ms() > until_)                                                                 \
                fail_msg("%s: not within half a minute; %s", #condition, (v).why.msg);             \
            poll(&(struct pollfd){.fd = woken, .events = POLLIN}, 1, 100);                         \
            (void)!read(woken, &n_, sizeof(n_));                                                   \
        }                                                                                          \
    } while (0)

static struct pool_replicas *begin(struct zpool *p)
{
    const struct pool_replicas_options o = {.wake = wake};
    struct pool_replicas *all;
    woken = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_ok((all = pool_replicas_new(&o, &e)));
    if (p)
        pool_replicas_attach(all, p);
    return all;
}

static void end(struct pool_replicas *all)
{
    pool_replicas_detach(all);
    pool_replicas_free(all);
    close(woken);
}

static struct pool_replica_wish wish(enum pool_replica_want want, uint64_t guid)
{
    static const char key[] = "0123456789abcdef";
    return (struct pool_replica_wish){.want = want,
                                      .name = "r",
                                      .zvol = "vol",
                                      .volume_name = "volume",
                                      .volume = uuid_of_name("volume"),
                                      .replicaid = ID,
                                      .guid = guid,
                                      .size = 8 * MIB,
                                      .block_size = 8192,
                                      .compression = "lz4",
                                      .target = "127.0.0.1",
                                      .port = 1,
                                      .key = (const uint8_t *)key,
                                      .key_size = sizeof(key) - 1};
}

/* Made, remembered, opened, kept over an export, destroyed. */
static void test_life(void **state)
{
    (void)state;
    struct pool_replica_view v;
    make_disks();
    struct zpool *p = create("stripe 0");
    uint64_t pool_guid = zpool_guid(p);
    struct pool_replicas *all = begin(NULL);
    struct pool_replica_wish w = wish(POOL_REPLICA_CREATE, 0);
    pool_replicas_wish(all, &w);
    assert_true(pool_replicas_view(all, "r", &v));
    assert_false(v.known);
    pool_replicas_attach(all, p);
    serve_until(all, v, v.known && v.guid);
    assert_false(v.open || v.missing || v.foreign);
    assert_int_equal(v.pool_guid, pool_guid);

    w = wish(POOL_REPLICA_KEEP, v.guid);
    pool_replicas_wish(all, &w);
    serve_until(all, v, v.open && v.size && v.last_end[0]);
    assert_false(v.connected || v.complete);
    assert_true(v.fresh);
    assert_int_equal(v.size, 8 * MIB);
    assert_int_equal(v.block_size, 8192);
    assert_true(pool_replicas_busy(all));
    struct pool_replica_row *rows;
    assert_int_equal(pool_replicas_list(all, &rows), 1);
    assert_string_equal(rows[0].zvol, "vol");
    assert_string_equal(rows[0].name, "r");
    assert_string_equal(rows[0].volume_id, "volume");
    assert_int_equal(rows[0].replicaid, ID);
    assert_true(rows[0].wished && rows[0].guid == v.guid);
    free(rows);

    pool_replicas_detach(all);
    assert_false(pool_replicas_busy(all));
    assert_ok(zpool_export(p, &e) == 0);
    p = import_all(pool_guid);
    pool_replicas_attach(all, p);
    serve_until(all, v, v.open);
    assert_string_equal(v.damage, "");

    pool_replicas_forget(all, "r");
    while (pool_replicas_busy(all))
        pool_replicas_serve(all);
    assert_false(pool_replicas_view(all, "r", &v));
    w = wish(POOL_REPLICA_DESTROY, w.guid);
    pool_replicas_wish(all, &w);
    serve_until(all, v, v.gone);
    end(all);
    struct zpool_volume_info *list;
    size_t n;
    assert_ok(zpool_volume_list(p, &list, &n, &e) == 0);
    assert_int_equal(n, 0);
    free(list);
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* What another replica has is left alone. */
static void test_foreign(void **state)
{
    (void)state;
    struct pool_replica_view v;
    make_disks();
    struct zpool *p = create("stripe 0");
    struct pool_replicas *all = begin(p);
    struct pool_replica_wish w = wish(POOL_REPLICA_CREATE, 0);
    pool_replicas_wish(all, &w);
    serve_until(all, v, v.known && v.guid);
    uint64_t guid = v.guid;
    for (int want = POOL_REPLICA_KEEP; want <= POOL_REPLICA_DESTROY; want++) {
        w = wish((enum pool_replica_want)want, guid);
        w.replicaid = ID + 1;
        pool_replicas_wish(all, &w);
        serve_until(all, v, v.known);
        assert_true(v.foreign && !v.open && v.guid == guid);
        assert_int_equal(v.gone, want == POOL_REPLICA_DESTROY);
    }
    struct zpool_volume_info info;
    assert_ok(zpool_volume_read_info(p, "vol", &info, &e) == 0);
    assert_int_equal(info.guid, guid);
    w = wish(POOL_REPLICA_KEEP, guid);
    pool_replicas_wish(all, &w);
    serve_until(all, v, v.open && !v.foreign);
    end(all);
    assert_ok(zpool_export(p, &e) == 0);
}

/* A process that dies between any two steps of making or destroying leaves what the next one ends. */
static void test_halves(void **state)
{
    (void)state;
    struct pool_replica_view v;
    make_disks();
    struct zpool *p = create("stripe 0");
    struct pool_replicas *all = begin(p);
    struct pool_replica_wish w = wish(POOL_REPLICA_CREATE, 0);
    pool_replicas_wish(all, &w);
    serve_until(all, v, v.known && v.guid);
    uint64_t first = v.guid;
    pool_replicas_forget(all, "r");
    serve_until(all, v, !pool_replicas_view(all, "r", &v));
    assert_ok(zpool_volume_destroy(p, "vol", &e) == 0); /* its metadata is left */
    pool_replicas_wish(all, &w);
    serve_until(all, v, v.known && v.guid && v.guid != first);
    w = wish(POOL_REPLICA_KEEP, v.guid);
    pool_replicas_wish(all, &w);
    serve_until(all, v, v.open && v.fresh);
    assert_string_equal(v.damage, "");
    w.want = POOL_REPLICA_DESTROY;
    pool_replicas_wish(all, &w);
    serve_until(all, v, v.gone);
    end(all);
    assert_ok(zpool_destroy(p, &e) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),   cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_life),   cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
