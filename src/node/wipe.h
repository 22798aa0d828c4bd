/*
 * Making a device that was released empty again: no signature, no partition table.
 *
 * The kernel is asked for the device exclusively and refuses while anything uses it. The first and
 * the last mebibyte, where everybody keeps what names a device, become zeros, and then every other
 * signature that libblkid knows. A sparse file loses all its content. Data of a disk is not
 * overwritten. A label of ours stays in its place all the while: it is what the device is known by.
 */
#pragma once

#include "base/err.h"

/* FAILED_PRECONDITION when somebody uses it; returns 0 only when a new probe found nothing. */
int node_wipe(const char *path, struct err *e);
/* The same in a child, "PROGRAM wipe PATH", with a deadline. program NULL: here. */
int node_wipe_with(const char *program, const char *path, struct err *e);
