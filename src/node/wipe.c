#include "node/wipe.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "node/exclusive.h"
#include "node/label.h"
#include "node/probe.h"

enum { END_BYTES = 1 << 20, CHUNK = 64 << 10, ROUNDS_MAX = 4096, DEADLINE_MS = 300000 };

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static int zero(int fd, uint64_t from, uint64_t n, struct err *e)
{
    static const char zeros[CHUNK];
    while (n) {
        size_t some = n < CHUNK ? (size_t)n : CHUNK;
        ssize_t wrote = pwrite(fd, zeros, some, (off_t)from);
        if (wrote <= 0)
            return err_errno(e, wrote < 0 ? errno : EIO, "cannot write zeros at byte %llu",
                             (unsigned long long)from);
        from += (uint64_t)wrote;
        n -= (uint64_t)wrote;
    }
    return 0;
}

static bool has_label(int fd)
{
    unsigned char block[NODE_LABEL_SIZE];
    char name[NODE_LABEL_NAME];
    return pread(fd, block, sizeof(block), NODE_LABEL_OFFSET) == (ssize_t)sizeof(block) &&
           node_label_decode(block, name);
}

static int zero_ends(int fd, uint64_t size, struct err *e)
{
    uint64_t end = size < END_BYTES ? size : END_BYTES, from = 0;
    if (has_label(fd)) {
        if (zero(fd, 0, NODE_LABEL_OFFSET, e) < 0)
            return -1;
        from = NODE_LABEL_OFFSET + NODE_LABEL_SIZE;
    }
    if (zero(fd, from, end - from, e) < 0)
        return -1;
    uint64_t tail = size - end < end ? end : size - end; /* of a small one, what is left */
    return zero(fd, tail, size - tail, e);
}

/* What is left in between: copies of superblocks far into the device. */
static int wipe_signatures(int fd, struct err *e)
{
    blkid_probe pr = blkid_new_probe();
    if (!pr || blkid_probe_set_device(pr, fd, 0, 0) != 0) {
        blkid_free_probe(pr);
        return err_errno(e, errno ? errno : EIO, "cannot probe it");
    }
    blkid_probe_enable_superblocks(pr, 1);
    blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_TYPE |
                                              BLKID_SUBLKS_BADCSUM);
    blkid_probe_enable_partitions(pr, 1);
    blkid_probe_set_partitions_flags(pr, BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT);
    int status = 0, rounds = 0;
    while (status == 0 && blkid_do_probe(pr) == 0) {
        if (rounds++ == ROUNDS_MAX || blkid_do_wipe(pr, 0) != 0)
            status = err_errno(e, EIO, "cannot remove a signature");
    }
    blkid_free_probe(pr);
    return status;
}

static int size_of(int fd, bool *ret_file, uint64_t *ret_size, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_errno(e, errno, "cannot look at it");
    *ret_file = S_ISREG(st.st_mode);
    *ret_size = (uint64_t)st.st_size;
    if (!*ret_file && (!S_ISBLK(st.st_mode) || ioctl(fd, BLKGETSIZE64, ret_size) < 0))
        return err_set(e, ERR_INVALID_ARGUMENT, "NoDevice", "it is no block device and no file");
    return 0;
}

static int wipe_open(int fd, struct err *e)
{
    bool file = false;
    uint64_t size = 0;
    if (size_of(fd, &file, &size, e) < 0)
        return -1;
    if (file && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size) < 0 &&
        errno != EOPNOTSUPP)
        return err_errno(e, errno, "cannot empty it");
    if (zero_ends(fd, size, e) < 0 || wipe_signatures(fd, e) < 0)
        return -1;
    return fsync(fd) < 0 ? err_errno(e, errno, "cannot sync it") : 0;
}

int node_wipe(const char *path, struct err *e)
{
    {
        _cleanup_(close_fd) int fd = node_open_exclusive(path, O_RDWR, e);
        if (fd < 0)
            return -1;
        if (wipe_open(fd, e) < 0)
            return err_prefix(e, "%s", path);
    }
    struct node_probe probe;
    node_probe_read(path, &probe);
    bool left = probe.failed || probe.several || *probe.type || *probe.table;
    if (left)
        err_set(e, ERR_DATA_LOSS, "NotClean", "%s: after the wipe there is still %s%s", path,
                probe.failed ? probe.error : probe.type, probe.table);
    node_probe_done(&probe);
    return left ? -1 : 0;
}

int node_wipe_with(const char *program, const char *path, struct err *e)
{
    if (!program)
        return node_wipe(path, e);
    const char *const argv[] = {program, "wipe", path, NULL};
    struct spawn spawn = {.argv = argv, .timeout_ms = DEADLINE_MS};
    struct spawn_result result = {0};
    if (spawn_run(&spawn, &result, e) < 0)
        return -1;
    int status = spawn_check(&spawn, &result, e);
    spawn_result_done(&result);
    return status;
}
