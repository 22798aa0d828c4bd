#include "replio/conn.h"

#include <errno.h>
#include <stdio.h>

static struct replio_conn *conn_of(struct io_stream *s)
{
    return container_of(s, struct replio_conn, stream);
}

/* Ends it for a reason that the owner is told. */
__attribute__((format(printf, 2, 3))) static void fail(struct replio_conn *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->why, sizeof(c->why), fmt, ap);
    va_end(ap);
    c->ended = true;
    io_stream_close(&c->stream);
}

/* Receiving. */

/* Gives the frame in c->msg up; false: there is no room, it is held. Takes over the reference. */
static bool deliver(struct replio_conn *c, struct repl_buf *owner)
{
    const struct iovec *iov = owner ? replio_payload_iov(owner) : NULL;
    if (c->ops->frame(c, &c->msg, iov, owner ? (int)replio_payload_count(owner) : 0, owner)) {
        repl_buf_unref(owner);
        c->header_used = 0;
        return true;
    }
    c->held = true;
    c->held_owner = owner;
    io_stream_pause(&c->stream, true);
    return false;
}

static void drop_pieces(struct replio_conn *c)
{
    for (unsigned i = 0; i < c->pieces; i++)
        io_buf_unref(c->piece[i].buf);
    c->pieces = 0;
    c->gathered = false;
}

/* The payload is whole. */
static bool complete(struct replio_conn *c)
{
    struct repl_buf *owner = replio_payload_received(c->payloads, c->piece, c->pieces);
    drop_pieces(c);
    if (repl_iov_crc(replio_payload_iov(owner), (int)replio_payload_count(owner)) !=
        c->msg.data_crc) {
        repl_buf_unref(owner);
        fail(c, "a %s frame's data was damaged on the way", repl_type_name(c->msg.type));
        return false;
    }
    return deliver(c, owner);
}

/* Takes what it can of a slice; false: nothing more now. */
static bool take_header(struct replio_conn *c, struct io_slice *s)
{
    uint32_t n = REPL_HEADER - c->header_used;
    n = n < s->length ? n : s->length;
    memcpy(c->header + c->header_used, s->data, n);
    c->header_used += n;
    s->data += n;
    s->length -= n;
    if (c->header_used < REPL_HEADER)
        return true;
    struct err e = {0};
    if (repl_frame_decode(c->header, &c->volume, &c->msg, &e) < 0) {
        fail(c, "%s", e.msg);
        return false;
    }
    if (c->msg.length > IO_HUGE) {
        fail(c, "a %s frame of %u bytes is too large", repl_type_name(c->msg.type), c->msg.length);
        return false;
    }
    c->payload_used = 0;
    return c->msg.length ? true : deliver(c, NULL);
}

/* What has come is copied together: into a buffer for all of the payload. */
static void gather(struct replio_conn *c)
{
    struct io_slice all = {.buf = io_buf_new(c->payloads->pool, io_buf_class(c->msg.length))};
    all.data = all.buf->data;
    for (unsigned i = 0; i < c->pieces; i++) {
        memcpy(all.data + all.length, c->piece[i].data, c->piece[i].length);
        all.length += c->piece[i].length;
    }
    drop_pieces(c);
    c->piece[c->pieces++] = all;
    c->gathered = true;
}

static void add_piece(struct replio_conn *c, const struct io_slice *s, uint32_t n)
{
    struct io_slice *last = &c->piece[c->pieces ? c->pieces - 1 : 0];
    if (c->gathered)
        memcpy(last->data + last->length, s->data, n);
    bool goes_on = c->pieces && last->buf == s->buf && last->data + last->length == s->data;
    if (c->gathered || goes_on)
        last->length += n;
    else
        c->piece[c->pieces++] = (struct io_slice){io_buf_ref(s->buf), s->data, n};
}

static bool take_payload(struct replio_conn *c, struct io_slice *s)
{
    uint32_t need = c->msg.length - c->payload_used, n = need < s->length ? need : s->length;
    bool stays = n == c->msg.length || repl_frame_in_pieces(&c->msg);
    if (!c->gathered && (!stays || c->pieces == REPLIO_PIECES))
        gather(c);
    add_piece(c, s, n);
    c->payload_used += n;
    s->data += n;
    s->length -= n;
    return n < need || complete(c);
}

