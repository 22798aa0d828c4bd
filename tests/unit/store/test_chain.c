/*
 * A file with snapshots, against a model: what each sector has, now and in every snapshot. Then the same with a crash
 * after each call that changes a file, in several ways (crashdisk.h): what was flushed is there, every snapshot is
 * whole, and what was being merged goes on. With checksums the same: only what was written since they were flushed may
 * differ from them after a crash, and reads as it is once they are made anew.
 */
#include "crashdisk.h"
#include "io/loop.h"
#include "store/manifest.h"
#include "store/store.h"
#include "unit.h"

enum { BLOCK = 512, SECTORS = 8 * 40 + 3, SECTORS_MOST = 8 * 60, SNAPS = 200, LARGEST = 40 };

struct entry {
    uint32_t value;
    size_t start, sure; /* calls before it began; by when it is certain */
    size_t summed;      /* by when its checksum is */
};

struct snap {
    uint64_t id;
    size_t start, done, drop_start, drop_done;
    uint64_t sectors;
    uint32_t values[SECTORS_MOST];
};

static struct world {
    struct io_loop *loop;
    struct store *store;
    char folder[64], name[128];
    uint64_t sectors;
    uint32_t value[SECTORS_MOST], values;
    struct snap snap[SNAPS];
    int snaps;
    VEC(struct entry) history[SECTORS_MOST];
    unsigned seed;
    bool sums;
    uint32_t cache; /* pages of checksums */
} w;

static size_t now(void)
{
    pthread_mutex_lock(&crash.lock);
    size_t n = crash.log.len;
    pthread_mutex_unlock(&crash.lock);
    return n;
}

static unsigned chance(unsigned n)
{
    return (unsigned)rand_r(&w.seed) % n;
}

struct waiter {
    struct store_io io;
    bool done;
    int error;
};

static void io_done(struct store_io *io, int error)
{
    struct waiter *it = container_of(io, struct waiter, io);
    it->done = true;
    it->error = error;
}

static bool flush_sums, unverified; /* of the next */

static int run(enum store_op op, uint64_t sector, uint64_t n, uint8_t *data, uint64_t snapshot,
               bool fua)
{
    /* In two pieces, as from a network. */
    struct iovec iov[2] = {{data, n * BLOCK / 3},
                           {data + n * BLOCK / 3, n * BLOCK - n * BLOCK / 3}};
    struct waiter it = {.io = {.op = op,
                               .fua = fua,
                               .sums = flush_sums,
                               .unverified = unverified,
                               .offset = sector * BLOCK,
                               .length = n * BLOCK,
                               .snapshot = snapshot,
                               .iov = iov,
                               .iovs = data ? 2 : 0,
                               .done = io_done}};
    store_submit(w.store, &it.io);
    while (!it.done)
        io_loop_turn(w.loop, -1);
    return it.error;
}

struct changed {
    bool done;
    int error;
};

static void change_done(void *context, int error)
{
    *(struct changed *)context = (struct changed){true, error};
}

static int wait_change(struct changed *it)
{
    while (!it->done)
        io_loop_turn(w.loop, -1);
    return it->error;
}

static void all_sure(uint64_t sectors, bool summed)
{
    for (uint64_t i = 0; i < sectors; i++) {
        vec_for_each(&w.history[i], it) {
            if (it->sure == SIZE_MAX)
                it->sure = now();
            if (it->summed == SIZE_MAX && summed)
                it->summed = now();
        }
    }
}

static void do_flush(bool sums)
{
    flush_sums = sums;
    assert_int_equal(run(STORE_FLUSH, 0, 0, NULL, 0, false), 0);
    flush_sums = false;
    all_sure(w.sectors, sums);
}

static void set_value(uint64_t sector, uint32_t value)
{
    w.value[sector] = value;
    vec_push(&w.history[sector], ((struct entry){value, now(), SIZE_MAX, SIZE_MAX}));
}

