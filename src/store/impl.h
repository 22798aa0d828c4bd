/*
 * The kinds of stores, for store_open().
 */
#pragma once

#include "store/store.h"

/* rest is what stands behind "file:". A chain is of files, each of them a store. */
struct store *store_chain_open(const char *rest, const struct store_options *o, struct err *e);
struct store *store_file_open(const char *rest, const struct store_options *o, struct err *e);
int store_file_fd(struct store *s);
int store_file_check(const char *rest, struct err *e);
struct store *store_mem_open(const char *rest, const struct store_options *o, struct err *e);
struct store *store_fault_open(const char *rest, const struct store_options *o, struct err *e);
struct store *store_volatile_open(const char *rest, const struct store_options *o, struct err *e);

/* Ends an I/O. */
static inline void store_done(struct store_io *io, int error)
{
    io->done(io, error);
}
