/*
 * A volume of a real pool as a store: what it holds is compared with memory that does the same.
 */
#include <pthread.h>

#include "pool/zvol.h"
#include "zpool/zpooltest.h"

enum { SIZE = 8 * MIB, BLOCK = 4096, LARGEST = 64 };

struct bench {
    struct io_loop *loop;
    struct pool_zvols *zvols;
    struct zpool *pool;
    struct store *store;
    uint8_t *expected; /* of the largest size there is */
    uint64_t guid;
    atomic_bool full;
    bool patient;
    unsigned most;
};

static pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;

static int run_alone(void *context, int (*fn)(void *context), void *argument)
{
    pthread_mutex_lock(context);
    int result = fn(argument);
    pthread_mutex_unlock(context);
    return result;
}

static void open_store(struct bench *b)
{
    struct pool_zvol_options o = {.zvols = b->zvols,
                                  .pool = b->pool,
                                  .name = "vol",
                                  .spec = {.size = SIZE, .block_size = 16384},
                                  .block_size = BLOCK,
                                  .nearly_full = &b->full,
                                  .patient = b->patient,
                                  .most = b->most,
                                  .run = run_alone,
                                  .engine = &engine};
    assert_ok((b->store = pool_zvol_open(&o, &e)));
}

static void begin(struct bench *b, enum io_backend backend)
{
    *b = (struct bench){.expected = mem_zalloc(2 * SIZE)};
    make_disks();
    assert_ok((b->loop = io_loop_new(backend, &e)));
    assert_ok((b->zvols = pool_zvols_new(b->loop, 4, &e)));
    b->pool = create("mirror 0 1");
    b->guid = zpool_guid(b->pool);
    open_store(b);
    assert_int_equal(b->store->size, SIZE);
}

static void end(struct bench *b)
{
    store_close(b->store);
    assert_ok(zpool_destroy(b->pool, &e) == 0);
    pool_zvols_free(b->zvols);
    io_loop_turn(b->loop, 0);
    io_loop_turn(b->loop, 0);
    io_loop_free(b->loop);
    free(b->expected);
}

struct waiter {
    struct store_io io;
    struct iovec iov;
    bool done;
    int error;
};

static void io_ended(struct store_io *io, int error)
{
    struct waiter *w = container_of(io, struct waiter, io);
    assert_false(w->done);
    w->done = true;
    w->error = error;
}

static void start(struct bench *b, struct waiter *w, enum store_op op, uint64_t offset,
                  uint64_t length, void *data, uint64_t snapshot)
{
    *w = (struct waiter){.iov = {data, length}};
    w->io = (struct store_io){.op = op,
                              .offset = offset,
                              .length = length,
                              .snapshot = snapshot,
                              .iov = &w->iov,
                              .iovs = data ? 1 : 0,
                              .done = io_ended};
    store_submit(b->store, &w->io);
}

static int finish(struct bench *b, struct waiter *w)
{
    while (!w->done)
        io_loop_turn(b->loop, -1);
    return w->error;
}

static int once(struct bench *b, enum store_op op, uint64_t offset, uint64_t length, void *data,
                uint64_t snapshot)
{
    struct waiter w;
    start(b, &w, op, offset, length, data, snapshot);
    return finish(b, &w);
}

static void changed(void *context, int error)
{
    *(int *)context = error;
}

#define await(b, call)                                                                             \
    ({                                                                                             \
        int result_ = -1;                                                                          \
        call;                                                                                      \
        while (result_ == -1)                                                                      \
            io_loop_turn((b)->loop, -1);                                                           \
        result_;                                                                                   \
    })

