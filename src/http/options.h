/*
 * What a server was asked for, checked and with the defaults in place.
 */
#pragma once

#include "http/server.h"

/* What *ret_options points to is still the caller's. */
int http_options_take(const struct http_server_options *o, struct http_server_options *ret_options,
                      struct err *e);