/* Works a slice off; false when something is held or has ended, and s says what is left. */
static bool take(struct replio_conn *c, struct io_slice *s)
{
    while (s->length) {
        bool on = c->header_used < REPL_HEADER ? take_header(c, s) : take_payload(c, s);
        if (!on)
            return false;
    }
    return true;
}

/* What cannot be worked off now, since something is held, waits behind it. */
static void take_or_keep(struct replio_conn *c, struct io_slice s)
{
    if (c->ended || (!c->held && take(c, &s)) || !c->held || !s.length)
        return;
    io_buf_ref(s.buf);
    vec_push(&c->behind, s);
}

static void take_plain(void *context, struct io_slice *slice)
{
    take_or_keep(context, *slice);
}

/* The handshake is done. */
static void take_proof(void *context)
{
    struct replio_conn *c = context;
    io_stream_widen(&c->stream);
    if (c->ops->ready && !c->ended)
        c->ops->ready(c);
}

static void received(struct io_stream *stream, const struct io_slice *slices, unsigned n)
{
    struct replio_conn *c = conn_of(stream);
    struct err e = {0};
    for (unsigned i = 0; i < n && !c->ended; i++) {
        if (replio_tls_received(c->tls, slices[i].data, slices[i].length, &e) < 0)
            fail(c, "%.199s", e.msg);
    }
    if (c->stream.out.bytes)
        io_stream_flush(&c->stream); /* the handshake's own words */
    if (!c->ended)
        c->ops->turn(c);
}

void replio_conn_resume(struct replio_conn *c)
{
    if (!c->held || c->ended)
        return;
    c->held = false;
    if (!deliver(c, c->held_owner))
        return;
    size_t i = 0;
    for (; i < c->behind.len; i++) {
        if (!take(c, &c->behind.p[i]))
            break;
        io_buf_unref(c->behind.p[i].buf);
    }
    memmove(c->behind.p, c->behind.p + i, (c->behind.len - i) * sizeof(c->behind.p[0]));
    c->behind.len -= i;
    if (!c->held && !c->ended)
        io_stream_pause(&c->stream, false);
}

/* Sending. */

void replio_send(struct replio_conn *c, const struct repl_msg *m, const struct iovec *iov,
                 unsigned n)
{
    uint8_t header[REPL_HEADER];
    struct err e = {0};
    if (c->ended)
        return;
    io_stream_flush(&c->stream);
    repl_frame_encode(m, header);
    if (replio_tls_send(c->tls, (struct iovec){header, sizeof(header)}, iov, n, &e) < 0)
        fail(c, "%.199s", e.msg);
}

/* Life. */

static void closed(struct io_stream *stream, int error)
{
    struct replio_conn *c = conn_of(stream);
    if (!c->why[0])
        snprintf(c->why, sizeof(c->why), "%s", error ? strerror(error) : "the peer ended it");
    c->ended = true;
    drop_pieces(c);
    if (c->held)
        repl_buf_unref(c->held_owner);
    vec_for_each(&c->behind, it)
        io_buf_unref(it->buf);
    vec_done(&c->behind);
    replio_tls_free(c->tls);
    c->tls = NULL;
    c->ops->closed(c, c->why);
}

static const struct io_stream_ops stream_ops = {.received = received, .closed = closed};

void replio_conn_start(struct replio_conn *c, struct io_loop *loop,
                       struct replio_payloads *payloads, int fd, const struct replio_key *key,
                       bool server)
{
    static const struct replio_tls_ops ops = {.ready = take_proof, .plain = take_plain};
    struct err e = {0};
    c->payloads = payloads;
    io_stream_start(&c->stream, loop, fd, &stream_ops);
    if (!(c->tls = replio_tls_new(key, server, &c->stream.out, &ops, c, &e)))
        fail(c, "%.199s", e.msg);
    io_stream_flush(&c->stream);
}

void replio_conn_close(struct replio_conn *c)
{
    c->ended = true;
    io_stream_close(&c->stream);
}