static void write_some(struct bench *b, unsigned *seed, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        enum { AT_ONCE = 4, REGION = SIZE / AT_ONCE };
        struct waiter w[AT_ONCE];
        static uint8_t data[AT_ONCE][LARGEST * BLOCK];
        for (unsigned k = 0; k < AT_ONCE;
             k++) { /* in regions of their own, as they have no order */
            uint64_t length = ((uint64_t)rand_r(seed) % LARGEST + 1) * BLOCK;
            uint64_t offset =
                k * REGION + (uint64_t)rand_r(seed) % ((REGION - length) / BLOCK + 1) * BLOCK;
            unsigned kind = (unsigned)rand_r(seed) % 8;
            enum store_op op = kind == 0 ? STORE_UNMAP : kind == 1 ? STORE_ZERO : STORE_WRITE;
            for (uint64_t at = 0; at < length; at++)
                data[k][at] = op == STORE_WRITE ? (uint8_t)(rand_r(seed) >> 3) : 0;
            memcpy(b->expected + offset, data[k], length);
            start(b, &w[k], op, offset, length, op == STORE_WRITE ? data[k] : NULL, 0);
        }
        for (unsigned k = 0; k < AT_ONCE; k++)
            assert_int_equal(finish(b, &w[k]), 0);
    }
}

static void verify(struct bench *b, const uint8_t *expected, uint64_t size, uint64_t snapshot)
{
    uint8_t *data = mem_alloc(MIB);
    for (uint64_t at = 0; at < size; at += MIB) {
        assert_int_equal(once(b, STORE_READ, at, MIB, data, snapshot), 0);
        assert_memory_equal(data, expected + at, MIB);
    }
    free(data);
}

static void test_io(void **state)
{
    (void)state;
    static const enum io_backend backends[] = {IO_EPOLL, IO_AUTO};
    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        struct bench b;
        unsigned seed = 7;
        begin(&b, backends[i]);
        verify(&b, b.expected, SIZE, 0);
        write_some(&b, &seed, 20);
        assert_int_equal(once(&b, STORE_FLUSH, 0, 0, NULL, 0), 0);
        verify(&b, b.expected, SIZE, 0);
        /* Again from the devices; a size that is there already is no change. */
        store_close(b.store);
        assert_ok(zpool_export(b.pool, &e) == 0);
        b.pool = import_all(b.guid);
        open_store(&b);
        verify(&b, b.expected, SIZE, 0);
        /* No room: writes are refused, what gives room is not. */
        uint8_t page[BLOCK] = {1};
        atomic_store(&b.full, true);
        assert_int_equal(once(&b, STORE_WRITE, 0, BLOCK, page, 0), ENOSPC);
        assert_int_equal(once(&b, STORE_UNMAP, 0, BLOCK, NULL, 0), 0);
        memset(b.expected, 0, BLOCK);
        atomic_store(&b.full, false);
        assert_int_equal(once(&b, STORE_READ, SIZE, BLOCK, page, 0), EINVAL);
        verify(&b, b.expected, SIZE, 0);
        end(&b);
    }
}

