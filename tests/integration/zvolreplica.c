/*
 * Replicas in a pool, without Kubernetes:
 *
 *     zvolreplica DEVICE VOLUME KEY-FILE TARGET PORT MEBIBYTES [BLOCK [COUNT]]
 *     zvolreplica digest DEVICE BYTES       of each volume and snapshot of a pool that nobody has: a checksum
 *     zvolreplica rollback DEVICE SNAPSHOT  as somebody may do by hand
 *     zvolreplica destroy DEVICE VOLUME     the same
 *
 * Makes the pool on the device, or imports it, and keeps a replica of VOLUME in it (of VOLUME, VOLUME-1, ... with COUNT, at
 * ports from PORT on). What an object of Kubernetes would remember is in DEVICE.guid. DEVICE.view has what is known of the first
 * one, a line per change. SIGTERM exports the pool; SIGUSR1 destroys the replicas, and then it ends; SIGUSR2 says that the pool is
 * nearly full, and again that it is not; SIGHUP scrubs.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "pool/replicas.h"
#include "zpool/volume.h"

enum { COUNT_MOST = 256 };
static const uint64_t MIB = 1 << 20;
/* libzpool's: a pool that was killed is not watched for long before it is taken over. */
extern unsigned int zfs_multihost_import_intervals;

static struct err e;
static int woken;
static struct pool_replicas *all;
static struct zpool *pool;
static const char *device;
static char names[COUNT_MOST][64];
static struct pool_replica_wish wishes[COUNT_MOST];
static struct str key;

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, e.msg);
    return 1;
}

static void wake(void *context)
{
    (void)context;
    uint64_t one = 1;
    if (write(woken, &one, sizeof(one)) < 0)
        abort();
}

static void changed(void *context, const char *name)
{
    (void)context, (void)name;
    wake(NULL);
}

static struct zpool *open_pool(void)
{
    struct zpool_found f;
    zpool_scan(&device, 1, &f);
    if (f.label == ZPOOL_LABEL_MEMBER) {
        const struct zpool_import how = {
            .guid = f.pool_guid, .paths = &device, .n_paths = 1, .take_over = true};
        return zpool_import(&how, &e);
    }
    const struct zpool_device d = {.path = device};
    const struct zpool_group group = {ZPOOL_STRIPE, ZPOOL_ROLE_DATA, &d, 1};
    const struct zpool_layout layout = {.groups = &group, .n_groups = 1};
    char name[32];
    snprintf(name, sizeof(name), "tank%u", crc_32c(device, strlen(device)));
    return zpool_create(name, &layout, &e);
}

static void guid_path(unsigned i, char *path, size_t size)
{
    snprintf(path, size, i ? "%s.guid%u" : "%s.guid", device, i);
}

static uint64_t read_guid(unsigned i)
{
    char path[256];
    _cleanup_(str_done) struct str text = {0};
    guid_path(i, path, sizeof(path));
    return file_read(path, 100, &text, NULL) == 0 ? strtoull(str_get(&text), NULL, 10) : 0;
}

static void write_guid(unsigned i, uint64_t guid)
{
    char path[256], text[32];
    guid_path(i, path, sizeof(path));
    int n = snprintf(text, sizeof(text), "%" PRIu64, guid);
    if (file_replace(path, text, (size_t)n, 0600, &e) < 0)
        abort();
}

static void write_view(const struct pool_replica_view *v)
{
    char path[256];
    snprintf(path, sizeof(path), "%s.view", device);
    FILE *f = fopen(path, "a");
    fprintf(f,
            "{\"known\": %d, \"missing\": %d, \"foreign\": %d, \"gone\": %d, \"guid\": %" PRIu64
            ", \"open\": %d, \"connected\": %d, \"complete\": %d, \"fresh\": %d, \"rebuilding\": "
            "%d, \"percent\": %u, \"full\": %d, \"used\": %" PRIu64 ", \"logical\": %" PRIu64
            ", \"size\": %" PRIu64 ", \"damaged\": %" PRIu64 ", \"mended\": %" PRIu64
            ", \"snapshots\": %u, \"why\": \"%s\", \"end\": \"%s\", \"damage\": \"%s\"}\n",
            v->known, v->missing, v->foreign, v->gone, v->guid, v->open, v->connected, v->complete,
            v->fresh, v->rebuilding, v->percent, v->full, v->used, v->logical, v->size, v->damaged,
            v->mended, v->snapshots, v->why.reason ? v->why.reason : "", v->last_end, v->damage);
    fclose(f);
}

/* What the reconcilers do: the GUID is remembered before the replica is opened. Returns whether all are gone. */
static bool follow(unsigned count)
{
    static struct pool_replica_view last;
    unsigned gone = 0;
    for (unsigned i = 0; i < count; i++) {
        struct pool_replica_wish *w = &wishes[i];
        struct pool_replica_view v;
        pool_replicas_view(all, w->name, &v);
        if (w->want == POOL_REPLICA_CREATE && v.known && v.guid && !v.foreign) {
            write_guid(i, v.guid);
            w->guid = v.guid;
            w->want = POOL_REPLICA_KEEP;
            pool_replicas_wish(all, w);
        }
        gone += v.gone;
        if (i == 0 && memcmp(&last, &v, sizeof(v)) != 0) {
            memcpy(&last, &v, sizeof(v));
            write_view(&v);
        }
    }
    return gone == count;
}

