/*
 * The command lines of the programs of a system: the one place that knows them.
 */
#pragma once

#include "up/child.h"
#include "up/supervisor.h"

#define UP_NAMESPACE "openebs"

/* The API server: the first child. */
void up_programs_server(const struct up_options *o, struct up_child **children, size_t *n);
/* From now on the API server listens where it said that it does, also when it had a choice. */
void up_programs_stay(struct up_child *server, const char *url);
/*
 * Ends what nodes of the folder have left running, such as those that were killed. None may be at
 * work.
 */
void up_programs_clean(const struct up_options *o);
/* The controllers and the nodes, which join with the token: the rest. */
int up_programs_add(const struct up_options *o, const char *url, const char *token,
                    struct up_child **children, size_t *n, struct err *e);
