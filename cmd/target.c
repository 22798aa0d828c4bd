/*
 * orlop-target.
 */
#include "target/command.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{&target_row, target_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
