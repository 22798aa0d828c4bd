/*
 * A server that is written down to the byte: a script for each connection says what it answers,
 * whatever it is asked, and how it ends. One connection at a time.
 */
#pragma once

#include <pthread.h>
#include <time.h>

#include "http/raw_client.h"

enum raw_end {
    RAW_CLOSE,      /* at once */
    RAW_READ_CLOSE, /* after one more request, without an answer */
    RAW_HOLD,       /* when the client closes */
    RAW_REPEAT,     /* never: the first answer goes on and on */
};

struct raw_script {
    const char *answers[6]; /* to one request each, up to a NULL */
    enum raw_end end;
    bool early;       /* no request's body is read */
    unsigned drip_ms; /* between two bytes; 0: all at once */
};

struct raw_server {
    int listener, connection;
    uint16_t port;
    const struct raw_script *scripts;
    size_t n;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned accepted, closed; /* under the lock, like what follows */
    struct str request;        /* the last one's head */
};

static inline int raw_listen(int backlog, uint16_t *ret_port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (const void *)&in, sizeof(in)) == 0 &&
                listen(fd, backlog) == 0 && getsockname(fd, (void *)&in, &size) == 0);
    *ret_port = ntohs(in.sin_port);
    return fd;
}

/* False when the client has gone. */
static inline bool raw_request(struct raw_server *s, struct client *c, bool early)
{
    struct str head = {0};
    char line[4096];
    size_t body = 0;
    do {
        if (c->start == c->end && !client_fill(c)) {
            str_done(&head);
            return false;
        }
        client_line(c, line, sizeof(line));
        str_appendf(&head, "%s\n", line);
        if (strncasecmp(line, "Content-Length: ", 16) == 0)
            body = strtoul(line + 16, NULL, 10);
    } while (*line);
    for (; body > 0 && !early; body--)
        client_byte(c);
    pthread_mutex_lock(&s->lock);
    str_done(&s->request);
    s->request = head;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static inline void raw_answer(struct client *c, const struct raw_script *script, const char *text)
{
    if (!script->drip_ms && script->end != RAW_REPEAT) {
        client_try_send(c, text, strlen(text));
        return;
    }
    do {
        for (const char *byte = text; *byte; byte++) {
            if (!client_try_send(c, byte, 1))
                return;
            poll(NULL, 0, (int)script->drip_ms);
        }
    } while (script->end == RAW_REPEAT);
}

/* Until the client closes. */
static inline void raw_hold(struct client *c, bool early)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    if (early)
        poll(&p, 1, CLIENT_SECONDS * 1000);
    else
        while (recv(c->fd, c->in, sizeof(c->in), 0) > 0)
            ;
}

static inline void raw_connection(struct raw_server *s, const struct raw_script *script,
                                  struct client *c)
{
    const char *const *answer = script->answers;
    for (; *answer; answer++) {
        if (!raw_request(s, c, script->early))
            return;
        raw_answer(c, script, *answer);
    }
    if (script->end == RAW_READ_CLOSE)
        raw_request(s, c, false);
    if (script->end == RAW_HOLD)
        raw_hold(c, script->early);
}

static inline void raw_count(struct raw_server *s, unsigned *value, int connection)
{
    pthread_mutex_lock(&s->lock);
    ++*value;
    s->connection = connection;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static inline void *raw_run(void *context)
{
    struct raw_server *s = context;
    struct client *c = mem_alloc(sizeof(*c));
    for (size_t i = 0; i < s->n; i++) {
        c->start = c->end = 0;
        c->fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (c->fd < 0)
            break;
        raw_count(s, &s->accepted, c->fd);
        raw_connection(s, &s->scripts[i], c);
        pthread_mutex_lock(&s->lock);
        s->connection = -1;
        pthread_mutex_unlock(&s->lock);
        close(c->fd);
        raw_count(s, &s->closed, -1);
    }
    free(c);
    return NULL;
}

static inline struct raw_server *raw_server_on(int listener, const struct raw_script *scripts,
                                               size_t n)
{
    struct raw_server *s = NEW(struct raw_server);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->listener = listener;
    s->connection = -1;
    s->scripts = scripts;
    s->n = n;
    assert_int_equal(pthread_create(&s->thread, NULL, raw_run, s), 0);
    return s;
}

static inline struct raw_server *raw_server_new(const struct raw_script *scripts, size_t n)
{
    uint16_t port;
    struct raw_server *s = raw_server_on(raw_listen(8, &port), scripts, n);
    s->port = port;
    return s;
}

static inline void raw_server_free(struct raw_server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_mutex_lock(&s->lock);
    if (s->connection >= 0)
        shutdown(s->connection, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    close(s->listener);
    str_done(&s->request);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

DEFINE_CLEANUP(struct raw_server *, raw_server_free)

static inline void raw_wait(struct raw_server *s, const unsigned *value, unsigned least)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLIENT_SECONDS;
    pthread_mutex_lock(&s->lock);
    int r = 0;
    while (*value < least && r == 0)
        r = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    pthread_mutex_unlock(&s->lock);
    assert_int_equal(r, 0);
}

static inline unsigned raw_get(struct raw_server *s, const unsigned *value)
{
    pthread_mutex_lock(&s->lock);
    unsigned n = *value;
    pthread_mutex_unlock(&s->lock);
    return n;
}
