/*
 * A sparse file as a store: opening, growing, syncing, and what is where.
 *
 * Group commit: at most one fdatasync is under way. It begins at the end of the turn in which it was
 * asked for, and serves all who had asked by then; who asks later waits for the next, as the data
 * written meanwhile may not be in the first.
 *
 *     flush ──> waiting ── end of turn, none under way ──> synced ── fdatasync done ──> done()
 *
 * An fdatasync that failed may have dropped what it could not write, so nothing written so far can be
 * called durable any more: from then on every flush fails (`broken` is the error of the first).
 */
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static void start_sync(struct io_deferred *d)
{
    struct file *f = container_of(d, struct file, sync_later);
    if (f->syncing || list_empty(&f->waiting))
        return;
    f->syncing = true;
    list_splice(&f->synced, &f->waiting);
    io_submit(f->loop, &f->sync);
}

static void sync_done(struct io_request *r, int64_t result)
{
    struct file *f = container_of(r, struct file, sync);
    struct list_link served;
    list_init(&served);
    list_splice(&served, &f->synced);
    f->syncing = false;
    if (result < 0 && !f->broken)
        f->broken = (int)-result;
    /* What was not written counts as written in the page cache: nobody may read it there. */
    if (result < 0)
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (!list_empty(&f->waiting))
        io_loop_defer(f->loop, &f->sync_later);
    for (struct list_link *l; (l = list_take(&served));)
        store_done(container_of(l, struct store_io, link), f->broken);
}

void file_sync(struct file *f, struct store_io *io)
{
    list_push(&f->waiting, &io->link);
    if (!f->syncing)
        io_loop_defer(f->loop, &f->sync_later);
}

static void submit(struct store *s, struct store_io *io)
{
    struct file *f = file_of(s);
    switch (io->op) {
    case STORE_READ:
    case STORE_WRITE:
        file_transfer(f, io);
        break;
    case STORE_UNMAP:
    case STORE_ZERO:
        file_clear(f, io);
        break;
    case STORE_FLUSH:
        file_sync(f, io);
        break;
    case STORE_RESUM: /* the chain's */
        store_done(io, EINVAL);
        break;
    }
}

static void grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    struct file *f = file_of(s);
    int error = ftruncate(f->fd, (off_t)size) < 0 || fsync(f->fd) < 0 ? errno : 0;
    if (!error)
        s->size = size;
    done(context, error);
}

static enum store_extent extent(struct store *s, uint64_t offset, uint64_t *ret_length)
{
    const struct file *f = file_of(s);
    off_t data = lseek(f->fd, (off_t)offset, SEEK_DATA);
    if (data < 0 && errno != ENXIO) {
        *ret_length = s->size - offset;
        return STORE_MAPPED;
    }
    if (data < 0 || (uint64_t)data > s->size)
        data = (off_t)s->size;
    if ((uint64_t)data > offset) {
        *ret_length = (uint64_t)data - offset;
        return STORE_UNMAPPED;
    }
    off_t hole = lseek(f->fd, (off_t)offset, SEEK_HOLE);
    *ret_length = (hole < 0 || (uint64_t)hole > s->size ? s->size : (uint64_t)hole) - offset;
    return STORE_MAPPED;
}

static uint64_t used(struct store *s)
{
    struct stat st;
    return fstat(file_of(s)->fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : s->size;
}

static void close_file(struct store *s)
{
    struct file *f = file_of(s);
    list_unlink(&f->sync_later.link);
    /* The lock would go with the last reference, and a worker of io_uring may keep one for seconds. */
    flock(f->fd, LOCK_UN);
    close(f->fd);
    free(f->path);
    free(f);
}

static const struct store_ops file_ops = {
    .name = "file",
    .submit = submit,
    .grow = grow,
    .extent = extent,
    .used = used,
    .close = close_file,
};

/* Whether the disk below takes blocks as small as the store's, which some with large sectors do not. */
static int probe_direct(const struct file *f, const char *path, uint32_t block_size, struct err *e)
{
    enum { ALIGN = 4096 };
    void *block = NULL;
    if (posix_memalign(&block, ALIGN, ALIGN) != 0)
        return err_errno(e, ENOMEM, "%s", path);
    ssize_t n = pread(f->fd, block, block_size, 0);
    int error = n < 0 ? errno : 0;
    free(block);
    return error ? err_errno(e, error, "no direct I/O of %u bytes in %s", block_size, path) : 0;
}

static int prepare(struct file *f, const char *path, const struct store_options *o, struct err *e)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return err_errno(e, errno, "cannot look at %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidStore", "%s is no regular file", path);
    /* Two programs that write one file would destroy it; readers may share. */
    if (file_lock(f->fd, o->read_only) < 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "InUse", "%s is in use by another program",
                       path);
    uint64_t size = (uint64_t)st.st_size;
    if (o->size && size > o->size)
        return err_set(e, ERR_FAILED_PRECONDITION, "WouldShrink",
                       "%s has %llu bytes, more than the %llu asked for: a volume does not shrink",
                       path, (unsigned long long)size, (unsigned long long)o->size);
    if (o->size > size && !o->read_only) {
        if (ftruncate(f->fd, (off_t)o->size) < 0 || fsync(f->fd) < 0)
            return err_errno(e, errno, "cannot make %s %llu bytes large", path,
                             (unsigned long long)o->size);
        size = o->size;
    }
    f->store.size = size - size % o->block_size;
    if (!f->store.size)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSize", "%s is empty: give it a size", path);
    return f->direct ? probe_direct(f, path, o->block_size, e) : 0;
}

int store_file_fd(struct store *s)
{
    return file_of(s)->fd;
}

int store_file_check(const char *rest, struct err *e)
{
    const char *query = rest + strcspn(rest, "?");
    if (query == rest || (*query && !str_eq(query, "?direct=1") && !str_eq(query, "?direct=0")))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidStore",
                       "'file:%s': write file:PATH or file:PATH?direct=1", rest);
    return 0;
}

struct store *store_file_open(const char *rest, const struct store_options *o, struct err *e)
{
    if (store_file_check(rest, e) < 0)
        return NULL;
    _cleanup_free_ char *path = mem_strdup(rest);
    char *query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    struct file *f = NEW(struct file);
    f->loop = o->loop;
    f->path = mem_strdup(path);
    f->direct = query && str_eq(query, "direct=1");
    list_init(&f->synced);
    list_init(&f->waiting);
    f->sync_later.fn = start_sync;
    list_init(&f->sync_later.link);
    f->fd = open(path,
                 (o->read_only ? O_RDONLY : O_RDWR) | (o->read_only || o->existing ? 0 : O_CREAT) |
                     O_CLOEXEC | (f->direct ? O_DIRECT : 0),
                 0600);
    f->sync = (struct io_request){.op = IO_SYNC, .fd = f->fd, .done = sync_done};
    f->store = (struct store){
        .ops = &file_ops,
        .block_size = o->block_size,
        .read_only = o->read_only,
        .volatile_cache = true,
    };
    if (f->fd < 0 ? err_errno(e, errno, "cannot open %s", path) < 0 : prepare(f, path, o, e) < 0) {
        if (f->fd >= 0)
            close(f->fd);
        free(f->path);
        free(f);
        return NULL;
    }
    return &f->store;
}
