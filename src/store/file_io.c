/*
 * Reading, writing and clearing of a file.
 *
 *                     through the page cache               O_DIRECT
 *     read            preadv2(RWF_NOWAIT), here;           the loop's request
 *                     what is not cached: a request
 *     write           pwritev, here                        the loop's request; fua: RWF_DSYNC
 *     write with fua  pwritev, then the next sync
 *     unmap, zero     a request; where a file system cannot, zeroes are written
 *
 * A page-cache file is worked on by the thread that asks, since that takes two microseconds and a
 * hand-over thirty. With O_DIRECT the kernel wants memory aligned to blocks. What was received from a
 * network is not, and goes through a bounce buffer:
 *
 *     bounce: 4 KiB  [ iovec 0..n ][ io_buf * 0..n ]  ──>  n large buffers
 */
#include <errno.h>
#include <unistd.h>

#include "io/buf.h"
#include "store/file.h"

enum { ALIGN = 512, BOUNCE_MAX = IO_SMALL / (sizeof(struct iovec) + sizeof(struct io_buf *)) };

struct bounce {
    struct iovec iov[BOUNCE_MAX];
    struct io_buf *bufs[BOUNCE_MAX];
};

static struct file_io *state_of(struct store_io *io)
{
    return (struct file_io *)(void *)io->state;
}

static struct store_io *io_of(struct io_request *r)
{
    struct file_io *fio = container_of(r, struct file_io, request);
    return container_of((void *)fio, struct store_io, state);
}

/* n bytes on, in the first and later vectors; what is left, as many as `most`. */
static unsigned skip(const struct iovec *iov, unsigned n, uint64_t bytes, struct iovec *out,
                     unsigned most)
{
    unsigned count = 0;
    for (unsigned i = 0; i < n && count < most; i++) {
        if (bytes >= iov[i].iov_len) {
            bytes -= iov[i].iov_len;
            continue;
        }
        out[count++] = (struct iovec){(uint8_t *)iov[i].iov_base + bytes, iov[i].iov_len - bytes};
        bytes = 0;
    }
    return count;
}

/* Bounce buffers. */

static void copy_bounce(struct store_io *io, bool in)
{
    const struct bounce *b = (void *)state_of(io)->bounce->data;
    uint64_t at = 0;
    for (unsigned i = 0; i < io->iovs && at < io->length; i++) {
        uint8_t *p = io->iov[i].iov_base;
        for (size_t left = io->iov[i].iov_len; left && at < io->length;) {
            size_t room = IO_LARGE - at % IO_LARGE, n = left < room ? left : room;
            uint8_t *q = (uint8_t *)b->iov[at / IO_LARGE].iov_base + at % IO_LARGE;
            memcpy(in ? q : p, in ? p : q, n);
            at += n;
            p += n;
            left -= n;
        }
    }
}

static bool make_bounce(struct file *f, struct store_io *io)
{
    struct io_pool *pool = io_loop_pool(f->loop);
    unsigned n = (unsigned)((io->length + IO_LARGE - 1) / IO_LARGE);
    if (n > BOUNCE_MAX)
        return false;
    struct io_buf *buf = io_buf_new(pool, IO_SMALL);
    struct bounce *b = (void *)buf->data;
    for (unsigned i = 0; i < n; i++) {
        uint64_t left = io->length - (uint64_t)i * IO_LARGE;
        b->bufs[i] = io_buf_new(pool, IO_LARGE);
        b->iov[i] = (struct iovec){b->bufs[i]->data, left < IO_LARGE ? left : IO_LARGE};
    }
    state_of(io)->bounce = buf;
    state_of(io)->request.iov = b->iov;
    state_of(io)->request.iovs = n;
    if (io->op == STORE_WRITE)
        copy_bounce(io, true);
    return true;
}

static void drop_bounce(struct store_io *io)
{
    struct io_buf *buf = state_of(io)->bounce;
    if (!buf)
        return;
    const struct bounce *b = (void *)buf->data;
    for (uint64_t i = 0; i * IO_LARGE < io->length; i++)
        io_buf_unref(b->bufs[i]);
    io_buf_unref(buf);
    state_of(io)->bounce = NULL;
}

static bool aligned(const struct store_io *io)
{
    uintptr_t bits = 0;
    for (unsigned i = 0; i < io->iovs; i++)
        bits |= (uintptr_t)io->iov[i].iov_base | io->iov[i].iov_len;
    return (bits & (ALIGN - 1)) == 0;
}

/* Transfers. */

static void end_transfer(struct store_io *io, int error)
{
    struct file *f = file_of(io->store);
    if (!error && io->op == STORE_READ && state_of(io)->bounce)
        copy_bounce(io, false);
    drop_bounce(io);
    if (!error && io->op == STORE_WRITE && io->fua && !f->direct)
        file_sync(f, io);
    else
        store_done(io, error);
}

static void transferred(struct io_request *r, int64_t n);

/* The rest, from `done` on. The vectors that are left are few enough for the place they have, or the
 * next round takes those that follow. */
