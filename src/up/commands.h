/*
 * What orlop-up does for the commands of src/cli/up.c.
 */
#pragma once

#include "cli/cli.h"

int up_command_up(const struct cli_args *args);
int up_command_down(const struct cli_args *args);
int up_command_status(const struct cli_args *args);
int up_command_logs(const struct cli_args *args);
int up_command_token(const struct cli_args *args);