static void do_write(enum store_op op)
{
    uint64_t n = 1 + chance(chance(3) ? 12 : LARGEST),
             sector = chance((unsigned)(w.sectors - n + 1));
    if (chance(3) == 0) {
        sector &= ~7ul;
        n = (n + 7) & ~7ul;
    }
    if (sector + n > w.sectors)
        n = w.sectors - sector;
    uint32_t value = op == STORE_WRITE ? ++w.values : 0;
    static uint8_t data[(LARGEST + 8) * BLOCK];
    for (uint64_t i = 0; i < n * BLOCK; i += 4)
        memcpy(data + i, &value, 4);
    bool fua = chance(8) == 0;
    for (uint64_t i = 0; i < n; i++)
        set_value(sector + i, value);
    assert_int_equal(run(op, sector, n, op == STORE_WRITE ? data : NULL, 0, fua), 0);
    for (uint64_t i = sector; fua && i < sector + n; i++)
        vec_for_each(&w.history[i], it)
            if (it->sure == SIZE_MAX)
                it->sure = now();
}

static struct snap *some_snap(void)
{
    int alive[SNAPS], n = 0;
    for (int i = 0; i < w.snaps; i++)
        if (w.snap[i].drop_start == SIZE_MAX)
            alive[n++] = i;
    return n ? &w.snap[alive[chance((unsigned)n)]] : NULL;
}

static void do_snapshot(void)
{
    if (w.snaps == SNAPS)
        return;
    struct snap *s = &w.snap[w.snaps++];
    *s = (struct snap){.id = (uint64_t)w.snaps * 3,
                       .start = now(),
                       .sectors = w.sectors,
                       .done = SIZE_MAX,
                       .drop_start = SIZE_MAX,
                       .drop_done = SIZE_MAX};
    memcpy(s->values, w.value, sizeof(s->values));
    struct changed it = {0};
    store_snapshot(w.store, s->id, change_done, &it);
    assert_int_equal(wait_change(&it), 0);
    s->done = now();
    all_sure(w.sectors, true);
}

static void do_drop(void)
{
    struct snap *s = some_snap();
    if (!s)
        return;
    s->drop_start = now();
    struct changed it = {0};
    store_snapshot_drop(w.store, s->id, change_done, &it);
    assert_int_equal(wait_change(&it), 0);
    s->drop_done = now();
}

static void do_revert(void)
{
    struct snap *s = some_snap();
    if (!s)
        return;
    size_t start = now();
    for (uint64_t i = 0; i < w.sectors; i++)
        set_value(i, s->values[i]);
    for (struct snap *later = s + 1; later < w.snap + w.snaps; later++)
        if (later->drop_start == SIZE_MAX)
            later->drop_start = start;
    struct changed it = {0};
    store_revert(w.store, s->id, change_done, &it);
    assert_int_equal(wait_change(&it), 0);
    all_sure(w.sectors, true);
    for (struct snap *later = s + 1; later < w.snap + w.snaps; later++)
        if (later->drop_done == SIZE_MAX && later->drop_start == start)
            later->drop_done = now();
}

static void do_grow(void)
{
    uint64_t to = w.sectors + 1 + chance(20);
    if (to > SECTORS_MOST)
        return;
    struct changed it = {0};
    store_grow(w.store, to * BLOCK, change_done, &it);
    assert_int_equal(wait_change(&it), 0);
    w.sectors = to;
}

static void do_something(void)
{
    switch (chance(20)) {
    case 0:
    case 1:
        do_snapshot();
        break;
    case 2:
        do_drop();
        break;
    case 3:
        if (chance(3) == 0)
            do_revert();
        break;
    case 4:
        if (chance(4) == 0)
            do_grow();
        break;
    case 5:
        do_write(STORE_UNMAP);
        break;
    case 6:
        do_write(STORE_ZERO);
        break;
    case 7:
    case 8:
        do_flush(chance(3) == 0);
        break;
    case 9:
    case 10: /* the merge goes on */
        for (unsigned i = chance(8); i; i--)
            io_loop_turn(w.loop, 0);
        break;
    default:
        do_write(STORE_WRITE);
    }
}

