/*
 * orlop-bench: what `orlop bench` does.
 */
#include "bench/command.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{"bench", bench_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
