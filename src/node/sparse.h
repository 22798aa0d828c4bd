/*
 * Sparse files as block devices, to try things out without disks.
 *
 * DATA/sparse/INDEX-UUID.img: the name is the identity, so it survives restarts, and a file that
 * somebody removed comes back as another device, never as the old one with its data gone. Files grow
 * when they are asked to be larger. None is ever shortened or removed here.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct node_sparse {
    unsigned count;
    uint64_t size;
};
enum { NODE_SPARSE_MAX = 1000 };

/* "3x10Gi". */
int node_sparse_parse(const char *text, struct node_sparse *ret, struct err *e);
/* Makes what is missing and lets grow what is too small. */
int node_sparse_make(const char *folder, const struct node_sparse *want, struct err *e);
/* How many bytes the files promise beyond what the file system has left for them; 0: none. */
uint64_t node_sparse_overcommitted(const char *folder);
