/*
 * Volumes: I/O of every shape, growth, snapshots, clones, streams, a full pool, worker threads.
 */
#include <poll.h>
#include <pthread.h>

#include "zpool/zpooltest.h"

/* A volume beside plain memory. */
struct shadow {
    struct zpool_volume *v;
    unsigned char *bytes;
    uint64_t size;
};

static uint64_t chance = 1;

static uint64_t random_below(uint64_t n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % n;
}

static void shadow_step(struct shadow *s)
{
    enum { MOST = 300000 };
    static unsigned char data[MOST];
    uint64_t n = (1 + random_below(MOST / 512)) * 512, at = random_below(s->size / 512) * 512;
    if (n > s->size - at)
        n = s->size - at;
    if (n > MOST)
        n = MOST / 512 * 512;
    bool fua = random_below(8) == 0;
    if (random_below(5) == 0) {
        assert_int_equal(run_io(s->v, ZPOOL_UNMAP, at, NULL, n, fua), 0);
        memset(s->bytes + at, 0, n);
        return;
    }
    memset(data, (int)random_below(256), n);
    for (uint64_t i = 0; i < n; i += 64)
        data[i] = (unsigned char)random_below(256);
    /* in uneven pieces */
    size_t cut = (size_t)random_below(n + 1);
    struct iovec iov[] = {{data, cut}, {NULL, 0}, {data + cut, n - cut}};
    struct zpool_io io = {.volume = s->v,
                          .op = ZPOOL_WRITE,
                          .fua = fua,
                          .offset = at,
                          .length = n,
                          .iov = iov,
                          .iovs = 3};
    assert_int_equal(zpool_io_run(&io), 0);
    memcpy(s->bytes + at, data, n);
}

static void shadow_verify(struct shadow *s)
{
    unsigned char *data = mem_alloc(s->size);
    size_t third = (size_t)s->size / 3;
    struct iovec iov[] = {{data, third}, {data + third, s->size - third}};
    struct zpool_io io = {
        .volume = s->v, .op = ZPOOL_READ, .length = s->size, .iov = iov, .iovs = 2};
    assert_int_equal(zpool_io_run(&io), 0);
    assert_memory_equal(data, s->bytes, s->size);
    free(data);
}

