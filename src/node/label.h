/*
 * Our label: the name of its BlockDevice on a device that has no identity of its own.
 *
 *     byte 3072   "ORLOPBD1"  8 bytes
 *          3080   name        64 bytes, ends with NULs
 *          3144   zeros
 *          3580   CRC-32C of the bytes before it, little endian
 *
 * It is written when the device is claimed, again after a wipe, and at no other time. Those 512 bytes
 * lie where ZFS (whose label begins with 8 KiB that it leaves alone), LVM, and XFS with 512-byte sectors
 * keep nothing. Other file systems overwrite it; then the agent knows the device by what it saw before
 * and by the file system's UUID, and where both fail the BlockDevice, which remembers that there was a
 * label, goes Inactive in place of naming another disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { NODE_LABEL_OFFSET = 3072, NODE_LABEL_SIZE = 512, NODE_LABEL_NAME = 64 };

/* False when there is none, or one that is damaged. */
bool node_label_decode(const unsigned char block[NODE_LABEL_SIZE], char ret_name[NODE_LABEL_NAME]);
void node_label_encode(const char *name, unsigned char ret_block[NODE_LABEL_SIZE]);
/* Durably; reads it back. FAILED_PRECONDITION when somebody uses the device. */
int node_label_write(const char *path, const char *name, struct err *e);
