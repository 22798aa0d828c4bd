/*
 * Every kind of store does the same: each case runs on each row of the table.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/loop.h"
#include "store/store.h"
#include "unit.h"

enum { SIZE = 1 << 20, BLOCK = 512 };

static const struct row {
    const char *name; /* %s is a scratch path */
    enum io_backend io;
    bool extents;
    bool sums;
} rows[] = {
    {"mem:", IO_EPOLL, false},
    {"file:%s", IO_EPOLL, true},
    {"file:%s", IO_URING, true},
    {"file:%s?direct=1", IO_EPOLL, true},
    {"file:%s?direct=1", IO_URING, true},
    {"fault:any=1ms/50,read=EIO#1000000;file:%s", IO_EPOLL, true},
    {"volatile:file:%s", IO_EPOLL, false},
    {"volatile:file:%s", IO_URING, false},
    {"file:%s", IO_EPOLL, true, true},
    {"file:%s?direct=1", IO_EPOLL, true, true},
    {"file:%s?direct=1", IO_URING, true, true},
    {"volatile:file:%s", IO_EPOLL, false, true},
};

struct bench {
    struct io_loop *loop;
    struct store *store;
    char path[64];
    bool sums;
};

static struct store *open_name(struct bench *b, const char *format, uint64_t size, bool read_only,
                               struct err *e)
{
    char name[256];
    snprintf(name, sizeof(name), format, b->path);
    const struct store_options o = {
        .loop = b->loop,
        .size = size,
        .block_size = BLOCK,
        .read_only = read_only,
        .sums = b->sums,
    };
    return store_open(name, &o, e);
}

/* A scratch file on a real file system where there is one: O_DIRECT wants that. */
static void each_store(void (*fn)(struct bench *b, const struct row *row))
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct bench b = {.path = "/var/tmp/orlop-store-XXXXXX", .sums = rows[i].sums};
        struct err e = {0};
        char name[80];
        int fd = mkstemp(b.path);
        assert_true(fd >= 0);
        close(fd);
        b.loop = io_loop_new(rows[i].io, &e);
        if (b.loop) { /* io_uring may be refused here */
            b.store = open_name(&b, rows[i].name, SIZE, false, &e);
            if (!b.store && strstr(rows[i].name, "direct")) {
                print_message("no O_DIRECT here: %s\n", e.msg);
            } else {
                assert_non_null(b.store);
                fn(&b, &rows[i]);
                store_close(b.store);
            }
            io_loop_free(b.loop);
        }
        snprintf(name, sizeof(name), "file:%s", b.path);
        assert_int_equal(store_remove(name, &e), 0);
    }
}

struct waiter {
    struct store_io io;
    bool done;
    int error;
};

static void waiter_done(struct store_io *io, int error)
{
    struct waiter *w = container_of(io, struct waiter, io);
    assert_false(w->done);
    w->done = true;
    w->error = error;
}

static int wait_for(struct bench *b, struct waiter *w)
{
    while (!w->done)
        io_loop_turn(b->loop, -1);
    return w->error;
}

static void begin(struct bench *b, struct waiter *w, enum store_op op, uint64_t offset,
                  uint64_t length, struct iovec *iov, unsigned iovs, bool fua)
{
    *w = (struct waiter){.io = {.op = op,
                                .fua = fua,
                                .offset = offset,
                                .length = length,
                                .iov = iov,
                                .iovs = iovs,
                                .done = waiter_done}};
    store_submit(b->store, &w->io);
}

static int run(struct bench *b, enum store_op op, uint64_t offset, uint64_t length, uint8_t *data,
               bool fua)
{
    struct waiter w;
    struct iovec iov = {data, length};
    begin(b, &w, op, offset, length, &iov, data ? 1 : 0, fua);
    return wait_for(b, &w);
}

