/*
 * orlop-target: what `orlop target` does.
 */
#include "target/target.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {{"target", target_command}, {NULL}};
    return cli_program_main(argc, argv, handlers);
}
