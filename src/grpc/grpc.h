/*
 * gRPC over unix sockets: a server and a client, on nghttp2 (HTTP/2) and protobuf-c (messages).
 *
 *     client ── socket ──> I/O thread: HTTP/2 ── call ──> worker: unpack, handle(), pack
 *                               ^                              │
 *                               └────────── answer ────────────┘
 *
 * Invariants:
 * - One thread does the I/O of all sockets and never waits for a handler. A handler runs on a worker
 *   thread and may wait for as long as it likes.
 * - Each call is answered once, with a message (or several, where the method streams) and the code 0,
 *   or with a code and a text. A handler that fails answers its `struct err`: the codes are gRPC's.
 * - A client that goes away, or whose deadline passes, cancels its calls: their handlers go on to the
 *   end, unless they ask grpc_cancelled(). So work that was begun is not cut off in the middle.
 * - What comes from outside is bounded: the size of headers and messages, the memory that a message
 *   unfolds to, calls per connection, connections, calls that wait for a worker.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct grpc_server;
struct grpc_call;

struct grpc_method {
    const char *path; /* "/csi.v1.Identity/Probe" */
    const ProtobufCMessageDescriptor *request, *response;
    /*
     * Fills in the response, which is initialised. What it points at must live as long as the call:
     * it is in grpc_arena(), the request's, or static. `response` is NULL where the method streams:
     * then grpc_send() is called for each message.
     */
    int (*handle)(struct grpc_call *c, const void *request, void *response, struct err *e);
    bool streams;
};

struct grpc_server_options {
    unsigned workers;     /* threads for handlers at most; 0: 16 */
    unsigned connections; /* at most; the longest idle one makes room for a new one; 0: 256 */
    size_t message_max;   /* bytes of a request; 0: 4 MiB, as everywhere */
};

struct grpc_server *grpc_server_new(const struct grpc_server_options *o, struct err *e);
/*
 * Serves methods at a socket, a path; any number of them, before the start. What a killed process left
 * there is removed; one that somebody answers at is FAILED_PRECONDITION. Methods end with one without a path.
 */
int grpc_server_listen(struct grpc_server *s, const char *path, unsigned mode,
                       const struct grpc_method *methods, void *context, struct err *e);
int grpc_server_start(struct grpc_server *s, struct err *e);
/* Takes no new calls, waits for the handlers, answers, and removes the sockets. */
void grpc_server_free(struct grpc_server *s);

/* For handlers. */
void *grpc_context(const struct grpc_call *c);
struct arena *grpc_arena(struct grpc_call *c);
/* The monotonic time when the client gives up; INT64_MAX: never. */
int64_t grpc_deadline(const struct grpc_call *c);
/* Nobody waits for the answer any more. */
bool grpc_cancelled(const struct grpc_call *c);
/* One message of a stream. Waits while the client does not read; CANCELLED when it is gone. */
int grpc_send(struct grpc_call *c, const ProtobufCMessage *message, struct err *e);

/* The client. Each request has a connection of its own, as a kubelet's. */
struct grpc_request {
    const char *socket; /* a path */
    const char *path;   /* of the method */
    const ProtobufCMessage *message;
    const ProtobufCMessageDescriptor *response;
    int64_t timeout_ns; /* 0: none */
    size_t message_max; /* of an answer; 0: 4 MiB */
};
/* The answer, for protobuf_c_message_free_unpacked(); NULL: the server's error, UNAVAILABLE, DEADLINE_EXCEEDED. */
ProtobufCMessage *grpc_ask(const struct grpc_request *r, struct err *e);
/* Each message of a stream; -1 of each() ends it. */
int grpc_ask_stream(const struct grpc_request *r,
                    int (*each)(void *context, const ProtobufCMessage *message, struct err *e),
                    void *context, struct err *e);