static void request_rest(struct file *f, struct store_io *io)
{
    struct file_io *fio = state_of(io);
    fio->request.op = io->op == STORE_READ ? IO_READ : IO_WRITE;
    fio->request.fd = f->fd;
    fio->request.offset = io->offset + fio->done;
    fio->request.done = transferred;
    fio->request.flags = f->direct && io->fua ? RWF_DSYNC : 0;
    if (!fio->bounce && fio->done) {
        fio->request.iovs = skip(io->iov, io->iovs, fio->done, fio->rest, ARRAY_SIZE(fio->rest));
        fio->request.iov = fio->rest;
    } else if (fio->bounce && fio->done) {
        struct bounce *b = (void *)fio->bounce->data;
        fio->request.iovs = skip(b->iov, (unsigned)((io->length + IO_LARGE - 1) / IO_LARGE),
                                 fio->done, fio->rest, ARRAY_SIZE(fio->rest));
        fio->request.iov = fio->rest;
    }
    io_submit(f->loop, &fio->request);
}

static void transferred(struct io_request *r, int64_t n)
{
    struct store_io *io = io_of(r);
    struct file_io *fio = state_of(io);
    struct file *f = file_of(io->store);
    if (n == -EINTR || n == -EAGAIN)
        n = 0;
    else if (n == 0)
        n = -EIO; /* the file is shorter than it was */
    if (n < 0) {
        end_transfer(io, (int)-n);
        return;
    }
    fio->done += (uint64_t)n;
    if (fio->done < io->length)
        request_rest(f, io);
    else
        end_transfer(io, 0);
}

/* In this thread, as far as that goes without waiting; bytes or -errno. */
static int64_t inline_transfer(struct file *f, const struct store_io *io)
{
    ssize_t n = -1;
    if (io->op == STORE_WRITE) {
        n = pwritev(f->fd, io->iov, (int)io->iovs, (off_t)io->offset);
    } else if (!f->no_nowait) {
        n = preadv2(f->fd, io->iov, (int)io->iovs, (off_t)io->offset, RWF_NOWAIT);
        if (n < 0 && errno == EOPNOTSUPP)
            f->no_nowait = true; /* tmpfs: there is nothing to wait for */
    }
    if (io->op == STORE_READ && f->no_nowait)
        n = preadv(f->fd, io->iov, (int)io->iovs, (off_t)io->offset);
    return n < 0 ? -errno : n;
}

void file_transfer(struct file *f, struct store_io *io)
{
    struct file_io *fio = state_of(io);
    fio->bounce = NULL;
    fio->done = 0;
    fio->request.iov = io->iov;
    fio->request.iovs = io->iovs;
    if (f->direct) {
        if (!aligned(io) && !make_bounce(f, io)) {
            store_done(io, EINVAL);
            return;
        }
        request_rest(f, io);
        return;
    }
    int64_t n = inline_transfer(f, io);
    if (n == (int64_t)io->length) {
        end_transfer(io, 0);
    } else if (n < 0 && n != -EAGAIN && n != -EINTR) {
        end_transfer(io, (int)-n);
    } else {
        fio->done = n < 0 ? 0 : (uint64_t)n;
        request_rest(f, io);
    }
}

/* Zeroes, where the file system has no call for them. */

static void write_zeroes(struct file *f, struct store_io *io);

static void zeroes_written(struct io_request *r, int64_t n)
{
    struct store_io *io = io_of(r);
    struct file *f = file_of(io->store);
    if (n <= 0) {
        store_done(io, n == 0 ? EIO : (int)-n);
        return;
    }
    state_of(io)->done += (uint64_t)n;
    write_zeroes(f, io);
}

static void cleared(struct file *f, struct store_io *io)
{
    if (io->fua)
        file_sync(f, io);
    else
        store_done(io, 0);
}

static void write_zeroes(struct file *f, struct store_io *io)
{
    static _Alignas(IO_SMALL) const uint8_t zeroes[IO_LARGE];
    struct file_io *fio = state_of(io);
    uint64_t left = io->length - fio->done;
    if (!left) {
        cleared(f, io);
        return;
    }
    unsigned n = 0;
    for (; n < ARRAY_SIZE(fio->rest) && left; n++) {
        size_t part = left < IO_LARGE ? left : IO_LARGE;
        fio->rest[n] = (struct iovec){(void *)(uintptr_t)zeroes, part};
        left -= part;
    }
    fio->request = (struct io_request){
        .op = IO_WRITE,
        .fd = f->fd,
        .offset = io->offset + fio->done,
        .iov = fio->rest,
        .iovs = n,
        .done = zeroes_written,
    };
    io_submit(f->loop, &fio->request);
}

static void range_done(struct io_request *r, int64_t result)
{
    struct store_io *io = io_of(r);
    struct file *f = file_of(io->store);
    if (result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL) {
        if (io->op == STORE_UNMAP)
            f->no_punch = true;
        else
            f->no_zero = true;
        write_zeroes(f, io);
    } else if (result < 0) {
        store_done(io, (int)-result);
    } else {
        cleared(f, io);
    }
}

void file_clear(struct file *f, struct store_io *io)
{
    struct file_io *fio = state_of(io);
    fio->done = 0;
    if (io->op == STORE_UNMAP ? f->no_punch : f->no_zero) {
        write_zeroes(f, io);
        return;
    }
    fio->request = (struct io_request){
        .op = io->op == STORE_UNMAP ? IO_PUNCH : IO_ZERO,
        .fd = f->fd,
        .offset = io->offset,
        .length = io->length,
        .done = range_done,
    };
    io_submit(f->loop, &fio->request);
}
