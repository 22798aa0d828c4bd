/*
 * orlop-bench.
 */
#include "bench/command.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{&bench_row, bench_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