/* Random reads and writes of all alignments, on every kind of volume; they outlive a restart. */
static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        uint32_t block;
        const char *compression;
        bool thick;
    } table[] = {
        {512, "off", false},    {4096, "lz4", true},    {8192, "off", false},  {0, NULL, true},
        {65536, "zstd", false}, {131072, "lz4", false}, {131072, "off", true},
    };
    make_disks();
    struct zpool *p = create("raidz 0 1 2");
    uint64_t guid = zpool_guid(p);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct shadow s = {.size = 4 * MIB};
        s.bytes = mem_zalloc(s.size);
        struct zpool_volume_spec spec = {s.size, table[i].block, table[i].compression,
                                         table[i].thick};
        assert_ok(zpool_volume_create(p, "vol", &spec, &e) == 0);
        assert_refused(zpool_volume_create(p, "vol", &spec, &e) == 0, "AlreadyExists");
        assert_ok((s.v = zpool_volume_open(p, "vol", false, &e)));
        assert_int_equal(zpool_volume_size(s.v), s.size);
        assert_int_equal(zpool_volume_block_size(s.v), table[i].block ? table[i].block : 16384);
        for (int k = 0; k < 60; k++)
            shadow_step(&s);
        shadow_verify(&s);
        zpool_volume_close(s.v);
        assert_ok(zpool_export(p, &e) == 0);
        p = import_all(guid);
        assert_ok((s.v = zpool_volume_open(p, "vol", false, &e)));
        shadow_verify(&s);
        zpool_volume_close(s.v);

        struct zpool_volume_info info;
        assert_ok(zpool_volume_read_info(p, "vol", &info, &e) == 0);
        assert_string_equal(info.name, "vol");
        assert_string_equal(info.compression, table[i].compression ? table[i].compression : "off");
        assert_int_equal(info.size, s.size);
        assert_true(table[i].thick ? info.reserved > s.size : info.reserved == 0);
        /* a block of 512 bytes takes a sector of 4 KiB all the same */
        uint64_t most = info.block_size < 4096 ? 32 * s.size : 2 * s.size;
        assert_true(table[i].thick ? info.used >= info.reserved : info.used < most);
        /* a block of 4 KiB is a sector, and cannot get smaller */
        if (table[i].compression && strcmp(table[i].compression, "off") != 0 &&
            info.block_size > 4096)
            assert_true(info.referenced < info.logical);
        assert_ok(zpool_volume_destroy(p, "vol", &e) == 0);
        free(s.bytes);
    }
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* What is noted on a volume is there from its first moment; its mark goes back with its data. */
static void test_marks(void **state)
{
    (void)state;
    char text[32];
    struct zpool_volume *v;
    const struct zpool_note notes[] = {{"io.orlop:one", "first"}, {"io.orlop:two", "second"}};
    const struct zpool_volume_spec spec = {.size = MIB, .notes = notes, .n_notes = 2};
    make_disks();
    struct zpool *p = create("mirror 0 1");
    uint64_t guid = zpool_guid(p);
    struct zpool_volume_info info;
    assert_ok(zpool_volume_create(p, "vol", &spec, &e) == 0);
    assert_ok(zpool_volume_read_info(p, "vol", &info, &e) == 0);
    assert_ok((v = zpool_volume_open(p, "vol", false, &e)));
    assert_int_equal(zpool_volume_guid(v), info.guid);
    assert_int_equal(zpool_volume_mark(v), 0);
    assert_ok(zpool_volume_set_mark(v, 7, &e) == 0);
    assert_ok(zpool_snapshot(p, "vol", "snap", &e) == 0);
    assert_ok(zpool_volume_set_mark(v, 8, &e) == 0);
    zpool_volume_close(v);
    assert_ok(zpool_export(p, &e) == 0);
    p = import_all(guid);
    zpool_volume_read_note(p, "vol", "io.orlop:one", text, sizeof(text));
    assert_string_equal(text, "first");
    zpool_volume_read_note(p, "vol", "io.orlop:two", text, sizeof(text));
    assert_string_equal(text, "second");
    zpool_volume_read_note(p, "vol", "io.orlop:none", text, sizeof(text));
    assert_string_equal(text, "");
    assert_ok((v = zpool_volume_open(p, "vol", false, &e)));
    assert_int_equal(zpool_volume_mark(v), 8);
    zpool_volume_close(v);
    assert_ok(zpool_rollback(p, "vol@snap", &e) == 0);
    assert_ok((v = zpool_volume_open(p, "vol", false, &e)));
    assert_int_equal(zpool_volume_mark(v), 7);
    zpool_volume_close(v);
    assert_ok(zpool_destroy(p, &e) == 0);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct zpool_volume_spec spec;
        const char *reason;
    } table[] = {
        {"", {.size = MIB}, "BadName"},
        {"a/b", {.size = MIB}, "BadName"},
        {"a@b", {.size = MIB}, "BadName"},
        {"a b", {.size = MIB}, "BadName"},
        {"a%", {.size = MIB}, "BadName"},
        {"..", {.size = MIB}, "BadName"},
        {"v", {.size = 0}, "BadSize"},
        {"v", {.size = MIB + 512}, "BadSize"},
        {"v", {.size = UINT64_MAX - 16383}, "BadSize"},
        {"v", {.size = MIB, .block_size = 256}, "BadBlockSize"},
        {"v", {.size = MIB, .block_size = 12288}, "BadBlockSize"},
        {"v", {.size = MIB, .block_size = MIB}, "BadBlockSize"},
        {"v", {.size = MIB, .compression = "best"}, "BadCompression"},
        {"v", {.size = 512 * MIB, .thick = true}, "NoSpace"},
    };
    make_disks();
    struct zpool *p = create("stripe 0");
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_refused(zpool_volume_create(p, table[i].name, &table[i].spec, &e) == 0,
                       table[i].reason);
    struct zpool_volume_info *list;
    size_t n;
    assert_ok(zpool_volume_list(p, &list, &n, &e) == 0);
    assert_int_equal(n, 0);
    free(list);
    assert_refused(zpool_volume_open(p, "v", false, &e), "NotFound");
    assert_refused(zpool_volume_destroy(p, "v", &e) == 0, "NotFound");
    struct zpool_volume_info info;
    assert_refused(zpool_volume_read_info(p, "v", &info, &e) == 0, "NotFound");

    struct zpool_volume_spec spec = {.size = MIB};
    assert_ok(zpool_volume_create(p, "v", &spec, &e) == 0);
    struct zpool_volume *v;
    assert_ok((v = zpool_volume_open(p, "v", false, &e)));
    assert_refused(zpool_volume_open(p, "v", false, &e), "Busy");
    assert_refused(zpool_volume_destroy(p, "v", &e) == 0, "Busy");
    static char data[PAGE];
    static const struct {
        uint64_t offset, length;
    } outside[] = {{MIB, 512}, {MIB - 512, 1024}, {UINT64_MAX, 512}, {0, UINT64_MAX}};
    for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
        struct zpool_io io = {
            .volume = v, .offset = outside[i].offset, .length = outside[i].length};
        for (int op = ZPOOL_READ; op <= ZPOOL_UNMAP; op++) {
            io.op = (enum zpool_op)op;
            assert_int_equal(zpool_io_run(&io), op == ZPOOL_FLUSH ? 0 : EINVAL);
        }
    }
    zpool_volume_close(v);
    assert_ok((v = zpool_volume_open(p, "v", true, &e)));
    assert_int_equal(run_io(v, ZPOOL_WRITE, 0, data, PAGE, false), EROFS);
    assert_int_equal(run_io(v, ZPOOL_READ, 0, data, PAGE, false), 0);
    assert_int_equal(flush(v), 0);
    assert_refused(zpool_volume_grow(v, 2 * MIB, &e) == 0, "ReadOnly");
    zpool_volume_close(v);
    assert_ok(zpool_destroy(p, &e) == 0);
}

