/*
 * orlop-replica: what `orlop replica` does.
 */
#include "replica/replica.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{"replica", replica_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
