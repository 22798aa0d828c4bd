/*
 * What the files of a volume share: volume.c has its life, volume_links.c its connections, volume_admin.c its
 * administration, volume_io.c the requests of clients.
 */
#pragma once

#include "io/strangers.h"
#include "replio/conn.h"
#include "replio/volume.h"

/* A connection from a replica, or from a stranger who has not shown that he knows the key. */
struct link {
    struct replio_conn conn;
    struct replio_volume *volume;
    struct list_link link;
    struct io_stranger peer;
    int slot;  /* the core's number of it; -1: it has none */
    bool open; /* the core knows it */
};

struct replio_volume {
    struct store store;
    struct io_loop *loop;
    struct repl_target *core;
    struct uuid id;
    struct replio_payloads payloads;
    const struct replio_key *key; /* the owner's */
    struct io_watch watch;
    uint16_t port;
    struct link *links[REPL_LINKS]; /* by slot; NULL: free */
    struct list_link all; /* links, also those without a slot; owned until they are gone */
    unsigned connections; /* of them */
    struct io_strangers strangers;
    struct list_link complete; /* requests: their owners are told when the core has returned */
    bool settling;
    struct io_deferred turn, finish;
    struct io_timer wake;
    bool serving, closing, listening;
    void (*ready)(void *context);
    void *ready_context;
    void (*admin)(void *context, int error); /* NULL: nothing is under way */
    void *admin_context;
    int admin_status; /* <= 0: it has ended so */
    uint64_t grow_to;
    void (*event)(void *context, enum repl_event what, const char *sentence);
    void *event_context;
    void (*closed)(void *context);
    void *closed_context;
};

static inline struct replio_volume *volume_of(struct store *s)
{
    return container_of(s, struct replio_volume, store);
}

static inline void turn_soon(struct replio_volume *v)
{
    io_loop_defer(v->loop, &v->turn);
}

/* volume_admin.c */
/* store_ops.grow */
void volume_grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context);
/* An action of the core; its owner is told later. */
void volume_admin_done(void *context, enum repl_admin op, int status);
void volume_tell_admin(struct replio_volume *v);

/* volume_io.c */
/* store_ops.submit */
void volume_submit(struct store *s, struct store_io *io);
void volume_client(struct store *s, uint64_t client, bool gone);
/* An action of the core: the request waits until its owner can be told. */
void volume_complete(void *context, struct repl_io *io, int status);
/* Tells the owners of all that are complete. */
void volume_tell(struct replio_volume *v);

/* volume_links.c */
void volume_listen(struct replio_volume *v, int fd);
void volume_end_links(struct replio_volume *v);
void volume_send(void *context, int link, const struct repl_msg *m, const struct iovec *iov, int n,
                 struct repl_buf *owner);
void volume_close_link(void *context, int link, const char *why);
