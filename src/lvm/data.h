/*
 * The bytes of a volume without its device: through the physical volumes, by its segments.
 *
 *     volume    |---- segment 0, linear ----|-- segment 1, two stripes --|
 *                        |                     |  |  |  |  |  |  |
 *     disk x   [label|  extents 0..24  ]       a     c     e     g
 *     disk y   [label|  ...                       b     d     f
 *
 * A byte is at: the start of the disk's first extent + extent * extent size; of stripes, piece p is on
 * disk p mod n, at (p div n) pieces. Linear and striped segments only. Nobody may change the volume
 * meanwhile: the view must be of now.
 */
#pragma once

#include "lvm/lvm.h"

/* FAILED_PRECONDITION for volumes of other types, OUT_OF_RANGE beyond the end. write syncs. */
int lvm_data_read(const struct lvm_view *v, const char *vg, const char *lv, uint64_t from,
                  void *buffer, size_t size, struct err *e);
int lvm_data_write(const struct lvm_view *v, const char *vg, const char *lv, uint64_t from,
                   const void *buffer, size_t size, struct err *e);
/* Zeros over the first and the last mebibyte, where what names a content is kept. */
int lvm_data_wipe(const struct lvm_view *v, const char *vg, const char *lv, struct err *e);
