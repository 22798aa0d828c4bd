/*
 * orlop-replica: one replica of a volume, for as long as it is told.
 */
#pragma once

#include "cli/cli.h"

/* `orlop replica ...`. */
int replica_command(const struct cli_args *args);