static void read_all(uint64_t snapshot, uint32_t out[SECTORS_MOST])
{
    static uint8_t data[SECTORS_MOST * BLOCK];
    uint64_t sectors = w.store->size / BLOCK;
    assert_int_equal(run(STORE_READ, 0, sectors, data, snapshot, false), 0);
    memset(out, 0, SECTORS_MOST * sizeof(*out));
    for (uint64_t i = 0; i < sectors; i++) {
        memcpy(&out[i], data + i * BLOCK, 4);
        assert_memory_equal(data + i * BLOCK, data + i * BLOCK + 4, BLOCK - 4);
    }
}

static void compare_all(void)
{
    uint32_t got[SECTORS_MOST];
    struct store_snapshot list[SNAPS];
    unsigned n = store_snapshots(w.store, list, SNAPS), k = 0;
    read_all(0, got);
    assert_memory_equal(got, w.value, w.sectors * sizeof(*got));
    for (int i = 0; i < w.snaps; i++) {
        if (w.snap[i].drop_start != SIZE_MAX)
            continue;
        assert_true(k < n);
        assert_int_equal(list[k].id, w.snap[i].id);
        assert_int_equal(list[k++].size, w.snap[i].sectors * BLOCK);
        read_all(w.snap[i].id, got);
        assert_memory_equal(got, w.snap[i].values, sizeof(got));
    }
    assert_int_equal(k, n);
    assert_int_equal(run(STORE_READ, 0, 1, (uint8_t *)got, 1, false), ENOENT);
}

static void open_store(const char *folder, uint64_t sectors)
{
    struct err e = {0};
    const struct store_options o = {.loop = w.loop,
                                    .size = sectors * BLOCK,
                                    .block_size = BLOCK,
                                    .sums = w.sums,
                                    .existing = !sectors,
                                    .identity = {"a store"},
                                    .sums_cache = w.cache};
    char name[200];
    snprintf(name, sizeof(name), w.name, folder);
    w.store = store_open(name, &o, &e);
    if (!w.store)
        fail_msg("%s: %s", name, e.msg);
}

static bool begin(const char *name, enum io_backend io, const char *where, unsigned seed)
{
    for (int i = 0; i < SECTORS_MOST; i++)
        vec_done(&w.history[i]);
    memset(&w, 0, sizeof(w));
    w.seed = seed;
    w.sectors = SECTORS;
    snprintf(w.name, sizeof(w.name), "%s", name);
    snprintf(w.folder, sizeof(w.folder), "%s/orlop-chain-XXXXXX", where);
    assert_non_null(mkdtemp(w.folder));
    for (int i = 0; i < SECTORS_MOST; i++)
        vec_push(&w.history[i], ((struct entry){0}));
    w.loop = io_loop_new(io, NULL);
    return w.loop != NULL;
}

static void end(void)
{
    if (w.loop)
        io_loop_free(w.loop);
    crash_empty(w.folder);
    rmdir(w.folder);
}

/* No layer is left that belongs to no snapshot: the merge is done. */
static unsigned files_in(const char *folder)
{
    unsigned n = 0;
    DIR *dir = opendir(folder);
    const struct dirent *it;
    while ((it = readdir(dir)))
        n += it->d_name[0] != '.' && !strstr(it->d_name, ".map") && !strstr(it->d_name, ".chain") &&
             !strstr(it->d_name, ".sums");
    closedir(dir);
    return n;
}

static void wait_merged(const char *folder)
{
    struct store_snapshot list[SNAPS];
    char path[300];
    snprintf(path, sizeof(path), "%s/data.chain", folder);
    if (access(path, F_OK) < 0)
        return;
    while (files_in(folder) > store_snapshots(w.store, list, SNAPS) + 1)
        io_loop_turn(w.loop, 1000000);
}

struct row {
    const char *name, *where;
    enum io_backend io;
    uint32_t cache; /* pages of checksums; 0: none are kept */
};

static bool begin_row(const struct row *row, unsigned seed)
{
    bool ready = begin(row->name, row->io, row->where, seed);
    w.sums = row->cache;
    w.cache = row->cache;
    return ready;
}

