/*
 * orlop-attach.
 */
#include "attach/command.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{&attach_row, attach_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
