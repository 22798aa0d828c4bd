/*
 * The command lines of the programs of a system: the one place that knows them.
 */
#pragma once

#include "up/child.h"
#include "up/supervisor.h"

#define UP_NAMESPACE "openebs"

/* The API server: the first child. */
void up_programs_server(const struct up_options *o, struct up_child **children, size_t *n);
/* The controllers and the nodes, which join with the token: the rest. */
int up_programs_add(const struct up_options *o, const char *url, const char *token,
                    struct up_child **children, size_t *n, struct err *e);
