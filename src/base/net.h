/*
 * Addresses as text, and TCP sockets that notice peers that vanish without a word: one that answers
 * neither data nor keep-alive probes is given up after about a minute.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The address is numeric; port 0 is any. The socket does not block and is closed on exec. */
int net_listen(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port, struct err *e);

/*
 * The same where a predecessor may just have been killed: the kernel closes sockets of an io_uring some
 * time after the process is gone, so an address in use is asked for again, for two seconds.
 */
int net_listen_again(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port,
                     struct err *e);

/*
 * Begins to connect to a numeric address, from one of ours or, with source NULL, from any. The socket
 * does not block; what is sent leaves when the connection stands, and that it does not is an error of
 * the first receive.
 */
int net_dial(const char *address, uint16_t port, const char *source, int *ret_fd, struct err *e);

/* "ADDRESS", "ADDRESS:PORT", "[ADDRESS]:PORT"; *ret_address is the caller's to free. */
int net_parse(const char *text, uint16_t default_port, char **ret_address, uint16_t *ret_port,
              struct err *e);

/* Only programs of this machine reach it. Text that is no address does not count. */
bool net_is_loopback(const char *address);
/* The address without the port; that of a v4 client of a v6 socket as v4. "" for other families. */
struct sockaddr;
void net_address_text(const struct sockaddr *address, char *text, size_t size);
