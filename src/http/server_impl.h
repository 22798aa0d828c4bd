/*
 * What the files of the HTTP server share: server.c has requests and the server's life, connection.c
 * connections, reply.c answers, stream.c streams and the watch over their clients.
 */
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/fiber.h"
#include "base/list.h"
#include "base/str.h"
#include "base/vec.h"
#include "http/pool.h"
#include "http/server.h"
#include "http/target.h"

struct http_server {
    struct http_server_options o; /* without address and tls */
    struct MHD_Daemon *daemon;
    struct http_pool *pool;
    uint16_t port;
    struct http_tls *tls; /* for the next connection, under lock; NULL: plain HTTP */
    int epoll, stop_fd;   /* of the watcher */
    pthread_t watcher;
    _Atomic bool stopping; /* set once, under lock */

    pthread_mutex_t lock;
    pthread_cond_t idle;               /* busy became 0 */
    size_t busy;                       /* requests that reached the handler, and streams */
    size_t parked;                     /* connections that are suspended while a fiber waits */
    VEC(struct http_stream *) streams; /* by socket; NULL where there is none */
    struct list_link connections;
};

struct header {
    const char *name, *value;
};

struct request {
    struct http_request pub;
    struct http_server *server;
    struct MHD_Connection *connection;
    struct arena arena;
    struct http_target target;
    struct str body;
    VEC(struct header) headers; /* of the answer; in the arena */
    size_t discarded;           /* bytes of a body that is too long */
    bool bad;                   /* the target; e says why */
    bool begun, too_long, busy, answered;
    struct err e;
    /* Of a handler that leaves the answer to a function. */
    void (*answer)(void *context, struct http_request *r);
    void *answer_context;
    bool on_fiber;                 /* or it is deferred */
    bool gone;                     /* the client left while it waited */
    struct fiber *fiber;           /* that waits */
    sem_t woken;                   /* it was, after the client had left */
    bool asleep;                   /* the connection is suspended: an answer is kept */
    struct MHD_Response *response; /* that one */
};

struct http_stream {
    struct http_server *server;        /* until it is over */
    struct MHD_Connection *connection; /* until it is over */
    int fd;
    const struct http_stream_ops *ops;
    void *context;
    _Atomic unsigned refs;

    pthread_mutex_t lock;
    bool suspended; /* the connection exists, and nobody has resumed it yet */
    bool woken;     /* since the last read began */
    bool gone;      /* the client */
    bool over;      /* the connection is no longer its own */
};

static inline struct request *request_of(const struct http_request *r)
{
    return container_of(r, struct request, pub);
}

/* server.c */

/* Something that stopping waits for has ended. */
void server_unbusy(struct http_server *s);

/* connection.c */

void connection_changed(void *server, struct MHD_Connection *connection, void **context,
                        enum MHD_ConnectionNotificationCode what);
/* From now on it owes a request, or does not. */
void connection_owes(struct MHD_Connection *connection, bool owes);
/* The head of a request is there. */
void connection_asks(struct MHD_Connection *connection);
struct http_tls_connection *connection_tls(struct MHD_Connection *connection); /* NULL: none */
/* Shuts those that have owed one for too long. */
void connection_check(struct http_server *s);

/* reply.c */

/* Hands the response, of which it takes the reference, to the library, or keeps it. */
bool reply_queue(struct request *r, unsigned status, const char *content_type,
                 struct MHD_Response *response);
/* An answer of the server's own; text is copied. Nothing when there is an answer already. */
void reply_text(struct request *r, unsigned status, const char *text);

/* stream.c */

/* With the stream's lock. */
void stream_resume_locked(struct http_stream *s);
int stream_watch_start(struct http_server *s, struct err *e);
void stream_watch_stop(struct http_server *s);
