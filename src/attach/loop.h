/*
 * Loop devices that have an attached volume below them.
 *
 * Ours carry a label, "orlop:FOLDER:VOLUME", both as hashes: the backing file is opened by that name, which
 * the file system knows for the volume besides its usual one. sysfs keeps it as long as the device is bound,
 * whatever became of the process, of the file system and of the place where it was mounted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define ATTACH_LABEL_BEGIN "orlop:"

enum { ATTACH_LABEL_SIZE = 64, ATTACH_DEVICE_SIZE = 32 };

struct attach_loop {
    char path[ATTACH_DEVICE_SIZE]; /* /dev/loopN */
    char label[ATTACH_LABEL_SIZE];
    dev_t file_system; /* that the backing file is on; 0: it is dead */
    uint64_t size;
};

void attach_loop_label(const char *folder, const char *id, char label[ATTACH_LABEL_SIZE]);
/* The part of a label that all volumes of a folder share. */
void attach_loop_prefix(const char *folder, char prefix[ATTACH_LABEL_SIZE]);

/* Those whose label begins with that; *ret is to be freed. */
int attach_loop_list(const char *prefix, struct attach_loop **ret, size_t *ret_count,
                     struct err *e);
/* On the file of that label in the mount, with direct I/O, no I/O scheduler, and these logical blocks. */
int attach_loop_make(const char *mount, const char *label, uint32_t block_size,
                     struct attach_loop *ret, struct err *e);
/* Takes the size of the file; *ret_size is the device's afterwards. */
int attach_loop_grow(const char *path, uint64_t *ret_size, struct err *e);
/* Somebody has the device for themselves: a file system is mounted, or it is in a volume group. */
bool attach_loop_in_use(const char *path);
/* Writes out what the kernel has for it, and has the target flush; DEADLINE_EXCEEDED when that takes longer. */
int attach_loop_flush(const char *path, int64_t within_ns, struct err *e);
/* That it is gone is success. A device that is still open goes with its last user. */
int attach_loop_remove(const char *path, struct err *e);
