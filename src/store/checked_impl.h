/*
 * A file with checksums; private to checked*.c.
 */
#pragma once

#include "store/checked.h"

struct checked {
    struct store store;
    struct store *file;
    struct sums_file *sums;
    struct io_loop *loop;
    struct list_link active, waiting, free_ops; /* those that change something, or must run alone */
    struct list_link flush_waiting, flush_served;
    struct store_io flush;
    unsigned flushes;
    int flush_error;
};

static inline struct checked *checked_of(struct store *s)
{
    return container_of(s, struct checked, store);
}

/* READ, WRITE, UNMAP, ZERO, RESUM. */
void checked_run(struct checked *c, struct store_io *io);
void checked_free_ops(struct checked *c);
