/*
 * A file system of one file, which is the volume: libfuse's side of `orlop attach serve`.
 *
 * Whoever made the mount owns the descriptor of /dev/fuse. It outlives a process that serves it: the
 * kernel keeps requests that were not answered, and a successor asks for them again (Linux 6.9). The
 * kernel says its greeting, FUSE_INIT, once; a successor is told the greeting that the first one heard.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/session.h"

enum { ATTACH_GREETING_MOST = 1024 };

/* In memory that processes which serve the same mount share. */
struct attach_greeting {
    uint32_t length; /* 0: not heard yet */
    uint8_t bytes[ATTACH_GREETING_MOST];
};

struct attach_file;

/* fuse: the descriptor, which does not block. Takes over what a predecessor left, if there was one. */
struct attach_file *attach_file_new(int fuse, struct attach_greeting *greeting,
                                    struct attach_session *session, struct err *e);
/* Answers nothing: whatever is under way must have been answered. */
void attach_file_free(struct attach_file *f);

/* Reads requests until there are no more, and submits them. False when the mount is gone. */
bool attach_file_service(struct attach_file *f);
/* The kernel forgets the size that it knows. */
void attach_file_changed(struct attach_file *f);
