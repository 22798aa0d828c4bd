/*
 * What both back ends share of a connection.
 *
 *     started ──> open ──close, end, error──> closing ── nothing under way ──> closed()
 *                   └──finish──> finishing ── queue empty ──┘
 *
 * Receiving: in[0] is filled up before in[1] begins. When the owner has kept nothing of in[0], it is
 * used again from its start, which lies in the processor's cache.
 */
#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/impl.h"

void io_stream_start(struct io_stream *s, struct io_loop *loop, int fd,
                     const struct io_stream_ops *ops)
{
    *s = (struct io_stream){.ops = ops, .loop = loop, .fd = fd};
    io_queue_init(&s->out, loop->pool);
    list_init(&s->dirty);
    list_init(&s->ready);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    loop->ops->start(s);
    loop->ops->receive(s);
}

void io_stream_widen(struct io_stream *s)
{
    s->in_buffers = IO_IN_MAX;
}

size_t io_stream_prepare(struct io_stream *s)
{
    uint32_t size = s->in_buffers ? IO_LARGE : IO_SMALL;
    unsigned most = s->in_buffers ? s->in_buffers : 1, n = 0;
    size_t room = 0;
    for (; n < most; n++) {
        if (!s->in[n]) {
            s->in[n] = io_buf_new(s->loop->pool, size);
            if (n == 0)
                s->in_used = 0;
        }
        uint32_t used = n ? 0 : s->in_used;
        s->in_iov[n] = (struct iovec){s->in[n]->data + used, s->in[n]->size - used};
        room += s->in_iov[n].iov_len;
    }
    s->in_msg = (struct msghdr){.msg_iov = s->in_iov, .msg_iovlen = n};
    return room;
}

/* The buffers that are full go; the one that is not stays, as in[0]. */
static void shift_buffers(struct io_stream *s, unsigned full)
{
    for (unsigned i = 0; i < full; i++)
        io_buf_unref(s->in[i]);
    for (unsigned i = 0; i < IO_IN_MAX; i++)
        s->in[i] = i + full < IO_IN_MAX ? s->in[i + full] : NULL;
    if (full)
        s->in_used = 0;
}

static void drop_input(struct io_stream *s)
{
    for (unsigned i = 0; i < IO_IN_MAX; i++) {
        io_buf_unref(s->in[i]);
        s->in[i] = NULL;
    }
}

void io_stream_arrived(struct io_stream *s, int64_t n)
{
    if (n <= 0) {
        if (!s->closing)
            s->error = (int)-n;
        io_stream_close(s);
        return;
    }
    struct io_slice slices[IO_IN_MAX];
    unsigned count = 0, full = 0;
    uint32_t last_used = 0;
    for (size_t left = (size_t)n; left; count++) {
        const struct iovec *iov = &s->in_iov[count];
        uint32_t part = (uint32_t)(left < iov->iov_len ? left : iov->iov_len);
        slices[count] = (struct io_slice){s->in[count], iov->iov_base, part};
        left -= part;
        if (part == iov->iov_len)
            full++;
        else
            last_used = (uint32_t)((uint8_t *)iov->iov_base + part - s->in[count]->data);
    }
    if (!s->closing && !s->finishing)
        s->ops->received(s, slices, count);
    shift_buffers(s, full);
    if (s->in[0]) {
        if (full < count)
            s->in_used = last_used;
        if (s->in[0]->refs == 1)
            s->in_used = 0;
        if (s->in_buffers && s->in[0]->size == IO_SMALL) /* widened meanwhile */
            drop_input(s);
    }
}

void io_stream_gather(struct io_stream *s)
{
    unsigned n = io_queue_peek(&s->out, s->out_iov, IO_OUT_IOVECS);
    s->out_msg = (struct msghdr){.msg_iov = s->out_iov, .msg_iovlen = n};
}

void io_stream_left(struct io_stream *s, int64_t n)
{
    if (n < 0) {
        if (!s->closing)
            s->error = (int)-n;
        io_stream_close(s);
        return;
    }
    io_queue_drop(&s->out, (size_t)n);
    if (s->closing)
        return;
    if (s->finishing && !s->out.bytes)
        io_stream_flush(s);
    if (n > 0 && s->ops->sent)
        s->ops->sent(s);
}

void io_stream_flush(struct io_stream *s)
{
    if (!list_is_linked(&s->dirty))
        list_push(&s->loop->dirty, &s->dirty);
}

void io_stream_pause(struct io_stream *s, bool paused)
{
    if (s->paused == paused)
        return;
    s->paused = paused;
    if (!paused && !s->closing && !s->finishing)
        s->loop->ops->receive(s);
}

void io_stream_close(struct io_stream *s)
{
    if (s->closing)
        return;
    s->closing = true;
    io_stream_flush(s);
}

void io_stream_finish(struct io_stream *s)
{
    s->finishing = true;
    io_stream_flush(s);
}

void io_stream_turn_end(struct io_stream *s)
{
    if (!s->closing && s->finishing && !s->out.bytes)
        s->closing = true;
    if (s->closing)
        s->loop->ops->stop(s);
    else if (s->out.bytes)
        s->loop->ops->send(s);
}

void io_stream_gone(struct io_stream *s)
{
    list_unlink(&s->dirty);
    list_unlink(&s->ready);
    close(s->fd);
    s->fd = -1;
    drop_input(s);
    io_queue_done(&s->out);
    s->ops->closed(s, s->error);
}