static void test_changes(void **state)
{
    (void)state;
    struct bench b;
    unsigned seed = 11;
    struct store_snapshot list[4];
    begin(&b, IO_AUTO);
    write_some(&b, &seed, 8);
    uint8_t *then = mem_zalloc(2 * SIZE);
    memcpy(then, b.expected, SIZE);
    assert_int_equal(await(&b, store_snapshot(b.store, 3, changed, &result_)), 0);
    assert_int_equal(await(&b, store_snapshot(b.store, 3, changed, &result_)), EEXIST);
    assert_int_equal(await(&b, store_grow(b.store, 2 * SIZE, changed, &result_)), 0);
    assert_int_equal(b.store->size, 2 * SIZE);
    write_some(&b, &seed, 8);
    uint8_t *end_of_it = mem_alloc(MIB);
    memset(end_of_it, 5, MIB);
    memset(b.expected + 2 * SIZE - MIB, 5, MIB);
    assert_int_equal(once(&b, STORE_WRITE, 2 * SIZE - MIB, MIB, end_of_it, 0), 0);
    free(end_of_it);
    assert_int_equal(await(&b, store_snapshot(b.store, 4, changed, &result_)), 0);
    verify(&b, b.expected, 2 * SIZE, 0);
    verify(&b, b.expected, 2 * SIZE, 4);
    verify(&b, then, 2 * SIZE, 3); /* beyond its end it reads as zeroes */
    /* They are there after an import. */
    store_close(b.store);
    assert_ok(zpool_export(b.pool, &e) == 0);
    b.pool = import_all(b.guid);
    open_store(&b);
    assert_int_equal(store_snapshots(b.store, list, 4), 2);
    assert_int_equal(list[0].id, 3);
    assert_int_equal(list[0].size, SIZE);
    assert_int_equal(list[1].id, 4);
    verify(&b, then, 2 * SIZE, 3);
    /* Back to the first: the second is gone, the size stays. */
    assert_int_equal(await(&b, store_revert(b.store, 9, changed, &result_)), ENOENT);
    assert_int_equal(await(&b, store_revert(b.store, 3, changed, &result_)), 0);
    assert_int_equal(b.store->size, 2 * SIZE);
    verify(&b, then, 2 * SIZE, 0);
    assert_int_equal(store_snapshots(b.store, list, 4), 1);
    memcpy(b.expected, then, 2 * SIZE);
    write_some(&b, &seed, 4);
    verify(&b, b.expected, 2 * SIZE, 0);
    assert_int_equal(await(&b, store_snapshot_drop(b.store, 3, changed, &result_)), 0);
    assert_int_equal(await(&b, store_snapshot_drop(b.store, 3, changed, &result_)), 0);
    assert_int_equal(store_snapshots(b.store, list, 4), 0);
    uint8_t page[BLOCK];
    assert_int_equal(once(&b, STORE_READ, 0, BLOCK, page, 3), ENOENT);
    free(then);
    end(&b);
}

/* What the owner stamps on it is there until the data is put back by hand; a revert keeps it. */
static void test_stamp(void **state)
{
    (void)state;
    struct bench b;
    struct store_mark mark;
    begin(&b, IO_AUTO);
    assert_true(store_mark(b.store, &mark));
    assert_int_equal(mark.generation, 0);
    assert_int_equal(await(&b, store_stamp(b.store, 5, changed, &result_)), 0);
    assert_int_equal(await(&b, store_snapshot(b.store, 1, changed, &result_)), 0);
    assert_int_equal(await(&b, store_stamp(b.store, 6, changed, &result_)), 0);
    assert_int_equal(await(&b, store_revert(b.store, 1, changed, &result_)), 0);
    store_close(b.store);
    open_store(&b);
    assert_true(store_mark(b.store, &mark));
    assert_int_equal(mark.generation, 6);
    store_close(b.store);
    assert_ok(zpool_rollback(b.pool, "vol@orlop-1", &e) == 0);
    open_store(&b);
    assert_true(store_mark(b.store, &mark));
    assert_int_equal(mark.generation, 5);
    assert_int_equal(await(&b, store_snapshot_drop(b.store, 1, changed, &result_)), 0);
    end(&b);
}

/* A revert that a crash cuts short is done by whoever opens the volume next, wherever it was. */
static void test_revert_cut_short(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct bench b;
        unsigned seed = 21;
        struct store_mark mark;
        struct store_snapshot list[4];
        char left[64];
        begin(&b, IO_AUTO);
        write_some(&b, &seed, 4);
        assert_int_equal(await(&b, store_stamp(b.store, 5, changed, &result_)), 0);
        assert_int_equal(await(&b, store_snapshot(b.store, 1, changed, &result_)), 0);
        uint8_t *then = mem_zalloc(2 * SIZE);
        memcpy(then, b.expected, SIZE);
        assert_int_equal(await(&b, store_grow(b.store, 2 * SIZE, changed, &result_)), 0);
        write_some(&b, &seed, 4);
        assert_int_equal(await(&b, store_stamp(b.store, 6, changed, &result_)), 0);
        assert_int_equal(await(&b, store_snapshot(b.store, 2, changed, &result_)), 0);
        store_close(b.store);
        /* As far as it came: noted; a snapshot gone; rolled back. */
        _cleanup_free_ char *note = mem_printf("1 6 %d", 2 * SIZE);
        assert_ok(zpool_volume_note(b.pool, "vol", "io.orlop:reverting", note, &e) == 0);
        if (how > 0)
            assert_ok(zpool_volume_destroy(b.pool, "vol@orlop-2", &e) == 0);
        if (how > 1)
            assert_ok(zpool_rollback(b.pool, "vol@orlop-1", &e) == 0);
        open_store(&b);
        assert_int_equal(b.store->size, 2 * SIZE);
        verify(&b, then, 2 * SIZE, 0);
        assert_true(store_mark(b.store, &mark));
        assert_int_equal(mark.generation, 6);
        assert_int_equal(store_snapshots(b.store, list, 4), 1);
        zpool_volume_read_note(b.pool, "vol", "io.orlop:reverting", left, sizeof(left));
        assert_string_equal(left, "");
        assert_int_equal(await(&b, store_snapshot_drop(b.store, 1, changed, &result_)), 0);
        free(then);
        end(&b);
    }
}

