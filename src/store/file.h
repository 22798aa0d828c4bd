/*
 * A sparse file as a store; private to file*.c.
 */
#pragma once

#include "io/loop.h"
#include "store/impl.h"

struct file {
    struct store store;
    struct io_loop *loop;
    char *path;
    int fd;
    bool direct;
    bool no_nowait; /* this file system cannot say "not in the cache": it is asked to read */
    bool no_punch, no_zero; /* nor these; zeroes are written instead */
    bool syncing;           /* one fdatasync is under way; the next serves all who wait meanwhile */
    struct list_link synced; /* whom it serves */
    struct list_link waiting;
    struct io_request sync;
    struct io_deferred sync_later;
    int broken; /* an fdatasync failed: nothing can be called durable any more */
};

/* What a store_io's state holds while a file works on it. */
struct file_io {
    struct io_request request;
    struct io_buf *bounce; /* O_DIRECT, memory that is not aligned: see file_io.c */
    uint64_t done;         /* bytes so far */
    struct iovec rest[2];  /* vectors, when some are done with */
};

_Static_assert(sizeof(struct file_io) <= sizeof(((struct store_io *)0)->state),
               "state is too small");

static inline struct file *file_of(struct store *s)
{
    return container_of(s, struct file, store);
}

/* READ and WRITE. */
void file_transfer(struct file *f, struct store_io *io);
/* UNMAP and ZERO. */
void file_clear(struct file *f, struct store_io *io);
/* FLUSH, and the end of what has fua: done when durable. */
void file_sync(struct file *f, struct store_io *io);
