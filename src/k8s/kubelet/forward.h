/*
 * Forwards TCP connections: what comes to an address goes to one of several others, in turn.
 *
 *     client ──> listener, 127.96.0.7:80 ──> 127.10.1.2:8080
 *                                        ──> 127.10.2.2:8080
 *
 * One thread with epoll serves all listeners and connections. A connection holds at most one block of
 * each direction; a side that does not read stops the other. An end is passed on (half-closed
 * connections work), a failure ends both. A backend that cannot be reached is passed over for the
 * next; when none can, the client's connection is reset. There are at most FORWARD_MOST connections. When there are
 * as many, one through which nothing has passed yet makes room for the next, by chance, so that nobody keeps others
 * out by being silent; if there is none, more wait to be accepted.
 *
 * Listeners are set from any thread. Connections outlive their listener.
 */
#pragma once

#include <netinet/in.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

enum { FORWARD_MOST = 1000, FORWARD_BACKENDS = 64 };

struct node_forward;

int node_forward_new(struct node_forward **ret_forward, struct err *e);
void node_forward_free(struct node_forward *f); /* ends all connections; NULL is ignored */
DEFINE_CLEANUP(struct node_forward *, node_forward_free)

/*
 * From now on connections to `from` go to these; with none it is listened to no more. ALREADY_EXISTS
 * when somebody else listens there.
 */
int node_forward_set(struct node_forward *f, const struct sockaddr_in *from,
                     const struct sockaddr_in *to, size_t n, struct err *e);
