/*
 * Metadata in a file: a write is in the page cache when the call returns, so the order of calls is that of writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "replio/replica_impl.h"
#include "replio/replica_meta.h"

struct meta_file {
    struct replica_meta meta;
    int fd;
    struct io_request sync, log_write;
    struct iovec log_iov;
    uint8_t log_block[REPL_LOG_SLOT];
};

static struct meta_file *file_of(struct replica_meta *m)
{
    return container_of(m, struct meta_file, meta);
}

static void read_file(struct replica_meta *m, uint64_t offset, void *data, size_t size)
{
    ssize_t n = pread(file_of(m)->fd, data, size, (off_t)offset);
    size_t have = n > 0 ? (size_t)n : 0;
    memset((uint8_t *)data + have, 0, size - have);
}

static void write_file(struct replica_meta *m, uint64_t offset, const void *data, size_t size)
{
    ssize_t n = pwrite(file_of(m)->fd, data, size, (off_t)offset);
    if (n != (ssize_t)size)
        m->error = n < 0 ? errno : EIO;
}

static void file_synced(struct io_request *request, int64_t result)
{
    struct meta_file *f = container_of(request, struct meta_file, sync);
    f->meta.under_way--;
    replica_meta_synced(&f->meta, result < 0 ? (int)-result : 0);
}

static int sync_file(struct replica_meta *m)
{
    struct meta_file *f = file_of(m);
    if (m->error)
        return -m->error;
    m->under_way++;
    f->sync = (struct io_request){.op = IO_SYNC, .fd = f->fd, .done = file_synced};
    io_submit(m->replica->loop, &f->sync);
    return 0;
}

static void log_written(struct io_request *request, int64_t result)
{
    struct meta_file *f = container_of(request, struct meta_file, log_write);
    if (result >= 0 && result < (int64_t)f->log_iov.iov_len)
        result = -EIO;
    f->meta.under_way--;
    replica_meta_logged(&f->meta, result < 0 ? (int)-result : 0);
}

static int write_log(struct replica_meta *m, uint64_t offset, const void *data, size_t size)
{
    struct meta_file *f = file_of(m);
    memcpy(f->log_block, data, size);
    m->under_way++;
    f->log_iov = (struct iovec){f->log_block, size};
    f->log_write = (struct io_request){.op = IO_WRITE,
                                       .fd = f->fd,
                                       .flags = RWF_DSYNC,
                                       .offset = offset,
                                       .iov = &f->log_iov,
                                       .iovs = 1,
                                       .done = log_written};
    io_submit(m->replica->loop, &f->log_write);
    return 0;
}

static void file_loaded(struct replica_meta *m)
{
    (void)m;
}

static void close_file(struct replica_meta *m)
{
    struct meta_file *f = file_of(m);
    close(f->fd);
    free(f);
}

static const struct replica_meta_ops file_ops = {
    .read = read_file,
    .write = write_file,
    .sync = sync_file,
    .log_write = write_log,
    .loaded = file_loaded,
    .close = close_file,
};

struct replica_meta *replica_meta_file(struct replio_replica *r, const char *dir, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/meta", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_errno(e, errno, "cannot open %s", path);
        return NULL;
    }
    if (file_lock(fd, false) < 0) {
        err_set(e, ERR_FAILED_PRECONDITION, "InUse", "%s is in use by another replica", dir);
        close(fd);
        return NULL;
    }
    struct meta_file *f = NEW(struct meta_file);
    f->meta = (struct replica_meta){.ops = &file_ops, .replica = r};
    f->fd = fd;
    return &f->meta;
}
