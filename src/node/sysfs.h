/*
 * Small files of the kernel, as text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* The first line of DIR/NAME without blanks around it, in the arena; NULL when it cannot be read.
 * What no terminal should see is "?". */
const char *node_sysfs_text(struct arena *a, const char *dir, const char *name);
/* The number that it is; fallback when it is none. */
uint64_t node_sysfs_number(const char *dir, const char *name, uint64_t fallback);
/* The field'th word of a text, from 0, as a number; false when it is none. */
bool node_sysfs_field(const char *text, unsigned field, uint64_t *ret);
bool node_sysfs_has(const char *dir, const char *name);
/* Names in DIR/NAME, joined with ", "; NULL when there are none. */
const char *node_sysfs_names(struct arena *a, const char *dir, const char *name);
