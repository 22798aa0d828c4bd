/*
 * Checksums at rest: whatever happens to one of the files of a store, what is read is right or refused.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/loop.h"
#include "store/store.h"
#include "store/sums.h"
#include "unit.h"

enum { BLOCK = 512, GRANULE = STORE_GRANULE, GRANULES = 40, SIZE = GRANULES * GRANULE };

static struct {
    struct io_loop *loop;
    struct store *store;
    char folder[64];
    uint8_t *data; /* what is there */
    uint64_t size;
    unsigned seed;
} w;

static const struct uuid ours = {"our store"}, theirs = {"their store"};

/* One I/O. */

struct waiter {
    struct store_io io;
    struct iovec iov;
    bool done;
    int error;
};

static void io_done(struct store_io *io, int error)
{
    struct waiter *it = container_of(io, struct waiter, io);
    it->done = true;
    it->error = error;
}

static int run_io(struct waiter *it)
{
    it->io.iov = &it->iov;
    it->io.iovs = it->iov.iov_base ? 1 : 0;
    it->iov.iov_len = it->io.length;
    it->io.done = io_done;
    it->done = false;
    store_submit(w.store, &it->io);
    while (!it->done)
        io_loop_turn(w.loop, -1);
    return it->error;
}

static int run(enum store_op op, uint64_t offset, uint64_t length, uint8_t *data)
{
    struct waiter it = {.io = {.op = op, .offset = offset, .length = length}, .iov = {data, 0}};
    return run_io(&it);
}

static void flush_all(void)
{
    struct waiter it = {.io = {.op = STORE_FLUSH, .sums = true}};
    assert_int_equal(run_io(&it), 0);
}

static void write_at(uint64_t offset, uint64_t length)
{
    for (uint64_t i = 0; i < length; i++)
        w.data[offset + i] = (uint8_t)(rand_r(&w.seed) >> 5);
    assert_int_equal(run(STORE_WRITE, offset, length, w.data + offset), 0);
}

struct changed {
    bool done;
    int error;
};

static void change_done(void *context, int error)
{
    *(struct changed *)context = (struct changed){true, error};
}

static void wait_change(struct changed *it)
{
    while (!it->done)
        io_loop_turn(w.loop, -1);
    assert_int_equal(it->error, 0);
    *it = (struct changed){0};
}

static void snapshot(uint64_t id)
{
    struct changed it = {0};
    store_snapshot(w.store, id, change_done, &it);
    wait_change(&it);
}

static void stamp(uint64_t generation)
{
    struct changed it = {0};
    store_stamp(w.store, generation, change_done, &it);
    wait_change(&it);
}

/* Stores and files. */

static struct store *open_as(const char *folder, const struct store_options *more, struct err *e)
{
    struct store_options o = *more;
    char name[200];
    o.loop = w.loop;
    o.block_size = BLOCK;
    o.sums = true;
    snprintf(name, sizeof(name), "file:%s/data", folder);
    return store_open(name, &o, e);
}

static void open_new(const char *folder, const struct uuid *id, uint64_t size, uint32_t cache)
{
    struct err e = {0};
    const struct store_options o = {.size = size, .identity = *id, .sums_cache = cache};
    w.store = open_as(folder, &o, &e);
    if (!w.store)
        fail_msg("%s", e.msg);
    w.size = size;
}

static void open_again(uint32_t cache)
{
    struct err e = {0};
    w.store = open_as(w.folder, &(struct store_options){.existing = true, .sums_cache = cache}, &e);
    if (!w.store)
        fail_msg("%s", e.msg);
}

