/*
 * orlop-pool: what `orlop pool serve` does.
 */
#include "pool/pool.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{"pool serve", pool_serve_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
