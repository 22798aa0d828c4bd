/*
 * What the tests of the pool engine share: disks that are sparse files, layouts in the words of
 * zpool(8), and a model of what is on a volume.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "unit.h"
#include "zpool/fault.h"
#include "zpool/volume.h"

enum { HOST = 0x0a0b0c0d, PAGE = 4096, DISKS = 12, MIB = 1 << 20 };

/* libzpool's: transaction groups five seconds apart make tests long. */
extern int zfs_txg_timeout;

static char dir[64];          /* of this run */
static char disks[DISKS][80]; /* paths */
static struct err e;
static unsigned sign_ms = 100; /* pools are taken over after two seconds then */

#define assert_ok(x)                                                                               \
    do {                                                                                           \
        e = (struct err){0};                                                                       \
        if (!(x))                                                                                  \
            fail_msg("%s: %s", #x, e.msg);                                                         \
    } while (0)
#define assert_refused(x, why)                                                                     \
    do {                                                                                           \
        e = (struct err){.reason = "none"};                                                        \
        if (x)                                                                                     \
            fail_msg("%s: was not refused", #x);                                                   \
        assert_string_equal(e.reason, why);                                                        \
        assert_true(strlen(e.msg) > 10);                                                           \
    } while (0)

static inline void make_disk(int i, off_t size)
{
    unlink(disks[i]);
    int fd = open(disks[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static inline void make_disks(void)
{
    for (int i = 0; i < DISKS; i++)
        make_disk(i, 128 * MIB);
}

static inline void set_dir(const char *path)
{
    snprintf(dir, sizeof(dir), "%s", path);
    for (int i = 0; i < DISKS; i++)
        snprintf(disks[i], sizeof(disks[i]), "%s/d%d", dir, i);
}

static inline void start_engine(uint32_t host, bool direct)
{
    struct zpool_options o = {.host_id = host, .direct = direct, .sign_ms = sign_ms, .files = dir};
    zfs_txg_timeout = 1;
    assert_ok(zpool_start(&o, &e) == 0);
}

static inline int begin_tests(void **state)
{
    (void)state;
    char path[] = "/tmp/zpooltest.XXXXXX";
    set_dir(mkdtemp(path));
    start_engine(HOST, false);
    return 0;
}

static inline int end_tests(void **state)
{
    (void)state;
    return file_remove_tree(dir, NULL);
}

static inline int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Polls for a condition. */
#define wait_for(condition)                                                                        \
    do {                                                                                           \
        int64_t until_ = now_ms() + 60000;                                                         \
        while (!(condition)) {                                                                     \
            if (now_ms() > until_)                                                                 \
                fail_msg("%s: not within a minute", #condition);                                   \
            nanosleep(&(struct timespec){0, 20000000}, NULL);                                      \
        }                                                                                          \
    } while (0)

/* "mirror 0 1 log 2 cache 3": words and numbers of disks. Static: one at a time. */
static inline const struct zpool_layout *layout(const char *text)
{
    static struct zpool_group groups[DISKS];
    static struct zpool_device devices[DISKS];
    static struct zpool_layout l;
    static const struct {
        const char *word;
        int type, role;
    } words[] = {{"stripe", ZPOOL_STRIPE, -1},    {"mirror", ZPOOL_MIRROR, -1},
                 {"raidz", ZPOOL_RAIDZ, -1},      {"raidz2", ZPOOL_RAIDZ2, -1},
                 {"raidz3", ZPOOL_RAIDZ3, -1},    {"log", -1, ZPOOL_ROLE_LOG},
                 {"cache", -1, ZPOOL_ROLE_CACHE}, {"spare", -1, ZPOOL_ROLE_SPARE}};
    char copy[200], *save;
    snprintf(copy, sizeof(copy), "%s", text);
    size_t n_groups = 0, n_devices = 0;
    struct zpool_group next = {0};
    struct zpool_group *g = NULL;
    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
        if (*t >= '0' && *t <= '9') {
            if (!g) {
                g = &groups[n_groups++];
                *g = next;
                g->devices = &devices[n_devices];
            }
            devices[n_devices++] = (struct zpool_device){.path = disks[atoi(t)]};
            g->n_devices++;
            continue;
        }
        if (g)
            next = (struct zpool_group){0};
        g = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
            if (strcmp(words[i].word, t) != 0)
                continue;
            if (words[i].type >= 0)
                next.type = (enum zpool_group_type)words[i].type;
            else
                next.role = (enum zpool_role)words[i].role;
        }
    }
    l = (struct zpool_layout){.groups = groups, .n_groups = n_groups};
    return &l;
}

static inline struct zpool *create(const char *text)
{
    struct zpool *p;
    assert_ok((p = zpool_create("tank", layout(text), &e)));
    return p;
}

/* With all disks but those, which are numbers up to -1. */
static inline struct zpool *import_without(uint64_t guid, const int *without)
{
    const char *paths[DISKS];
    size_t n = 0;
    for (int i = DISKS - 1; i >= 0; i--) { /* another order than they were made in */
        bool skip = false;
        for (const int *w = without; w && *w >= 0; w++)
            skip |= *w == i;
        if (!skip)
            paths[n++] = disks[i];
    }
    struct zpool_import how = {.guid = guid, .paths = paths, .n_paths = n};
    return zpool_import(&how, &e);
}

static inline struct zpool *import_all(uint64_t guid)
{
    struct zpool *p;
    assert_ok((p = import_without(guid, NULL)));
    return p;
}

/* A row of the status: that of a disk, or, for -1, the root. Static. */
static inline const struct zpool_vdev *row_of(struct zpool *p, int disk)
{
    static struct zpool_vdev row;
    struct zpool_status s;
    assert_ok(zpool_status_read(p, &s, &e) == 0);
    const struct zpool_vdev *found = NULL;
    for (size_t i = 0; i < s.n_vdevs && !found; i++)
        if (disk < 0 ? i == 0 : strcmp(s.vdevs[i].path, disks[disk]) == 0)
            found = &s.vdevs[i];
    if (found)
        row = *found;
    zpool_status_done(&s);
    return found ? &row : NULL;
}

/* The status without its rows. */
static inline struct zpool_status status_of(struct zpool *p)
{
    struct zpool_status s;
    assert_ok(zpool_status_read(p, &s, &e) == 0);
    zpool_status_done(&s);
    return s;
}

static inline bool scan_is_over(struct zpool *p)
{
    return status_of(p).scan.state != ZPOOL_SCAN_RUNNING;
}

/* Every device has all that it should have. */
static inline bool all_whole(struct zpool *p)
{
    struct zpool_status s;
    assert_ok(zpool_status_read(p, &s, &e) == 0);
    bool whole = s.scan.state != ZPOOL_SCAN_RUNNING;
    for (size_t i = 0; i < s.n_vdevs; i++)
        whole &= !s.vdevs[i].behind;
    zpool_status_done(&s);
    return whole;
}

static inline int run_io(struct zpool_volume *v, enum zpool_op op, uint64_t offset, void *data,
                         uint64_t n, bool fua)
{
    struct iovec iov = {data, n};
    struct zpool_io io = {
        .volume = v, .op = op, .fua = fua, .offset = offset, .length = n, .iov = &iov, .iovs = 1};
    return zpool_io_run(&io);
}

static inline int flush(struct zpool_volume *v)
{
    return run_io(v, ZPOOL_FLUSH, 0, NULL, 0, false);
}

/* A page that says where it belongs and when it was written; random enough not to be compressed. */
static inline void fill_page(uint64_t *words, uint64_t page, uint64_t generation)
{
    uint64_t x = (page << 32 ^ generation) * 0x9e3779b97f4a7c15ULL + 1;
    words[0] = generation ? page : 0;
    words[1] = generation;
    for (size_t i = 2; i < PAGE / 8; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = generation ? x : 0;
    }
}

/* Whether the page is whole; which generation it has. */
static inline bool read_page(const uint64_t *words, uint64_t page, uint64_t *ret_generation)
{
    uint64_t expected[PAGE / 8];
    *ret_generation = words[1];
    fill_page(expected, page, words[1]);
    return memcmp(words, expected, PAGE) == 0;
}

/* What a volume should hold. */
struct model {
    struct zpool_volume *v;
    uint64_t pages;
    uint64_t next; /* generation */
    uint64_t *generations;
};

static inline void model_write(struct model *m, uint64_t first, uint64_t n)
{
    char *data = mem_alloc(n * PAGE);
    m->next++;
    for (uint64_t i = 0; i < n; i++) {
        fill_page((uint64_t *)(void *)(data + i * PAGE), first + i, m->next);
        m->generations[first + i] = m->next;
    }
    assert_int_equal(run_io(m->v, ZPOOL_WRITE, first * PAGE, data, n * PAGE, false), 0);
    free(data);
}

static inline void model_verify(struct model *m)
{
    enum { CHUNK = 64 };
    static uint64_t data[CHUNK][PAGE / 8];
    for (uint64_t at = 0; at < m->pages; at += CHUNK) {
        assert_int_equal(run_io(m->v, ZPOOL_READ, at * PAGE, data, sizeof(data), false), 0);
        for (uint64_t i = 0; i < CHUNK; i++) {
            uint64_t generation;
            if (!read_page(data[i], at + i, &generation) || generation != m->generations[at + i])
                fail_msg("page %lu: generation %lu, not %lu", at + i, generation,
                         m->generations[at + i]);
        }
    }
}

static inline void model_open(struct model *m, struct zpool *p)
{
    assert_ok((m->v = zpool_volume_open(p, "vol", false, &e)));
}

/* A volume of 4 MiB with something everywhere. */
static inline struct model model_new(struct zpool *p)
{
    struct zpool_volume_spec spec = {.size = 4 * MIB};
    struct model m = {.pages = 4 * MIB / PAGE};
    m.generations = mem_zalloc(m.pages * sizeof(*m.generations));
    assert_ok(zpool_volume_create(p, "vol", &spec, &e) == 0);
    model_open(&m, p);
    for (uint64_t i = 0; i < m.pages; i += 256)
        model_write(&m, i, 256);
    model_write(&m, 1000, 3);
    assert_int_equal(flush(m.v), 0);
    return m;
}

static inline void model_close(struct model *m)
{
    zpool_volume_close(m->v);
    m->v = NULL;
}

static inline void model_done(struct model *m);

/* The pool, which is exported, has everything without that disk. The end of both. */
static inline void model_verify_without(struct model *m, uint64_t guid, int disk)
{
    struct zpool *p;
    assert_ok((p = import_without(guid, (int[]){disk, -1})));
    model_open(m, p);
    model_verify(m);
    model_done(m);
    assert_ok(zpool_destroy(p, &e) == 0);
}

static inline void model_done(struct model *m)
{
    if (m->v)
        model_close(m);
    free(m->generations);
}