static void make_folder(char folder[64])
{
    snprintf(folder, 64, "/dev/shm/orlop-sums-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void begin(void)
{
    memset(&w, 0, sizeof(w));
    w.seed = 1;
    w.loop = io_loop_new(IO_EPOLL, NULL);
    w.data = mem_zalloc(SIZE);
    make_folder(w.folder);
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *it;
    while (dir && (it = readdir(dir)))
        if (it->d_name[0] != '.')
            unlinkat(dirfd(dir), it->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static void end(void)
{
    io_loop_free(w.loop);
    remove_folder(w.folder);
    free(w.data);
}

static char *path_of(const char *folder, const char *file)
{
    static char paths[4][200];
    static unsigned n;
    char *path = paths[n++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, file);
    return path;
}

static void flip(const char *file, off_t offset)
{
    uint8_t byte;
    int fd = open(path_of(w.folder, file), O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static void copy_file(const char *from, const char *to)
{
    struct stat st;
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && out >= 0 && fstat(in, &st) == 0);
    uint8_t *bytes = mem_zalloc((size_t)st.st_size + 1);
    assert_int_equal(pread(in, bytes, (size_t)st.st_size, 0), st.st_size);
    assert_int_equal(pwrite(out, bytes, (size_t)st.st_size, 0), st.st_size);
    free(bytes);
    close(in);
    close(out);
}

static void copy_folder(const char *from, const char *to)
{
    DIR *dir = opendir(from);
    const struct dirent *it;
    while ((it = readdir(dir)))
        if (it->d_name[0] != '.')
            copy_file(path_of(from, it->d_name), path_of(to, it->d_name));
    closedir(dir);
}

static bool never_stale(void *context, uint64_t offset, uint64_t length)
{
    (void)context;
    (void)offset;
    (void)length;
    return false;
}

/* What a read of a granule says. */
static int read_granule(uint64_t g, uint64_t snap)
{
    uint8_t back[GRANULE];
    struct waiter it = {.io = {.op = STORE_READ, .offset = g * GRANULE, .length = GRANULE},
                        .iov = {back, 0}};
    it.io.snapshot = snap;
    int error = run_io(&it);
    if (!error && !snap)
        assert_memory_equal(back, w.data + g * GRANULE, GRANULE);
    return error;
}

/* Bits that rot. */

static void test_flipped_bits(void **state)
{
    (void)state;
    uint8_t back[3 * GRANULE];
    begin();
    open_new(w.folder, &ours, SIZE, 0);
    assert_true(w.store->checked);
    write_at(0, SIZE);
    flip("data", 5 * GRANULE + 100);
    assert_int_equal(read_granule(5, 0), EBADMSG);
    assert_int_equal(read_granule(4, 0), 0);
    assert_int_equal(run(STORE_READ, 4 * GRANULE, sizeof(back), back), EBADMSG);
    /* A part that is intact is not trusted either, nor written beside. */
    assert_int_equal(run(STORE_READ, 5 * GRANULE + BLOCK, BLOCK, back), EBADMSG);
    assert_int_equal(run(STORE_WRITE, 5 * GRANULE + BLOCK, BLOCK, back), EBADMSG);
    assert_int_equal(run(STORE_UNMAP, 4 * GRANULE, GRANULE + BLOCK, NULL), EBADMSG);
    struct waiter as_it_is = {
        .io = {.op = STORE_READ, .unverified = true, .offset = 5 * GRANULE, .length = GRANULE},
        .iov = {back, 0}};
    assert_int_equal(run_io(&as_it_is), 0);
    assert_int_equal(back[100], w.data[5 * GRANULE + 100] ^ 4);
    assert_int_equal(read_granule(4, 0), 0); /* the unmap changed nothing */
    write_at(5 * GRANULE, GRANULE);
    assert_int_equal(read_granule(5, 0), 0);
    flush_all();
    store_close(w.store);
    flip("data.sums", SUMS_START + 7 * 4 + 2);
    open_again(0);
    assert_int_equal(read_granule(7, 0), EBADMSG);
    write_at(7 * GRANULE, GRANULE);
    for (uint64_t g = 0; g < GRANULES; g++)
        assert_int_equal(read_granule(g, 0), 0);
    store_close(w.store);
    end();
}

static void test_resum(void **state)
{
    (void)state;
    begin();
    open_new(w.folder, &ours, SIZE - BLOCK, 0);
    write_at(0, SIZE - BLOCK);
    flip("data", 3 * GRANULE);
    flip("data", SIZE - GRANULE);
    w.data[3 * GRANULE] ^= 4;
    w.data[SIZE - GRANULE] ^= 4;
    assert_int_equal(run(STORE_RESUM, BLOCK, GRANULE, NULL), EINVAL);
    assert_int_equal(run(STORE_RESUM, 0, GRANULE - BLOCK, NULL), EINVAL);
    assert_int_equal(read_granule(3, 0), EBADMSG);
    assert_int_equal(run(STORE_RESUM, 0, 20 * GRANULE, NULL), 0);
    assert_int_equal(read_granule(3, 0), 0);
    assert_int_equal(run(STORE_RESUM, SIZE - GRANULE, GRANULE - BLOCK, NULL), 0);
    uint8_t back[BLOCK];
    assert_int_equal(run(STORE_READ, SIZE - GRANULE, BLOCK, back), 0);
    /* What a snapshot has is left alone. */
    snapshot(1);
    flip("data", 9 * GRANULE);
    assert_int_equal(run(STORE_RESUM, 0, SIZE - BLOCK, NULL), 0);
    assert_int_equal(read_granule(9, 0), EBADMSG);
    assert_int_equal(read_granule(9, 1), EBADMSG);
    write_at(10 * GRANULE, GRANULE);
    flip("data.layer1", 10 * GRANULE);
    w.data[10 * GRANULE] ^= 4;
    assert_int_equal(read_granule(10, 0), EBADMSG);
    assert_int_equal(run(STORE_RESUM, 0, SIZE - BLOCK, NULL), 0);
    assert_int_equal(read_granule(10, 0), 0);
    store_close(w.store);
    end();
}

/* Rot in a layer is carried down by a merge with its checksum, and never gets a new one. */
static void test_merge_keeps_rot(void **state)
{
    (void)state;
    for (int zeroed = 0; zeroed < 2; zeroed++) {
        begin();
        open_new(w.folder, &ours, SIZE, 1);
        write_at(0, SIZE);
        snapshot(1);
        write_at(8 * GRANULE, 4 * GRANULE);
        snapshot(2);
        write_at(20 * GRANULE, GRANULE);
        if (zeroed) {
            int fd = open(path_of(w.folder, "data.layer1"), O_RDWR);
            assert_int_equal(
                fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8 * GRANULE, 4 * GRANULE),
                0);
            close(fd);
        } else {
            flip("data.layer1", 9 * GRANULE);
        }
        struct changed it = {0};
        store_snapshot_drop(w.store, 1, change_done, &it);
        wait_change(&it);
        while (access(path_of(w.folder, "data.layer1"), F_OK) == 0)
            io_loop_turn(w.loop, 1000000);
        assert_int_not_equal(access(path_of(w.folder, "data.layer1.sums"), F_OK), 0);
        for (uint64_t g = 0; g < GRANULES; g++) {
            bool rotten = zeroed ? g >= 8 && g < 12 : g == 9;
            assert_int_equal(read_granule(g, 0), rotten ? EBADMSG : 0);
            assert_int_equal(read_granule(g, 2), rotten ? EBADMSG : 0);
        }
        store_close(w.store);
        end();
    }
}

/* Many pages, few of them in memory. */
static void test_eviction(void **state)
{
    (void)state;
    enum { PAGES = 12, SPAN = SUMS_PER_PAGE * GRANULE };
    uint8_t back[GRANULE], out[GRANULE];
    begin();
    open_new(w.folder, &ours, (uint64_t)PAGES * SPAN, 2);
    for (uint64_t i = 0; i < PAGES; i++) {
        memset(out, (int)i + 1, sizeof(out));
        assert_int_equal(run(STORE_WRITE, i * SPAN + i * GRANULE, GRANULE, out), 0);
    }
    for (int again = 0; again < 2; again++) {
        for (uint64_t i = 0; i < PAGES; i++) {
            assert_int_equal(run(STORE_READ, i * SPAN + i * GRANULE, GRANULE, back), 0);
            assert_int_equal(back[0], i + 1);
        }
        flush_all();
        store_close(w.store);
        open_again(2);
    }
    /* Cached and not, whole pages and parts. */
    assert_int_equal(run(STORE_READ, 5 * SPAN, GRANULE, back), 0);
    assert_int_equal(run(STORE_UNMAP, GRANULE, 9ul * SPAN + BLOCK, NULL), 0);
    for (uint64_t i = 0; i < PAGES; i++) {
        assert_int_equal(run(STORE_READ, i * SPAN + i * GRANULE, GRANULE, back), 0);
        assert_int_equal(back[0], i == 0 || i >= 9 ? i + 1 : 0);
    }
    store_close(w.store);
    open_again(2);
    flip("data.sums", SUMS_START + 3 * SUMS_PAGE + 12); /* zeroes have one too */
    assert_int_equal(run(STORE_READ, 3 * SPAN + 3 * GRANULE, GRANULE, back), EBADMSG);
    store_close(w.store);
    end();
}

/* A read that meets a write is not taken for rot, nor do two writes leave the checksum of the one with the data of the other. */
static void test_reads_meet_writes(void **state)
{
    (void)state;
    enum { N = 32, ROUNDS = 60, HOT = 3 };
    static _Alignas(GRANULE) uint8_t data[N][2 * GRANULE];
    static struct waiter all[N];
    static const enum io_backend backends[] = {IO_EPOLL, IO_URING};
    for (size_t b = 0; b < ARRAY_SIZE(backends); b++) {
        struct err e = {0};
        char path[] = "/var/tmp/orlop-sums-XXXXXX", name[100];
        memset(&w, 0, sizeof(w));
        w.seed = 5;
        int fd = mkstemp(path);
        close(fd);
        snprintf(name, sizeof(name), "file:%s?direct=1", path);
        w.loop = io_loop_new(backends[b], NULL);
        const struct store_options o = {
            .loop = w.loop, .size = SIZE, .block_size = BLOCK, .sums = true, .sums_cache = 1};
        w.store = w.loop ? store_open(name, &o, &e) : NULL;
        if (!w.store)
            print_message("# no direct I/O here: %s\n", e.msg);
        for (int round = 0; w.store && round < ROUNDS; round++) {
            for (unsigned i = 0; i < N; i++) {
                bool reads = rand_r(&w.seed) % 2, part = rand_r(&w.seed) % 4 == 0;
                memset(data[i], rand_r(&w.seed), sizeof(data[i]));
                uint64_t offset = (uint64_t)rand_r(&w.seed) % HOT * GRANULE + (part ? BLOCK : 0);
                all[i] = (struct waiter){.io = {.op = reads ? STORE_READ : STORE_WRITE,
                                                .offset = offset,
                                                .length = part ? GRANULE : 2 * GRANULE,
                                                .iov = &all[i].iov,
                                                .iovs = 1,
                                                .done = io_done},
                                         .iov = {data[i], part ? GRANULE : 2 * GRANULE}};
                store_submit(w.store, &all[i].io);
            }
            for (unsigned i = 0; i < N; i++) {
                while (!all[i].done)
                    io_loop_turn(w.loop, -1);
                assert_int_equal(all[i].error, 0);
            }
        }
        if (w.store)
            store_close(w.store);
        if (w.loop)
            io_loop_free(w.loop);
        assert_int_equal(store_remove(name, &e), 0);
    }
}

/* Who it is. */

static void test_identity(void **state)
{
    (void)state;
    struct store_mark mark;
    struct err e = {0};
    char name[200];
    begin();
    assert_null(open_as(w.folder, &(struct store_options){.existing = true}, &e));
    assert_int_equal(e.code, ERR_DATA_LOSS);
    assert_int_equal(access(path_of(w.folder, "data"), F_OK), -1); /* nothing was made */
    open_new(w.folder, &ours, SIZE, 0);
    assert_true(store_mark(w.store, &mark));
    assert_true(uuid_eq(&mark.id, &ours));
    assert_int_equal(mark.generation, 0);
    struct changed many[3] = {0};
    for (unsigned i = 0; i < 3; i++)
        store_stamp(w.store, 5 + i, change_done, &many[i]);
    write_at(0, SIZE); /* before it grows: its end is that of a granule no more */
    struct changed grown = {0};
    store_grow(w.store, SIZE + 3 * BLOCK, change_done, &grown);
    wait_change(&grown);
    for (unsigned i = 0; i < 3; i++)
        wait_change(&many[i]);
    store_close(w.store);
    open_again(0);
    assert_int_equal(w.store->size, SIZE + 3 * BLOCK);
    assert_true(store_mark(w.store, &mark));
    assert_true(uuid_eq(&mark.id, &ours));
    assert_int_equal(mark.generation, 7);
    for (uint64_t g = 0; g < GRANULES; g++)
        assert_int_equal(read_granule(g, 0), 0);
    store_close(w.store);
    /* Nobody writes past the checksums. */
    snprintf(name, sizeof(name), "file:%s/data", w.folder);
    struct store_options plain = {.loop = w.loop, .block_size = BLOCK};
    assert_null(store_open(name, &plain, &e));
    assert_non_null(strstr(e.msg, "belongs to a replica"));
    plain.read_only = true;
    w.store = store_open(name, &plain, &e);
    assert_non_null(w.store);
    assert_false(store_mark(w.store, &mark));
    store_close(w.store);
    assert_int_equal(store_remove(name, &e), 0);
    assert_int_equal(rmdir(w.folder), 0);
    assert_int_equal(mkdir(w.folder, 0700), 0);
    end();
}

/* What happens to one file of a store. */

enum damage { DELETED, HALVED, EMPTIED, ZEROED, FLIPPED, SWAPPED, ROLLED_BACK, DAMAGES };

static const char *const damage_names[] = {"deleted", "halved",  "emptied",    "zeroed",
                                           "flipped", "swapped", "rolled back"};

static void damage_file(enum damage how, const char *file, const char *other, const char *old)
{
    char *path = path_of(w.folder, file);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    switch (how) {
    case DELETED:
        assert_int_equal(unlink(path), 0);
        break;
    case HALVED:
        assert_int_equal(truncate(path, st.st_size / 2), 0);
        break;
    case EMPTIED:
        assert_int_equal(truncate(path, 0), 0);
        break;
    case ZEROED:
        assert_int_equal(truncate(path, 0), 0);
        assert_int_equal(truncate(path, st.st_size), 0);
        break;
    case FLIPPED:
        for (off_t at = 0; at < st.st_size; at += 1 + rand_r(&w.seed) % 400)
            flip(file, at);
        break;
    case SWAPPED:
        copy_file(path_of(other, file), path);
        break;
    default:
        if (access(path_of(old, file), F_OK) == 0)
            copy_file(path_of(old, file), path);
        else
            assert_int_equal(unlink(path), 0);
    }
}

/* 0: all is right; 1: a read says that it is not; 2: refused; never wrong data. */
static int judge(const char *file, const struct uuid *id, uint64_t generation)
{
    struct err e = {0};
    struct store_mark mark;
    w.store = open_as(w.folder, &(struct store_options){.existing = true}, &e);
    if (!w.store) {
        if (e.code != ERR_DATA_LOSS || !strstr(e.msg, file))
            fail_msg("%s: %s", file, e.msg);
        return 2;
    }
    int verdict = 0;
    if (!store_mark(w.store, &mark) || !uuid_eq(&mark.id, id) || mark.generation != generation)
        verdict = 2; /* the owner sees it */
    if (store_inspect(w.store, never_stale, NULL, &e) < 0) {
        assert_int_equal(e.code, ERR_DATA_LOSS);
        char data[64]; /* it cannot tell which of the two is wrong, and names the data */
        snprintf(data, sizeof(data), "%s", file);
        if (strstr(data, ".sums"))
            *strstr(data, ".sums") = '\0';
        assert_non_null(strstr(e.msg, data));
        verdict = 2;
    }
    for (uint64_t g = 0; g < GRANULES && verdict < 2; g++)
        if (read_granule(g, 0))
            verdict = 1;
    store_close(w.store);
    return verdict;
}

/* Phase 0, then a copy of all files, then phase 1. */
static void fill(bool snaps, int phase)
{
    if (phase == 0) {
        write_at(0, SIZE / 2);
        if (snaps)
            snapshot(1);
        write_at(10 * GRANULE, 2 * GRANULE);
        stamp(1);
    } else {
        write_at(11 * GRANULE, 2 * GRANULE);
        write_at(25 * GRANULE, 3 * GRANULE + BLOCK);
        if (snaps)
            snapshot(2);
        write_at(1 * GRANULE, GRANULE);
        stamp(2);
    }
    flush_all();
}

static void each_damage(bool snaps, const char *const *files)
{
    static const char *const verdicts[] = {"right", "found by a read", "refused"};
    char other[64], old[64], good[64];
    begin();
    make_folder(other);
    make_folder(old);
    make_folder(good);
    w.seed = 7;
    open_new(other, &theirs, SIZE, 0);
    fill(snaps, 0);
    fill(snaps, 1);
    store_close(w.store);
    memset(w.data, 0, SIZE);
    open_new(w.folder, &ours, SIZE, 0);
    fill(snaps, 0);
    store_close(w.store);
    copy_folder(w.folder, old);
    open_again(0);
    fill(snaps, 1);
    store_close(w.store);
    copy_folder(w.folder, good);
    for (; *files; files++) {
        for (enum damage how = 0; how < DAMAGES; how++) {
            remove_folder(w.folder);
            assert_int_equal(mkdir(w.folder, 0700), 0);
            copy_folder(good, w.folder);
            assert_int_equal(judge(*files, &ours, 2), 0);
            damage_file(how, *files, other, old);
            int verdict = judge(*files, &ours, 2);
            print_message("# %s %s: %s\n", *files, damage_names[how], verdicts[verdict]);
            /* A layer that did not change since is as right as it was. */
            if (verdict == 0 && how != ROLLED_BACK)
                fail_msg("%s %s is not found", *files, damage_names[how]);
        }
    }
    remove_folder(other);
    remove_folder(old);
    remove_folder(good);
    end();
}

static void test_damaged_files(void **state)
{
    (void)state;
    static const char *const files[] = {"data", "data.sums", NULL};
    each_damage(false, files);
}

static void test_damaged_files_with_snapshots(void **state)
{
    (void)state;
    static const char *const files[] = {"data",        "data.sums",       "data.chain",
                                        "data.layer1", "data.layer1.map", "data.layer1.sums",
                                        "data.layer2", "data.layer2.map", "data.layer2.sums",
                                        NULL};
    each_damage(true, files);
}

/* One slot of a header, or one copy of a map's page, may rot: the other says the same. */
static void test_one_copy_rots(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        off_t offset;
    } copies[] = {
        {"data.sums", 50},         {"data.sums", 4096 + 50},
        {"data.layer1.map", 10},   {"data.layer1.map", 4096 + 10},
        {"data.layer1.map", 8193}, {"data.layer1.map", 12289},
        {"data.layer1.sums", 60},  {"data.layer1.sums", 4096 + 60},
    };
    for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
        begin();
        open_new(w.folder, &ours, SIZE, 0);
        fill(true, 0);
        fill(true, 1);
        store_close(w.store);
        flip(copies[i].file, copies[i].offset);
        assert_int_equal(judge(copies[i].file, &ours, 2), 0);
        open_again(0); /* and goes on */
        write_at(30 * GRANULE, GRANULE);
        stamp(3);
        flush_all();
        store_close(w.store);
        assert_int_equal(judge(copies[i].file, &ours, 3), 0);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_resum),
        cmocka_unit_test(test_merge_keeps_rot),
        cmocka_unit_test(test_eviction),
        cmocka_unit_test(test_reads_meet_writes),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_damaged_files_with_snapshots),
        cmocka_unit_test(test_one_copy_rots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
