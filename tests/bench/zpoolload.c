/*
 * Load on a volume of a pool of one file: zpoolload FILE OP BLOCK WORKERS FLUSH SECONDS.
 *
 *     OP       randwrite, write or read
 *     BLOCK    bytes of each I/O; the volume's blocks have the same size
 *     WORKERS  threads, and I/Os under way
 *     FLUSH    after so many writes of each; 0: at the end
 *
 * Prints: I/Os a second, microseconds of processor time for each, memory in kB, threads. With OP idle:
 * memory and threads of the engine alone, and with a pool.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "zpool/volume.h"

enum { SLOTS = 64, SIZE_MIB = 1024 };

struct slot {
    struct zpool_io io;
    struct iovec iov;
    unsigned since_flush;
};

static struct zpool_volume *volume;
static struct zpool_workers *workers;
static enum zpool_op op;
static bool random_order;
static unsigned flush_every, busy;
static uint64_t block, blocks, next_block, done_ios;
static double end;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double processor_time(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void fail(const char *what)
{
    fprintf(stderr, "zpoolload: %s\n", what);
    exit(1);
}

static void next(struct slot *s)
{
    s->io.op = op;
    uint64_t n = random_order ? (uint64_t)random() % blocks : next_block++ % blocks;
    s->io.offset = n * block;
    memcpy(s->iov.iov_base, &s->io.offset, sizeof(s->io.offset));
    zpool_workers_submit(workers, &s->io);
}

static void done(struct zpool_io *io)
{
    struct slot *s = container_of(io, struct slot, io);
    if (io->error)
        fail(strerror(io->error));
    if (io->op == op) {
        done_ios++;
        if (flush_every && ++s->since_flush == flush_every) {
            s->since_flush = 0;
            s->io.op = ZPOOL_FLUSH;
            zpool_workers_submit(workers, &s->io);
            return;
        }
    }
    if (now() < end)
        next(s);
    else
        busy--;
}

static void show_memory(const char *when)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    printf("%s", when);
    while (f && fgets(line, sizeof(line), f)) {
        unsigned long n;
        if (sscanf(line, "VmRSS: %lu", &n) == 1 || sscanf(line, "Threads: %lu", &n) == 1)
            printf(" %lu", n);
    }
    if (f)
        fclose(f);
    printf("\n");
}

static void fill(char *data)
{
    for (uint64_t at = 0; at < SIZE_MIB; at++) {
        struct iovec iov = {data, 1 << 20};
        struct zpool_io io = {.volume = volume,
                              .op = ZPOOL_WRITE,
                              .offset = at << 20,
                              .length = 1 << 20,
                              .iov = &iov,
                              .iovs = 1};
        if (zpool_io_run(&io))
            fail("cannot fill");
    }
}

static struct zpool *make_pool(const char *path)
{
    struct err e;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 3L << 30) < 0)
        fail("cannot make the file");
    close(fd);
    struct zpool_device device = {.path = path};
    struct zpool_group group = {.devices = &device, .n_devices = 1};
    struct zpool *p =
        zpool_create("bench", &(struct zpool_layout){.groups = &group, .n_groups = 1}, &e);
    if (!p)
        fail(e.msg);
    return p;
}

int main(int argc, char **argv)
{
    struct err e;
    if (argc < 3 || zpool_start(&(struct zpool_options){.host_id = 1, .files = "/"}, &e) < 0)
        fail("start");
    if (strcmp(argv[2], "idle") == 0)
        show_memory("engine");
    struct zpool *p = make_pool(argv[1]);
    if (strcmp(argv[2], "idle") == 0) {
        show_memory("pool");
        return 0;
    }
    if (argc != 7)
        fail("FILE OP BLOCK WORKERS FLUSH SECONDS");
    op = strcmp(argv[2], "read") == 0 ? ZPOOL_READ : ZPOOL_WRITE;
    random_order = strncmp(argv[2], "rand", 4) == 0;
    block = strtoull(argv[3], NULL, 10);
    unsigned n = (unsigned)atoi(argv[4]);
    flush_every = (unsigned)atoi(argv[5]);
    blocks = ((uint64_t)SIZE_MIB << 20) / block;
    struct zpool_volume_spec spec = {.size = (uint64_t)SIZE_MIB << 20,
                                     .block_size = (uint32_t)block};
    if (zpool_volume_create(p, "v", &spec, &e) < 0 ||
        !(volume = zpool_volume_open(p, "v", false, &e)) ||
        !(workers = zpool_workers_new(n, n, &e)))
        fail(e.msg);
    char(*data)[1 << 20] = mem_alloc(n * sizeof(*data));
    for (size_t i = 0; i < n * sizeof(*data); i += 8) {
        uint64_t word = (uint64_t)random() << 32 ^ (uint64_t)random();
        memcpy(&data[0][0] + i, &word, 8);
    }
    if (op == ZPOOL_READ || random_order)
        fill(data[0]);
    zpool_sync(p, &e);
    static struct slot slots[SLOTS];
    double start = now(), cpu = processor_time();
    end = start + atof(argv[6]);
    for (busy = 0; busy < n && busy < SLOTS; busy++) {
        struct slot *s = &slots[busy];
        s->iov = (struct iovec){data[busy], block};
        s->io = (struct zpool_io){
            .volume = volume, .length = block, .iov = &s->iov, .iovs = 1, .done = done};
        next(s);
    }
    while (busy) {
        struct pollfd fd = {.fd = zpool_workers_fd(workers), .events = POLLIN};
        poll(&fd, 1, -1);
        zpool_workers_reap(workers);
    }
    if (op == ZPOOL_WRITE)
        zpool_io_run(&(struct zpool_io){.volume = volume, .op = ZPOOL_FLUSH});
    printf("%.1f %.1f", (double)done_ios / (now() - start),
           (processor_time() - cpu) / (double)done_ios * 1e6);
    show_memory("");
    return 0;
}
