/*
 * A listening TCP socket whose connections notice peers that vanish without a word: one that answers
 * neither data nor keep-alive probes is given up after about a minute.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* The address is numeric; port 0 is any. The socket does not block and is closed on exec. */
int http_listen(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port, struct err *e);
