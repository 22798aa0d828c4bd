/*
 * A node on an event loop: portals that listen, connections over TCP.
 */
#pragma once

#include "io/loop.h"
#include "iscsi/iscsi.h"

struct iscsi_server;

struct iscsi_server_options {
    unsigned connections;             /* logged in at a time; others are few, and not for long */
    unsigned connections_per_address; /* of them, from one address */
};

struct iscsi_server *iscsi_server_new(struct io_loop *loop, struct iscsi_node *node,
                                      const struct iscsi_server_options *o);
/* Listens on a numeric address; port 0 is any. */
int iscsi_server_listen(struct iscsi_server *s, const char *address, uint16_t port,
                        uint16_t *ret_port, struct err *e);
/* No new connections. */
void iscsi_server_stop_listening(struct iscsi_server *s);
/* Ends all connections; done() is called from the loop when the last is gone, and then it is free. */
void iscsi_server_close(struct iscsi_server *s, void (*done)(void *context), void *context);
unsigned iscsi_server_connections(const struct iscsi_server *s);
