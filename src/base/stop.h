/*
 * How a program is told to stop: by SIGINT or SIGTERM, which make a descriptor readable. The second
 * signal does not ask.
 */
#pragma once

#include "base/err.h"

/* Catches the signals; *ret_fd lives as long as the program. */
int stop_catch(int *ret_fd, struct err *e);
/* The same as a signal. */
void stop_ask(void);