static void test_grow(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("mirror 0 1");
    uint64_t guid = zpool_guid(p);
    for (int thick = 0; thick <= 1; thick++) {
        struct zpool_volume_spec spec = {.size = 4 * MIB, .thick = thick};
        struct zpool_volume *v;
        struct zpool_volume_info info;
        assert_ok(zpool_volume_create(p, "vol", &spec, &e) == 0);
        assert_ok((v = zpool_volume_open(p, "vol", false, &e)));
        assert_ok(zpool_volume_grow(v, 4 * MIB, &e) == 0);
        assert_refused(zpool_volume_grow(v, 2 * MIB, &e) == 0, "BadSize");
        assert_refused(zpool_volume_grow(v, 4 * MIB + 512, &e) == 0, "BadSize");
        assert_ok(zpool_volume_grow(v, 8 * MIB, &e) == 0);
        if (thick)
            assert_refused(zpool_volume_grow(v, 800L * MIB, &e) == 0, "NoSpace");
        assert_int_equal(zpool_volume_size(v), 8 * MIB);
        static char data[PAGE] = "beyond", back[PAGE];
        assert_int_equal(run_io(v, ZPOOL_WRITE, 8 * MIB - PAGE, data, PAGE, true), 0);
        zpool_volume_close(v);
        assert_ok(zpool_export(p, &e) == 0);
        p = import_all(guid);
        assert_ok((v = zpool_volume_open(p, "vol", false, &e)));
        assert_int_equal(zpool_volume_size(v), 8 * MIB);
        assert_int_equal(run_io(v, ZPOOL_READ, 8 * MIB - PAGE, back, PAGE, false), 0);
        assert_memory_equal(data, back, PAGE);
        zpool_volume_close(v);
        assert_ok(zpool_volume_read_info(p, "vol", &info, &e) == 0);
        assert_true(thick ? info.reserved > 8 * MIB : info.reserved == 0);
        /* the other way round */
        spec.thick = !thick;
        assert_ok(zpool_volume_set(p, "vol", &spec, &e) == 0);
        assert_ok(zpool_volume_read_info(p, "vol", &info, &e) == 0);
        assert_true(!thick ? info.reserved > 8 * MIB : info.reserved == 0);
        assert_ok(zpool_volume_destroy(p, "vol", &e) == 0);
    }
    assert_ok(zpool_destroy(p, &e) == 0);
}

static void expect_page(struct zpool *p, const char *volume, uint64_t page, uint64_t generation)
{
    struct zpool_volume *v;
    uint64_t words[PAGE / 8], found;
    assert_ok((v = zpool_volume_open(p, volume, true, &e)));
    assert_int_equal(run_io(v, ZPOOL_READ, page * PAGE, words, PAGE, false), 0);
    assert_true(read_page(words, page, &found));
    assert_int_equal(found, generation);
    zpool_volume_close(v);
}

