/*
 * Threads for work that may block. There are as many as there is work, up to a limit; then work
 * waits its turn, first come, first served. Threads that find nothing to do for a while go away.
 */
#pragma once

#include <stdbool.h>

struct http_pool;

struct http_pool *http_pool_new(unsigned most_threads);
/* Calls fn(context) soon, on another thread. False once the pool is stopping, or without threads. */
bool http_pool_run(struct http_pool *p, void (*fn)(void *context), void *context);
/* Lets all work finish; takes no more. */
void http_pool_stop(struct http_pool *p);
/* Of one that was stopped. NULL is ignored. */
void http_pool_free(struct http_pool *p);
