/*
 * orlop-pool.
 */
#include "pool/command.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{&pool_serve_row, pool_serve_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
