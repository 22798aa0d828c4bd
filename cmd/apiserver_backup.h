/*
 * `orlop backup` and `orlop restore`.
 */
#pragma once

#include "cli/cli.h"

int run_backup(const struct cli_args *args);
int run_restore(const struct cli_args *args);
