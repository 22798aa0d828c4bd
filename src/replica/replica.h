/*
 * orlop-replica: one replica of a volume, for as long as it is told.
 */
#pragma once

#include "base/err.h"

/* erase.c: that there is no such folder is success; FAILED_PRECONDITION: it is not this volume's, in use, or
 * one of `except`: UUIDs of replicas with a comma between. */
struct uuid;
int replica_erase(const char *dir, const struct uuid *volume, const char *except, struct err *e);
