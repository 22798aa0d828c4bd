/*
 * Files as wholes: read one, replace one so that a crash leaves the old or the new, make and remove
 * directories. Every error names the path.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/*
 * Appends the content of a regular file to *s; a file longer than limit is OUT_OF_RANGE and on
 * failure *s is as it was. Files of /proc and /sys, which claim to be empty, are read too.
 */
int file_read(const char *path, size_t limit, struct str *s, struct err *e);

/*
 * Makes path hold exactly these bytes with this mode (the umask does not apply), durably: returns 0
 * only when the data and the name are on disk. Whoever reads meanwhile sees all of the old or all
 * of the new. A symlink is replaced, not followed. On failure the old file is untouched, except
 * that when only the last sync of the directory fails the new one may already be in place. A crash
 * in the middle can leave a file ".replace-..." beside it, which means nothing.
 */
int file_replace(const char *path, const void *data, size_t size, mode_t mode, struct err *e);

/* Makes the directory and those above it that are missing. One that exists keeps its mode. */
int file_make_dirs(const char *path, mode_t mode, struct err *e);

/*
 * Removes path and everything below it. Symlinks are removed, not followed, whoever plants them
 * meanwhile; a mount point, directory or file, path itself included, is refused with
 * FAILED_PRECONDITION rather than emptied. That path does not exist is success. After a failure part
 * of the tree may be gone.
 */
int file_remove_tree(const char *path, struct err *e);

/*
 * Locks a descriptor's file for this process, shared with others who only share; -1 when somebody else has
 * it. The lock of a process that was killed goes when the last I/O it had submitted is done, which the
 * kernel sees to after its end: so it is waited for, up to five seconds, and no write of the dead can come
 * after one of the living.
 */
int file_lock(int fd, bool shared);
