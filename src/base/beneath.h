/*
 * Files that lie below a folder, wherever names and links in it lead.
 *
 * Invariant: a descriptor that is returned is of something that was below the folder when it was opened. A
 * path that leads out, by "..", by a link, or by being absolute, is EXDEV, and nothing is made outside. The
 * kernel decides (openat2); where it cannot, or may not be asked, the descriptor is looked at after opening.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* As openat(), but never with O_CREAT and O_TRUNC; errno is set. A link at the end is followed if it stays. */
int beneath_open(int folder, const char *path, int flags);
/* Where the path leads is appended to *ret_real. NOT_FOUND; INVALID_ARGUMENT for one that leads out. */
int beneath_find(const char *folder, const char *path, struct str *ret_real, struct err *e);
/*
 * Makes the folders of the path that are missing; where it leads is appended to *ret_real. INVALID_ARGUMENT for
 * one that leads out.
 */
int beneath_make(const char *folder, const char *path, mode_t mode, struct str *ret_real,
                 struct err *e);
