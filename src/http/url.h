/*
 * A URL taken apart: http(s)://host[:port][/path][?query]. A fragment is dropped; a user is refused,
 * since passwords do not belong there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct http_url {
    bool tls;
    char host[256]; /* an IPv6 address without its brackets */
    uint16_t port;
    const char *target; /* path and query, in the text; may lack its first slash */
    size_t target_size;
};

int http_url_parse(const char *text, struct http_url *ret_url, struct err *e);
