/*
 * What is written on a device: signatures of file systems, volume managers and partition tables, as
 * libblkid knows them, and our own label.
 *
 * Reading a broken disk can hang in the kernel, and what stands on it is hostile: so a child of our
 * own reads, with a deadline, and says what it found in lines of text. What was found is kept until
 * the device was written to: a disk that sleeps is not woken to be looked at again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/map.h"

enum { NODE_PARTITIONS_MAX = 128 };

struct node_partition {
    unsigned number;
    char uuid[48]; /* "" when the table has none */
};

struct node_probe {
    bool failed;         /* it could not be read: see error */
    bool several;        /* signatures of more than one kind */
    char type[32];       /* "ext4", "LVM2_member", "zfs_member"; "" */
    char usage[16];      /* "filesystem", "raid", "crypto", "other" */
    char uuid[64];       /* of the file system */
    char table[16];      /* "gpt", "dos"; "" */
    char table_uuid[48]; /* of the disk; "" */
    char label[64];      /* name of the BlockDevice in our own label; "" */
    size_t n_partitions;
    struct node_partition *partitions; /* owned */
    char error[160];
};
void node_probe_done(struct node_probe *p);
void node_probe_copy(const struct node_probe *from, struct node_probe *ret);

/* Reads the device here and now. What cannot be read is a result, too. */
void node_probe_read(const char *path, struct node_probe *ret);
/* As lines, and back; lines that are no such are INVALID_ARGUMENT. */
void node_probe_format(const struct node_probe *p, FILE *out);
int node_probe_parse(const char *text, struct node_probe *ret, struct err *e);

/* Probes with a memory. Not for several threads at once. */
struct node_prober {
    const char *program; /* run as "PROGRAM probe PATH"; NULL: node_probe_read() in this process */
    struct map known;    /* path -> what was found and when */
};
void node_prober_done(struct node_prober *p);
/*
 * state: text that changes when the device was written to; NULL: nothing is known, always read.
 */
void node_prober_read(struct node_prober *p, const char *path, const char *state,
                      struct node_probe *ret);
/* Forgets it, so that the next one reads. */
void node_prober_forget(struct node_prober *p, const char *path);