static void paused(void *context)
{
    *(bool *)context = true;
}

static void pause_store(struct bench *b)
{
    bool done = false;
    store_pause(b->store, paused, &done);
    while (!done)
        io_loop_turn(b->loop, -1);
}

/* A pool without room: writes wait, and go on when something was destroyed. */
static void test_room(void **state)
{
    (void)state;
    enum { AT_ONCE = 8, PIECE = 128 * 1024 };
    struct bench b;
    static struct waiter w[AT_ONCE];
    static uint8_t data[AT_ONCE][PIECE];
    struct pool_zvol_health health;
    begin(&b, IO_AUTO);
    store_close(b.store);
    b.patient = true;
    b.most = 3;
    open_store(&b);
    const struct zpool_volume_spec ballast = {.size = 256 * MIB, .block_size = 131072};
    struct zpool_volume *v;
    assert_ok(zpool_volume_create(b.pool, "ballast", &ballast, &e) == 0);
    assert_ok((v = zpool_volume_open(b.pool, "ballast", false, &e)));
    int error = 0;
    for (uint64_t at = 0; !error && at < ballast.size; at += PIECE) {
        for (size_t i = 0; i < PIECE; i++)
            data[0][i] = (uint8_t)(rand() >> 4);
        struct iovec iov = {data[0], PIECE};
        const struct zpool_io io = {
            .volume = v, .op = ZPOOL_WRITE, .offset = at, .length = PIECE, .iov = &iov, .iovs = 1};
        error = zpool_io_run(&io);
    }
    assert_int_equal(error, ENOSPC);
    zpool_volume_close(v);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        memset(data[i], (int)i + 1, PIECE);
        start(&b, &w[i], STORE_WRITE, i * PIECE, PIECE, data[i], 0);
    }
    unsigned done = 0;
    do { /* after a try that failed */
        io_loop_turn(b.loop, -1);
        pool_zvol_health(b.store, &health);
    } while (!health.full);
    for (unsigned i = 0; i < AT_ONCE; i++)
        done += w[i].done;
    assert_true(done < AT_ONCE);
    uint8_t page[BLOCK];
    assert_int_equal(once(&b, STORE_READ, SIZE - BLOCK, BLOCK, page, 0), 0);
    assert_ok(zpool_volume_destroy(b.pool, "ballast", &e) == 0);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        assert_int_equal(finish(&b, &w[i]), 0);
        memcpy(b.expected + i * PIECE, data[i], PIECE);
    }
    pool_zvol_health(b.store, &health);
    assert_false(health.full);
    verify(&b, b.expected, SIZE, 0);
    /* Who is about to close it is told what does not fit. */
    atomic_store(&b.full, true);
    start(&b, &w[0], STORE_WRITE, 0, BLOCK, data[0], 0);
    assert_false(w[0].done);
    pause_store(&b);
    assert_int_equal(finish(&b, &w[0]), ENOSPC);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_io),    cmocka_unit_test(test_changes),
        cmocka_unit_test(test_stamp), cmocka_unit_test(test_revert_cut_short),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
