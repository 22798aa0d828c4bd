/*
 * The server's parts: server.c has sockets and the I/O thread, session.c HTTP/2 of a connection, call.c
 * what happens to a call between them and its handler, on workers.
 *
 * A call belongs to its connection's stream and, while it is at work, to a worker: two references. What
 * both touch is under the call's lock. Whatever a worker has for the I/O thread, it says by putting the
 * call on the server's list of news and waking the thread.
 */
#pragma once

#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/un.h>

#include "base/list.h"
#include "base/str.h"
#include "base/vec.h"
#include "grpc/grpc.h"
#include "grpc/wire.h"

struct grpc_listener {
    struct grpc_server *server;
    int fd;
    char *path;
    const struct grpc_method *methods;
    void *context;
};

struct grpc_server {
    struct grpc_server_options o;
    int epoll, wake;
    pthread_t thread;
    bool started;
    VEC(struct grpc_listener *) listeners;
    struct list_link connections; /* the I/O thread's; longest idle first */
    struct list_link dead;        /* the same; ended in this turn */
    unsigned n_connections;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;
    bool stopping;          /* no new calls */
    bool ending;            /* and the I/O thread ends */
    struct list_link queue; /* calls that wait for a worker */
    unsigned queued;
    struct list_link news; /* calls that have something for the I/O thread */
    unsigned workers, idle, busy;
    VEC(pthread_t) threads;
};

struct grpc_conn {
    struct grpc_listener *listener;
    struct list_link link;
    nghttp2_session *session;
    int fd;
    struct str out; /* bytes that the socket did not take */
    size_t out_from;
    struct list_link calls; /* whose streams are open */
    bool asked;             /* it has made a call */
    bool ended;             /* it is among the dead */
};

struct grpc_call {
    struct grpc_server *server;
    const struct grpc_listener *listener;
    const struct grpc_method *method; /* NULL: no such */
    struct arena arena;
    int64_t deadline;

    /* The I/O thread's: */
    struct grpc_conn *conn; /* NULL: the stream is closed */
    struct list_link conn_link;
    int32_t stream;
    struct str path, body, verb, type;
    size_t header_bytes;
    bool too_large, dispatched;
    bool responded; /* the headers of the answer are on their way */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t drained;
    unsigned refs;
    struct list_link queue_link, news_link; /* with the server's lock */
    struct str out;                         /* answers that were not sent yet */
    size_t out_from;
    bool ended; /* nothing will be added to out */
    bool waits; /* the stream has been told that there is nothing to send yet */
    struct err status;
    atomic_bool cancelled;
};

/* server.c */
void grpc_wake(struct grpc_server *s);
int grpc_socket_address(const char *path, struct sockaddr_un *ret, struct err *e);

/* session.c: false when the connection is over. */
bool grpc_session_new(struct grpc_conn *c);
bool grpc_session_receive(struct grpc_conn *c, const uint8_t *bytes, size_t n);
/* Appends to c->out what is to be sent. */
bool grpc_session_send(struct grpc_conn *c);
/* The call has something to send. */
void grpc_session_answer(struct grpc_call *call);

/* call.c */
struct grpc_call *grpc_call_new(struct grpc_conn *c, int32_t stream);
void grpc_call_unref(struct grpc_call *call);
/* The request is whole: to a worker, or answered at once. */
void grpc_call_dispatch(struct grpc_call *call);
/* Its answer is not wanted any more. */
void grpc_call_cancel(struct grpc_call *call);
/* Its stream is closed. */
void grpc_call_abandon(struct grpc_call *call);
void grpc_workers_stop(struct grpc_server *s);