static void expect_list(struct zpool *p, const char *expected)
{
    struct zpool_volume_info *list;
    size_t n;
    char names[512] = "";
    assert_ok(zpool_volume_list(p, &list, &n, &e) == 0);
    for (size_t i = 0; i < n; i++) {
        strcat(names, i ? " " : "");
        strcat(names, list[i].name);
        assert_int_equal(list[i].snapshot, strchr(list[i].name, '@') != NULL);
    }
    free(list);
    assert_string_equal(names, expected);
}

/* In the order in which they were taken, also within a second, and whatever they are called. */
static void test_snapshot_order(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("stripe 0");
    const struct zpool_volume_spec spec = {.size = MIB};
    assert_ok(zpool_volume_create(p, "vol", &spec, &e) == 0);
    static const char *const names[] = {"n-9", "n-10", "n-8"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_ok(zpool_snapshot(p, "vol", names[i], &e) == 0);
    expect_list(p, "vol vol@n-9 vol@n-10 vol@n-8");
    assert_ok(zpool_destroy(p, &e) == 0);
}

static void test_snapshots(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("mirror 0 1");
    struct model m = model_new(p);
    uint64_t before = m.generations[5];
    assert_ok(zpool_snapshot(p, "vol", "one", &e) == 0);
    assert_refused(zpool_snapshot(p, "vol", "one", &e) == 0, "AlreadyExists");
    assert_refused(zpool_snapshot(p, "vol", "o/e", &e) == 0, "BadName");
    assert_refused(zpool_snapshot(p, "none", "one", &e) == 0, "NotFound");
    model_write(&m, 5, 10);
    uint64_t after = m.generations[5];
    expect_page(p, "vol@one", 5, before);
    assert_refused(zpool_rollback(p, "vol@one", &e) == 0, "Busy"); /* it is open */
    assert_ok(zpool_snapshot(p, "vol", "two", &e) == 0);
    model_write(&m, 5, 1);
    model_close(&m);

    /* A clone has a life of its own. */
    assert_ok(zpool_clone(p, "vol@one", "copy", &e) == 0);
    struct model c = m;
    c.generations = mem_zalloc(m.pages * sizeof(*m.generations));
    assert_ok((c.v = zpool_volume_open(p, "copy", false, &e)));
    model_write(&c, 7, 1);
    zpool_volume_close(c.v);
    expect_page(p, "copy", 5, before);
    expect_page(p, "copy", 7, c.generations[7]);
    expect_page(p, "vol", 7, m.generations[7]);
    struct zpool_volume_info info;
    assert_ok(zpool_volume_read_info(p, "copy", &info, &e) == 0);
    assert_string_equal(info.origin, "vol@one");
    free(c.generations);

    expect_list(p, "copy vol vol@one vol@two");
    assert_refused(zpool_volume_destroy(p, "vol@one", &e) == 0, "Busy");
    assert_refused(zpool_rollback(p, "vol@one", &e) == 0, "NewerSnapshots");
    assert_refused(zpool_rollback(p, "vol@three", &e) == 0, "NotFound");
    assert_ok(zpool_rollback(p, "vol@two", &e) == 0);
    expect_page(p, "vol", 5, after);
    assert_refused(zpool_promote(p, "vol", &e) == 0, "NoClone");
    assert_ok(zpool_promote(p, "copy", &e) == 0);
    expect_list(p, "copy copy@one vol vol@two");
    assert_ok(zpool_volume_destroy(p, "vol@two", &e) == 0);
    assert_ok(zpool_volume_destroy(p, "vol", &e) == 0);
    assert_ok(zpool_volume_destroy(p, "copy@one", &e) == 0);
    expect_list(p, "copy");
    expect_page(p, "copy", 5, before);
    model_done(&m);
    assert_ok(zpool_destroy(p, &e) == 0);
}

static void test_streams(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("stripe 0 1");
    struct model m = model_new(p);
    assert_ok(zpool_snapshot(p, "vol", "one", &e) == 0);
    uint64_t one = m.generations[5];
    model_write(&m, 5, 10);
    assert_ok(zpool_snapshot(p, "vol", "two", &e) == 0);
    char path[100];
    snprintf(path, sizeof(path), "%s/stream", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_ok(zpool_send(p, "vol@one", NULL, fd, &e) == 0);
    off_t whole = lseek(fd, 0, SEEK_CUR);
    assert_ok(zpool_send(p, "vol@two", "one", fd, &e) == 0);
    off_t both = lseek(fd, 0, SEEK_CUR);
    assert_true(whole > (off_t)(m.pages * PAGE) && both - whole < MIB);
    lseek(fd, 0, SEEK_SET);
    assert_ok(zpool_receive(p, "copy@one", fd, &e) == 0);
    expect_page(p, "copy", 5, one);
    assert_ok(zpool_receive(p, "copy@two", fd, &e) == 0);
    expect_page(p, "copy", 5, m.generations[5]);
    expect_page(p, "copy@one", 5, one);
    /* what is no stream, and one that ends early */
    assert_refused(zpool_receive(p, "bad@one", fd, &e) == 0, "Invalid");
    lseek(fd, 100, SEEK_SET);
    assert_refused(zpool_receive(p, "bad@one", fd, &e) == 0, "Invalid");
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(ftruncate(fd, whole / 2), 0);
    assert_int_equal(zpool_receive(p, "bad@one", fd, &e), -1);
    expect_list(p, "copy copy@one copy@two vol vol@one vol@two");
    close(fd);
    model_done(&m);
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* Writes mebibyte after mebibyte until there is no space; where that was. */
static uint64_t fill_up(struct zpool_volume *v)
{
    static uint64_t data[MIB / 8];
    uint64_t at = 0;
    int error = 0;
    for (; !error && at < zpool_volume_size(v); at += MIB) {
        for (uint64_t i = 0; i < MIB / PAGE; i++)
            fill_page(data + i * PAGE / 8, at / PAGE + i, 1);
        error = run_io(v, ZPOOL_WRITE, at, data, MIB, at % (8 * MIB) == 0);
    }
    assert_int_equal(error, ENOSPC);
    assert_true(at > 32 * MIB);
    return at;
}

static void verify_some(struct zpool_volume *v, uint64_t end)
{
    uint64_t words[PAGE / 8], generation;
    for (uint64_t page = 0; page < end / PAGE; page += 97) {
        assert_int_equal(run_io(v, ZPOOL_READ, page * PAGE, words, PAGE, false), 0);
        assert_true(read_page(words, page, &generation) && generation == 1);
    }
}

/* What people do with a pool that is full: look at it, check it, restart it, and at last delete something. */
static void test_life_when_full(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("stripe 0");
    uint64_t guid = zpool_guid(p);
    struct zpool_volume_spec spec = {.size = 1024L * MIB};
    assert_ok(zpool_volume_create(p, "big", &spec, &e) == 0);
    struct zpool_volume *v;
    assert_ok((v = zpool_volume_open(p, "big", false, &e)));
    uint64_t at = fill_up(v);
    assert_int_equal(flush(v), 0);
    assert_ok(zpool_scrub(p, true, &e) == 0);
    wait_for(scan_is_over(p));
    assert_int_equal(status_of(p).scan.errors, 0);
    verify_some(v, at - 2 * MIB);
    zpool_volume_close(v);
    assert_ok(zpool_export(p, &e) == 0);
    p = import_all(guid);
    assert_int_equal(status_of(p).state, ZPOOL_ONLINE);
    assert_ok((v = zpool_volume_open(p, "big", false, &e)));
    verify_some(v, at - 2 * MIB);
    zpool_volume_close(v);
    /* A snapshot takes next to nothing: it may come or be refused, and can go either way. */
    if (zpool_snapshot(p, "big", "last", &e) == 0)
        assert_ok(zpool_volume_destroy(p, "big@last", &e) == 0);
    assert_ok(zpool_volume_destroy(p, "big", &e) == 0);
    wait_for(zpool_sync(p, NULL) == 0 && status_of(p).available > 32 * MIB);
    assert_ok(zpool_volume_create(p, "next", &spec, &e) == 0);
    assert_ok((v = zpool_volume_open(p, "next", false, &e)));
    fill_up(v);
    zpool_volume_close(v);
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* A pool that fills up says so, goes on reading, and is useful again when something was given back. */
static void test_full(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("stripe 0");
    struct zpool_volume_spec spec = {.size = 1024L * MIB};
    assert_ok(zpool_volume_create(p, "big", &spec, &e) == 0);
    struct zpool_volume *v;
    assert_ok((v = zpool_volume_open(p, "big", false, &e)));
    static uint64_t data[MIB / 8];
    uint64_t at = fill_up(v);
    struct zpool_status s = status_of(p);
    assert_int_equal(s.state, ZPOOL_ONLINE);
    assert_false(s.suspended);
    assert_true(s.available < 4 * MIB);
    assert_int_equal(run_io(v, ZPOOL_WRITE, 0, data, MIB, true), ENOSPC);
    assert_refused(zpool_volume_create(p, "thick",
                                       &(struct zpool_volume_spec){.size = 64 * MIB, .thick = true},
                                       &e) == 0,
                   "NoSpace");
    verify_some(v, at - 2 * MIB);
    assert_int_equal(run_io(v, ZPOOL_UNMAP, 0, NULL, 24 * MIB, true), 0);
    assert_ok(zpool_sync(p, &e) == 0);
    wait_for(zpool_sync(p, NULL) == 0 && status_of(p).available > 16 * MIB);
    assert_int_equal(run_io(v, ZPOOL_WRITE, 0, data, MIB, true), 0);
    zpool_volume_close(v);
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* Worker threads: everything is done once, on the thread that reaps, however much is submitted. */
enum { JOBS = 64, ROUNDS = 6 };

struct job {
    struct zpool_io io;
    struct iovec iov;
    uint64_t words[PAGE / 8];
    unsigned round, *left;
    uint64_t page;
    pthread_t home;
    struct zpool_workers *w;
};

static void next_step(struct job *j)
{
    static const enum zpool_op steps[] = {ZPOOL_WRITE, ZPOOL_FLUSH, ZPOOL_READ};
    j->io.op = steps[j->round % 3];
    if (j->io.op == ZPOOL_WRITE)
        fill_page(j->words, j->page, j->round + 1);
    else
        memset(j->words, 0, sizeof(j->words));
    zpool_workers_submit(j->w, &j->io);
}

static void step_done(struct zpool_io *io)
{
    struct job *j = container_of(io, struct job, io);
    assert_true(pthread_equal(pthread_self(), j->home));
    assert_int_equal(io->error, 0);
    uint64_t generation;
    if (io->op == ZPOOL_READ)
        assert_true(read_page(j->words, j->page, &generation) && generation == j->round - 1);
    if (++j->round < 3 * ROUNDS)
        next_step(j);
    else
        --*j->left;
}

static void test_workers(void **state)
{
    (void)state;
    assert_refused(zpool_workers_new(0, 1, &e), "BadWorkers");
    assert_refused(zpool_workers_new(1, 0, &e), "BadWorkers");
    make_disks();
    struct zpool *p = create("mirror 0 1");
    struct model m = model_new(p);
    static const struct {
        unsigned threads, depth;
    } table[] = {{1, 1}, {4, 16}, {4, 256}};
    static struct job jobs[JOBS];
    for (size_t t = 0; t < ARRAY_SIZE(table); t++) {
        _cleanup_(zpool_workers_freep) struct zpool_workers *w =
            zpool_workers_new(table[t].threads, table[t].depth, &e);
        assert_non_null(w);
        unsigned left = JOBS;
        for (unsigned i = 0; i < JOBS; i++) {
            struct job *j = &jobs[i];
            *j = (struct job){.left = &left, .page = i * 3, .home = pthread_self(), .w = w};
            j->iov = (struct iovec){j->words, PAGE};
            j->io = (struct zpool_io){.volume = m.v,
                                      .offset = j->page * PAGE,
                                      .length = PAGE,
                                      .iov = &j->iov,
                                      .iovs = 1,
                                      .done = step_done};
            next_step(j);
        }
        while (left) {
            struct pollfd fd = {.fd = zpool_workers_fd(w), .events = POLLIN};
            assert_int_equal(poll(&fd, 1, 60000), 1);
            zpool_workers_reap(w);
        }
    }
    model_done(&m);
    assert_ok(zpool_destroy(p, &e) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_marks),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_grow),
        cmocka_unit_test(test_snapshot_order), cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_streams),        cmocka_unit_test(test_full),
        cmocka_unit_test(test_life_when_full), cmocka_unit_test(test_workers),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