/* A long random series of everything, against memory that does the same. */
static void model(struct bench *b, const struct row *row)
{
    uint8_t *expected = mem_zalloc(SIZE), *data = mem_alloc(256 << 10), *back = mem_alloc(SIZE);
    unsigned seed = 42;
    (void)row;
    for (int i = 0; i < 400; i++) {
        uint64_t offset = (uint64_t)rand_r(&seed) % (SIZE / BLOCK) * BLOCK;
        uint64_t length = ((uint64_t)rand_r(&seed) % 300 + 1) * BLOCK;
        if (length > SIZE - offset)
            length = SIZE - offset;
        bool fua = rand_r(&seed) % 20 == 0;
        struct waiter w;
        struct iovec iov[3];
        size_t first = (size_t)rand_r(&seed) % length;
        switch (rand_r(&seed) % 6) {
        case 0:
            assert_int_equal(run(b, STORE_UNMAP, offset, length, NULL, fua), 0);
            memset(expected + offset, 0, length);
            break;
        case 1:
            assert_int_equal(run(b, STORE_ZERO, offset, length, NULL, fua), 0);
            memset(expected + offset, 0, length);
            break;
        case 2: /* in uneven pieces, at uneven addresses, as from a network */
            memset(data, i | 1, length + 100);
            iov[0] = (struct iovec){data + 48, first};
            iov[1] = (struct iovec){data + 48 + first, length - first};
            begin(b, &w, STORE_WRITE, offset, length, iov, 2, fua);
            assert_int_equal(wait_for(b, &w), 0);
            memset(expected + offset, i | 1, length);
            break;
        case 3:
            memset(data, i | 1, length);
            assert_int_equal(run(b, STORE_WRITE, offset, length, data, fua), 0);
            memset(expected + offset, i | 1, length);
            break;
        case 4:
            assert_int_equal(run(b, STORE_FLUSH, 0, 0, NULL, false), 0);
            break;
        default:
            assert_int_equal(run(b, STORE_READ, offset, length, back, false), 0);
            assert_memory_equal(back, expected + offset, length);
        }
    }
    assert_int_equal(run(b, STORE_READ, 0, SIZE, back, false), 0);
    assert_memory_equal(back, expected, SIZE);
    free(expected);
    free(data);
    free(back);
}

static void test_model(void **state)
{
    (void)state;
    each_store(model);
}

static void bounds(struct bench *b, const struct row *row)
{
    static const struct {
        enum store_op op;
        uint64_t offset, length;
        int error;
    } cases[] = {
        {STORE_READ, 0, SIZE + BLOCK, EINVAL},
        {STORE_READ, SIZE, BLOCK, EINVAL},
        {STORE_READ, UINT64_MAX - BLOCK + 1, BLOCK, EINVAL},
        {STORE_READ, 1, BLOCK, EINVAL},
        {STORE_READ, 0, 100, EINVAL},
        {STORE_WRITE, SIZE - BLOCK, 2 * BLOCK, EINVAL},
        {STORE_UNMAP, 0, UINT64_MAX - BLOCK + 1, EINVAL},
        {STORE_READ, SIZE, 0, 0},
        {STORE_ZERO, SIZE - BLOCK, BLOCK, 0},
    };
    uint8_t data[2 * BLOCK] = {0};
    (void)row;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(run(b, cases[i].op, cases[i].offset, cases[i].length, data, false),
                         cases[i].error);
}

static void test_bounds(void **state)
{
    (void)state;
    each_store(bounds);
}

static int grow_error;

static void grown(void *context, int error)
{
    *(bool *)context = true;
    grow_error = error;
}

static void growth(struct bench *b, const struct row *row)
{
    uint8_t data[BLOCK], back[BLOCK];
    bool done = false;
    memset(data, 'g', sizeof(data));
    assert_int_equal(run(b, STORE_WRITE, SIZE - BLOCK, BLOCK, data, false), 0);
    store_grow(b->store, SIZE / 2, grown, &done);
    assert_true(done);
    assert_int_equal(grow_error, EINVAL);
    done = false;
    store_grow(b->store, 2 * SIZE, grown, &done);
    while (!done)
        io_loop_turn(b->loop, -1);
    assert_int_equal(grow_error, 0);
    assert_int_equal(b->store->size, 2 * SIZE);
    assert_int_equal(run(b, STORE_READ, SIZE - BLOCK, BLOCK, back, false), 0);
    assert_memory_equal(back, data, BLOCK);
    assert_int_equal(run(b, STORE_WRITE, 2 * SIZE - BLOCK, BLOCK, data, true), 0);
    assert_int_equal(run(b, STORE_READ, 2 * SIZE - 2 * BLOCK, BLOCK, back, false), 0);
    assert_int_equal(back[0], 0);
    if (row->extents) {
        struct stat st;
        assert_int_equal(stat(b->path, &st), 0);
        assert_int_equal(st.st_size, 2 * SIZE);
    }
}

static void test_growth(void **state)
{
    (void)state;
    each_store(growth);
}

static void extents(struct bench *b, const struct row *row)
{
    enum { AT = 256 << 10, LONG = 64 << 10 };
    uint8_t *data = mem_alloc(LONG);
    uint64_t length = 0;
    if (row->extents) {
        memset(data, 'e', LONG);
        assert_int_equal(b->store->ops->extent(b->store, 0, &length), STORE_UNMAPPED);
        assert_int_equal(length, SIZE);
        assert_int_equal(run(b, STORE_WRITE, AT, LONG, data, true), 0);
        assert_int_equal(b->store->ops->extent(b->store, 0, &length), STORE_UNMAPPED);
        assert_int_equal(length, AT);
        assert_int_equal(b->store->ops->extent(b->store, AT, &length), STORE_MAPPED);
        assert_int_equal(length, LONG);
        assert_true(b->store->ops->used(b->store) >= LONG);
        assert_int_equal(run(b, STORE_UNMAP, AT, LONG, NULL, true), 0);
        assert_int_equal(b->store->ops->extent(b->store, 0, &length), STORE_UNMAPPED);
        assert_int_equal(length, SIZE);
    }
    free(data);
}

