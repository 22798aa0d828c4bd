/*
 * Asks a process that serves an attached volume; see control.h for what there is to ask.
 */
#pragma once

#include <stdint.h>
#include <sys/un.h>

#include "base/err.h"
#include "json/json.h"

/* A path of any length: *ret_folder is a descriptor that must be open while the address is used. */
int attach_address(const char *path, struct sockaddr_un *ret, int *ret_folder, struct err *e);
/* UNAVAILABLE: nobody answers; FAILED_PRECONDITION: what was answered is an error. */
int attach_ask(const char *path, const char *request, int64_t within_ns, json_t **ret,
               struct err *e);
