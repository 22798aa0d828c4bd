/*
 * What orlop-bench does for the command of src/cli/bench.c.
 */
#pragma once

#include "cli/cli.h"

int bench_command(const struct cli_args *args);