static void test_extents(void **state)
{
    (void)state;
    each_store(extents);
}

/* Many at a time, flushes among them: each is done once. */
static void crowd(struct bench *b, const struct row *row)
{
    enum { N = 256 };
    struct waiter *all = mem_zalloc(N * sizeof(*all));
    struct iovec iov[N];
    uint8_t *data = mem_alloc(N * BLOCK), back[BLOCK];
    (void)row;
    for (unsigned i = 0; i < N; i++) {
        memset(data + i * BLOCK, (int)i, BLOCK);
        iov[i] = (struct iovec){data + i * BLOCK, BLOCK};
        enum store_op op = i % 8 == 7 ? STORE_FLUSH : STORE_WRITE;
        begin(b, &all[i], op, i * BLOCK, BLOCK, &iov[i], 1, i % 5 == 0);
    }
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(wait_for(b, &all[i]), 0);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(run(b, STORE_READ, i * BLOCK, BLOCK, back, false), 0);
        assert_int_equal(back[0], i % 8 == 7 ? 0 : (uint8_t)i);
    }
    free(all);
    free(data);
}

static void test_crowd(void **state)
{
    (void)state;
    each_store(crowd);
}

/* Opening: what is refused, and what survives. */
static void test_open(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t size;
        const char *message; /* its beginning */
    } wrong[] = {
        {"tape:x", SIZE, "no store is called 'tape:x'"},
        {"mem:", 0, "write mem: and a size"},
        {"mem:", 1000, "1000 bytes are not a whole number of blocks of 512"},
        {"file:", SIZE, "'file:': write file:PATH"},
        {"file:%s?direct=2", SIZE, "'file:/var/tmp/orlop-open"},
        {"file:%s", 0, "/var/tmp/orlop-open"},
        {"file:/var/tmp", SIZE, "cannot open /var/tmp"},
        {"fault:read=EIO", SIZE, "cannot read the rules of"},
        {"fault:think=EIO;mem:", SIZE, "cannot read the rules of"},
        {"fault:read=EIO@5;mem:", SIZE, "cannot read the rules of"},
        {"fault:read=EIO;tape:", SIZE, "no store is called 'tape:'"},
    };
    struct bench b = {.path = "/var/tmp/orlop-open-XXXXXX"};
    close(mkstemp(b.path));
    b.loop = io_loop_new(IO_AUTO, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct err e = {0};
        assert_null(open_name(&b, wrong[i].name, wrong[i].size, false, &e));
        if (strncmp(e.msg, wrong[i].message, strlen(wrong[i].message)) != 0)
            fail_msg("%s: %s", wrong[i].name, e.msg);
    }
    uint8_t data[BLOCK], back[BLOCK];
    struct err e = {0};
    memset(data, 'k', sizeof(data));
    b.store = open_name(&b, "file:%s", SIZE, false, &e);
    assert_non_null(b.store);
    assert_int_equal(run(&b, STORE_WRITE, BLOCK, BLOCK, data, true), 0);
    assert_null(open_name(&b, "file:%s", SIZE, false, &e)); /* two writers */
    assert_non_null(strstr(e.msg, "is in use by another program"));
    store_close(b.store);
    assert_null(open_name(&b, "file:%s", SIZE / 2, false, &e));
    assert_non_null(strstr(e.msg, "does not shrink"));
    b.store = open_name(&b, "file:%s", 0, true, &e);
    assert_int_equal(b.store->size, SIZE);
    assert_int_equal(run(&b, STORE_READ, BLOCK, BLOCK, back, false), 0);
    assert_memory_equal(back, data, BLOCK);
    assert_int_equal(run(&b, STORE_WRITE, BLOCK, BLOCK, data, false), EROFS);
    assert_int_equal(run(&b, STORE_UNMAP, BLOCK, BLOCK, NULL, false), EROFS);
    store_close(b.store);
    io_loop_free(b.loop);
    unlink(b.path);
}

