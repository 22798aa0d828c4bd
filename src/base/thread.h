/*
 * A thread of the program's own: signals are for those that wait for them, and a stack is small, as
 * the kernel may back a large one with huge pages of memory.
 */
#pragma once

#include <pthread.h>

#include "base/err.h"

/* name is shown by ps and debuggers, its first 15 bytes. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *context), void *context,
                 struct err *e);
