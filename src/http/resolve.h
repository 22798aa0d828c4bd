/*
 * From a host and port to addresses, in the order in which to try them.
 *
 * An address in writing is itself. A name is looked up on a thread of its own, because the system's
 * resolver can neither be given a deadline nor be interrupted; who no longer waits leaves it behind,
 * and it frees what it has when it ends. There are only so many such threads at a time.
 */
#pragma once

#include <sys/socket.h>

#include "http/wait.h"

enum { HTTP_ADDRESSES = 16 };

struct http_address {
    struct sockaddr_storage storage;
    socklen_t size;
};

struct http_addresses {
    struct http_address p[HTTP_ADDRESSES];
    size_t n; /* at least 1 */
};

int http_resolve(const char *host, uint16_t port, const struct http_wait *w,
                 struct http_addresses *ret_addresses, struct err *e);
bool http_is_address(const char *host);
