/*
 * The control socket of `orlop attach serve`: a line asks, a line of JSON answers.
 *
 *     status      what the volume and the session are, and counts
 *     rescan      the same, once the target was asked for the size anew
 *
 * Only root reaches it. Its path may be longer than a socket's address: it is reached through its folder.
 */
#pragma once

#include <poll.h>

#include "attach/worker.h"

enum { ATTACH_CLIENTS = 8, ATTACH_CONTROL_FDS = ATTACH_CLIENTS + 1 };

int attach_control_listen(const char *path, int *ret_fd, struct err *e);

struct attach_control;
struct attach_control *attach_control_new(const struct attach_worker *w,
                                          struct attach_session *session);
void attach_control_free(struct attach_control *c);
/* Fills at most ATTACH_CONTROL_FDS; how many. */
unsigned attach_control_poll(const struct attach_control *c, struct pollfd *p);
void attach_control_service(struct attach_control *c, const struct pollfd *p, unsigned n);
