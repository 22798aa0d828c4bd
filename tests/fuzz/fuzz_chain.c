/*
 * What a file with snapshots reads from its folder: the list of its layers, and their maps. Whatever list is accepted is
 * sound and is encoded as it came. Then a chain of two layers is opened with the input as its map, as it is: it is
 * refused, or reads are of one layer or the other, granule by granule. Then the same with the input as the bits of a sound
 * map, and with the input over some of that: then it is refused, or reads are as the bits say. Last, the input lies over
 * the checksums of a file that has some: it is refused, a read finds it, or what is read is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/le.h"
#include "fuzz.h"
#include "io/loop.h"
#include "store/manifest.h"
#include "store/page.h"
#include "store/store.h"
#include "store/sums.h"

enum { GRANULES = 64, GRANULE = 4096 };

static void check_manifest(const uint8_t *data, size_t size)
{
    struct manifest m;
    uint8_t again[MANIFEST_MAX];
    if (manifest_decode(data, size, &m, NULL) < 0)
        return;
    CHECK(m.n >= 1 && m.n <= MANIFEST_LAYERS && m.layer[0].number == 0);
    CHECK(m.layer[m.n - 1].snapshot == 0);
    CHECK(manifest_encode(&m, again) == size && memcmp(again, data, size) == 0);
}

static char folder[] = "/dev/shm/orlop-fuzz-XXXXXX";

static void clean(void)
{
    static const char *const names[] = {"data",   "data.chain", "data.layer1", "data.layer1.map",
                                        "summed", "summed.sums"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[100];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void write_file(const char *name, const void *data, size_t size, uint8_t fill, off_t length)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    for (off_t at = 0; fill && at < length; at += GRANULE) {
        uint8_t granule[GRANULE];
        memset(granule, fill, sizeof(granule));
        CHECK(write(fd, granule, sizeof(granule)) == GRANULE);
    }
    close(fd);
}

static int read_error;

static void read_done(struct store_io *io, int error)
{
    read_error = error;
    io->fua = true; /* done */
}

/* bits: what the map says; NULL: nobody knows. False: it was refused. */
static bool check_map(const uint8_t *map, size_t size, const uint8_t *bits)
{
    static uint8_t data[GRANULES * GRANULE];
    const struct manifest m = {
        .next = 2, .n = 2, .layer = {{.snapshot = 1, .size = sizeof(data)}, {1, 0, 0, 0}}};
    uint8_t bytes[MANIFEST_MAX];
    char name[100];
    write_file("data", "", 0, 'b', sizeof(data));
    write_file("data.layer1", "", 0, 'h', sizeof(data));
    write_file("data.layer1.map", map, size, 0, 0);
    write_file("data.chain", bytes, manifest_encode(&m, bytes), 0, 0);
    struct io_loop *loop = io_loop_new(IO_EPOLL, NULL);
    const struct store_options o = {.loop = loop, .block_size = 512};
    snprintf(name, sizeof(name), "file:%s/data", folder);
    struct store *store = store_open(name, &o, NULL);
    if (store) {
        struct iovec iov = {data, sizeof(data)};
        struct store_io io = {
            .op = STORE_READ, .length = sizeof(data), .iov = &iov, .iovs = 1, .done = read_done};
        store_submit(store, &io);
        while (!io.fua)
            io_loop_turn(loop, -1);
        CHECK(read_error == 0);
        for (size_t g = 0; g < GRANULES; g++) {
            bool high = data[g * GRANULE] == 'h';
            CHECK(high || data[g * GRANULE] == 'b');
            CHECK(!bits || high == (bits[g / 8] >> g % 8 & 1));
        }
        store_close(store);
    }
    io_loop_free(loop);
    return store != NULL;
}

static void check_sound_map(const uint8_t *data, size_t size)
{
    static uint8_t map[2 * PAGE_PAIR];
    struct page_place place = {.layer = 1};
    memset(map, 0, sizeof(map));
    page_header_put(map, &(struct page_header){.version = 1, .written = 1});
    page_seal(map, &place, 3);
    memcpy(map + PAGE_SIZE, map, PAGE_SIZE);
    uint8_t *page = map + PAGE_PAIR;
    memcpy(page, data, size < PAGE_ROOM ? size : PAGE_ROOM);
    place.index = 1;
    page_seal(page, &place, 2);
    memcpy(page + PAGE_SIZE, page, PAGE_SIZE);
    uint8_t bits[PAGE_ROOM];
    memcpy(bits, page, sizeof(bits));
    CHECK(check_map(map, sizeof(map), bits));
    size_t at = size > 1 ? (data[0] | (size_t)data[1] << 8) % sizeof(map) : 0;
    for (size_t i = 2; i < size && at + i - 2 < sizeof(map); i++)
        map[at + i - 2] ^= data[i];
    check_map(map, sizeof(map), bits);
}

static void check_sums(const uint8_t *data, size_t size)
{
    static uint8_t sums[SUMS_START + SUMS_PAGE], back[GRANULES * GRANULE];
    const struct uuid id = {"fuzz"};
    const struct sums_header h = {.identity = id, .sequence = 2, .size = sizeof(back)};
    uint8_t granule[GRANULE];
    char name[100];
    memset(sums, 0, sizeof(sums));
    memset(granule, 's', sizeof(granule));
    sums_header_encode(&h, sums);
    sums_header_encode(&h, sums + SUMS_PAGE);
    for (size_t g = 0; g < GRANULES; g++)
        le_put32(sums + SUMS_START + g * 4, sums_of(granule, sizeof(granule)));
    size_t at = size > 1 ? (data[0] | (size_t)data[1] << 8) % sizeof(sums) : 0;
    for (size_t i = 2; i < size && at + i - 2 < sizeof(sums); i++)
        sums[at + i - 2] ^= data[i];
    write_file("summed", "", 0, 's', sizeof(back));
    write_file("summed.sums", sums, sizeof(sums), 0, 0);
    struct io_loop *loop = io_loop_new(IO_EPOLL, NULL);
    const struct store_options o = {
        .loop = loop, .block_size = 512, .sums = true, .existing = true};
    snprintf(name, sizeof(name), "file:%s/summed", folder);
    struct store *store = store_open(name, &o, NULL);
    if (store && store->size == sizeof(back)) {
        struct iovec iov = {back, sizeof(back)};
        struct store_io io = {
            .op = STORE_READ, .length = sizeof(back), .iov = &iov, .iovs = 1, .done = read_done};
        store_submit(store, &io);
        while (!io.fua)
            io_loop_turn(loop, -1);
        CHECK(read_error == 0 || read_error == EBADMSG);
        for (size_t i = 0; read_error == 0 && i < sizeof(back); i++)
            CHECK(back[i] == 's');
    }
    if (store)
        store_close(store);
    io_loop_free(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    if (!ready) {
        CHECK(mkdtemp(folder));
        atexit(clean);
        ready = true;
    }
    check_manifest(data, size);
    check_map(data, size, NULL);
    check_sound_map(data, size);
    check_sums(data, size);
    return 0;
}
