/*
 * Devices that misbehave, for tests: rules for what the engine's devices do. With no rule set the
 * cost is one load for each request.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum zpool_fault_op { ZPOOL_FAULT_READ = 1, ZPOOL_FAULT_WRITE = 2, ZPOOL_FAULT_SYNC = 4 };

enum zpool_fault_kind {
    ZPOOL_FAULT_EIO,
    ZPOOL_FAULT_LOSE,    /* WRITE, SYNC: says it is done and does nothing */
    ZPOOL_FAULT_TEAR,    /* WRITE: does the first half, says all is done */
    ZPOOL_FAULT_CORRUPT, /* READ: some bytes of what is read are others */
    ZPOOL_FAULT_SLOW,    /* all: takes delay_ms longer */
    ZPOOL_FAULT_VOLATILE, /* WRITE: about half of it stays in memory until the next sync, as in a disk
                             with a cache that loses power: what is there dies with the process */
};

struct zpool_fault {
    const char *path; /* of the device; its end suffices; kept while the rule is set */
    unsigned ops;     /* of enum zpool_fault_op */
    enum zpool_fault_kind kind;
    uint64_t from, to; /* requests that touch these bytes; 0, 0: all */
    unsigned skip;     /* that many such requests are let through first */
    unsigned delay_ms;
};

enum { ZPOOL_FAULTS_MAX = 16 };
/* These rules from now on, instead of those before; the first that fits a request is done. */
void zpool_fault_set(const struct zpool_fault *rules, unsigned n);
/* Requests that a rule was done to, since zpool_fault_set(). */
uint64_t zpool_fault_count(void);
