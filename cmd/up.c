/*
 * orlop-up: what `orlop up`, `down`, `status`, `logs` and `token` do.
 */
#include "up/commands.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {
        {"up", up_command_up},     {"down", up_command_down},   {"status", up_command_status},
        {"logs", up_command_logs}, {"token", up_command_token}, {NULL},
    };
    return cli_program_main(argc, argv, handlers);
}
