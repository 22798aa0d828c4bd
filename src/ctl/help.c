/*
 * orlop help and version.
 */
#include "cli/cli.h"

static int run_version(const struct cli_args *args)
{
    puts("orlop " ORLOP_VERSION);
    return cli_finish(args);
}

CLI_COMMAND(version_command) = {
    .name = "version",
    .topic = CLI_OTHER,
    .summary = "Show the version",
    .doc = "Prints the version of this program.",
    .run = run_version,
};

static int run_help(const struct cli_args *args)
{
    int words = 0;
    const struct cli_command *command =
        args->count ? cli_command_at(args->count, args->words, &words) : NULL;
    if (words < args->count || (args->count && !command))
        return cli_fail(args, "there is no command '%s%s%s'", args->words[0],
                        args->count > 1 ? " " : "", args->count > 1 ? args->words[1] : "");
    cli_help(command, stdout);
    return cli_finish(args);
}

CLI_COMMAND(help_command) = {
    .name = "help",
    .topic = CLI_OTHER,
    .arguments = "[COMMAND]",
    .most = 2,
    .summary = "Show the help of a command",
    .doc = "Lists the commands, or describes one.",
    .complete = CLI_COMMANDS,
    .run = run_help,
};
