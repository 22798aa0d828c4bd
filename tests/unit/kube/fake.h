/*
 * A server for tests that does what a script says, to the byte: each request takes the next step,
 * which says what it must look like, what is answered and how the connection ends. One connection and
 * one request at a time.
 */
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/client.h"
#include "unit.h"

enum { FAKE_SECONDS = 60 };

enum fake_end {
    FAKE_END,   /* the answer is complete */
    FAKE_CUT,   /* it is not: the connection closes before its end */
    FAKE_RESET, /* the same, with a reset */
    FAKE_HOLD,  /* it goes on, and nothing more comes, until the client leaves */
};

struct fake_step {
    const char *expect; /* in "METHOD TARGET\nHEADERS\n\nBODY"; NULL: anything */
    unsigned status;    /* 0: no answer at all */
    const char *header; /* "Name: value\r\n"; NULL: none */
    const char *body;
    enum fake_end end;
    bool stream;     /* in chunks, as a watch is */
    bool bytewise;   /* each byte in a packet of its own */
    size_t filler;   /* so many blanks behind the body */
    unsigned repeat; /* so many more times */
};

struct fake {
    int listener, stop;
    uint16_t port;
    pthread_t thread;
    const struct fake_step *steps;
    size_t n_steps;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    size_t done; /* steps that were begun */
    char wrong[2048];
    VEC(char *) requests; /* the first lines */
};

/* Whether the descriptor is readable, or the fake is to stop. */
static inline bool fake_wait(struct fake *f, int fd)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = f->stop, .events = POLLIN}};
    return poll(fds, 2, FAKE_SECONDS * 1000) > 0 && !fds[1].revents;
}

static inline bool fake_read(struct fake *f, int fd, struct str *request)
{
    char buf[4096];
    size_t body = 0;
    for (;;) {
        const char *head = strstr(str_get(request), "\r\n\r\n"),
                   *length = strcasestr(str_get(request), "\r\ncontent-length:");
        if (head) {
            body = (size_t)(head + 4 - request->p);
            size_t size = length ? strtoul(length + 17, NULL, 10) : 0;
            if (request->len >= body + size)
                return true;
        }
        ssize_t n = fake_wait(f, fd) ? read(fd, buf, sizeof(buf)) : 0;
        if (n <= 0)
            return false;
        str_append_n(request, buf, (size_t)n);
    }
}

static inline void fake_write(int fd, const char *bytes, size_t n, bool bytewise)
{
    while (n) {
        ssize_t sent = send(fd, bytes, bytewise ? 1 : n, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the client need not read all of it */
        bytes += sent;
        n -= (size_t)sent;
    }
}

static inline void fake_answer(int fd, const struct fake_step *s)
{
    _cleanup_(str_done) struct str out = {0};
    const char *body = s->body ? s->body : "";
    size_t size = strlen(body) + s->filler;
    str_appendf(&out, "HTTP/1.1 %u X\r\nConnection: close\r\nContent-Type: application/json\r\n%s",
                s->status, s->header ? s->header : "");
    if (s->stream)
        str_appendf(&out, "Transfer-Encoding: chunked\r\n\r\n");
    else
        str_appendf(&out, "Content-Length: %zu\r\n\r\n", size + (s->end == FAKE_END ? 0 : 10));
    if (s->stream && size)
        str_appendf(&out, "%zx\r\n", size);
    str_append(&out, body);
    str_appendf(&out, "%*s", (int)s->filler, "");
    if (s->stream && size)
        str_append(&out, "\r\n");
    if (s->stream && s->end == FAKE_END)
        str_append(&out, "0\r\n\r\n");
    fake_write(fd, out.p, out.len, s->bytewise);
}

/* The step for a request; NULL when the script is over. */
static inline const struct fake_step *fake_next(struct fake *f, const char *request)
{
    size_t n = 0, i = 0;
    pthread_mutex_lock(&f->lock);
    while (i < f->n_steps && f->done >= n + f->steps[i].repeat + 1)
        n += f->steps[i++].repeat + 1;
    const struct fake_step *s = i < f->n_steps ? &f->steps[i] : NULL;
    f->done++;
    vec_push(&f->requests, mem_strndup(request, strcspn(request, "\r\n")));
    if (!*f->wrong && (!s || (s->expect && !strstr(request, s->expect))))
        snprintf(f->wrong, sizeof(f->wrong), "step %zu: expected %s in %s", i,
                 s ? s->expect : "nothing", request);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return s;
}

static inline void fake_serve(struct fake *f, int fd)
{
    _cleanup_(str_done) struct str request = {0};
    if (!fake_read(f, fd, &request))
        return;
    const struct fake_step *s = fake_next(f, request.p);
    if (!s)
        return;
    if (s->status)
        fake_answer(fd, s);
    if (s->end == FAKE_HOLD) {
        while (fake_wait(f, fd) && read(fd, (char[64]){0}, 64) > 0) {
        }
    }
    struct linger reset = {.l_onoff = 1};
    if (s->end == FAKE_RESET)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

static inline void *fake_run(void *context)
{
    struct fake *f = context;
    while (fake_wait(f, f->listener)) {
        int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        fake_serve(f, fd);
        close(fd);
    }
    return NULL;
}

static inline struct fake *fake_new(const struct fake_step *steps, size_t n)
{
    struct fake *f = NEW(struct fake);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(in);
    f->steps = steps;
    f->n_steps = n;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->stop = eventfd(0, EFD_CLOEXEC);
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listener, (const void *)&in, sizeof(in)), 0);
    assert_int_equal(listen(f->listener, 64), 0);
    assert_int_equal(getsockname(f->listener, (void *)&in, &size), 0);
    f->port = ntohs(in.sin_port);
    assert_int_equal(pthread_create(&f->thread, NULL, fake_run, f), 0);
    return f;
}

static inline void fake_free(struct fake *f)
{
    eventfd_write(f->stop, 1);
    pthread_join(f->thread, NULL);
    close(f->listener);
    close(f->stop);
    vec_for_each(&f->requests, r)
        free(*r);
    vec_done(&f->requests);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

DEFINE_CLEANUP(struct fake *, fake_free)

/* That all went by the script, to its end, where it took `n` requests. */
static inline void fake_check(struct fake *f, size_t n)
{
    pthread_mutex_lock(&f->lock);
    char wrong[sizeof(f->wrong)];
    memcpy(wrong, f->wrong, sizeof(wrong));
    size_t done = f->done;
    pthread_mutex_unlock(&f->lock);
    if (*wrong)
        fail_msg("%s", wrong);
    assert_int_equal(done, n);
}

static inline void fake_wait_for(struct fake *f, size_t n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAKE_SECONDS;
    int r = 0;
    pthread_mutex_lock(&f->lock);
    while (f->done < n && r == 0)
        r = pthread_cond_timedwait(&f->changed, &f->lock, &until);
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(r, 0);
}

/* A client of it; o may be NULL. */
static inline struct kube_client *fake_client(const struct fake *f,
                                              const struct kube_client_options *o)
{
    struct err e = {0};
    _cleanup_free_ char *server = mem_printf("http://127.0.0.1:%u", f->port);
    struct kube_config config = {.server = server, .ns = (char[]){"default"}};
    struct kube_client_options options = o ? *o : (struct kube_client_options){0};
    if (options.config) {
        config = *options.config;
        config.server = server;
    }
    options.config = &config;
    options.field_manager = "test manager";
    struct kube_client *c = kube_client_new(&options, &e);
    if (!c)
        fail_msg("%s", e.msg);
    return c;
}
