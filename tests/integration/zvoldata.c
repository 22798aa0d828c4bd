/*
 * Data in a volume of a pool that nobody has open, for tests of the programs:
 *
 *     zvoldata write|verify|remove|hold|release VOLUME MEBIBYTES SEED DEVICE...
 *     zvoldata make POOL MEBIBYTES SEED DEVICE...
 *
 * The pool is that of the first device that has one. write makes the volume if there is none and fills it
 * with what follows from the seed; make makes a mirror of that name with the volume "vol", and leaves it as a
 * process does that is killed; verify says how many pages are something else, and fails if any is. hold makes a clone
 * of the volume, without which it cannot be destroyed until release.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "zpool/volume.h"

enum { PAGE = 4096, CHUNK = 64, MIB = 1 << 20, HOST = 0x7a766f6c };

/* libzpool's: a pool that was killed is not watched for long before it is taken over. */
extern unsigned int zfs_multihost_import_intervals;

static struct err e;

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, e.msg);
    return 1;
}

static struct zpool *import(const char *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct zpool_found f;
        zpool_scan(&paths[i], 1, &f);
        if (f.label == ZPOOL_LABEL_MEMBER) {
            const struct zpool_import how = {
                .guid = f.pool_guid, .paths = paths, .n_paths = n, .take_over = true};
            return zpool_import(&how, &e);
        }
    }
    err_set(&e, ERR_NOT_FOUND, "NoPool", "no device has a pool");
    return NULL;
}

static struct zpool *make(const char *name, char **paths, size_t n)
{
    enum { MOST = 8 };
    struct zpool_device devices[MOST] = {0};
    for (size_t i = 0; i < n && i < MOST; i++)
        devices[i].path = paths[i];
    const struct zpool_group group = {ZPOOL_MIRROR, ZPOOL_ROLE_DATA, devices, n < MOST ? n : MOST};
    const struct zpool_layout layout = {.groups = &group, .n_groups = 1};
    return zpool_create(name, &layout, &e);
}

static void fill(uint64_t *words, uint64_t page, uint64_t seed)
{
    uint64_t x = (page + 1) * 0x9e3779b97f4a7c15ULL ^ seed;
    for (size_t i = 0; i < PAGE / 8; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = x;
    }
}

static int run(struct zpool_volume *v, enum zpool_op op, uint64_t at, void *data, size_t n)
{
    struct iovec iov = {data, n};
    const struct zpool_io io = {
        .volume = v, .op = op, .offset = at, .length = n, .iov = &iov, .iovs = 1};
    return zpool_io_run(&io);
}

static uint64_t go_through(struct zpool_volume *v, bool write, uint64_t pages, uint64_t seed)
{
    static uint64_t data[CHUNK][PAGE / 8];
    uint64_t wrong = 0;
    for (uint64_t at = 0; at < pages; at += CHUNK) {
        for (uint64_t i = 0; i < CHUNK; i++)
            fill(data[i], at + i, seed);
        if (write) {
            wrong += run(v, ZPOOL_WRITE, at * PAGE, data, sizeof(data)) != 0;
            continue;
        }
        if (run(v, ZPOOL_READ, at * PAGE, data, sizeof(data)) != 0) {
            wrong += CHUNK;
            continue;
        }
        for (uint64_t i = 0; i < CHUNK; i++) {
            uint64_t expected[PAGE / 8];
            fill(expected, at + i, seed);
            wrong += memcmp(expected, data[i], PAGE) != 0;
        }
    }
    return wrong + (write && run(v, ZPOOL_FLUSH, 0, NULL, 0) != 0);
}

/* What is done with a volume that is not opened; -1 of an error, 1 of another mode. */
static int change(struct zpool *p, const char *mode, const char *name)
{
    _cleanup_free_ char *snapshot = mem_printf("%s@held", name);
    if (str_eq(mode, "remove"))
        return zpool_volume_destroy(p, name, &e);
    if (str_eq(mode, "hold"))
        return zpool_snapshot(p, name, "held", &e) < 0 ? -1
                                                       : zpool_clone(p, snapshot, "holder", &e);
    if (str_eq(mode, "release"))
        return zpool_volume_destroy(p, "holder", &e) < 0 ? -1
                                                         : zpool_volume_destroy(p, snapshot, &e);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    const char *mode = argv[1], *name = argv[2];
    uint64_t size = strtoull(argv[3], NULL, 10) * MIB, seed = strtoull(argv[4], NULL, 10),
             wrong = 0;
    const struct zpool_options o = {.host_id = HOST, .sign_ms = 100, .files = "/"};
    if (zpool_start(&o, &e) < 0)
        return fail("start");
    zfs_multihost_import_intervals = 1;
    bool new = str_eq(mode, "make"), write = new || str_eq(mode, "write");
    struct zpool *p = new ? make(name, argv + 5, (size_t)argc - 5)
                          : import((const char *const *)argv + 5, (size_t)argc - 5);
    if (!p)
        return fail("pool");
    if (new)
        name = "vol";
    int changed = change(p, mode, name);
    if (changed < 0)
        return fail(mode);
    if (changed > 0) {
        const struct zpool_volume_spec spec = {.size = size};
        if (write && zpool_volume_create(p, name, &spec, &e) < 0 && e.code != ERR_ALREADY_EXISTS)
            return fail("create");
        struct zpool_volume *v = zpool_volume_open(p, name, false, &e);
        if (!v)
            return fail("open");
        wrong = go_through(v, write, size / PAGE, seed);
        zpool_volume_close(v);
    }
    if (!new &&zpool_export(p, &e) < 0)
        return fail("export");
    printf("%" PRIu64 "\n", wrong);
    return wrong ? 3 : 0;
}
