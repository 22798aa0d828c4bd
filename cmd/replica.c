/*
 * orlop-replica.
 */
#include "replica/command.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{&replica_row, replica_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