static void test_model(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"file:%s/data", "/dev/shm", IO_EPOLL, 0},
        {"file:%s/data", "/dev/shm", IO_URING, 0},
        {"file:%s/data?direct=1", "/var/tmp", IO_URING, 0},
        {"fault:any=1ms/50,read=EIO#1000000;file:%s/data", "/dev/shm", IO_EPOLL, 0},
        {"file:%s/data", "/dev/shm", IO_EPOLL, 100},
        {"file:%s/data", "/dev/shm", IO_URING, 1},
        {"file:%s/data?direct=1", "/var/tmp", IO_URING, 1},
        {"fault:any=1ms/50,read=EIO#1000000;file:%s/data", "/dev/shm", IO_EPOLL, 2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool direct = strstr(rows[i].name, "direct");
        for (unsigned seed = 1; seed <= (direct ? 1 : rows[i].cache ? 2 : 4); seed++) {
            if (begin_row(&rows[i], seed)) {
                open_store(w.folder, SECTORS);
                for (int k = 0; k < (direct ? 150 : 500); k++) {
                    do_something();
                    if (chance(40) == 0)
                        compare_all();
                    if (chance(60) == 0) {
                        assert_int_equal(run(STORE_FLUSH, 0, 0, NULL, 0, false), 0);
                        store_close(w.store);
                        open_store(w.folder, 0);
                    }
                }
                wait_merged(w.folder);
                compare_all();
                store_close(w.store);
            }
            end();
        }
    }
}

/*
 * Many at once, parts of the same granules among them, with and without a merge of the head: each sector is written by
 * one alone, so each has what that one wrote.
 */
static void crowd_once(bool merging, int rounds)
{
    enum { N = 64 };
    static struct waiter all[N];
    static uint8_t data[N][3 * BLOCK];
    struct iovec iov[N];
    for (int round = 0; round < rounds; round++) {
        if (merging ? round % 2 == 0 : round % 5 == 0)
            do_snapshot();
        while (merging && round % 2 && some_snap())
            do_drop();
        for (unsigned i = 0; i < N; i++) {
            uint64_t n = 1 + chance(3), sector = i * 4 + chance((unsigned)(5 - n));
            uint32_t value = ++w.values;
            bool unmap = chance(10) == 0;
            for (uint64_t k = 0; k < n * BLOCK; k += 4)
                memcpy(data[i] + k, &value, 4);
            for (uint64_t k = 0; k < n; k++)
                w.value[sector + k] = unmap ? 0 : value;
            iov[i] = (struct iovec){data[i], n * BLOCK};
            all[i] = (struct waiter){.io = {.op = unmap ? STORE_UNMAP : STORE_WRITE,
                                            .fua = chance(10) == 0,
                                            .offset = sector * BLOCK,
                                            .length = n * BLOCK,
                                            .iov = &iov[i],
                                            .iovs = 1,
                                            .done = io_done}};
            store_submit(w.store, &all[i].io);
            if (chance(3) == 0)
                io_loop_turn(w.loop, 0);
        }
        for (unsigned i = 0; i < N; i++) {
            while (!all[i].done)
                io_loop_turn(w.loop, -1);
            assert_int_equal(all[i].error, 0);
        }
        compare_all();
        if (merging && round % 2) {
            wait_merged(w.folder);
            compare_all();
        }
    }
}

static void test_crowd(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"file:%s/data", "/dev/shm", IO_EPOLL, 0},
        {"file:%s/data?direct=1", "/var/tmp", IO_EPOLL, 0},
        {"file:%s/data?direct=1", "/var/tmp", IO_URING, 0},
        {"file:%s/data", "/dev/shm", IO_EPOLL, 1},
        {"file:%s/data?direct=1", "/var/tmp", IO_EPOLL, 100},
        {"file:%s/data?direct=1", "/var/tmp", IO_URING, 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (int merging = 0; merging < 2; merging++) {
            if (begin_row(&rows[i], (unsigned)i + 1)) {
                open_store(w.folder, SECTORS);
                crowd_once(merging, i % 3 ? 10 : 30);
                store_close(w.store);
            }
            end();
        }
    }
}

