/*
 * Opening a device that nobody else uses, as the kernel sees it: that includes mounts of other
 * containers and files that other programs have open, which we could not find out ourselves.
 */
#pragma once

#include "base/err.h"

/* A descriptor; FAILED_PRECONDITION, "Busy", when somebody uses it. Links are not followed. */
int node_open_exclusive(const char *path, int flags, struct err *e);
