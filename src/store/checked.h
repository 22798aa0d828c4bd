/*
 * A file whose content is compared with checksums when it is read: a store on a file (file.h) and its checksums
 * (sums.h). A chain's layers are such stores where it keeps checksums. Private to the store.
 */
#pragma once

#include "store/sums.h"

struct checked_options {
    struct sums_cache *cache;
    const char *name; /* of the file, as store_file_open() takes it */
    const char *path; /* of the file */
    const char *sums; /* path of the checksums */
    struct uuid identity;
    uint32_t layer;
    bool any_identity; /* whatever identity it has is taken */
};

/* Everything is there and belongs together, or it is ERR_DATA_LOSS "DamagedStore". */
struct store *checked_open(const struct checked_options *co, const struct store_options *o,
                           struct err *e);
struct sums_file *checked_sums(struct store *s);
/* The file below; s itself where there are no checksums. */
struct store *checked_file(struct store *s);
/*
 * Checksums as they are stored, for who copies granules with them: of n granules from the first on, taken or put. 0,
 * an errno value, or -1: wait->ready will be called, then again.
 */
int checked_carry(struct store *s, uint64_t first, unsigned n, uint32_t *sums, bool put,
                  struct sums_wait *wait);