/* What is in a sector after a crash is what was certain, or something later. */
static void check_sector(size_t count, uint64_t sector, uint32_t value)
{
    bool good = false;
    for (size_t i = w.history[sector].len; i-- > 0;) {
        const struct entry *it = &w.history[sector].p[i];
        good |= it->start < count && it->value == value;
        if (it->sure <= count) {
            good |= it->value == value;
            break;
        }
    }
    if (!good)
        fail_msg("crash after %zu calls: sector %zu is %u", count, (size_t)sector, value);
}

static void check_snap(size_t count, const struct snap *s, const struct store_snapshot *list,
                       unsigned n)
{
    bool listed = false;
    for (unsigned i = 0; i < n; i++)
        listed |= list[i].id == s->id;
    bool must = s->done <= count && s->drop_start >= count;
    bool may = s->start < count && s->drop_done > count;
    if (listed ? !may : must)
        fail_msg("crash after %zu calls: snapshot %zu is %s", count, (size_t)s->id,
                 listed ? "there" : "gone");
    if (!listed)
        return;
    uint32_t got[SECTORS_MOST];
    read_all(s->id, got);
    if (memcmp(got, s->values, sizeof(got)) != 0)
        fail_msg("crash after %zu calls: snapshot %zu has changed", count, (size_t)s->id);
}

/* Its checksum may not be that of its data: it was written since checksums were flushed. */
static bool is_stale(void *context, uint64_t offset, uint64_t length)
{
    size_t count = *(size_t *)context;
    for (uint64_t i = offset / BLOCK; i < (offset + length) / BLOCK && i < SECTORS_MOST; i++)
        vec_for_each(&w.history[i], it)
            if (it->start < count && it->summed > count)
                return true;
    return false;
}

/* All others match, and those too once they are made anew. */
static void mend_sums(size_t count)
{
    struct err e = {0};
    uint64_t sectors = w.store->size / BLOCK;
    if (store_inspect(w.store, is_stale, &count, &e) < 0)
        fail_msg("crash after %zu calls: %s", count, e.msg);
    for (uint64_t at = 0; at < sectors; at += 8) {
        uint8_t data[8 * BLOCK];
        uint64_t n = sectors - at < 8 ? sectors - at : 8;
        bool stale = is_stale(&count, at * BLOCK, n * BLOCK);
        int error = run(STORE_READ, at, n, data, 0, false);
        if (error && !stale)
            fail_msg("crash after %zu calls: sector %zu: %s", count, (size_t)at, strerror(error));
        if (stale)
            assert_int_equal(run(STORE_RESUM, at, n, NULL, 0, false), 0);
    }
}

static void check_crash(size_t count, int way, const char *folder)
{
    struct store_snapshot list[SNAPS];
    uint32_t before[SECTORS_MOST], after[SECTORS_MOST];
    crash_make(count, way, (unsigned)count, folder);
    open_store(folder, 0);
    unsigned n = store_snapshots(w.store, list, SNAPS);
    mend_sums(count);
    read_all(0, before);
    for (uint64_t i = 0; i < w.store->size / BLOCK; i++)
        check_sector(count, i, before[i]);
    for (int i = 0; i < w.snaps; i++)
        check_snap(count, &w.snap[i], list, n);
    wait_merged(folder);
    read_all(0, after);
    assert_memory_equal(before, after, sizeof(before));
    for (int i = 0; i < w.snaps; i++)
        check_snap(count, &w.snap[i], list, n);
    store_close(w.store);
    crash_empty(folder);
}

static void record(unsigned seed, uint32_t cache)
{
    begin_row(&(struct row){"file:%s/data", "/dev/shm", IO_EPOLL, cache}, seed);
    crash.log.len = 0;
    crash.names_n = crash.files = 0;
    crash_switch(true);
    open_store(w.folder, SECTORS);
    /* Somebody else makes the file and syncs its folder: what is lost before that is nobody's. */
    int fd = open(w.folder, O_RDONLY | O_DIRECTORY);
    fsync(fd);
    close(fd);
    for (int i = 0; i < 60; i++)
        do_something();
    while (some_snap() && chance(3))
        do_drop();
    wait_merged(w.folder);
    store_close(w.store);
    crash_switch(false);
}