static void test_faults(void **state)
{
    (void)state;
    struct bench b = {0};
    struct err e = {0};
    uint8_t data[4 * BLOCK], back[4 * BLOCK];
    memset(data, 'f', sizeof(data));
    b.loop = io_loop_new(IO_EPOLL, NULL);
    b.store = open_name(&b,
                        "fault:read=EIO@8192+512,write=torn#2,write=lost#3,flush=ENOSPC/2,"
                        "unmap=20ms;mem:",
                        SIZE, false, &e);
    assert_non_null(b.store);
    assert_int_equal(run(&b, STORE_READ, 8192 - BLOCK, BLOCK, back, false), 0);
    assert_int_equal(run(&b, STORE_READ, 8192 - BLOCK, 2 * BLOCK, back, false), EIO);
    assert_int_equal(run(&b, STORE_READ, 8192 + BLOCK, BLOCK, back, false), 0);
    assert_int_equal(run(&b, STORE_WRITE, 0, 4 * BLOCK, data, false), 0);
    assert_int_equal(run(&b, STORE_WRITE, 4 * BLOCK, 4 * BLOCK, data, false), EIO);
    assert_int_equal(run(&b, STORE_READ, 4 * BLOCK, 4 * BLOCK, back, false), 0);
    assert_int_equal(back[2 * BLOCK - 1], 'f'); /* half of it is there */
    assert_int_equal(back[2 * BLOCK], 0);
    assert_int_equal(run(&b, STORE_WRITE, 8 * BLOCK, BLOCK, data, false), 0);
    assert_int_equal(run(&b, STORE_READ, 8 * BLOCK, BLOCK, back, false), 0);
    assert_int_equal(back[0], 'f'); /* the rule counts what reaches it: torn took the second */
    assert_int_equal(run(&b, STORE_WRITE, 9 * BLOCK, BLOCK, data, false), 0);
    assert_int_equal(run(&b, STORE_READ, 9 * BLOCK, BLOCK, back, false), 0);
    assert_int_equal(back[0], 0); /* lost */
    assert_int_equal(run(&b, STORE_FLUSH, 0, 0, NULL, false), 0);
    assert_int_equal(run(&b, STORE_FLUSH, 0, 0, NULL, false), ENOSPC);
    int64_t before = io_loop_now(b.loop);
    assert_int_equal(run(&b, STORE_UNMAP, 0, BLOCK, NULL, false), 0);
    io_loop_turn(b.loop, 0);
    assert_true(io_loop_now(b.loop) - before >= 19000000);
    store_close(b.store);
    io_loop_free(b.loop);
}

/* What was flushed stays; of what was not, some is lost when nobody had the time to flush. */
static void test_volatile(void **state)
{
    (void)state;
    enum { WRITES = 64 };
    struct bench b = {.path = "/var/tmp/orlop-store-XXXXXX"};
    struct err e = {0};
    uint8_t data[2 * BLOCK], back[2 * BLOCK];
    int fd = mkstemp(b.path), lost = 0;
    assert_true(fd >= 0);
    b.loop = io_loop_new(IO_EPOLL, NULL);
    b.store = open_name(&b, "volatile:file:%s", SIZE, false, &e);
    assert_non_null(b.store);
    memset(data, 'o', sizeof(data));
    for (uint64_t i = 0; i < WRITES; i++)
        assert_int_equal(run(&b, STORE_WRITE, i * 2 * BLOCK, 2 * BLOCK, data, false), 0);
    assert_int_equal(run(&b, STORE_FLUSH, 0, 0, NULL, false), 0);
    memset(data, 'n', sizeof(data));
    for (uint64_t i = 0; i < WRITES; i++)
        assert_int_equal(run(&b, STORE_WRITE, i * 2 * BLOCK, 2 * BLOCK, data, false), 0);
    assert_int_equal(run(&b, STORE_READ, 0, 2 * BLOCK, back, false), 0);
    assert_memory_equal(back, data, sizeof(data));
    assert_int_equal(run(&b, STORE_WRITE, (uint64_t)WRITES * 2 * BLOCK, BLOCK, data, false), 0);
    store_close(b.store); /* without a flush, as a kill would */
    for (off_t i = 0; i < WRITES; i++) {
        assert_int_equal(pread(fd, back, sizeof(back), i * 2 * BLOCK), sizeof(back));
        assert_true(back[0] == 'n' || back[0] == 'o');
        assert_true(back[BLOCK] == 'o' || back[0] == 'n'); /* torn: the first half */
        lost += back[BLOCK] == 'o';
    }
    assert_true(lost > 0);
    b.store = open_name(&b, "volatile:file:%s", SIZE, false, &e);
    assert_int_equal(run(&b, STORE_WRITE, 0, BLOCK, data, true), 0); /* FUA */
    store_close(b.store);
    assert_int_equal(pread(fd, back, BLOCK, 0), BLOCK);
    assert_memory_equal(back, data, BLOCK);
    close(fd);
    io_loop_free(b.loop);
    unlink(b.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),  cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_growth), cmocka_unit_test(test_extents),
        cmocka_unit_test(test_crowd),  cmocka_unit_test(test_open),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_volatile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