static void make_wishes(char **argv, unsigned count, uint32_t block)
{
    for (unsigned i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), i ? "%s-%u" : "%s", argv[2], i);
        wishes[i] = (struct pool_replica_wish){
            .name = names[i],
            .zvol = names[i],
            .volume_name = names[i],
            .volume = uuid_of_name(names[i]),
            .replicaid = crc_32c(device, strlen(device)) + 1ULL + i,
            .guid = read_guid(i),
            .size = strtoull(argv[6], NULL, 10) * MIB,
            .block_size = block,
            .compression = "",
            .target = argv[4],
            .port = (uint16_t)(atoi(argv[5]) + (int)i),
            .key = (const uint8_t *)key.p,
            .key_size = key.len,
        };
        wishes[i].want = wishes[i].guid ? POOL_REPLICA_KEEP : POOL_REPLICA_CREATE;
        pool_replicas_wish(all, &wishes[i]);
    }
}

static bool take_signal(int fd, unsigned count)
{
    static bool full;
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof(info)) != sizeof(info))
        return false;
    if (info.ssi_signo == SIGUSR2) {
        full = !full;
        pool_replicas_full(all, full);
    } else if (info.ssi_signo == SIGHUP) {
        if (zpool_scrub(pool, true, &e) < 0)
            fail("scrub");
    } else if (info.ssi_signo == SIGUSR1) {
        for (unsigned i = 0; i < count; i++) {
            wishes[i].want = POOL_REPLICA_DESTROY;
            pool_replicas_wish(all, &wishes[i]);
        }
    }
    return info.ssi_signo == SIGTERM;
}

/* A pool that no process has. */

static int digest(const char *name, uint64_t size)
{
    static char data[1 << 20];
    struct zpool_volume *v = zpool_volume_open(pool, name, false, &e);
    if (!v)
        return fail(name);
    uint64_t sum = 0, have = zpool_volume_size(v);
    for (uint64_t at = 0; at < size; at += sizeof(data)) {
        struct iovec iov = {data, sizeof(data)};
        const struct zpool_io io = {.volume = v,
                                    .op = ZPOOL_READ,
                                    .offset = at,
                                    .length = sizeof(data),
                                    .iov = &iov,
                                    .iovs = 1};
        memset(data, 0, sizeof(data));
        if (at < have && zpool_io_run(&io) != 0)
            return fail("read");
        sum = sum * 0x9e3779b97f4a7c15ULL + crc_32c(data, sizeof(data));
    }
    zpool_volume_close(v);
    printf("%s %016" PRIx64 "\n", name, sum);
    return 0;
}

static int look(int argc, char **argv)
{
    struct zpool_volume_info *list = NULL;
    size_t n;
    int status = 0;
    if (argc < 4)
        return 2;
    device = argv[2];
    pool = open_pool();
    if (!pool)
        return fail("pool");
    if (str_eq(argv[1], "rollback"))
        status = zpool_rollback(pool, argv[3], &e) < 0;
    else if (str_eq(argv[1], "destroy"))
        status = zpool_volume_destroy(pool, argv[3], &e) < 0;
    else if (zpool_volume_list(pool, &list, &n, &e) < 0)
        return fail("list");
    else
        for (size_t i = 0; i < n && !status; i++)
            if (!str_ends_with(list[i].name, ":orlop"))
                status = digest(list[i].name, strtoull(argv[3], NULL, 10));
    free(list);
    if (status)
        fail(argv[3]);
    return zpool_export(pool, &e) < 0 ? fail("export") : status;
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"digest", "rollback", "destroy", NULL};
    bool looks = argc > 1 && str_in(argv[1], modes);
    if (argc < 7 && !looks)
        return 2;
    device = argv[looks ? 2 : 1];
    unsigned count = argc > 8 ? (unsigned)atoi(argv[8]) : 1;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const struct zpool_options zo = {
        .host_id = crc_32c(device, strlen(device)) | 1, .sign_ms = 100, .files = "/"};
    const struct pool_replicas_options ro = {.wake = wake};
    if ((!looks && file_read(argv[3], 4096, &key, &e) < 0) || zpool_start(&zo, &e) < 0)
        return fail("start");
    zfs_multihost_import_intervals = 1;
    if (looks)
        return look(argc, argv);
    pool = open_pool();
    all = pool ? pool_replicas_new(&ro, &e) : NULL;
    if (!all)
        return fail("pool");
    pool_replicas_watch(all, changed, NULL);
    pool_replicas_attach(all, pool);
    make_wishes(argv, count, argc > 7 ? (uint32_t)atoi(argv[7]) : 0);
    for (bool end = false; !end;) {
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = woken, .events = POLLIN}};
        uint64_t n;
        poll(fds, 2, -1);
        if (fds[1].revents && read(woken, &n, sizeof(n)) < 0)
            continue;
        pool_replicas_serve(all);
        end = fds[0].revents && take_signal(signals, count);
        end |= follow(count);
    }
    pool_replicas_detach(all);
    pool_replicas_free(all);
    str_done(&key);
    return zpool_export(pool, &e) < 0 ? fail("export") : 0;
}