static void crash_everywhere(uint32_t cache, unsigned first_seed, unsigned last_seed)
{
    for (unsigned seed = first_seed; seed <= last_seed; seed++) {
        record(seed, cache);
        char folder[] = "/dev/shm/orlop-crash-XXXXXX";
        assert_non_null(mkdtemp(folder));
        size_t first = 0;
        while (crash.log.p[first].kind != R_SYNC_NAMES)
            first++;
        for (size_t count = first + 1; count <= crash.log.len; count++)
            for (int way = 0; way < CRASH_WAYS; way++)
                check_crash(count, way, folder);
        print_message("# seed %u: %zu calls\n", seed, crash.log.len);
        vec_for_each(&crash.log, it)
            free(it->data);
        vec_done(&crash.log);
        rmdir(folder);
        end();
    }
}

static void test_crashes(void **state)
{
    (void)state;
    crash_everywhere(0, 1, 3);
}

static void test_crashes_with_checksums(void **state)
{
    (void)state;
    crash_everywhere(100, 1, 1);
    crash_everywhere(1, 2, 2); /* pages are evicted all the time */
}

static void test_manifest(void **state)
{
    (void)state;
    struct manifest m = {.next = 6,
                         .n = 3,
                         .layer = {{0, 7, 4096, 0}, {2, 0, 0, 512}, {5, 0, 0, 0}}},
                    got;
    uint8_t bytes[MANIFEST_MAX];
    struct err e = {0};
    size_t size = manifest_encode(&m, bytes);
    assert_int_equal(manifest_decode(bytes, size, &got, &e), 0);
    assert_int_equal(got.n, 3);
    assert_memory_equal(got.layer, m.layer, 3 * sizeof(m.layer[0]));
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0x40;
        assert_int_equal(manifest_decode(bytes, size, &got, &e), -1);
        bytes[i] ^= 0x40;
        assert_int_equal(manifest_decode(bytes, i, &got, &e), -1);
    }
    struct manifest wrong[] = {m, m, m, m, m};
    wrong[0].layer[0].number = 1;
    wrong[1].layer[2].snapshot = 9;
    wrong[2].layer[1].number = 5;
    wrong[3].layer[1].snapshot = 7;
    wrong[4].next = 5;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        size = manifest_encode(&wrong[i], bytes);
        assert_int_equal(manifest_decode(bytes, size, &got, &e), -1);
        assert_non_null(strstr(e.msg, "makes no sense"));
    }
}

/* Mistakes and damage are said, and change nothing. */
static void test_refusals(void **state)
{
    (void)state;
    begin("file:%s/data", IO_EPOLL, "/dev/shm", 1);
    open_store(w.folder, SECTORS);
    do_write(STORE_WRITE);
    do_snapshot();
    struct changed it = {0};
    store_snapshot(w.store, 3, change_done, &it);
    assert_int_equal(wait_change(&it), EEXIST);
    it.done = false;
    store_revert(w.store, 8, change_done, &it);
    assert_int_equal(wait_change(&it), ENOENT);
    it.done = false;
    store_snapshot_drop(w.store, 8, change_done, &it);
    assert_int_equal(wait_change(&it), 0);
    compare_all();
    store_close(w.store);
    char path[300];
    struct err e = {0};
    const struct store_options o = {.loop = w.loop, .block_size = BLOCK};
    snprintf(path, sizeof(path), "%s/data.layer1.map", w.folder);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "file:%s/data", w.folder);
    assert_null(store_open(path, &o, &e));
    assert_non_null(strstr(e.msg, "data.layer1.map"));
    snprintf(path, sizeof(path), "%s/data.layer1", w.folder);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "file:%s/data", w.folder);
    assert_null(store_open(path, &o, &e));
    assert_non_null(strstr(e.msg, "data.layer1 is missing"));
    snprintf(path, sizeof(path), "%s/data.chain", w.folder);
    assert_int_equal(truncate(path, 30), 0);
    snprintf(path, sizeof(path), "file:%s/data", w.folder);
    assert_null(store_open(path, &o, &e));
    assert_non_null(strstr(e.msg, "data.chain: the list of snapshots is damaged"));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest), cmocka_unit_test(test_model),
        cmocka_unit_test(test_crowd),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_crashes),  cmocka_unit_test(test_crashes_with_checksums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
