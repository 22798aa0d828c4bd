#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends.h"
#include "io/stream.h"

enum { MS = 1000000 };

/* Answers with what it gets, by reference or by copy; counts what it is told. */
struct echo {
    struct io_stream stream;
    size_t received, most;
    unsigned receives, sents;
    bool by_copy, closed;
    int error;
};

static void echo_received(struct io_stream *s, const struct io_slice *slices, unsigned n)
{
    struct echo *e = container_of(s, struct echo, stream);
    assert_false(e->closed);
    size_t all = 0;
    for (unsigned i = 0; i < n; i++) {
        all += slices[i].length;
        if (e->by_copy)
            io_queue_copy(&s->out, slices[i].data, slices[i].length);
        else
            io_queue_add(&s->out, slices[i].buf, slices[i].data, slices[i].length);
    }
    e->received += all;
    e->most = all > e->most ? all : e->most;
    e->receives++;
    io_stream_flush(s);
}

static void echo_sent(struct io_stream *s)
{
    container_of(s, struct echo, stream)->sents++;
}

static void echo_closed(struct io_stream *s, int error)
{
    struct echo *e = container_of(s, struct echo, stream);
    assert_false(e->closed);
    e->closed = true;
    e->error = error;
}

static const struct io_stream_ops echo_ops = {echo_received, echo_sent, echo_closed};

static void open_echo(struct io_loop *loop, struct echo *e, int *ret_peer)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    *e = (struct echo){0};
    io_stream_start(&e->stream, loop, fds[0], &echo_ops);
    *ret_peer = fds[1];
}

static void wait_closed(struct io_loop *loop, struct echo *e)
{
    for (int i = 0; i < 1000 && !e->closed; i++)
        io_loop_turn(loop, 10 * MS);
    assert_true(e->closed);
    assert_int_equal(io_pool_used(io_loop_pool(loop)), 0);
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 7 + i / 251);
}

/* Sends `total` through an echo, reading no faster than it is answered. */
static void through(struct io_loop *loop, struct echo *e, int peer, size_t total)
{
    uint8_t part[30000];
    size_t sent = 0, got = 0;
    while (got < total) {
        if (sent < total) {
            size_t n = total - sent < sizeof(part) ? total - sent : sizeof(part);
            for (size_t i = 0; i < n; i++)
                part[i] = byte_at(sent + i);
            ssize_t w = send(peer, part, n, MSG_NOSIGNAL);
            sent += w > 0 ? (size_t)w : 0;
        }
        io_loop_turn(loop, MS);
        for (ssize_t r; (r = recv(peer, part, sizeof(part), 0)) > 0; got += (size_t)r) {
            for (ssize_t i = 0; i < r; i++)
                assert_int_equal(part[i], byte_at(got + (size_t)i));
        }
    }
    assert_int_equal(e->received, total);
}

static void echoes(struct io_loop *loop)
{
    for (int how = 0; how < 4; how++) {
        struct echo e;
        int peer;
        open_echo(loop, &e, &peer);
        e.by_copy = how & 1;
        if (how & 2)
            io_stream_widen(&e.stream);
        through(loop, &e, peer, 3 << 20);
        assert_true(e.most <= IO_IN_MAX * IO_LARGE);
        assert_true(how & 2 ? e.most > IO_SMALL : e.most <= IO_SMALL);
        close(peer);
        wait_closed(loop, &e);
        assert_int_equal(e.error, 0);
        assert_true(e.sents > 0);
    }
}

static void test_echoes(void **state)
{
    (void)state;
    each_backend(echoes);
}

/* A peer that does not read: the queue waits, memory is kept, and closing lets all of it go. */
static void blocked(struct io_loop *loop)
{
    struct echo e;
    int peer;
    open_echo(loop, &e, &peer);
    uint8_t *much = mem_zalloc(4 << 20);
    io_queue_copy(&e.stream.out, much, 4 << 20);
    io_stream_flush(&e.stream);
    for (int i = 0; i < 20; i++)
        io_loop_turn(loop, MS / 10);
    assert_true(e.stream.out.bytes > 0);
    assert_false(e.closed);
    io_stream_close(&e.stream);
    wait_closed(loop, &e);
    close(peer);

    /* the same with finish: it waits until all has been taken */
    open_echo(loop, &e, &peer);
    io_queue_copy(&e.stream.out, much, 1 << 20);
    io_stream_finish(&e.stream);
    size_t got = 0;
    ssize_t n;
    while ((n = recv(peer, much, 65536, 0)) != 0) {
        if (n > 0)
            got += (size_t)n;
        else
            io_loop_turn(loop, MS);
    }
    assert_int_equal(got, 1 << 20);
    wait_closed(loop, &e);
    close(peer);

    /* and a peer that goes meanwhile */
    open_echo(loop, &e, &peer);
    io_queue_copy(&e.stream.out, much, 1 << 20);
    io_stream_finish(&e.stream);
    io_loop_turn(loop, MS);
    close(peer);
    wait_closed(loop, &e);
    free(much);
}

static void test_blocked(void **state)
{
    (void)state;
    each_backend(blocked);
}

static void paused(struct io_loop *loop)
{
    struct echo e;
    int peer;
    open_echo(loop, &e, &peer);
    io_loop_turn(loop, 0);
    io_stream_pause(&e.stream, true);
    for (int i = 0; i < 10; i++) {
        send(peer, "x", 1, MSG_NOSIGNAL);
        io_loop_turn(loop, MS);
    }
    assert_true(e.receives <= 1); /* one may have been under way */
    size_t before = e.received;
    io_stream_pause(&e.stream, false);
    while (e.received < 10)
        io_loop_turn(loop, MS);
    assert_true(e.received > before);
    close(peer);
    wait_closed(loop, &e);
}

static void test_paused(void **state)
{
    (void)state;
    each_backend(paused);
}

/* Closing from inside a callback, and streams that come and go in great numbers. */
static void close_received(struct io_stream *s, const struct io_slice *slices, unsigned n)
{
    echo_received(s, slices, n);
    io_stream_close(s);
    io_stream_close(s);
}

static void many(struct io_loop *loop)
{
    static const struct io_stream_ops ops = {close_received, NULL, echo_closed};
    enum { STREAMS = 200 };
    struct echo *all = mem_zalloc(STREAMS * sizeof(*all));
    int peers[STREAMS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < STREAMS; i++) {
            open_echo(loop, &all[i], &peers[i]);
            if (i % 2)
                all[i].stream.ops = &ops;
        }
        for (int i = 0; i < STREAMS; i++) {
            send(peers[i], "hello", 5, MSG_NOSIGNAL);
            if (i % 4 == 0)
                shutdown(peers[i], SHUT_WR);
        }
        for (int i = 0; i < STREAMS; i++) {
            if (i % 4 == 2) {
                close(peers[i]);
                peers[i] = -1;
            }
        }
        for (int i = 0; i < STREAMS; i++) {
            for (int turn = 0; turn < 1000 && !all[i].closed; turn++)
                io_loop_turn(loop, MS);
            assert_true(all[i].closed);
            if (peers[i] >= 0)
                close(peers[i]);
        }
        assert_int_equal(io_pool_used(io_loop_pool(loop)), 0);
    }
    free(all);
}

static void test_many(void **state)
{
    (void)state;
    each_backend(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echoes),
        cmocka_unit_test(test_blocked),
        cmocka_unit_test(test_paused),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
